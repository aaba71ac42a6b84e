"""Formulas printed as CUDA C++ give the bits that Python reads; the header in the package is what is printed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.coefficients import FLOAT32, FLOAT64
from dgrr.tape.numerics.cuda.printer import FUNCTIONS, header, printed
from dgrr.tape.numerics.cuda.written import Launch
from dgrr.tape.numerics.math import elementary
from dgrr.tape.numerics.math.reference.functions import reading

from .host import HEADERS, Host, needs_cuda

OTHERS = {f"{text.__name__}_of": text for text in (
    elementary.tanh, elementary.sigmoid, elementary.log1p, elementary.expm1, elementary.erf, elementary.softplus
)}  # fmt: skip
PROGRAM = """
#include "same_bits.cuh"
{functions}
KERNEL(32, 1) functions(PARAMETER Call call, Report) {{
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  const real x = at<real>(call, 0)[i];
{calls}
}}
HOST_ENTRY(functions)
"""


def test_the_header_is_printed() -> None:
    assert (HEADERS / "elementary.cuh").read_text() == header()


def patterns(dtype: Any, count: int) -> Any:
    """Random bits, numbers where functions vary, and odd ones; a multiple of 32 in all."""
    words, rng = np.uint32 if dtype == np.float32 else np.uint64, np.random.default_rng(0)
    drawn = rng.integers(0, np.iinfo(words).max, count, words).view(dtype)
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, 1e-310, 1e-45, 710.0, -746.0, 89.0]).astype(
        dtype
    )
    return np.concatenate([drawn, rng.uniform(-110, 90, count).astype(dtype), np.resize(odd, 32)])


@needs_cuda
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.long)])
def test_printed_functions_have_the_bits_that_python_reads(tmp_path: Path, dtype: Any) -> None:
    functions, table = {**FUNCTIONS, **OTHERS}, FLOAT32 if dtype is np.float32 else FLOAT64
    text = "\n".join(printed(name, formula, table) for name, formula in functions.items())
    folder = tmp_path / "sources"
    folder.mkdir()
    x = patterns(np.dtype(dtype), 1 << 17)
    for begin in range(0, len(functions), 6):  # a call has eight pointers
        some = dict(list(functions.items())[begin : begin + 6])
        calls = "\n".join(f"  at<real>(call, {i})[i] = {name}(x);" for i, name in enumerate(some, 1))
        (folder / f"functions{begin}.cu").write_text(PROGRAM.format(functions=text, calls=calls))
        found = [np.empty_like(x) for _ in some]
        grid, real = (len(x) // 32, 1, 1), ("REAL", {4: "float", 8: "double"}[x.itemsize])
        pointers = tuple(range(len(some) + 1))
        launch = Launch(f"functions{begin}.cu", "functions", (real,), grid, (32, 1, 1), 0, pointers, ())
        Host(tmp_path, HEADERS, folder).run_launches([launch], [x, *found], (), 0)
        for formula, got in zip(some.values(), found, strict=True):
            want = reading(formula)(x)
            same = (got.view(f"i{x.itemsize}") == want.view(f"i{x.itemsize}")) | (np.isnan(got) & np.isnan(want))
            assert same.all(), formula.__name__
