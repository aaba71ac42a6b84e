"""How parameters start: bounds, moments, the normal draw to the bit, and starts that a user chooses."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import AnyTensor, DomainError, ShapeError, nn
from dgrr.tape.nn import init
from dgrr.tape.nn.parameters import Initialiser
from dgrr.tape.numerics.math.random import uniform
from dgrr.tape.ops import OPS

FLOATS = (np.float32, np.float64)
BEFORE_TRAINING = 2**32 - 1


def values(start: Initialiser, shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 3, ordinal: int = 5) -> Any:
    return start(shape, np.dtype(dtype), seed, ordinal)


STARTS: list[Callable[[], Initialiser]] = [
    init.zeros,
    init.ones,
    init.uniform,
    init.normal,
    init.xavier_uniform,
    init.xavier_normal,
    init.kaiming_uniform,
    init.kaiming_normal,
]


@pytest.mark.parametrize("make", STARTS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 2, 2), (0, 4), (2, 3, 0)])
def test_shape_and_dtype_of_what_initialisers_make(make: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    made = values(make(), shape, dtype)
    assert (made.shape, made.dtype) == (shape, np.dtype(dtype))
    assert made.flags.owndata
    assert made.flags.writeable
    assert made.flags.c_contiguous


@pytest.mark.parametrize("make", STARTS[2:])
def test_seed_and_place_decide(make: Any) -> None:
    one = values(make(), (20, 30))
    assert one.tobytes() == values(make(), (20, 30)).tobytes()
    for other in (values(make(), (20, 30), seed=4), values(make(), (20, 30), ordinal=6)):
        assert np.count_nonzero(one == other) < 10


@pytest.mark.parametrize("dtype", FLOATS)
def test_constants(dtype: Any) -> None:
    assert values(init.constant(0.1), (2, 2), dtype).tolist() == [[dtype(0.1)] * 2] * 2
    assert values(init.zeros(), (3,), dtype).tobytes() == np.zeros(3, dtype).tobytes()
    assert values(init.ones(), (), dtype).tobytes() == np.ones((), dtype).tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_scales_and_moves_the_numbers_of_its_stream(dtype: Any) -> None:
    unit = uniform((500,), dtype, seed=3, step=BEFORE_TRAINING, ordinal=5)
    assert values(init.uniform(), (500,), dtype).tobytes() == unit.tobytes()
    expected = unit * dtype(3.5) + dtype(-1.25)
    assert values(init.uniform(-1.25, 2.25), (500,), dtype).tobytes() == expected.tobytes()


def bounds(fan_in: int, fan_out: int) -> list[tuple[Initialiser, float]]:
    """The documented bound of each uniform start."""
    return [
        (init.xavier_uniform(), math.sqrt(6 / (fan_in + fan_out))),
        (init.xavier_uniform(5 / 3), 5 / 3 * math.sqrt(6 / (fan_in + fan_out))),
        (init.kaiming_uniform(), math.sqrt(6 / fan_in)),
        (init.kaiming_uniform(0.25), math.sqrt(6 / 1.0625 / fan_in)),
        (init.kaiming_uniform(mode="fan_out"), math.sqrt(6 / fan_out)),
    ]


def deviations(fan_in: int, fan_out: int) -> list[tuple[Initialiser, float]]:
    """The documented deviation of each normal start."""
    return [
        (init.xavier_normal(), math.sqrt(2 / (fan_in + fan_out))),
        (init.xavier_normal(2.0), 2 * math.sqrt(2 / (fan_in + fan_out))),
        (init.kaiming_normal(), math.sqrt(2 / fan_in)),
        (init.kaiming_normal(0.5), math.sqrt(2 / 1.25 / fan_in)),
        (init.kaiming_normal(mode="fan_out"), math.sqrt(2 / fan_out)),
    ]


SHAPES = [((40, 90), 90, 40), ((16, 8, 5, 5), 200, 400)]


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize(("shape", "fan_in", "fan_out"), SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_starts_by_their_bound(
    shape: tuple[int, ...], fan_in: int, fan_out: int, case: int, dtype: Any
) -> None:
    start, bound = bounds(fan_in, fan_out)[case]
    unit = uniform(shape, dtype, seed=3, step=BEFORE_TRAINING, ordinal=5)
    made = values(start, shape, dtype)
    assert made == pytest.approx((2 * unit - 1) * bound, rel=4 * float(np.finfo(dtype).eps), abs=0)
    assert made.max() > 0.99 * bound
    assert made.min() < -0.99 * bound


@pytest.mark.parametrize("case", range(5))
@pytest.mark.parametrize(("shape", "fan_in", "fan_out"), SHAPES)
def test_normal_starts_by_their_deviation(shape: tuple[int, ...], fan_in: int, fan_out: int, case: int) -> None:
    start, deviation = deviations(fan_in, fan_out)[case]
    standard = values(init.normal(), shape, np.float64)
    assert values(start, shape, np.float64) == pytest.approx(standard * deviation, rel=1e-15, abs=0)


@pytest.mark.parametrize("ratio", [Fraction(6, 7), Fraction(2, 10**6 + 3), Fraction(6, 5) / 4])
def test_bounds_are_exact_quotients_under_a_root(ratio: Fraction) -> None:
    """The root of the quotient rounded once: no product of rounded roots is as close."""
    total = math.ceil(6 / ratio)
    gain = Fraction(math.sqrt(ratio * total / 6))
    shape = (total - 1, 1)
    exact = math.sqrt(float(6 * gain**2 / total))
    unit = uniform(shape, np.float64, seed=3, step=BEFORE_TRAINING, ordinal=5)
    made = values(init.xavier_uniform(float(gain)), shape, np.float64)
    assert made.tobytes() == ((unit * 2 - 1) * exact).tobytes()


def normal_reference(shape: tuple[int, ...], mean: float, std: float, dtype: Any) -> npt.NDArray[Any]:
    """Box-Muller as the docstring states it, one element at a time, with the engine's own log and cos."""
    unit = uniform((2 * math.prod(shape),), np.float64, seed=3, step=BEFORE_TRAINING, ordinal=5).tolist()
    drawn = []
    for u, v in zip(unit[::2], unit[1::2], strict=True):
        logarithm = OPS["log"](AnyTensor(np.array(1.0 - u))).item()
        cosine = OPS["cos"](AnyTensor(np.array(math.tau * v))).item()
        drawn.append(math.sqrt(-2.0 * logarithm) * cosine * std + mean)
    return np.array(drawn, np.float64).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (-3.0, 0.02)])
def test_normal_follows_its_formula_to_the_bit(mean: float, std: float, dtype: Any) -> None:
    made = values(init.normal(mean, std), (4, 5), dtype)
    assert made.tobytes() == normal_reference((4, 5), mean, std, dtype).tobytes()


def test_moments_of_the_normal_start() -> None:
    """Within five standard errors; a uniform of the same variance has a fourth moment of 1.8."""
    n = 200_000
    z = values(init.normal(), (n,), np.float64)
    moments = {1: 0.0, 2: 1.0, 3: 0.0, 4: 3.0, 6: 15.0}
    for power, expected in moments.items():
        deviation = float(np.std(z**power)) / math.sqrt(n)
        assert abs(float(np.mean(z**power)) - expected) < 5 * deviation, power
    beyond = np.count_nonzero(np.abs(z) > 3) / n
    assert beyond == pytest.approx(0.0027, rel=0.2)
    assert np.all(np.isfinite(z))
    assert abs(float(np.corrcoef(z[:-1], z[1:])[0, 1])) < 5 / math.sqrt(n)


REFUSED: list[tuple[Callable[[], Initialiser], str]] = [
    (lambda: init.uniform(1.0, 0.0), "uniform: argument 'high': expected at least 1.0, at a finite distance, got 0.0"),
    (
        lambda: init.uniform(-1e308, 1e308),
        "uniform: argument 'high': expected at least -1e+308, at a finite distance, got 1e+308",
    ),
    (lambda: init.uniform(0.0, math.inf), "uniform: argument 'high': expected a finite number, got inf"),
    (lambda: init.uniform(math.nan), "uniform: argument 'low': expected a finite number, got nan"),
    (lambda: init.normal(0.0, -1.0), "normal: argument 'std': expected at least 0, got -1.0"),
    (lambda: init.normal(math.inf), "normal: argument 'mean': expected a finite number, got inf"),
    (lambda: init.normal(0.0, math.nan), "normal: argument 'std': expected a finite number, got nan"),
    (lambda: init.xavier_uniform(math.inf), "xavier_uniform: argument 'gain': expected a finite number, got inf"),
    (lambda: init.xavier_normal(math.nan), "xavier_normal: argument 'gain': expected a finite number, got nan"),
    (
        lambda: init.kaiming_uniform(math.nan),
        "kaiming_uniform: argument 'negative_slope': expected a finite number, got nan",
    ),
    (
        lambda: init.kaiming_normal(mode="fan_avg"),  # type: ignore[arg-type]
        "kaiming_normal: argument 'mode': expected 'fan_in' or 'fan_out', got 'fan_avg'",
    ),
]


@pytest.mark.parametrize(("make", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_arguments_that_initialisers_refuse(make: Callable[[], Initialiser], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"])
@pytest.mark.parametrize("shape", [(), (4,)])
def test_fans_need_two_axes(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as caught:
        values(getattr(init, name)(), shape)
    assert str(caught.value) == f"{name}: expected a parameter of at least 2 axes (out, in, ...), got shape {shape}"


# Starts that a user chooses.

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))


def test_overrides_replace_what_their_patterns_match() -> None:
    usual = MODEL.init(1)
    params = MODEL.init(1, overrides={"*.bias": init.zeros(), "1.*.weight": init.constant(0.5)})
    assert list(params) == list(usual)
    assert params["0.weight"].tobytes() == usual["0.weight"].tobytes()
    assert params["0.bias"].tolist() == [0.0] * 4
    assert params["1.1.weight"].tolist() == [[0.5] * 4] * 2
    assert params["1.1.bias"].tolist() == [0.0] * 2


def test_the_last_pattern_that_matches_counts() -> None:
    params = MODEL.init(1, overrides={"*": init.ones(), "0.bias": init.zeros()})
    assert params["0.bias"].tolist() == [0.0] * 4
    assert params["1.1.bias"].tolist() == [1.0] * 2


def test_overrides_draw_under_the_place_in_the_model() -> None:
    params = MODEL.init(7, np.float64, {"1.1.weight": init.normal()})
    assert params["1.1.weight"].tobytes() == init.normal()((2, 4), np.dtype(np.float64), 7, 2).tobytes()


def test_a_pattern_without_a_match_is_refused() -> None:
    with pytest.raises(DomainError) as caught:
        MODEL.init(0, overrides={"2.weight": init.zeros()})
    assert str(caught.value) == (
        "init: argument 'overrides': expected patterns of names among "
        "'0.weight', '0.bias', '1.1.weight', '1.1.bias', got '2.weight'"
    )
    with pytest.raises(DomainError, match=r"names among none, got '\*'$"):
        nn.ReLU().init(0, overrides={"*": init.zeros()})
