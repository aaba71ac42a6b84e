"""Schedules that are written in ops: the rate as a function of the count, a float64 without axes."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....tape import AnyVar, DomainError, Tape, ops
from .schedules import Schedule, ScheduleNodes, Vector

FLOAT64 = np.dtype(np.float64)


class TapeSchedule(Schedule):
    """A schedule whose `rate` is written in ops."""

    @abstractmethod
    def rate(self, count: AnyVar) -> AnyVar:
        """The rate after so many updates: two float64 Vars without axes."""

    def hyper(self, base: Vector, step: Array) -> Vector:
        """As `Schedule.hyper`."""
        tape: Tape[Any] = Tape()
        out = base.copy()
        out[0] = self._checked(self.rate(counted(tape.const(step)))).item()
        return out

    def graph(self, nodes: ScheduleNodes, base: int, step: int) -> int:
        """As `Schedule.graph`."""

        def replaced(base: AnyVar, step: AnyVar) -> AnyVar:
            rate = ops.broadcast_to(self._checked(self.rate(counted(step))), base.value.sizes)
            first = base.tape.const(np.arange(base.value.size) == 0)
            return ops.where(first, rate, base)

        return nodes.by_ops(replaced, [base, step])

    def _checked(self, rate: Any) -> AnyVar:
        """What a function of users has returned, if it is a rate."""
        value = getattr(rate, "value", None)
        if value is None or value.sizes != () or rate.dtype != FLOAT64:
            given = f"{rate.dtype} of shape {value.sizes}" if value is not None else repr(rate)
            raise DomainError(f"{self!r}: expected a float64 without axes, computed by ops from the count, got {given}")
        found: AnyVar = rate
        return found


def counted(step: AnyVar) -> AnyVar:
    """The count of updates before the update of this number."""
    return ops.cast(step, "float64") - 1.0


@dataclass(frozen=True)
class FunctionSchedule(TapeSchedule):
    """A schedule of one's own: a function of the count, written in ops.

    It is run once when a step is captured, so it must hold ops and no values. Rates are at least 0. Checkpoints know
    it by the name of the function.

    Source: torch.optim.lr_scheduler.LambdaLR; optax, where every schedule is a function.
    Shapes: a number for a count.
    Dtypes: the count and the rate float64 Vars without axes.

    Args:
        function: ``function(count) -> rate``.

    Raises:
        DomainError: something that cannot be called; a result that is no rate.

    >>> from dgrr.runtime.optim import SGD, FunctionSchedule
    >>> from dgrr.tape import ops
    >>> schedule = FunctionSchedule(lambda count: 0.5 / ops.sqrt(count + 1.0))
    >>> schedule(0), schedule(3)
    (0.5, 0.25)
    >>> SGD(schedule).hyperparameters(step=4)["lr"]
    0.25
    """

    function: Callable[[AnyVar], AnyVar]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise DomainError(f"FunctionSchedule: function: expected a function of the count, got {self.function!r}")

    def rate(self, count: AnyVar) -> AnyVar:
        """What the function returns."""
        return self.function(count)

    def __repr__(self) -> str:
        return f"FunctionSchedule({getattr(self.function, '__qualname__', type(self.function).__qualname__)})"


def share(count: AnyVar, steps: int) -> AnyVar:
    """How much of so many steps is done, at most 1."""
    return ops.minimum(count, plain(float(steps))) / float(steps)


def plain(value: float) -> Any:
    """A number in the place of a Var, which ops take."""
    return value
