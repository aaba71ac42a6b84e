"""PTX of the CPU's kernels: what may stand in it, and what cannot be had."""

from typing import Any

import numpy as np
import pytest

import dgrr.runtime  # noqa: F401  (its kernels belong to the table)
from dgrr.tape.numerics.cuda.code import TranslationError, Wanted, ptx_of
from dgrr.tape.numerics.engine.chain import Chain, Link
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops.cuda_forms import FORMS

from .lint import findings, fused

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

NAMES = (
    "exp",
    "adam_step",
    "lion_step",
    "radam_step",
    "sum_rows",
    "copy",
    "scatter_add",
    "window_maxima",
    "uniform",
    "sort_keys",
)
"""Elementwise, in place, along rows, moving, scattering, windows, draws, orders."""


def of(name: str, dtype: np.dtype[Any] = FLOAT32) -> Wanted:
    return Wanted.of(KERNELS[name], dtype, None)


@pytest.mark.long
def test_nothing_is_approximated_flushed_or_contracted() -> None:
    wanted = [of(name) for name in NAMES] + [of("exp", FLOAT64)]
    for one, text in zip(wanted, ptx_of(wanted), strict=True):
        assert not findings(text), one.name
        assert ".extern" not in text, one.name
    assert fused(ptx_of([of("adam_step")])[0]) == 0
    assert fused(ptx_of([of("exp")])[0]) > 5


def test_a_chain_is_one_kernel() -> None:
    words, size = Words(8), 8
    links = [
        Link(KERNELS["exp"], FLOAT32, words, (-1, 1), (4, 4)),
        Link(KERNELS["mul"], FLOAT32, words, (0, -1, 1), (4, 4, 4)),
    ]
    (text,) = ptx_of([Wanted.of(KERNELS["chain"], FLOAT32, Chain(size, 2, 1, links))])
    assert text.count(".entry") == 1
    assert ".func" not in text
    assert ".local" not in text, "what lies between the links is written to memory"
    assert not findings(text)


def test_a_kernel_of_a_script_is_refused_by_name() -> None:
    def doubled(table: Any, ints: Any, part: Any, parts: Any) -> int:
        return 0

    doubled.__module__ = "__main__"
    made = Kernel(doubled)
    try:
        with pytest.raises(TranslationError, match=r"kernel 'doubled': expected a function of a module that can"):
            ptx_of([Wanted.of(made, FLOAT32, None)])
    finally:
        del KERNELS["doubled"]


def test_a_kernel_that_a_gpu_cannot_run_is_refused_by_name() -> None:
    wanted = Wanted(((KERNELS["finite"], np.dtype(np.complex64)),))
    with pytest.raises(TranslationError, match=r"kernel finite: expected code that a GPU can run, got KeyError"):
        ptx_of([wanted])


def test_every_written_kernel_is_one_of_the_cpu() -> None:
    assert FORMS.keys() <= KERNELS.keys()
