"""Your own schedules, as functions of ops."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....tape import AnyVar
from .schedules import Schedule


@dataclass(frozen=True)
class FunctionSchedule(Schedule):
    """A schedule of your own: a function of the count, written in ops.

    It is run once when a step is captured, so it must hold ops and no values. Rates are at least 0. Checkpoints know
    it by the name of the function.

    Source: torch.optim.lr_scheduler.LambdaLR; optax, where every schedule is a function.
    Shapes: a number for a count.
    Dtypes: the count and the rate float64 Vars without axes.

    Args:
        function: ``function(count) -> rate``.

    Raises:
        DomainError: something that cannot be called, or, when it is, a result that is no rate.

    >>> from dgrr.runtime.optim import SGD, FunctionSchedule
    >>> from dgrr.tape import ops
    >>> schedule = FunctionSchedule(lambda count: 0.5 / ops.sqrt(count + 1.0))
    >>> schedule(0), schedule(3)
    (0.5, 0.25)
    >>> SGD(schedule).hyperparameters(step=4)["lr"]
    0.25
    """

    function: Callable[[AnyVar], AnyVar]

    def rate(self, count: AnyVar) -> AnyVar:
        """What the function returns."""
        return self.function(count)

    def __repr__(self) -> str:
        return f"FunctionSchedule({getattr(self.function, '__qualname__', type(self.function).__qualname__)})"


def plain(value: float) -> Any:
    """A number in the place of a Var, which ops take."""
    return value
