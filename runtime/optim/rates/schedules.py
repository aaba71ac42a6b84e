"""Learning rates that follow the step count: a schedule stands where a rule takes ``lr``.

A schedule is a frozen record and a function of the count, which is 0 at the first update, as in PyTorch and
optax. Rates are float64 and computed by one kernel from operations that IEEE-754 rounds correctly, so they are
the same on every machine, eagerly and inside a captured plan. The formulas are expression trees; the cosine is
`cospi`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ....base.arrays import Array
from ....tape import AnyVar, DomainError
from ....tape.numerics.engine.kernel import Kernel
from ....tape.numerics.engine.launch import Words, launch
from ..arrays import prepared_words
from ..scalars import fraction, number, whole
from .kernels import CONSTANT, COSINE, HYPER, NUMBERS, ONE_CYCLE, STEP_DECAY, learning_rate

Vector: TypeAlias = npt.NDArray[np.float64]

FLOAT64 = np.dtype(np.float64)


class ScheduleNodes(Protocol):
    """What a schedule asks of the graph of a captured step; numbers are ids of values."""

    def learning_rate(self, schedule: "FusedSchedule", base: int, step: int) -> int:
        """The hyperparameters ``base`` with the rate of update ``step``, by the kernel of schedules."""
        ...

    def by_ops(self, function: Callable[..., AnyVar], inputs: Sequence[int]) -> int:
        """The result of a function of ops."""
        ...


Checks: TypeAlias = Mapping[str, Callable[[str, Any], Any]]
"""Name of a field → ``check(where, value)``, which gives the value in plain form or raises DomainError."""


class Schedule(ABC):
    """A learning rate as a function of the count of updates done before."""

    checks: ClassVar[Checks] = {}
    """What each field that a schedule is made of has to be."""

    def __post_init__(self) -> None:
        for name, check in self.checks.items():
            object.__setattr__(self, name, check(f"{type(self).__name__}: {name}", getattr(self, name)))

    @abstractmethod
    def hyper(self, base: Vector, step: Array) -> Vector:
        """``base`` (5 or more) with the rate of update ``step`` (int64, from 1) as its first element; a new array."""

    @abstractmethod
    def graph(self, nodes: ScheduleNodes, base: int, step: int) -> int:
        """The same in a captured step: ids of the hyperparameters, of ``step``, and of the result."""

    def __call__(self, count: int) -> float:
        """The rate of the update before which ``count`` updates were done.

        Raises DomainError for a count that is no whole number from 0 to 2**53.
        """
        done = whole(f"{type(self).__name__}: count", count, low=0)
        return float(self.hyper(np.zeros(HYPER), np.array(done + 1, np.int64))[0])


class Form(NamedTuple):
    """What the kernel knows of a schedule, warm-ups apart."""

    kind: int
    whole: int
    numbers: tuple[float, ...]


class FusedSchedule(Schedule):
    """A schedule that one kernel computes."""

    kernel: ClassVar[Kernel] = learning_rate
    """What computes the rate; its table is ``(out, base, numbers, step)``, its words are `ints`."""

    @property
    @abstractmethod
    def _form(self) -> Form:
        """The kind of the schedule, or of the one within warm-ups, and its numbers."""

    def _warm_ups(self) -> "Iterator[WarmUp]":
        """The warm-ups around the schedule, the outermost first."""
        yield from ()

    @property
    def ints(self) -> Words:
        """The words of the kernel's call."""
        kind, count, _ = self._form
        begin, spans = 0, list[tuple[int, int]]()
        for warm_up in self._warm_ups():
            spans.append((begin, warm_up.steps))
            begin += warm_up.steps
        return prepared_words(kind, count, begin, len(spans), *(n for span in reversed(spans) for n in span))

    @cached_property
    def numbers(self) -> Vector:
        """The numbers of the kernel's call, read-only."""
        starts = [warm_up.start for warm_up in self._warm_ups()]
        own = self._form.numbers
        vector = np.array([*own, *[0.0] * (NUMBERS - len(own)), *reversed(starts)])
        vector.flags.writeable = False
        return vector

    def hyper(self, base: Vector, step: Array) -> Vector:
        """As `Schedule.hyper`."""
        out, step = base.copy(), np.asarray(step)  # of a bare number the kernel would read nothing
        launch(self.kernel, FLOAT64, self.ints, (out, base, self.numbers, step), 0)
        return out

    def graph(self, nodes: ScheduleNodes, base: int, step: int) -> int:
        """As `Schedule.graph`."""
        return nodes.learning_rate(self, base, step)


@dataclass(frozen=True)
class Constant(FusedSchedule):
    """The same rate at every count, for example under a `WarmUp`.

    Source: optax.constant_schedule.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the rate, at least 0.

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import Constant
    >>> Constant(0.5)(1000)
    0.5
    """

    lr: float

    checks: ClassVar[Checks] = {"lr": number}

    @property
    def _form(self) -> Form:
        return Form(CONSTANT, 0, (self.lr,))


@dataclass(frozen=True)
class StepDecay(FusedSchedule):
    """The rate times a factor after every so many steps::

        lr * factor ** (count // every)

    Source: torch.optim.lr_scheduler.StepLR.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the first rate, at least 0.
        every: steps between two decays, at least 1 (``step_size`` in PyTorch).
        factor: what the rate is multiplied by, in [0, 1] (``gamma`` in PyTorch).

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import StepDecay
    >>> schedule = StepDecay(1.0, every=10, factor=0.5)
    >>> [schedule(count) for count in (0, 9, 10, 20)]
    [1.0, 1.0, 0.5, 0.25]
    """

    lr: float
    every: int
    factor: float

    checks: ClassVar[Checks] = {"lr": number, "every": whole, "factor": fraction}

    @property
    def _form(self) -> Form:
        return Form(STEP_DECAY, self.every, (self.lr, self.factor))


@dataclass(frozen=True)
class Cosine(FusedSchedule):
    """From ``lr`` to ``final`` along half a cosine::

        u = min(count, steps) / steps
        w = 0.5 * (1 + cos(pi * u))
        lr * w + final * (1 - w)

    Count 0 gives exactly ``lr``; from ``steps`` on the rate stays exactly ``final`` (PyTorch's rises again; as
    here, optax.cosine_decay_schedule's stays).

    Source: Loshchilov and Hutter (2017), arXiv:1608.03983; torch.optim.lr_scheduler.CosineAnnealingLR.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        lr: the first rate, at least 0.
        steps: the count at which ``final`` is reached, at least 1 (``T_max`` in PyTorch).
        final: the last rate, at least 0 (``eta_min`` in PyTorch).

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import Cosine
    >>> schedule = Cosine(1.0, steps=10)
    >>> [schedule(count) for count in (0, 5, 10, 11)]
    [1.0, 0.5, 0.0, 0.0]
    """

    lr: float
    steps: int
    final: float = 0.0

    checks: ClassVar[Checks] = {"lr": number, "steps": whole, "final": number}

    @property
    def _form(self) -> Form:
        return Form(COSINE, self.steps, (self.lr, self.final))


@dataclass(frozen=True)
class OneCycle(FusedSchedule):
    """Up to ``max_lr`` and down to almost nothing, both along half a cosine::

        first = max_lr / div;  final = first / final_div
        peak  = warmup_share * steps - 1;  last = steps - 1
        t     = min(count, last)
        t < peak:   from first to max_lr at u = t / peak
        otherwise:  from max_lr to final at u = (t - peak) / (last - peak)

    where "from a to b at u" is ``a * w + b * (1 - w)`` with ``w = 0.5 * (1 + cos(pi * u))``. The peak may lie
    between two counts. From count ``steps - 1`` on the rate stays ``final``, where PyTorch raises an error.

    Source: Smith and Topin (2018), arXiv:1708.07120; torch.optim.lr_scheduler.OneCycleLR with cosines.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        max_lr: the highest rate, at least 0.
        steps: steps of the cycle, at least 1 (``total_steps`` in PyTorch).
        warmup_share: the share of the cycle that rises, in [0, 1) (``pct_start`` in PyTorch).
        div: ``max_lr`` over the first rate, at least 1 (``div_factor`` in PyTorch).
        final_div: the first rate over the last, at least 1 (``final_div_factor`` in PyTorch).

    Raises:
        DomainError: an argument outside these bounds.

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

    checks: ClassVar[Checks] = {
        "max_lr": number,
        "steps": whole,
        "warmup_share": partial(number, below=1.0),
        "div": partial(number, low=1.0),
        "final_div": partial(number, low=1.0),
    }

    @property
    def _form(self) -> Form:
        first, peak = self.max_lr / self.div, self.warmup_share * self.steps - 1.0
        return Form(ONE_CYCLE, self.steps - 1, (first, self.max_lr, first / self.final_div, peak))


def _fused(where: str, value: object) -> FusedSchedule:
    """``value`` if the kernel computes it, else DomainError."""
    if isinstance(value, FusedSchedule):
        return value
    cure = ""
    if isinstance(value, Schedule):
        cure = "; write Joined([Linear(0.0, steps, lr), …], at=[steps])"
    raise DomainError(f"{where}: expected a schedule such as Constant(0.1), got {value!r}{cure}")


@dataclass(frozen=True)
class WarmUp(FusedSchedule):
    """A linear rise to the first rate of another schedule, which begins after it::

        count < steps:  schedule(0) * (start + (1 - start) * count / steps)
        otherwise:      schedule(count - steps)

    So the wrapped schedule's count is 0 at count ``steps``. Warm-ups may be nested.

    Source: Goyal and others (2017), arXiv:1706.02677; torch.optim.lr_scheduler.SequentialLR of a LinearLR and the
        schedule; optax.warmup_cosine_decay_schedule.
    Shapes: a number for a count.
    Dtypes: the count a whole number from 0 to 2**53; the rate a float64.

    Args:
        schedule: what follows: one of the kernel, as `Cosine`; others follow a rise in `Joined`.
        steps: steps of the rise, at least 1 (``total_iters`` in PyTorch's LinearLR).
        start: the share of the rate at count 0, in [0, 1] (``start_factor`` in PyTorch's LinearLR).

    Raises:
        DomainError: an argument outside these bounds.

    >>> from dgrr.runtime.optim import Cosine, WarmUp
    >>> schedule = WarmUp(Cosine(1.0, steps=10), steps=4)
    >>> [schedule(count) for count in (0, 1, 4, 9, 14)]
    [0.0, 0.25, 1.0, 0.5, 0.0]
    """

    schedule: FusedSchedule
    steps: int
    start: float = 0.0

    checks: ClassVar[Checks] = {"schedule": _fused, "steps": whole, "start": fraction}

    @property
    def _form(self) -> Form:
        return self.schedule._form

    def _warm_ups(self) -> "Iterator[WarmUp]":
        yield self
        yield from self.schedule._warm_ups()
