"""Signs and roundings: numpy's on every kind of float, and a gradient of 0 whatever arrives."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops

FUNCTIONS: dict[str, Any] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "sign": lambda x: np.sign(x),
}
BOUND = {np.float32: 2.0**23, np.float64: 2.0**52}
"""From here on every float is whole."""


def patterns(dtype: Any) -> Any:
    """Floats of every exponent, halves, and neighbours of whole numbers and of the bound."""
    width = np.dtype(dtype).itemsize
    rng = np.random.default_rng(0)
    spread = rng.integers(0, 2 ** (8 * width), 4000, f"u{width}").view(dtype)
    halves = np.arange(-40, 41) / 2
    near = np.concatenate([halves, [1e5, BOUND[dtype] / 2, BOUND[dtype] / 2 + 0.5, BOUND[dtype] - 0.5, BOUND[dtype]]])
    near = near.astype(dtype)
    inf = dtype(np.inf)
    return np.concatenate([spread, near, -near, np.nextafter(near, inf), np.nextafter(near, -inf)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_numpys_to_the_bit(name: str, dtype: Any) -> None:
    x = patterns(dtype)
    with np.errstate(invalid="ignore"):
        expected = FUNCTIONS[name](x)
    got = getattr(ops, name)(Tape[Any]().leaf(x)).numpy()
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_is_plus_zero_whatever_arrives(name: str) -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf([2.5, -0.5, np.nan, np.inf, 0.0])
    y = getattr(ops, name)(x)
    assert tape.node(y).requires_grad
    gradient = np.asarray(tape.backward_dense(y, np.array([-1.0, np.inf, np.nan, 1.0, 1.0]))[x])
    assert gradient.tolist() == [0.0] * 5
    assert not np.signbit(gradient).any()
