"""The ops that a step of PyTorch calls, in order: a dispatch mode that tells a recorder of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from .....base.runs.called_op import RECOMPUTE, CalledOp
from ..arrays import is_reading, reading
from ..layer_tape import LayerTape
from ..module_call import is_inside
from ..tensor_digests import KnownDigests, TensorDigests
from .blank_memory import BlankMemory
from .known_op import KnownOp

_Tensors: TypeAlias = dict[int, Any]
"""Tensors by their identity, in their order."""

Write: TypeAlias = Callable[[int, Sequence[CalledOp]], None]
"""What is told of calls, with the number of the first of them in the step."""

Settled: TypeAlias = Callable[[Any], Any]
"""Gives the digests for what stands for them."""

_SECONDS = 0.1
"""No call is held back for longer when the next one begins, but where all of a step are written together."""


class Together(NamedTuple):
    """How many calls, or digests, are written together at most, and whether none is held back for long."""

    calls: int = 64
    digests: int = 1 << 12
    soon: bool = True


WHOLE_STEP = Together(1 << 14, 1 << 17, soon=False)
"""As few frames as may be, at the same places in each run: for a trace that nobody reads before it has ended."""


class _Begun(NamedTuple):
    """A call that is at work."""

    op: KnownOp
    options: str
    inputs: tuple[Any, ...]
    phase: str
    scope: str
    place: str
    generator: Any

    def ended(self, settled: Settled, outputs: tuple[Any, ...], *, raised: bool = False) -> CalledOp:
        """The call, with what it gave; digests are settled."""
        digests = settled(self.inputs), settled(outputs)
        said = (self.op.name, self.options, *digests, self.phase, self.scope, self.place)
        return CalledOp(*said, draws=self.op.draws, raised=raised, generator=settled((self.generator,))[0])


class OpCalls:
    """Notes every op that is called between `start` and `stop`, and what it takes and gives.

    An op that may wait for others, or begins long after the last writing, is written before it runs, as one that is
    at work: a run that hangs there shows it.

    Steps that end in a backward pass are ``behind``: PyTorch takes up the dispatch modes of before when one ends, so
    the mode is entered once and stays until `leave`.
    """

    def __init__(
        self,
        torch: Any,
        layers: LayerTape,
        made: TensorDigests,
        write: Write,
        together: Together | None = None,
        *,
        behind: bool,
    ) -> None:
        self._together, self._behind = together or Together(), behind
        self._torch, self._layers, self._write_calls = torch, layers, write
        self._tensor: type[Any] = torch.Tensor
        self._nothing = made.of_array(np.empty(0, np.uint8))
        self._known = dict[int, KnownOp]()
        self._digest = layers.digest = KnownDigests(made)
        self._mode: AbstractContextManager[Any] | None = None
        self._noting = False
        self._begin()
        if behind:
            self._enter()

    def _begin(self) -> None:
        self.is_optimizing = self._is_behind = False
        self._held = list[tuple[_Begun, tuple[Any, ...]]]()
        self._first, self._digested, self._written = 0, 0, monotonic()
        self._blank = BlankMemory()

    def start(self) -> None:
        """Note from now on the ops of a step."""
        self._begin()
        self._noting = True
        if not self._behind:
            self._enter()

    def stop(self) -> None:
        """Note no more, and write what is held back; no effect where nothing is noted."""
        if not self._noting:
            return
        self._noting = False
        if not self._behind:
            self.leave()
        self._write()
        self._digest.clear()

    def _enter(self) -> None:
        self._mode = _mode(self._torch, self._called)
        self._mode.__enter__()

    def leave(self) -> None:
        """Take the mode away; no effect where there is none."""
        if self._mode is not None:
            mode, self._mode = self._mode, None
            mode.__exit__(None, None, None)

    def _called(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an op, and note it."""
        known = self._known.get(id(op)) or self._known.setdefault(id(op), KnownOp.of(self._torch, op))
        if known.is_unseen or not self._noting or is_reading():
            return op(*args, **kwargs)
        taken, changed, texts = _Tensors(), _Tensors(), list[str]()
        for (name, is_write), value in known.told(args, kwargs):
            text = self._read(value, taken)
            if text is not None:
                texts.append(f"{name}={text}")
            if is_write:
                self._read(value, changed)
        in_backward = self._layers.is_backward() and not (self._behind and self.is_optimizing)
        phase, at_work = self._phase(known, in_backward=in_backward), self._layers.at_work(in_backward=in_backward)
        said = ", ".join(texts), self._digests(taken), phase, *at_work
        begun = _Begun(known, *said, self._generator(taken, kwargs) if known.draws else b"")
        if self._together.soon and (known.is_collective or monotonic() - self._written > _SECONDS):
            self._write(begun)
        try:
            given = op(*args, **kwargs)
        except BaseException:
            self._digest.clear()
            self._write(begun)
            self._first += 1
            raise
        self._gave(begun, taken, given, changed)
        return given

    def _gave(self, begun: _Begun, taken: _Tensors, given: Any, changed: _Tensors) -> None:
        """Note what an op gave, and what it changed."""
        op, made = begun.op, _Tensors()
        self._read(given, made)
        if changed or op.is_watched:
            self._wrote(op, [*taken.values(), *made.values()], changed.values())
        if op.is_blank or self._blank.places:
            self._blank.follow(taken.values(), made.values(), changed.values(), is_blank=op.is_blank)
        outputs = self._digests({**made, **changed} if changed else made)
        self._held.append((begun, outputs))
        self._digested += len(begun.inputs) + len(outputs)
        if len(self._held) >= self._together.calls or self._digested >= self._together.digests:
            self._write()

    def _wrote(self, op: KnownOp, tensors: Sequence[Any], written: Iterable[Any]) -> None:
        """An op has run: digests that no longer hold are forgotten."""
        if op.may_be_late and (op.is_collective or not all(tensor.is_cpu for tensor in tensors)):
            for tensor in tensors:
                self._digest.distrust(tensor)
        for tensor in written if op.tells_writes else tensors:
            self._digest.forget(tensor)

    def _generator(self, taken: _Tensors, kwargs: Mapping[str, Any]) -> Any:
        """The digest of the state of the generator that an op is given, or of PyTorch's own; empty but on the CPU."""
        device = kwargs.get("device")
        if not all(tensor.is_cpu for tensor in taken.values()) or (device is not None and device.type != "cpu"):
            return b""
        with reading():
            generator = kwargs.get("generator") or self._torch.default_generator
            return self._digest(generator.get_state())

    def _phase(self, op: KnownOp, *, in_backward: bool) -> str:
        if op.is_collective:
            return "collective"
        if in_backward:
            self._is_behind = True
            return RECOMPUTE if self._torch.is_grad_enabled() else "backward"
        if self.is_optimizing:
            return "optimizer"
        if not self._layers.is_outside:
            self._is_behind = False
            return "forward"
        if is_inside("nn/utils/clip_grad.py"):
            return "clip"
        return "between" if self._is_behind else "forward"

    def _digests(self, tensors: Mapping[int, Any]) -> tuple[Any, ...]:
        """Those of tensors, in their order."""
        digest = self._digest
        if not self._blank.places:
            return tuple([digest(tensor) for tensor in tensors.values()])
        return tuple([self._nothing if self._blank.has(each) else digest(each) for each in tensors.values()])

    def _read(self, value: Any, found: _Tensors) -> str | None:
        """Add the tensors in lists of lists, each once; the text of an option, the same in each run, None for them."""
        kind = cast(type[Any], value.__class__)
        if kind in _PLAIN:
            return repr(value)
        if isinstance(value, self._tensor):
            if not value.is_meta:
                found[id(value)] = value
            return None
        if isinstance(value, list | tuple):
            texts = [self._read(each, found) for each in cast(Sequence[Any], value)]
            return None if None in texts else f"[{', '.join(cast(list[str], texts))}]"
        named = kind.__module__ == "torch" and kind.__name__ in ("dtype", "device", "layout", "memory_format")
        return str(value) if named else repr(value) if isinstance(value, (*_PLAIN,)) else kind.__name__

    def _write(self, begun: _Begun | None = None) -> None:
        """Write what is held back, and behind it a call that is at work, which is written again once it has ended."""
        settled = self._digest.settled
        calls = [call.ended(settled, outputs) for call, outputs in self._held]
        if begun is not None:
            calls.append(begun.ended(settled, (), raised=True))
        if calls:
            self._write_calls(self._first, calls)
        self._first += len(self._held)
        self._held, self._digested, self._written = [], 0, monotonic()


_PLAIN = {type(None), bool, int, float, complex, str}


def _mode(torch: Any, called: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]) -> AbstractContextManager[Any]:
    """A dispatch mode that hands every op over."""

    def dispatched(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return called(func, args, kwargs or {})

    base = torch.utils._python_dispatch.TorchDispatchMode
    return cast(AbstractContextManager[Any], type("CalledOps", (base,), {"__torch_dispatch__": dispatched})())
