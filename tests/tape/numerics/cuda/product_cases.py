"""Matrix products for tests: operands, the words of the CPU's kernel, and what it makes of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dgrr.base.arrays import Array
from dgrr.tape.numerics.cuda.tiles import BLOCK, TILES
from dgrr.tape.numerics.cuda.written import Words
from dgrr.tape.numerics.engine.launch import launch
from dgrr.tape.ops.linear.cuda.choice import ChosenTile
from dgrr.tape.ops.linear.cuda.products import launches_of
from dgrr.tape.ops.linear.kernels.gemm import gemm
from dgrr.tape.ops.linear.kernels.product import B_ROW, Product

from .host import Host, output, values, wrong

SHAPES = (
    (1, 1, 1, 1), (1, 5, 3, 0), (1, 3, 7, 2), (1, 17, 33, 65), (1, 64, 64, 64), (1, 129, 130, 255), (1, 65, 68, 257),
    (3, 20, 36, 300), (1, 36, 132, 784), (1, 40, 44, 1030),
)  # fmt: skip
"""Batch, rows, columns, terms: less than a tile, none, around blocks, blocks of slices in turn."""

EPILOGUES = ("", "b", "br", "m", "bm")
"""Bias, relu, mask."""


class Case(NamedTuple):
    """The words, inputs and result of a product."""

    words: Words
    inputs: Sequence[Array]
    want: Array


def stored(x: Array, layout: str) -> Array:
    """``x`` as it lies: row-major, transposed, or between other columns so that nothing is aligned."""
    if layout == "T":
        return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    if layout == "U":
        memory = np.zeros((*x.shape[:2], x.shape[2] + 4), x.dtype)
        memory[:, :, 1 : x.shape[2] + 1] = x
        return memory[:, :, 1 : x.shape[2] + 1]
    return x


def case(rng: np.random.Generator, shape: Sequence[int], layout: str, kind: str, epilogue: str, dtype: Any) -> Case:
    """A product and what the CPU makes of it."""
    batch, m, n, k = shape
    a = stored(values(rng, (batch, m, k), kind, dtype), layout[0])
    b = stored(values(rng, (batch, k, n), kind, dtype), layout[1])
    bias = [values(rng, (n,), kind, dtype)] if "b" in epilogue else []
    mask = [values(rng, (batch, m, n), kind, dtype)] if "m" in epilogue else []
    product = Product(
        batch, m, n, k, dtype.itemsize, bias=bool(bias), relu="r" in epilogue, mask=bool(mask),
        group=2 if batch % 2 == 0 else 1,
    )  # fmt: skip
    strides = (a.strides, b.strides)
    if product.group == 2:
        strides = tuple((2 * s[0], *s) for s in strides)
    words, scratch, want = product.words(strides), product.scratch(strides, 1), np.empty((batch, m, n), dtype)
    inputs = [a, b, *bias, *mask, *([np.empty(scratch, np.uint8)] if scratch else [])]
    launch(gemm, dtype, words, [want, *inputs], 0)
    return Case(tuple(words.values.tolist()), inputs, want)


def way(name: str, dtype: Any, case: Case, each: int = 1) -> ChosenTile:
    """A product by a tile of this name, with what may go with it."""
    (batch, _, n, k), size = case.words[:4], dtype.itemsize
    along_k = case.words[B_ROW] == size and n % (16 // size) == 0
    transposed = name in ("wide", "tall") and batch == 1 and along_k
    return ChosenTile(TILES[size][name], each if name == "split" and k > BLOCK else 0, transposed)


def wrong_bits(host: Host, case: Case, how: ChosenTile, dtype: Any, seed: int) -> int:
    """How many elements of the CUDA form differ from the CPU's."""
    got, untouched = output(case.want.shape, dtype)
    batch, m, n, k = case.words[:4]
    scratch = (n * k + batch * m * n * -(-k // BLOCK)) * dtype.itemsize
    host.run_launches(launches_of(dtype.itemsize, case.words, how), [got, *case.inputs], case.words, scratch, seed)
    assert untouched(), "a kernel writes outside of its output"
    return wrong(got, case.want)
