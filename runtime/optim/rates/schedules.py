"""Learning rates that follow the step count: a schedule stands where a rule takes ``lr``.

A schedule is a frozen record and a function of the count, which is 0 at the first update, as in PyTorch and
optax. Rates are float64 and computed by one kernel from operations that IEEE-754 rounds correctly, so they are
the same on every machine, eagerly and inside a captured plan. The formulas are expression trees; the cosine is
`cospi`.
"""

# kernels: none

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ....base.arrays import Array
from ....tape import AnyVar, DomainError, Tape, ops
from ....tape.numerics.engine.kernel import Kernel
from ....tape.numerics.engine.launch import Words, launch
from ....tape.record.kinds.values import NOT_NEGATIVE
from ..arrays import prepared_words
from ..kinds import Hyperparameters, count as as_count, count_from
from ..laws.in_ops import in_ops
from ..laws.known import HYPER
from ..state_ops import FLOAT64, STATE_OPS, StateOp, first
from .rated import Rate, warmed

Vector: TypeAlias = npt.NDArray[np.float64]


class Rise(NamedTuple):
    """A linear rise to a rate from a share of it, in so many steps."""

    steps: int
    start: float


class ScheduleNodes(Protocol):
    """What a schedule asks of the graph of a captured step; numbers are ids of values."""

    def learning_rate(self, schedule: "Schedule", base: int, step: int) -> int:
        """The hyperparameters ``base`` with the rate of update ``step``, by the kernel of the schedule."""
        ...

    def by_ops(self, function: Callable[..., AnyVar], inputs: Sequence[int]) -> int:
        """The result of a function of ops."""
        ...

    def told(self, numbers: Vector) -> int:
        """A vector that is read where it lies, at each run."""
        ...


class Schedule(Hyperparameters):
    """A learning rate as a function of the count of updates done before.

    Its rate is a formula, ``class Linear(Schedule, formula=linear)``, which takes the count and the fields, or it is
    written in ops, as its method `rate`.

    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the first rate.
    """

    called: ClassVar[str] = "schedule"

    _formula: ClassVar[Rate | None] = None

    def __init_subclass__(cls, formula: Rate | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if formula is not None:
            cls._formula = formula
            op = StateOp(formula.kernel, fresh=first, sized=None, inputs=3, reference=formula.reference)
            STATE_OPS[formula.kernel.name] = op

    def __post_init__(self) -> None:
        super().__post_init__()
        own, count = [field.name for field in fields(cast(Any, self))], self._formula.takes if self._formula else 0
        if self._formula and len(own) != count:
            expected = f"expected a field for each number of its formula, {count} of them"
            raise DomainError(f"{type(self).__name__}: {expected}, got {', '.join(own) or 'none'}")

    def __call__(self, count: int) -> float:
        """The rate of the update before which ``count`` updates were done.

        Raises DomainError for a count that is no whole number from 0 to 2**53.
        """
        done = as_count(type(self).__name__, "count", count, count_from(0))
        return float(self.hyper(np.zeros(HYPER), np.array(done + 1, np.int64))[0])

    # ------------------------------------------------------------------ as a formula

    @property
    def formula(self) -> Rate | None:
        """What computes the rate, within warm-ups; None for a schedule that is written in ops."""
        return self.within[0]._formula

    @property
    def is_set(self) -> bool:
        """Whether somebody sets the rate between steps, so that its numbers are read where they lie."""
        return False

    @property
    def kernel(self) -> Kernel:
        """The kernel of the formula; its table is ``(out, base, numbers, step)``, its words are `ints`."""
        return cast(Rate, self.formula).kernel

    @property
    def within(self) -> "tuple[Schedule, list[Rise]]":
        """The schedule within its warm-ups, and their rises, the outermost first."""
        return self, []

    @property
    def _begins(self) -> list[int]:
        """The counts at which the warm-ups begin, the outermost first, then that of the schedule within."""
        return [0, *accumulate(warm_up.steps for warm_up in self.within[1])]

    @property
    def ints(self) -> Words:
        """The words of the kernel's call."""
        *begins, begin = self._begins
        spans = zip(begins, self.within[1], strict=True)
        words = [n for at, warm_up in reversed([*spans]) for n in (at, warm_up.steps)]
        return prepared_words(begin, len(begins), *words)

    @cached_property
    def numbers(self) -> Vector:
        """The numbers of the kernel's call, read-only."""
        schedule, warm_ups = self.within
        own = [float(getattr(schedule, field.name)) for field in fields(cast(Any, schedule))]
        vector = np.array([*own, *[warm_up.start for warm_up in reversed(warm_ups)]])
        vector.flags.writeable = False
        return vector

    # ------------------------------------------------------------------ in ops

    def rate(self, count: AnyVar) -> AnyVar:
        """The rate after so many updates, in ops: two float64 Vars without axes.

        Raises DomainError for a formula of operations that no op has, such as a fused multiply-add.
        """
        schedule, warm_ups = self.within
        if schedule._formula is None:
            raise DomainError(f"{self!r}: expected a formula, or a method rate of its own that is written in ops")
        *begins, begin = self._begins
        numbers = self.numbers.tolist()
        made = in_ops(schedule._formula.formula)(_since(count, begin), *numbers[: schedule._formula.takes])
        for at, warm_up in reversed([*zip(begins, warm_ups, strict=True)]):
            made = in_ops(warmed)(made, _since(count, at), float(warm_up.steps), warm_up.start)
        return cast(AnyVar, made if hasattr(made, "tape") else count.tape.const(np.array(made)))

    def _rate(self, step: AnyVar) -> AnyVar:
        """The rate of an update, if what a function of users has returned is one."""
        rate: Any = self.rate(ops.cast(step, "float64") - 1.0)
        value = getattr(rate, "value", None)
        if value is None or value.sizes != () or rate.dtype != FLOAT64:
            given = f"{rate.dtype} of shape {value.sizes}" if value is not None else repr(rate)
            raise DomainError(f"{self!r}: expected a float64 without axes, computed by ops from the count, got {given}")
        return cast(AnyVar, rate)

    # ------------------------------------------------------------------ where it runs

    def hyper(self, base: Vector, step: Array) -> Vector:
        """``base`` (5 or more) with the rate of update ``step`` (int64, from 1) as its first element; a new array."""
        out, step = base.copy(), np.asarray(step)  # of a bare number the kernel would read nothing
        if self.formula is not None:
            launch(self.kernel, FLOAT64, self.ints, (out, base, self.numbers, step), 0)
        else:
            out[0] = self._rate(Tape[Any]().const(step)).item()
        return out

    def graph(self, nodes: ScheduleNodes, base: int, step: int) -> int:
        """The same in a captured step: ids of the hyperparameters, of ``step``, and of the result."""
        if self.formula is not None:
            return nodes.learning_rate(self, base, step)

        def replaced(base: AnyVar, step: AnyVar) -> AnyVar:
            rate = ops.broadcast_to(self._rate(step), base.value.sizes)
            return ops.where(base.tape.const(np.arange(base.value.size) == 0), rate, base)

        return nodes.by_ops(replaced, [base, step])


def _is_rate(lr: Any) -> bool:
    return isinstance(lr, Schedule) or NOT_NEGATIVE.fits(lr)


RATE = replace(NOT_NEGATIVE, expected=f"{NOT_NEGATIVE.expected}, or a schedule", fits=_is_rate)
"""A learning rate, or what gives it."""


def _since(count: AnyVar, begin: int) -> AnyVar:
    """The count from a later beginning on; 0 before it."""
    zero: Any = 0.0
    return ops.maximum(count - float(begin), zero)
