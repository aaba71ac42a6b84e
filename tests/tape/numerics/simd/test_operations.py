"""Operations: what each means in Python is what compiled code makes of it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit

from dgrr.tape.numerics.engine.numba_compiler import compiling
from dgrr.tape.numerics.simd import operations

Array = npt.NDArray[Any]
FLOATS = (np.float32, np.float64)


def drawn(dtype: type, count: int, n: int) -> tuple[Array, ...]:
    """Any bit patterns, and ordinary numbers."""
    rng, width = np.random.default_rng(0), np.dtype(dtype).itemsize
    anything = rng.integers(0, 2 ** (8 * width), (count, n), f"u{width}").view(dtype)
    return tuple([np.concatenate([x, rng.normal(0, 4, n).astype(dtype)]) for x in anything])


def bits(x: Any) -> Array:
    """Bit patterns, one for all NaN."""
    x = np.asarray(x)
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"i{x.itemsize}")


def compiled(text: Any, given: tuple[Array, ...]) -> Array:
    """What compiled code makes of a text, in each place of arrays."""
    each = njit(error_model="numpy")(text)

    @njit(error_model="numpy")  # type: ignore[untyped-decorator,unused-ignore]
    def loop(out, given):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = each(given, i)

    out = np.full_like(given[0], 123)
    with compiling():  # as kernels are
        loop(out, given)
    return out


OF_NUMBERS = {
    "fma": lambda x, i: operations.fma(x[0][i], x[1][i], x[2][i]),
    "sqrt": lambda x, i: operations.sqrt(x[0][i]),
    "select": lambda x, i: operations.select(x[0][i] < x[1][i], x[1][i], x[2][i]),
    "constant": lambda x, i: operations.constant(x[0][i], 0.375),
    "polynomial": lambda x, i: operations.polynomial(x[0][i], operations.constants(x[0][i]).exp),
    "bits and back": lambda x, i: operations.float_of(operations.bits_of(x[0][i])),
    "table": lambda x, i: operations.constants(x[0][i]).half_pi * operations.constants(x[0][i]).ln2_low,
}
OF_BITS = {
    "add": lambda x, i: operations.add(x[0][i], x[1][i]),
    "sub": lambda x, i: operations.sub(x[0][i], x[1][i]),
    "bitand": lambda x, i: operations.bitand(x[0][i], x[1][i]),
    "bitor": lambda x, i: operations.bitor(x[0][i], x[1][i]),
    "shl": lambda x, i: operations.shl(x[0][i], 5),
    "lshr": lambda x, i: operations.lshr(x[0][i], 7),
    "whole constant": lambda x, i: operations.sub(x[0][i], operations.constants(operations.float_of(x[0][i])).bias),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers(name: str, dtype: Any) -> None:
    text, given = OF_NUMBERS[name], drawn(dtype, 3, 1500)
    with np.errstate(all="ignore"):
        expected: Any = text(given, ...)  # type: ignore[no-untyped-call]
    np.testing.assert_array_equal(bits(compiled(text, given)), bits(np.broadcast_to(expected, given[0].shape)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_BITS)
def test_bit_patterns(name: str, dtype: Any) -> None:
    text, given = OF_BITS[name], tuple([x.view(f"i{x.itemsize}") for x in drawn(dtype, 2, 1500)])
    np.testing.assert_array_equal(compiled(text, given), text(given, ...))  # type: ignore[no-untyped-call]
