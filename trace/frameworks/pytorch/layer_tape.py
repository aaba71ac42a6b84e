"""What the layers of a PyTorch model took and gave in one step, and the gradients that came back: its tape."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....base.runs.completed_step import CODE, CONSUMED, DigestedTape, TapeNode
from ....tape.graph.node import LEAF
from ....tape.location import CodePosition
from ..shared import leaves
from .arrays import dtype_word, local_part
from .graph_notes import GraphNotes, NotedValue
from .module_call import CodeBetween, Frames, ModuleCall, before, behind, lines, shown, until
from .tensor_digests import Digests
from .torch_modules import TorchModules, class_name


class LayerTape:
    """Hooks on every module of a model, which note what it takes and gives, in order, from `start` to `stop`.

    The tape begins with every param and buffer. What no layer made stands as a node of its own before the first layer
    that takes it, or at the end of the module that gives it: the code between layers. The inputs of such code are the
    nearest values that autograd knows it was made of. Values are digested where they are met, and not kept; so are
    gradients, of which several that arrive at one value, as in micro-batches, have the digest of their digests.

    Calls without gradients, as of a validation, are passed over, and so are those that ``torch.compile`` puts together,
    whose code it must not change. What an inner module made is noted once, as the inner one's. Layers that run again in
    the backward pass, as under activation checkpointing, are no nodes unless they give something else than before.

    Only with ``labels`` does `at_work` know of the backward pass: to label all that computes takes long.
    """

    def __init__(self, torch: Any, modules: TorchModules, digest: Digests, *, labels: bool = False) -> None:
        self.digest, self._labels = digest, labels
        self._torch, self._modules, self._frames = torch, modules, Frames(torch)
        self._running: Callable[[], int] = torch._C._current_graph_task_id
        self._hooks, self._notes = list[Any](), GraphNotes(torch)
        self._begin()

    @property
    def noting(self) -> bool:
        """Whether something is noted."""
        return bool(self._hooks)

    def start(self) -> None:
        """Note what follows. Hooks stand for that time alone: with one, each call of a module takes PyTorch longer."""
        if not self._hooks:
            self._hooks = [
                hook
                for scope, module in self._modules.layers.items()
                for hook in (
                    module.register_forward_pre_hook(self._enterer(scope), with_kwargs=True),
                    module.register_forward_hook(self._leaver(scope), with_kwargs=True),
                )
            ]

    def stop(self) -> None:
        """Note no more, and forget what was noted."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.clear()

    def _begin(self) -> None:
        self._nodes, self._values, self._grads = list[TapeNode](), list[Any](), list[list[Any]]()
        self._arrivals = list[Any]()
        self._inside: ModuleCall | None = None
        self._lossed: CodePosition | None = None

    def clear(self) -> None:
        """Forget what was noted, and begin the tape of another step."""
        for hook in self._arrivals:
            hook.remove()
        self._notes.clear()
        self._begin()

    def taken(self) -> DigestedTape:
        """The tape of the step that is over; another begins."""
        settled = self.digest.settled
        grads = [self._together(settled(arrived)) if arrived else None for arrived in self._grads]
        tape = DigestedTape(tuple(self._nodes), settled(self._values), grads)
        self.clear()
        return tape

    def loss(self, loss: Any) -> None:
        """Note the loss, and what it was made of."""
        self._lossed = self._frames.user()
        if self._nodes and self._is_tensor(loss) and self._notes.known(loss) is None:
            parents, made = self._origin(loss)
            self._append_code(loss, until("the loss", self._lossed, made), parents, made, scope="")

    def consumed(self, grads: Mapping[str, Any], at: CodePosition | None) -> None:
        """Note what the optimizer takes at a line: the gradients, of which the digests are one value."""
        if not self._nodes:
            return
        value = _joined(self.digest.settled([self.digest(local_part(grad)) for grad in grads.values()]))
        parents = tuple(i for i, node in enumerate(self._nodes) if node.op == LEAF and node.name in grads)
        said, place = "between the backward pass and the optimizer's step", lines(self._lossed, at)
        node = TapeNode(CODE, "uint8", value.shape, parents, attrs=said, name=CONSUMED, place=place)
        self._nodes.append(node)
        self._values.append(self.digest.of_array(value))
        self._grads.append([])

    def user(self) -> CodePosition | None:
        """The user's line at work."""
        return self._frames.user()

    def is_backward(self) -> bool:
        """Whether a backward pass is running, within which checkpointed layers run again."""
        return self._running() != -1

    def at_work(self, *, in_backward: bool) -> tuple[str, str]:
        """The layer that is at work, and the user's line; in the backward pass those of the forward pass."""
        if not in_backward:
            return "" if self._inside is None else self._inside.scope, shown(self._frames.user())
        scope, place = self._notes.labelled(self._torch._C._current_autograd_node())
        return scope, shown(self._frames.user()) if self._torch.is_grad_enabled() else place  # forward once more

    @property
    def is_outside(self) -> bool:
        """Whether no module is at work."""
        return self._inside is None

    # ------------------------------------------------------------------ calls

    def _is_at_work(self) -> bool:
        return not self._torch.compiler.is_compiling() and self._torch.is_grad_enabled()

    def _enterer(self, scope: str) -> Callable[..., None]:
        def enter(module: Any, args: Any, kwargs: Any) -> None:
            if self._is_at_work() and not self.is_backward():
                self._enter(scope, module, [t for _, t in leaves((args, kwargs)) if self._is_tensor(t)])

        return enter

    def _leaver(self, scope: str) -> Callable[..., None]:
        def leave(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if not self._is_at_work():
                return
            made = [(path, t) for path, t in leaves(output) if self._is_tensor(t)]
            if self.is_backward():
                self._recomputed(scope, module, made)
            else:
                self._leave(module, made)

        return leave

    def _enter(self, scope: str, module: Any, taken: Iterable[Any]) -> None:
        if not self._nodes:
            for name, tensor in {**self._modules.params, **self._modules.buffers}.items():
                self._leaf(tensor, name)
        within = self._inside
        call = self._inside = ModuleCall(scope, module, within, self._frames.caller())
        call.taken = {self._take(tensor, call) for tensor in taken}
        if within is not None:
            within.has_inner = True

    def _take(self, tensor: Any, taker: ModuleCall) -> int:
        """The node of what a call takes: that of its maker, a leaf if nothing computed it, else code in between."""
        within, known = taker.within, self._notes.known(tensor)
        if known is not None:
            return known.index
        if within is None and tensor.grad_fn is None:
            return self._leaf(tensor)
        parents, made = self._origin(tensor)
        if within is not None:
            parents |= self._own(within.module)
        scope = "" if within is None else within.scope
        return self._append_code(tensor, before(taker, made), parents, made, scope=scope)

    def _leave(self, module: Any, made: list[tuple[str, Any]]) -> None:
        call = self._inside
        while call is not None and call.module is not module:  # an inner one has raised what the user has caught
            call = call.within
        if call is None:
            return
        self._inside = call.within
        for path, tensor in made:
            known = self._notes.known(tensor)
            if known is None:
                self._give(call, path, tensor)
            elif known.made is not None and call in known.made.enclosing():
                known.made = call

    def _give(self, call: ModuleCall, path: str, tensor: Any) -> None:
        """Note what a layer gives, or the code at the end of a module of layers."""
        if call.has_inner:
            parents, made = self._origin(tensor)
            parents |= self._own(call.module)
            self._append_code(tensor, behind(call, made), parents, call, scope=call.scope)
            return
        module = call.module
        own = {self._leaf(each) for each in _tensors_of(module)}
        attrs = ", ".join(filter(None, [module.extra_repr(), path and f"output={path}"]))
        said: dict[str, Any] = {"attrs": attrs, "scope": call.scope, "place": shown(self._frames.user())}
        inputs = tuple(sorted(own | call.taken))
        self._append(tensor, f"torch.{class_name(module)}", made=call, parents=inputs, **said)

    def _recomputed(self, scope: str, module: Any, made: list[tuple[str, Any]]) -> None:
        """Hold what a layer gives in the backward pass against what it gave before; another value is a node."""
        op = f"torch.{class_name(module)}"
        nodes = zip(self._nodes, self._values, strict=True)
        before = [value for node, value in nodes if (node.scope, node.op) == (scope, op)]
        for _, tensor in made if before else ():
            *known, found = self.digest.settled([*before, self.digest(tensor)])
            if found not in known:
                said: dict[str, Any] = {
                    "attrs": module.extra_repr(),
                    "scope": scope,
                    "place": shown(self._frames.user()),
                }
                self._append(tensor, f"recomputed {op}", **said)

    # ------------------------------------------------------------------ values

    def _own(self, module: Any) -> set[int]:
        """The buffers that the code of a module may use, of which autograd knows nothing."""
        return {self._leaf(buffer) for buffer in module.buffers(recurse=False)}

    def _origin(self, tensor: Any) -> tuple[set[int], ModuleCall | None]:
        """The nearest nodes that a value was made of, as autograd knows them, and the call that gave the last."""
        found, ahead, seen = set[int](), [(tensor.grad_fn, tensor.output_nr)], set[Any]()
        last: NotedValue | None = None
        while ahead:
            maker, place = ahead.pop()
            if maker is None or (maker, place) in seen:
                continue
            seen.add((maker, place))
            leaf = getattr(maker, "variable", None)
            noted = self._notes.given(maker, place)
            if leaf is not None:
                found.add(self._leaf(leaf))
            elif noted is not None:
                found.add(noted.index)
                last = noted if last is None or noted.index > last.index else last
            else:
                ahead += maker.next_functions
        return found, None if last is None else last.made

    def _leaf(self, tensor: Any, name: str = "input") -> int:
        known = self._notes.known(tensor)
        return self._append(tensor, LEAF, name=name) if known is None else known.index

    def _append_code(
        self, tensor: Any, code: CodeBetween, parents: set[int], made: ModuleCall | None, *, scope: str
    ) -> int:
        said: dict[str, Any] = {"attrs": code.said, "scope": scope, "place": code.place}
        return self._append(tensor, CODE, made=made, parents=tuple(sorted(parents)), **said)

    def _append(self, tensor: Any, op: str, *, made: ModuleCall | None = None, **more: Any) -> int:
        index, here = len(self._nodes), local_part(tensor)
        self._nodes.append(TapeNode(op, dtype_word(here.dtype), tuple(here.shape), **more))
        self._values.append(self.digest(here))
        self._grads.append([])
        self._notes.note(tensor, index, made)
        if self._labels:
            self._notes.label(tensor, (self._nodes[index].scope, self._nodes[index].place))
        if tensor.requires_grad:
            self._arrivals.append(tensor.register_hook(self._arrival(index)))
        return index

    def _arrival(self, index: int) -> Callable[[Any], None]:
        """What a gradient is handed to when it arrives: it may be changed in place later, as by clipping."""

        def arrive(grad: Any) -> None:
            self._grads[index].append(self.digest(local_part(grad)))

        return arrive

    def _together(self, arrived: Sequence[bytes]) -> bytes:
        """The digest of the gradients that arrived at one value."""
        return reduce(lambda known, more: self.digest.of_array(_joined((known, more))), arrived)

    def _is_tensor(self, value: object) -> bool:
        return isinstance(value, self._torch.Tensor)


def _tensors_of(module: Any) -> Iterable[Any]:
    """The params and buffers of a module; of one without inner ones without looking for these, which takes long."""
    if module._modules:
        return (*module.parameters(), *module.buffers())
    return [each for each in (*module._parameters.values(), *module._buffers.values()) if each is not None]


def _joined(digests: Iterable[bytes]) -> Array:
    """Digests as one value."""
    return np.frombuffer(b"".join(digests), np.uint8)
