"""The ops that a step of PyTorch calls, in order: a dispatch mode that tells a recorder of them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from time import monotonic
from typing import Any, TypeAlias, cast

import numpy as np

from ....base.arrays import Array
from ....base.runs.called_op import RECOMPUTE, CalledOp
from .arrays import array, is_reading
from .layer_tape import LayerTape
from .module_call import is_inside

Write: TypeAlias = Callable[[int, Sequence[CalledOp]], None]
"""What is told of calls, with the number of the first of them in the step."""

_TOGETHER = 64
_DIGESTS = 1 << 12
_SECONDS = 0.1
"""So many calls, or digests, are written together, and none is held back for longer when the next one begins."""

_COLLECTIVE = ("c10d", "_c10d_functional")
_BLANK = re.compile(r"aten\.(new_)?empty(_like|_strided|_permuted)?\.|aten\.resize_")
"""What gives memory as it is found, whose bits mean nothing before they are written."""

_NOTHING: Array = np.empty(0, np.uint8)
"""What stands for such bits."""

_UNSEEN = ("profiler", "aten.detach.default", "aten.alias.default")
"""What computes nothing."""


class OpCalls:
    """Notes every op that is called between `start` and `stop`, and what it takes and gives.

    An op that may wait for others, or begins long after the last writing, is written before it runs, as one that is
    at work: a run that hangs there shows it.
    """

    def __init__(self, torch: Any, layers: LayerTape, digest: Callable[[Array], bytes], write: Write) -> None:
        self._torch, self._layers, self._digest, self._write_calls = torch, layers, digest, write
        self._mode: AbstractContextManager[Any] | None = None
        self._begin()

    def _begin(self) -> None:
        self.is_optimizing = self._is_behind = False
        self._first, self._held, self._digested, self._written = 0, list[CalledOp](), 0, monotonic()
        self._blank = _Blank()

    def start(self) -> None:
        """Note from now on the ops of a step."""
        self._begin()
        self._mode = _mode(self._torch, self._called)
        self._mode.__enter__()

    def stop(self) -> None:
        """Note no more, and write what is held back; no effect where nothing is noted."""
        if self._mode is None:
            return
        mode, self._mode = self._mode, None
        mode.__exit__(None, None, None)
        self._write()

    def _called(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an op, and note it."""
        name = str(op)
        if is_reading() or name.startswith(_UNSEEN):
            return op(*args, **kwargs)
        begun = self._begun(op, name, args, kwargs)
        if begun.phase == "collective" or monotonic() - self._written > _SECONDS:
            self._write(begun)
        try:
            given = op(*args, **kwargs)
        except BaseException:
            self._held.append(begun)
            self._write()
            raise
        changed = [value for argument, value in _told(op, args, kwargs) if argument.is_write]
        met = (list(self._tensors(values)) for values in (args, given, changed))
        self._blank.follow(*met, is_blank=_BLANK.match(name) is not None)
        outputs = self._digests([given, changed])
        self._held.append(_replaced(begun, outputs))
        self._digested += len(begun.inputs) + len(outputs)
        if len(self._held) >= _TOGETHER or self._digested >= _DIGESTS:
            self._write()
        return given

    def _begun(self, op: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CalledOp:
        """A call that is at work."""
        told = list(_told(op, args, kwargs))
        scope, place = self._layers.at_work()
        return CalledOp(
            name,
            ", ".join(f"{argument.name}={text}" for argument, value in told if (text := self._text(value)) is not None),
            self._digests([value for _, value in told]),
            (),
            self._phase(name),
            scope,
            place,
            draws=self._torch.Tag.nondeterministic_seeded in op.tags,
            raised=True,
        )

    def _phase(self, name: str) -> str:
        if name.startswith(_COLLECTIVE):
            return "collective"
        if self._layers.is_backward():
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

    def _digests(self, values: Any) -> tuple[bytes, ...]:
        """Those of the tensors in lists of lists, each once."""
        tensors = {id(tensor): tensor for tensor in self._tensors(values)}
        known = [None if self._blank.has(each) else array(each, copy=False) for each in tensors.values()]
        return tuple([self._digest(_NOTHING if each is None else each) for each in known])

    def _tensors(self, value: Any) -> Iterator[Any]:
        if isinstance(value, self._torch.Tensor):
            if value.device.type != "meta":
                yield value
        elif isinstance(value, list | tuple):
            for each in cast(Sequence[Any], value):
                yield from self._tensors(each)

    def _text(self, value: Any) -> str | None:
        """An option as text, the same in each run; None for what is no option."""
        if isinstance(value, list | tuple):
            texts = [self._text(each) for each in cast(Sequence[Any], value)]
            return None if None in texts and texts else f"[{', '.join(map(str, texts))}]"
        if isinstance(value, self._torch.Tensor):
            return None
        plain = value is None or isinstance(value, bool | int | float | complex | str)
        module = type(value).__module__
        named = module == "torch" and type(value).__name__ in ("dtype", "device", "layout", "memory_format")
        return repr(value) if plain else str(value) if named else type(value).__name__

    def _write(self, begun: CalledOp | None = None) -> None:
        """Write what is held back, and behind it a call that is at work, which is written again once it has ended."""
        calls = self._held if begun is None else [*self._held, begun]
        if calls:
            self._write_calls(self._first, calls)
        self._first += len(self._held)
        self._held, self._digested, self._written = [], 0, monotonic()


class _Blank:
    """Which memory has not been written as a whole since it was given out."""

    def __init__(self) -> None:
        self._places = set[int]()

    def has(self, tensor: Any) -> bool:
        """Whether the bits of a tensor may mean nothing."""
        return bool(self._places) and _place(tensor)[0] in self._places

    def follow(self, taken: list[Any], given: list[Any], changed: list[Any], *, is_blank: bool) -> None:
        """An op has run: what it took, what it gave, and what it wrote to."""
        if not is_blank and not self._places:
            return
        before = {_place(tensor)[0] for tensor in taken}
        for tensor in given:
            place = _place(tensor)[0]
            if is_blank:
                self._places.add(place)
            elif place not in before:
                self._places.discard(place)
        for place, nbytes, whole in map(_place, changed):
            if nbytes == whole and not is_blank:
                self._places.discard(place)


def _place(tensor: Any) -> tuple[int, int, int]:
    """Where the memory of a tensor lies, how many bytes it has, and how many the whole of that memory."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    if local.is_sparse:
        return 0, 0, 1
    memory = local.untyped_storage()
    return memory.data_ptr(), local.numel() * local.element_size(), memory.nbytes()


class _Argument:
    """A parameter of an op: its name, and whether the op writes to what is given for it."""

    __slots__ = ("is_write", "name")

    def __init__(self, name: str, *, is_write: bool) -> None:
        self.name, self.is_write = name, is_write


def _told(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[_Argument, Any]]:
    """What an op was called with, each with its parameter; those that were left out are left out."""
    declared = _declared(op)
    for name, value in {**dict(zip(declared, args, strict=False)), **kwargs}.items():
        yield declared[name], value


@lru_cache(maxsize=4096)
def _declared(op: Any) -> dict[str, _Argument]:
    """The parameters of an op, in their order."""
    arguments = op._schema.arguments
    writes = [argument.alias_info is not None and argument.alias_info.is_write for argument in arguments]
    return {each.name: _Argument(each.name, is_write=w) for each, w in zip(arguments, writes, strict=True)}


def _replaced(begun: CalledOp, outputs: tuple[bytes, ...]) -> CalledOp:
    """A call that has ended."""
    said = (begun.name, begun.options, begun.inputs, outputs, begun.phase, begun.scope, begun.place)
    return CalledOp(*said, draws=begun.draws)


def _mode(torch: Any, called: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]) -> AbstractContextManager[Any]:
    """A dispatch mode that hands every op over."""

    def dispatched(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return called(func, args, kwargs or {})

    base = torch.utils._python_dispatch.TorchDispatchMode
    return cast(AbstractContextManager[Any], type("CalledOps", (base,), {"__torch_dispatch__": dispatched})())
