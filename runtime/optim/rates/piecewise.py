"""Schedules in pieces: factors at some counts, rates from a table, periods, one schedule after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, nan, pi

import numpy as np

from ....base.arrays import Array
from ....tape import AnyVar, ops
from ....tape.record.kinds.values import NOT_NEGATIVE, Beside, Values
from ..kinds import COUNT, FRACTION
from .functions import plain
from .schedules import Schedule, ScheduleNodes, Vector


def rising(counts: Sequence[int]) -> bool:
    """Whether they are counts of at least 1 in rising order."""
    return all(map(COUNT.fits, counts)) and all(before < later for before, later in pairwise(counts))


RISING = Values("rising counts from 1 to 2**53", rising, ((3, 2), (2, 2), (0, 1), (2**53 + 1,)))
RATES = Values(
    "finite numbers of at least 0, one or more",
    lambda rates: bool(rates) and all(map(NOT_NEGATIVE.fits, rates)),
    ((), (0.1, -0.1), (nan,), (inf,)),
)
BETWEEN = Beside(
    "rising counts, one for every schedule but the first",
    lambda given: rising(given["at"]) and 1 <= len(given["at"]) == len(given["schedules"]) - 1,
    lambda given: [(0, *given["at"][1:]), given["at"][1:], (*given["at"], 2**53)],
    shown=(),
)


@dataclass(frozen=True)
class CosineRestarts(Schedule, kinds={"lr": NOT_NEGATIVE, "steps": COUNT, "longer": COUNT, "final": NOT_NEGATIVE}):
    """`Cosine` again and again, each time ``longer`` times as long::

        lr * w + final * (1 - w)        with w = 0.5 * (1 + cos(pi * u))

    at the share ``u`` of the period that is done.

    Source: Loshchilov and Hutter (2017), arXiv:1608.03983; torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.

    Args:
        lr: the rate at which each period begins.
        steps: of the first period (``T_0`` in PyTorch).
        longer: a whole number of at least 1 (``T_mult`` in PyTorch).
        final: the rate that each period tends to (``eta_min`` in PyTorch).

    >>> from dgrr.runtime.optim import CosineRestarts
    >>> schedule = CosineRestarts(1.0, steps=2, longer=2)
    >>> [round(schedule(count), 6) for count in (0, 1, 2, 4, 6)]
    [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    lr: float
    steps: int
    longer: int = 1
    final: float = 0.0

    def rate(self, count: AnyVar) -> AnyVar:
        """The formula above."""
        w = 0.5 * (1.0 + ops.cos(pi * self._share(count)))
        return self.lr * w + self.final * (1.0 - w)

    def _share(self, count: AnyVar) -> AnyVar:
        if self.longer == 1:
            periods = ops.cast(ops.cast(count / float(self.steps), "int64"), "float64")
            return (count - periods * float(self.steps)) / float(self.steps)
        begins, lengths = [0], [self.steps]
        while begins[-1] + lengths[-1] < 2**53:
            begins.append(begins[-1] + lengths[-1])
            lengths.append(lengths[-1] * self.longer)
        place = passed(count, begins) - 1.0
        return (count - picked(begins, place)) / picked(lengths, place)


@dataclass(frozen=True)
class MultiStep(Schedule, kinds={"lr": NOT_NEGATIVE, "at": RISING, "factor": FRACTION}):
    """The rate times a factor at each of some counts: ``lr * factor ** k`` behind ``k`` of them.

    Source: torch.optim.lr_scheduler.MultiStepLR.

    Args:
        at: counts, in rising order (``milestones`` in PyTorch).
        factor: in [0, 1] (``gamma`` in PyTorch).

    >>> from dgrr.runtime.optim import MultiStep
    >>> schedule = MultiStep(1.0, at=[2, 5], factor=0.5)
    >>> [schedule(count) for count in (0, 1, 2, 4, 5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    lr: float
    at: Sequence[int]
    factor: float

    def rate(self, count: AnyVar) -> AnyVar:
        """The rates are computed before, one product after the other."""
        rates = [self.lr]
        for _ in self.at:
            rates.append(rates[-1] * self.factor)
        return picked(rates, passed(count, self.at))


@dataclass(frozen=True)
class Table(Schedule, kinds={"rates": RATES}):
    """The rates of all counts, one by one; behind the last it stays.

    Source: optax.piecewise_constant_schedule, at every count.

    Args:
        rates: numbers of at least 0, one or more.

    >>> from dgrr.runtime.optim import Table
    >>> schedule = Table([0.1, 0.2, 0.3])
    >>> [schedule(count) for count in (0, 1, 2, 100)]
    [0.1, 0.2, 0.3, 0.3]
    """

    rates: Sequence[float]

    def rate(self, count: AnyVar) -> AnyVar:
        """The rate at the count."""
        return picked(self.rates, ops.minimum(count, plain(float(len(self.rates) - 1))))


@dataclass(frozen=True)
class Joined(Schedule, kinds={"at": BETWEEN}):
    """One schedule after the other, each from its own count 0 on.

    Each has the bits that it has alone.

    Source: torch.optim.lr_scheduler.SequentialLR; optax.join_schedules.

    Args:
        schedules: any, two or more.
        at: the counts at which the second and those after it begin, in rising order (``milestones`` in PyTorch).

    >>> from dgrr.runtime.optim import Constant, Joined, Linear
    >>> schedule = Joined([Linear(0.0, 4, 1.0), Constant(1.0), Linear(1.0, 2)], at=[4, 10])
    >>> [schedule(count) for count in (0, 1, 4, 9, 10, 11, 12)]
    [0.0, 0.25, 1.0, 1.0, 1.0, 0.5, 0.0]
    """

    schedules: Sequence[Schedule]
    at: Sequence[int]

    @property
    def is_set(self) -> bool:
        """Whether one of them is."""
        return any(schedule.is_set for schedule in self.schedules)

    def hyper(self, base: Vector, step: Array) -> Vector:
        """As `Schedule.hyper`: of the schedule that is on."""
        on = sum(int(step) > begin for begin in self.at)
        return self.schedules[on].hyper(base, np.array(int(step) - (0, *self.at)[on], np.int64))

    def graph(self, nodes: ScheduleNodes, base: int, step: int) -> int:
        """As `Schedule.graph`: all of them, of which one is taken."""
        found = self.schedules[0].graph(nodes, base, step)
        for begin, schedule in zip(self.at, self.schedules[1:], strict=True):
            own = nodes.by_ops(partial(since, begin=begin), [step])
            later = schedule.graph(nodes, base, own)
            found = nodes.by_ops(partial(after, begin=begin), [found, later, step])
        return found


def since(step: AnyVar, begin: int) -> AnyVar:
    """The number of an update counted from a later beginning; 1 before it."""
    return ops.cast(ops.maximum(ops.cast(step, "float64") - float(begin), plain(1.0)), "int64")


def after(a: AnyVar, b: AnyVar, step: AnyVar, begin: int) -> AnyVar:
    """``a`` up to an update, then ``b``."""
    late = ops.cast(step, "float64") > float(begin)
    return ops.where(ops.broadcast_to(late, a.value.sizes), b, a)


def passed(count: AnyVar, at: Sequence[int]) -> AnyVar:
    """How many of some counts are reached."""
    counts = count.tape.const(np.array(at, np.float64))
    return ops.reduce_sum(ops.cast(counts <= ops.broadcast_to(count, (len(at),)), "float64"))


def picked(numbers: Sequence[float], place: AnyVar) -> AnyVar:
    """One of some numbers, by its place."""
    return ops.take(place.tape.const(np.array(numbers, np.float64)), ops.cast(place, "int64"))
