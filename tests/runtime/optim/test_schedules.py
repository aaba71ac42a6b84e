"""Schedules: bits against a slow reference, rates against PyTorch's formulas, the kernel on memory that stays."""

import runpy
from functools import reduce
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from numba import njit

from dgrr.runtime.optim import Constant, Cosine, OneCycle, Schedule, StepDecay, WarmUp
from dgrr.runtime.optim.rates import formulas as schedule_kernels
from dgrr.tape.numerics.engine import launch
from dgrr.tape.numerics.engine.kernel import call
from dgrr.tape.numerics.exact_fma import fma

from .by_hand import binary_power

Array = npt.NDArray[Any]

SCHEDULES: list[Schedule] = [
    Constant(0.3),
    StepDecay(0.1, every=7, factor=0.3),
    StepDecay(0.1, every=1, factor=0.999),
    Cosine(1e-3, steps=1000),
    Cosine(0.7, steps=13, final=0.1),
    Cosine(0.1, steps=1, final=0.9),
    OneCycle(0.1, steps=1000),
    OneCycle(0.3, steps=17, warmup_share=0.41, div=3.0, final_div=7.0),
    OneCycle(0.3, steps=4, warmup_share=0.25),
    OneCycle(0.3, steps=20, warmup_share=0.0),
    OneCycle(0.3, steps=1),
    WarmUp(Constant(0.3), steps=5),
    WarmUp(Constant(0.3), steps=3, start=0.01),  # where the rise, drawn out to its end, would miss the rate
    WarmUp(StepDecay(0.1, every=3, factor=0.5), steps=4, start=0.2),
    WarmUp(Cosine(1e-3, steps=77, final=1e-5), steps=11, start=1 / 3),
    WarmUp(WarmUp(Cosine(0.1, steps=9), steps=3, start=0.5), steps=4, start=0.1),
]

every_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=str)

EDGES = [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 16, 17, 19, 20, 21, 87, 88, 298, 299, 300, 500, 998, 999, 1000, 1001]
COUNTS = [*EDGES, 10**6, 2**40, 2**53 - 1]
"""Beginnings, middles and ends of the schedules above, and counts far beyond."""


# The reference: numpy scalars, and fma as an exact fraction rounded once.


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    return reduce(lambda value, c: fma(value, x, np.float64(c)), coefficients[1:], np.float64(coefficients[0]))


def reference_cospi(x: Any) -> Any:
    half, one = np.float64(0.5), np.float64(1.0)
    y = one - x if x > half else x
    z = half - y if y > 0.25 else y
    s = z * z
    if y > 0.25:
        low = fma(s, polynomial(s, schedule_kernels.SIN), np.float64(schedule_kernels.PI_LOW))
        value = fma(z, np.float64(schedule_kernels.PI), z * low)
    else:
        square, low = np.float64(schedule_kernels.SQUARE), np.float64(schedule_kernels.SQUARE_LOW)
        high = fma(s, square, one)
        lost = fma(s, square, one - high)
        value = high + fma(s, fma(s, polynomial(s, schedule_kernels.COS), low), lost)
    return -value if x > half else value


def reference_anneal(start: float, end: float, share: float) -> float:
    weight = 0.5 * (1.0 + float(reference_cospi(np.float64(share))))
    return start * weight + end * (1.0 - weight)


def reference(schedule: Schedule, count: int) -> float:
    """`Schedule.__call__`, one operation at a time."""
    match schedule:
        case Constant(lr):
            return lr
        case StepDecay(lr, every, factor):
            return lr * binary_power(factor, count // every)
        case Cosine(lr, steps, final):
            return reference_anneal(lr, final, float(min(count, steps)) / float(steps))
        case OneCycle(max_lr, steps, share, div, final_div):
            first, peak, last, t = max_lr / div, share * steps - 1.0, steps - 1.0, float(min(count, steps - 1))
            if t < peak:
                return reference_anneal(first, max_lr, t / peak)
            return reference_anneal(max_lr, first / final_div, (t - peak) / (last - peak))
        case WarmUp(wrapped, steps, start) if count < steps:
            return reference(wrapped, 0) * (start + (1.0 - start) * float(count) / float(steps))
        case WarmUp(wrapped, steps, start):
            return reference(wrapped, count - steps)
    raise AssertionError(schedule)


@every_schedule
def test_bits_of_the_reference(schedule: Schedule) -> None:
    rng = np.random.default_rng(0)
    for count in [*COUNTS, *rng.integers(0, 1100, 200).tolist()]:
        assert schedule(count).hex() == reference(schedule, count).hex(), count


# PyTorch's formulas, with 40 digits.


def annealed(start: Any, end: Any, share: Any) -> Any:
    """OneCycleLR._annealing_cos, and CosineAnnealingLR with eta_min = end."""
    return end + (start - end) / 2 * (1 + mpmath.cos(mpmath.pi * share))


def one_cycle_lr(schedule: OneCycle, step: int) -> Any:
    """OneCycleLR.get_lr: the first phase that has not ended, or the last."""
    top, steps = mpmath.mpf(schedule.max_lr), schedule.steps
    initial = top / schedule.div
    peak = mpmath.mpf(schedule.warmup_share) * steps - 1
    phases = [(0, peak, initial, top), (peak, steps - 1, top, initial / schedule.final_div)]
    start, end, low, high = phases[0] if step <= peak and peak > 0 else phases[1]
    return annealed(low, high, (min(step, steps - 1) - start) / (end - start))


def documented(schedule: Schedule, count: int) -> Any:
    """StepLR, CosineAnnealingLR, OneCycleLR, and SequentialLR of LinearLR, in closed form."""
    match schedule:
        case Constant(lr):
            return mpmath.mpf(lr)
        case StepDecay(lr, every, factor):
            return lr * mpmath.mpf(factor) ** (count // every)
        case Cosine(lr, steps, final):
            share = mpmath.mpf(min(count, steps)) / steps
            return annealed(mpmath.mpf(lr), mpmath.mpf(final), share)
        case OneCycle():
            return one_cycle_lr(schedule, count)
        case WarmUp(wrapped, steps, start) if count < steps:
            return documented(wrapped, 0) * (start + (1 - mpmath.mpf(start)) * count / steps)
        case WarmUp(wrapped, steps, start):
            return documented(wrapped, count - steps)
    raise AssertionError(schedule)


@every_schedule
def test_rates_of_pytorch(schedule: Schedule) -> None:
    with mpmath.workdps(40):
        highest = max(documented(schedule, count) for count in EDGES)
        for count in [*range(1010), 10**6]:
            true = documented(schedule, count)
            loose = isinstance(schedule, StepDecay) * count * true
            assert abs(schedule(count) - true) <= (3 * highest + loose) * mpmath.mpf(2) ** -53, count


def test_beginnings_peaks_and_ends_are_exact() -> None:
    cosine = Cosine(0.7, steps=13, final=0.1)
    assert [cosine(count) for count in (0, 13, 14, 10**9)] == [0.7, 0.1, 0.1, 0.1]
    cycle = OneCycle(0.3, steps=20, warmup_share=0.25)
    assert [cycle(count) for count in (0, 4, 19, 20)] == [0.3 / 25, 0.3, 0.3 / 25 / 1e4, 0.3 / 25 / 1e4]
    assert OneCycle(0.3, steps=4, warmup_share=0.25)(0) == 0.3
    warm = WarmUp(cosine, steps=4, start=0.5)
    assert [warm(count) for count in (0, 2, 4, 17, 18)] == [0.35, 0.7 * 0.75, 0.7, 0.1, 0.1]
    decay = StepDecay(0.8, every=3, factor=0.5)
    assert [decay(count) for count in (0, 2, 3, 5, 6)] == [0.8, 0.8, 0.4, 0.4, 0.2]


# The cosine.


@njit(error_model="numpy")
def _fill(x: Array, y: Array) -> None:
    for i in range(x.size):
        y[i] = schedule_kernels.cospi(x[i])


def cospi(x: Array) -> Array:
    y = np.full_like(x, 12345)
    _fill(x, y)
    return y


def cospi_samples(n: int) -> Array:
    """Uniform samples, more where the error is largest, numbers close to 0, 1/2 and 1, neighbours of the cuts."""
    rng = np.random.default_rng(1)
    cuts = np.array([0.25, 0.5, 0.75]).view(np.int64)[:, None] + np.arange(-30, 31)
    small = 2.0 ** -rng.uniform(2, 50, n)
    x = np.concatenate(
        [rng.uniform(0, 1, n), cuts.view(np.float64).ravel(), small, 0.5 - small, 0.5 + small, 1 - small]
    )
    return np.asarray(x[(x >= 0) & (x <= 1)])


def test_cospi_is_within_its_bound() -> None:
    with mpmath.workprec(160):
        for x in cospi_samples(3000):
            true = mpmath.cospi(mpmath.mpf(float(x)))
            error = abs(mpmath.mpf(float(cospi(np.array([x]))[0])) - true)
            assert error <= 0.8 * np.spacing(abs(float(true))), x


def test_cospi_has_the_bits_of_the_reference() -> None:
    x = cospi_samples(3000)
    expected = np.array([reference_cospi(value) for value in x])
    np.testing.assert_array_equal(cospi(x).view(np.int64), expected.view(np.int64))


@pytest.mark.long
def test_cospi_has_the_coefficients_of_the_remez_exchange() -> None:
    remez: Any = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "elementary_coefficients.py"))
    with mpmath.workdps(60):
        top = mpmath.mpf(1) / 16
        cosine, _ = remez["minimax"](remez["cospi_tail"], remez["cospi_weight"], mpmath.mpf(0), top, 5)
        sine, _ = remez["minimax"](remez["sinpi_tail"], remez["sinpi_weight"], mpmath.mpf(0), top, 5)
        square = -(mpmath.pi**2) / 2
        parts = [(square, schedule_kernels.SQUARE, schedule_kernels.SQUARE_LOW)]
        parts.append((+mpmath.pi, schedule_kernels.PI, schedule_kernels.PI_LOW))
        assert tuple(map(float, cosine[::-1])) == schedule_kernels.COS
        assert tuple(map(float, sine[::-1])) == schedule_kernels.SIN
        assert all((float(true), float(true - high)) == (high, low) for true, high, low in parts)


def test_cospi_of_the_quarters() -> None:
    assert cospi(np.array([0.0, 5e-324, 0.25, 0.5, 0.75, 1.0])).tolist() == [1, 1, 0.5**0.5, 0, -(0.5**0.5), -1]
    assert not np.signbit(cospi(np.array([0.5])))[0]


def test_cospi_never_rises() -> None:
    assert (np.diff(cospi(np.sort(cospi_samples(100_000)))) <= 0).all()


# The kernel on memory that stays, as a captured plan calls it.


def test_one_call_serves_every_step() -> None:
    schedule = WarmUp(Cosine(0.5, steps=9, final=0.125), steps=3, start=0.25)
    base, out, step = np.array([np.nan, 2.0, 3.0, 4.0, 5.0]), np.full(5, np.nan), np.array(0, np.int64)
    words, arrays = schedule.ints, (out, base, schedule.numbers, step)
    for k in range(1, 20):
        step[...] = k
        assert launch.launch(schedule.kernel, np.dtype(np.float64), words, arrays, 0) == 0
        assert out.tolist() == [reference(schedule, k - 1), 2.0, 3.0, 4.0, 5.0]
    assert np.isnan(base[0])


def test_only_the_first_part_writes() -> None:
    schedule, step = Constant(0.5), np.array(1, np.int64)
    base, out = np.ones(5), np.full(5, 7.0)
    address = schedule.kernel.address(np.dtype(np.float64))
    call(address, schedule.ints.address, 1, 2, tuple(map(id, (out, base, schedule.numbers, step))))
    assert out.tolist() == [7.0] * 5
