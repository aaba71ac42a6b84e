"""What is noted of values and of what computed them: kept where PyTorch keeps these, and gone when they are."""

from dataclasses import dataclass, field
from typing import Any

from .module_call import ModuleCall

NOWHERE = "", ""
"""The label of what no layer called."""


@dataclass(slots=True, eq=False)
class NotedValue:
    """The node of a value; its version tells of changes in place, ``made`` is the call that gave it last."""

    version: int
    index: int
    made: ModuleCall | None


@dataclass(slots=True, eq=False)
class _OfMaker:
    """Of what computed values in one step: the layer and the line, and its values by their places."""

    step: object
    label: tuple[str, str] | None = None
    values: dict[int, NotedValue] = field(default_factory=dict[int, NotedValue])


class GraphNotes:
    """Notes of one step on values and makers, of which none is kept alive: a dict of its own says so for each maker.

    A maker is a node of autograd's graph, which is gone soon after its backward pass; with it goes what it saved. A
    value that nothing computed is known by itself, as long as it lives.
    """

    def __init__(self, torch: Any) -> None:
        self._key = object()
        self._weak: Any = torch.utils.weak.WeakTensorKeyDictionary
        self.clear()

    def clear(self) -> None:
        """Forget everything: another step begins."""
        self._step, self._leaves = object(), self._weak()

    def note(self, tensor: Any, index: int, made: ModuleCall | None) -> None:
        """A value has a node."""
        noted, maker = NotedValue(tensor._version, index, made), tensor.grad_fn
        if maker is None:
            self._leaves[tensor] = noted
        else:
            self._of(maker).values[tensor.output_nr] = noted

    def known(self, tensor: Any) -> NotedValue | None:
        """What was noted of a value, unless it was changed since."""
        maker = tensor.grad_fn
        noted = self._leaves.get(tensor) if maker is None else self.given(maker, tensor.output_nr)
        return noted if noted is not None and noted.version == tensor._version else None

    def given(self, maker: Any, place: int) -> NotedValue | None:
        """What was noted of a maker's value."""
        found = self._found(maker)
        return None if found is None else found.values.get(place)

    def label(self, tensor: Any, label: tuple[str, str]) -> None:
        """Say of what computed a value, up to what has been said, of which layer and line it is."""
        ahead = [tensor.grad_fn]
        while ahead:
            maker = ahead.pop()
            if maker is not None and (of := self._of(maker)).label is None:
                of.label = label
                ahead += [each for each, _ in maker.next_functions]

    def labelled(self, maker: Any) -> tuple[str, str]:
        """What was said of a maker."""
        found = None if maker is None else self._found(maker)
        return NOWHERE if found is None or found.label is None else found.label

    def _of(self, maker: Any) -> _OfMaker:
        found = self._found(maker)
        if found is None:
            found = maker.metadata[self._key] = _OfMaker(self._step)
        return found

    def _found(self, maker: Any) -> _OfMaker | None:
        found: _OfMaker | None = maker.metadata.get(self._key)
        return found if found is not None and found.step is self._step else None
