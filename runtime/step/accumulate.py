"""What the micro-batches of a step give - losses, gradients, states of the model - added in the order of a recipe."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple

from typing_extensions import TypeVar

from ...base.runs.completed_step import Order
from ...tape.errors import DomainError
from ...tape.record.op import OPS
from .tree import Sums

T = TypeVar("T", default=Any)
"""A Var or a tensor."""


class Means(NamedTuple, Generic[T]):
    """What micro-batches give together."""

    loss: T
    grads: dict[str, T]
    """The gradient of every parameter that has one."""
    state: dict[str, T]
    """The entries of the model's state that change: in a tree the mean of what they become, else what they become."""


class Accumulation(Generic[T]):
    """Sums over the micro-batches of a step, of which consecutive ones are given here in turn.

    In a chain a parameter may have no gradient in some micro-batches, and each begins with the state that the one
    before it left. In a tree all have gradients of the same parameters, begin with the state before the step and change
    the same entries of it.
    """

    def __init__(self, order: Order, count: int, first: int = 0) -> None:
        self.order: Order = order
        self.count, self._first, self._done = count, first, 0
        self.losses = self._sums()
        self.grads: dict[str, Sums[T]] = {}
        self.state: dict[str, Sums[T]] = {}
        self._left: dict[str, T] = {}

    def _sums(self) -> Sums[T]:
        return Sums(self.order, self.count, self._first)

    def put(self, loss: T, grads: Mapping[str, T], state: Mapping[str, T]) -> None:
        """What the next micro-batch gives; of the state the entries that it changes.

        Raises DomainError, in a tree, for gradients of other parameters or changes of other entries of the state than
        before, or of an entry that holds no floats.
        """
        self.losses.put(loss)
        if self.order == "chain":
            self._left.update(state)
        else:
            self._require("gradients of the parameters", self.grads, grads)
            self._require("changes of the model's state", self.state, state)
            _require_floats(state)
            for name, value in state.items():
                self.state.setdefault(name, self._sums()).put(value)
        for name, grad in grads.items():
            self.grads.setdefault(name, self._sums()).put(grad)
        self._done += 1

    def _require(self, what: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        if self._done and known.keys() != given.keys():
            raise DomainError(
                f"order='tree': micro-batch {self._first + self._done}: expected {what} {_listed(known)} as in the one "
                f"before, got {_listed(given)}; let the loss of each depend on the same ones, or use order='chain'"
            )

    def means(self, names: Iterable[str]) -> Means[T]:
        """The means once all are given; the gradients in the order of ``names``, those of all parameters."""
        grads = {name: self._mean(self.grads[name]) for name in names if name in self.grads}
        state = {name: self._mean(sums) for name, sums in self.state.items()}
        return Means(self._mean(self.losses), grads, {**self._left, **state})

    def _mean(self, sums: Sums[T]) -> T:
        return mean(sums.total, self.count)


def mean(total: T, count: int) -> T:
    """A sum divided by the number of micro-batches; by 1 it is not divided."""
    return total if count == 1 else OPS["divide"](total, count)


def _require_floats(state: Mapping[str, Any]) -> None:
    """Raise DomainError for a changed entry of the model's state of which there is no mean."""
    for name, value in state.items():
        if value.dtype.kind != "f":
            raise DomainError(
                f"order='tree': model state {name!r}: expected float32 or float64, as it becomes the mean over the "
                f"micro-batches, got {value.dtype}; keep it in floats, or use order='chain'"
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
