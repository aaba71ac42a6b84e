"""What the layers of a PyTorch model gave in one step, and the gradients that came back: the tape of the step."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ...base.arrays import Array
from ...base.completed_step import StepTape, TapeNode
from ...tape.location import WINGS, Location
from .pytorch_arrays import array
from .shared import leaves


@dataclass(frozen=True, slots=True, eq=False)
class _Noted:
    """A tensor that a node stands for, kept so that no other gets its id; its version tells of changes in place."""

    tensor: Any
    version: int
    index: int


class LayerTape:
    """Hooks on every module of a model, which note its outputs in the order of execution while ``noting`` is true.

    Calls without gradients, as of a validation, are passed over, and so are those that ``torch.compile`` puts together,
    whose code it must not change. What an inner module made is noted once, as the inner
    one's. The inputs of a node are the params of its layer and the tensors that it takes; for a tensor that no layer
    made but that was computed, stands the node before it.
    """

    def __init__(self, torch: Any, model: Any, params: Mapping[str, Any]) -> None:
        self.noting = False
        self._torch = torch
        self._elsewhere = (*WINGS, str(Path(torch.__file__).parents[1]))
        self._names = {id(param): name for name, param in params.items()}
        self._begin()
        self._hooks = [
            module.register_forward_hook(self._noter(scope), with_kwargs=True)
            for scope, module in model.named_modules()
        ]

    def _begin(self) -> None:
        self._nodes, self._values, self._grads = list[TapeNode](), list[Array](), list[Any]()
        self._noted, self._arrivals = dict[int, _Noted](), list[Any]()
        self._last: int | None = None

    def clear(self) -> None:
        """Forget what was noted, and begin the tape of another step."""
        for hook in self._arrivals:
            hook.remove()
        self._begin()

    def taken(self) -> StepTape:
        """The tape of the step that is over; another begins."""
        grads = [None if grad is None else array(grad) for grad in self._grads]
        tape = StepTape(tuple(self._nodes), self._values, grads)
        self.clear()
        return tape

    def close(self) -> None:
        """Take the hooks away."""
        for hook in self._hooks:
            hook.remove()
        self.clear()

    def _noter(self, scope: str) -> Callable[..., None]:
        def note(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if not self._torch.compiler.is_compiling() and self.noting and self._torch.is_grad_enabled():
                self._note(scope, module, (args, kwargs), output)

        return note

    def _note(self, scope: str, module: Any, inputs: Any, output: Any) -> None:
        made = [(path, t) for path, t in leaves(output) if self._is_tensor(t) and not self._knows(t)]
        if not made:
            return
        parents = {*self._params_of(module), *[self._taken(t) for _, t in leaves(inputs) if self._is_tensor(t)]}
        known = tuple(sorted(index for index in parents if index is not None))
        op, place = f"torch.{type(module).__name__}", self._place()
        for path, tensor in made:
            attrs = ", ".join(filter(None, [module.extra_repr(), path and f"output={path}"]))
            self._last = self._append(tensor, op, parents=known, attrs=attrs, scope=scope, place=place)

    def _params_of(self, module: Any) -> list[int]:
        """The params of a layer: its own, and those of parts that were not called as modules."""
        own = {id(param) for param in module.parameters(recurse=False)}
        return [self._leaf(p) for p in module.parameters() if id(p) in own or id(p) not in self._noted]

    def _taken(self, tensor: Any) -> int | None:
        """The node of what a layer took: its maker, a leaf if nothing computed it, else the op before."""
        if id(tensor) in self._noted:
            return self._noted[id(tensor)].index
        return self._leaf(tensor) if tensor.grad_fn is None else self._last

    def _leaf(self, tensor: Any) -> int:
        if self._knows(tensor):
            return self._noted[id(tensor)].index
        return self._append(tensor, "leaf", name=self._names.get(id(tensor), "input"))

    def _append(self, tensor: Any, op: str, **more: Any) -> int:
        value, index = array(tensor), len(self._nodes)
        self._nodes.append(TapeNode(op, value.dtype.name, value.shape, **more))
        self._values.append(value)
        self._grads.append(None)
        self._noted[id(tensor)] = _Noted(tensor, tensor._version, index)
        if tensor.requires_grad:
            self._arrivals.append(tensor.register_hook(self._arrival(index)))
        return index

    def _arrival(self, index: int) -> Callable[[Any], None]:
        """What a gradient is handed to when it arrives; those of several backward passes are added."""

        def arrive(grad: Any) -> None:
            known = self._grads[index]
            self._grads[index] = grad.detach() if known is None else known + grad.detach()

        return arrive

    def _is_tensor(self, value: object) -> bool:
        return isinstance(value, self._torch.Tensor)

    def _knows(self, tensor: Any) -> bool:
        noted = self._noted.get(id(tensor))
        return noted is not None and noted.version == tensor._version

    def _place(self) -> str:
        """The line of the first frame that is neither this package nor installed beside PyTorch; empty if none is."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code.co_filename.startswith(self._elsewhere):
            frame = frame.f_back
        return "" if frame is None else str(Location.of((frame.f_code, frame.f_lasti)))
