"""Learning rates that follow the step count: a schedule stands where a rule takes ``lr``.

A schedule is a frozen record and a function of the count, which is 0 at the first update, as in PyTorch and
optax. Rates are float64 and computed by one kernel from operations that IEEE-754 rounds correctly, so they are
the same on every machine, eagerly and inside a captured plan. The formulas are expression trees; the cosine is
`cospi`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
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
from ..in_ops import in_ops
from ..kinds import COUNT, FRACTION, FROM_1, SHARE, Figures, count as as_count, count_from
from ..known import HYPER
from ..state_ops import FLOAT64, STATE_OPS, StateOp, first
from .formulas import cosine, one_cycle, step_decay, unchanged
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


class Schedule(Figures):
    """A learning rate as a function of the count of updates done before.

    Its rate is a formula, ``class Linear(Schedule, formula=linear)``, which takes the count and the fields, or it is
    written in ops, as its method `rate`.

    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.
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


RATE = replace(NOT_NEGATIVE, fits=lambda lr: isinstance(lr, Schedule) or NOT_NEGATIVE.fits(lr))
"""A learning rate, or what gives it."""


def _since(count: AnyVar, begin: int) -> AnyVar:
    """The count from a later beginning on; 0 before it."""
    zero: Any = 0.0
    return ops.maximum(count - float(begin), zero)


@dataclass(frozen=True)
class Constant(Schedule, formula=unchanged, kinds={"lr": NOT_NEGATIVE}):
    """The same rate at every count, for example under a `WarmUp`.

    Source: optax.constant_schedule.

    Args:
        lr: the rate, at least 0.

    >>> from dgrr.runtime.optim import Constant
    >>> Constant(0.5)(1000)
    0.5
    """

    lr: float


@dataclass(frozen=True)
class StepDecay(Schedule, formula=step_decay, kinds={"lr": NOT_NEGATIVE, "every": COUNT, "factor": FRACTION}):
    """The rate times a factor after every so many steps::

        lr * factor ** (count // every)

    Source: torch.optim.lr_scheduler.StepLR.

    Args:
        lr: the first rate, at least 0.
        every: steps between two decays, at least 1 (``step_size`` in PyTorch).
        factor: what the rate is multiplied by, in [0, 1] (``gamma`` in PyTorch).

    >>> from dgrr.runtime.optim import StepDecay
    >>> schedule = StepDecay(1.0, every=10, factor=0.5)
    >>> [schedule(count) for count in (0, 9, 10, 20)]
    [1.0, 1.0, 0.5, 0.25]
    """

    lr: float
    every: int
    factor: float


@dataclass(frozen=True)
class Cosine(Schedule, formula=cosine, kinds={"lr": NOT_NEGATIVE, "steps": COUNT, "final": NOT_NEGATIVE}):
    """From ``lr`` to ``final`` along half a cosine::

        u = min(count, steps) / steps
        w = 0.5 * (1 + cos(pi * u))
        lr * w + final * (1 - w)

    Count 0 gives exactly ``lr``; from ``steps`` on the rate stays exactly ``final`` (PyTorch's rises again; as
    here, optax.cosine_decay_schedule's stays).

    Source: Loshchilov and Hutter (2017), arXiv:1608.03983; torch.optim.lr_scheduler.CosineAnnealingLR.

    Args:
        lr: the first rate, at least 0.
        steps: the count at which ``final`` is reached, at least 1 (``T_max`` in PyTorch).
        final: the last rate, at least 0 (``eta_min`` in PyTorch).

    >>> from dgrr.runtime.optim import Cosine
    >>> schedule = Cosine(1.0, steps=10)
    >>> [schedule(count) for count in (0, 5, 10, 11)]
    [1.0, 0.5, 0.0, 0.0]
    """

    lr: float
    steps: int
    final: float = 0.0


@dataclass(frozen=True)
class OneCycle(
    Schedule,
    formula=one_cycle,
    kinds={
        "max_lr": NOT_NEGATIVE,
        "steps": COUNT,
        "warmup_share": SHARE,
        "div": FROM_1,
        "final_div": FROM_1,
    },
):
    """Up to ``max_lr`` and down to almost nothing, both along half a cosine::

        first = max_lr / div;  final = first / final_div
        peak  = warmup_share * steps - 1;  last = steps - 1
        t     = min(count, last)
        t < peak:   from first to max_lr at u = t / peak
        otherwise:  from max_lr to final at u = (t - peak) / (last - peak)

    where "from a to b at u" is ``a * w + b * (1 - w)`` with ``w = 0.5 * (1 + cos(pi * u))``. The peak may lie
    between two counts. From count ``steps - 1`` on the rate stays ``final``, where PyTorch raises an error.

    Source: Smith and Topin (2018), arXiv:1708.07120; torch.optim.lr_scheduler.OneCycleLR with cosines.

    Args:
        max_lr: the highest rate, at least 0.
        steps: steps of the cycle, at least 1 (``total_steps`` in PyTorch).
        warmup_share: the share of the cycle that rises, in [0, 1) (``pct_start`` in PyTorch).
        div: ``max_lr`` over the first rate, at least 1 (``div_factor`` in PyTorch).
        final_div: the first rate over the last, at least 1 (``final_div_factor`` in PyTorch).

    >>> from dgrr.runtime.optim import OneCycle
    >>> schedule = OneCycle(1.0, steps=10, div=4, final_div=2)
    >>> [schedule(count) for count in (0, 1, 2, 9, 10)]
    [0.25, 0.625, 1.0, 0.125, 0.125]
    """

    max_lr: float
    steps: int
    warmup_share: float = 0.3
    div: float = 25.0
    final_div: float = 1e4
