"""What one more op takes on a GPU: nothing, as its formula is translated; a form of its own is a source and a row."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.cuda.code import Wanted, ptx_of
from dgrr.tape.numerics.cuda.written import REALS, CudaForm, Launch, blocks_of
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel
from dgrr.tape.numerics.engine.launch import Words, launch

from .host import KINDS, NO_FAULT, Host, needs_cuda, output, values, wrong
from .lint import findings, fused

FORMULA = '''
from dgrr.tape.record import Number, constant, pointwise

@pointwise
def made_up_cubes(x: Number) -> Number:
    """``x * x * x + 1``."""
    return x * x * x + constant(x, 1.0)
'''

SOURCE = """
#include "same_bits.cuh"
KERNEL(256, 1) made_up_cubes(PARAMETER Call call, Report) {
  const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
  if (i >= call.words[0]) return;
  const real x = at<const real>(call, 1)[i];
  at<real>(call, 0)[i] = add(mul(mul(x, x), x), number(1, (real)0));
}
HOST_ENTRY(made_up_cubes)
"""

FORM = CudaForm(
    lambda dtype, words: (Launch("cubes.cu", "made_up_cubes", (("REAL", REALS[dtype.itemsize]),),
                                 (blocks_of(words[0], 256), 1, 1), (256, 1, 1), 0, (0, 1), words[:1]),),
    lambda dtype, words: 0,
)  # fmt: skip
"""The row, which stands in `written` by the kernel's name."""

FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))


@pytest.fixture(scope="module")
def cubes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """The kernel of a module that other processes find."""
    folder = tmp_path_factory.mktemp("made_up")
    (folder / "made_up_kernels.py").write_text(FORMULA)
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module("made_up_kernels")
        yield KERNELS["made_up_cubes"]
    finally:
        sys.path.remove(str(folder))
        KERNELS.pop("made_up_cubes", None)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_formula_is_translated_without_a_line(cubes: Kernel, dtype: np.dtype[Any]) -> None:
    (text,) = ptx_of([Wanted.of(cubes, dtype, None)])
    assert text.count(".entry") == 1 and not findings(text) and fused(text) == 0
    kind = {4: "f32", 8: "f64"}[dtype.itemsize]
    assert text.count(f"mul.rn.{kind}") >= 2 and f"add.rn.{kind}" in text


@needs_cuda
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_form_of_ones_own_has_the_bits_of_the_kernel(
    cubes: Kernel, programs: Path, tmp_path: Path, dtype: np.dtype[Any], kind: str
) -> None:
    (tmp_path / "cubes.cu").write_text(SOURCE)
    x = values(np.random.default_rng(0), (300,), kind, dtype)
    want, (got, untouched) = np.empty_like(x), output((300,), dtype)
    assert launch(cubes, dtype, Words(300), [want, x], 0) == 0
    host = Host(tmp_path, sources=tmp_path)
    assert host.run_launches(FORM.launches(dtype, (300,)), [got, x], (300,), FORM.scratch(dtype, (300,))) == NO_FAULT
    assert wrong(got, want) == 0 and untouched()
