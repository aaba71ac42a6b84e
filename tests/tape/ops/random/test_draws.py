"""Draws: their distributions, their keys, their ends, and what longer ones share with shorter ones."""

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import capture_function
from dgrr.tape import AnyTensor, BoundsError, DomainError, nn, ops
from dgrr.tape.numerics.math import random
from dgrr.tape.ops import OPS

Array = npt.NDArray[Any]
Key = dict[str, int]
STEP = AnyTensor(np.array(3))
N = 200_000
KEYS: list[Key] = [{"seed": 1}, {"seed": 2**63 + 5, "micro_batch": 1, "ordinal": 9}]

DRAWS: dict[str, Callable[..., Any]] = {
    "normal": lambda step, n, **key: ops.normal(step, (n,), "float64", **key),
    "bernoulli": lambda step, n, **key: ops.bernoulli(step, 0.3, (n,), **key),
    "integers": lambda step, n, **key: ops.integers(step, -5, 2**62, (n,), **key),
    "permutation": ops.permutation,
}


def chi_square(counts: Array, expected: Array) -> float:
    """How many deviations the statistic lies above its mean, the number of bins less 1."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_have_the_moments_and_the_bins_of_the_distribution(key: Key, dtype: str) -> None:
    z = ops.normal(STEP, (N,), dtype, **key).numpy().astype(np.float64)
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs(np.mean(z**power) - moment) < 4.5 * (spread / N) ** 0.5
    edges = np.linspace(-3, 3, 61)
    below = np.array([0.0, *((1 + erf(edge / 2**0.5)) / 2 for edge in edges), 1.0])
    counts = np.bincount(np.searchsorted(edges, z), minlength=62)
    assert abs(chi_square(counts, N * np.diff(below))) < 4
    assert abs(np.mean(z[1:] * z[:-1])) < 4.5 / N**0.5


def test_normal_numbers_are_moved_and_scaled() -> None:
    z = ops.normal(STEP, (1000,), "float64", seed=4).numpy()
    moved = ops.normal(STEP, (1000,), "float32", mean=-1.5, std=0.1, seed=4).numpy()
    assert moved.tobytes() == (z * 0.1 + -1.5).astype(np.float32).tobytes()
    assert ops.normal(STEP, (5,), mean=0.5, std=0).numpy().tolist() == [0.5] * 5


def test_normal_numbers_are_those_of_the_initialiser() -> None:
    """Of the same coordinates: the last step there is."""
    last = AnyTensor(np.array(nn.initializers.BEFORE_TRAINING))
    start = nn.init.normal(0.25, 3.0)((7, 11), np.dtype(np.float32), 5, 2)
    drawn = ops.normal(last, (7, 11), "float32", 0.25, 3.0, seed=5, ordinal=2).numpy()
    assert drawn.tobytes() == start.tobytes()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.999])
def test_coins_fall_as_often_as_asked(key: Key, p: float) -> None:
    mask = ops.bernoulli(STEP, p, (N,), **key).numpy()
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - p) < 4.5 * (p * (1 - p) / N) ** 0.5
    assert mask.tolist() == (random.uniform((N,), np.float64, step=3, **key) < p).tolist()


def test_certain_coins() -> None:
    assert not ops.bernoulli(STEP, 0, (N,)).numpy().any()
    assert ops.bernoulli(STEP, 1, (N,)).numpy().all()


def test_a_mask_chooses() -> None:
    mask = ops.bernoulli(STEP, 0.5, (50,), seed=2)
    chosen = ops.where(mask, AnyTensor(np.ones(50)), AnyTensor(np.zeros(50))).numpy()
    assert chosen.tolist() == mask.numpy().astype(float).tolist()
    assert ops.cast(mask, "float32").numpy().dtype == np.float32


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 7), (0, 1000), (-(2**63), 2**63), (5, 2**63)])
def test_whole_numbers_are_uniform(key: Key, low: int, high: int) -> None:
    drawn = ops.integers(STEP, low, high, (N,), **key).numpy()
    bins = min(high - low, 100)
    places = [(int(x) - low) * bins // (high - low) for x in drawn]
    assert min(places) == 0
    assert max(places) == bins - 1
    assert abs(chi_square(np.bincount(places), np.full(bins, N / bins))) < 4


def test_a_range_of_one_number() -> None:
    assert ops.integers(STEP, 2**62, 2**62 + 1, (3,)).numpy().tolist() == [2**62] * 3
    assert ops.integers(STEP, -(2**63), -(2**63) + 1, (2,)).numpy().tolist() == [-(2**63)] * 2


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 128, 1000])
def test_permutations_hold_every_number_once(n: int) -> None:
    drawn = ops.permutation(STEP, n, seed=8).numpy()
    assert drawn.dtype == np.int64
    assert sorted(drawn.tolist()) == list(range(n))


def test_every_order_is_equally_likely() -> None:
    orders: dict[tuple[int, ...], int] = {}
    for ordinal in range(6000):
        order = tuple(ops.permutation(STEP, 4, ordinal=ordinal).numpy().tolist())
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 24
    assert abs(chi_square(np.array([*orders.values()]), np.full(24, 250.0))) < 4


def test_a_permutation_of_a_step_is_none_of_the_shuffles() -> None:
    assert ops.permutation(STEP, 100, seed=1).numpy().tolist() != random.permutation(100, seed=1, step=3).tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_every_coordinate_counts(name: str) -> None:
    draw = DRAWS[name]
    keys: list[Key] = [{}, {"seed": 1}, {"seed": 1 << 32}, {"micro_batch": 1}, {"ordinal": 1}]
    found = [draw(STEP, 64, **key).numpy().tobytes() for key in keys]
    found.append(draw(AnyTensor(np.array(4)), 64).numpy().tobytes())
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", ["normal", "bernoulli", "integers"])
def test_a_longer_draw_begins_with_the_shorter_one(name: str) -> None:
    whole, part = (DRAWS[name](STEP, n, seed=3).numpy() for n in (301, 77))
    assert whole[:77].tobytes() == part.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3, 5)])
def test_shapes_are_filled_row_by_row(shape: tuple[int, ...]) -> None:
    for draw in (
        lambda s: ops.normal(STEP, s),
        lambda s: ops.bernoulli(STEP, 0.5, s),
        lambda s: ops.integers(STEP, 0, 9, s),
    ):
        drawn, flat = draw(shape).numpy(), draw((int(np.prod(shape)),)).numpy()
        assert drawn.shape == shape
        assert drawn.tobytes() == flat.tobytes()


REST: dict[str, dict[str, Any]] = {
    "bernoulli": {"p": 0.5, "shape": (2,)},
    "dropout": {},
    "integers": {"low": 0, "high": 2, "shape": (2,)},
    "permutation": {"n": 2},
}
"""What references take besides the step."""


@pytest.mark.parametrize("step", [-1, 2**32, -(2**63)])
@pytest.mark.parametrize("name", [*DRAWS, "uniform", "dropout"])
def test_a_step_that_is_none_is_refused(name: str, step: int) -> None:
    """By the kernel, since a step is a value: eager on one thread and on several, and in a captured function."""
    draws = DRAWS | {
        "uniform": lambda step, n: ops.uniform(step, (n,), "float64"),
        "dropout": lambda step, n: ops.dropout(AnyTensor(np.ones(n)), step),
    }
    text = f"^{name}: argument 'step': expected an integer from 0 to 4294967295, got {step}$"
    with pytest.raises(DomainError, match="argument 'step'"):
        OPS[name].reference(*[np.ones(2)] * (name == "dropout"), np.array(step), **REST.get(name, {"shape": (2,)}))
    for n in (0, 5, 30_000):
        with pytest.raises(BoundsError, match=text):
            draws[name](AnyTensor(np.array(step)), n)
    captured = capture_function(lambda p, x: draws[name](x, 5))
    captured({}, np.array(3))
    with pytest.raises(BoundsError, match=text):
        captured({}, np.array(step))
