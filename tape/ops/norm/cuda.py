"""Normalised rows and their gradients on CUDA devices."""

from dataclasses import replace
from typing import Any

import numpy as np

from ...numerics.cuda.columns import column_launch, column_launches, sums_bytes
from ...numerics.cuda.rows import ROW_BLOCK, block_launches, row_launches
from ...numerics.cuda.tiles import PROCESSORS
from ...numerics.cuda.written import SCRATCH, CudaForm, Launch, Words, blocks_of, divisor, written
from .kernels import shape as at

SOURCE = "tape/ops/norm/norms.cu"
COLUMNS = "tape/ops/norm/norm_columns.cu"

INPUTS = {"normalize": 1, "row_statistics": 1, "normalize_grad": 2, "normalize_weight_grad": 2}
"""The kernels, and the position of x: behind the output, and the cotangent where there is one."""

CLUSTER = 8
"""The most thread blocks of a cluster that every device with clusters has."""

SUMS, KINDS = 5, 4
"""The position of the sums of blocks, and how many kinds of them there may be."""


def _pointers(name: str, words: Words) -> Words:
    bias = words[at.BIAS] if name == "normalize" else 0
    return tuple(range(max(INPUTS[name], words[at.WEIGHT], words[at.STATISTICS], bias) + 1))


def _in_clusters(name: str, size: int, words: Words, own: Words) -> tuple[Launch, ...]:
    """The launch for few and long rows, a cluster of thread blocks for each."""
    pointers = (*_pointers(name, words), 0, 0, 0, 0)[:SUMS]
    cluster = _cluster(words)
    teams = (words[at.ROWS] * cluster, 1)
    (made,) = block_launches(SOURCE, f"{name}_cluster", size, teams, ROW_BLOCK, (*pointers, SCRATCH), own)
    staged = ROW_BLOCK * size * (2 if INPUTS[name] == 2 else 1)
    return (replace(made, defines=(*made.defines, ("CLUSTER", cluster)), shared=staged),)


def _cluster(words: Words) -> int:
    """The thread blocks of a row, a power of two."""
    return 1 << (_blocks(words) - 1).bit_length()


def _fits_clusters(name: str, words: Words) -> bool:
    """Whether a cluster has a thread block for each block of a row, and something to wait for."""
    return _blocks(words) <= CLUSTER and not (name == "normalize" and words[at.STATISTICS])


def _in_parts(name: str, size: int, words: Words, own: Words) -> tuple[Launch, ...]:
    """Launches for few and long rows, a thread block for each block of a row."""
    pointers = (*_pointers(name, words), 0, 0, 0, 0)[:SUMS]
    parts, given = words[at.ROWS] * _blocks(words), words[at.STATISTICS] > 0
    layers = 1 + (name == "normalize_grad" and words[at.CENTRED])
    means, squares = ("block_means", int(words[at.CENTRED] and not given)), ("block_squares", int(not given))
    products = ("block_products", layers * (INPUTS[name] == 2))
    chosen = [(entry, z) for entry, z in (means, squares, products, (f"{name}_blocks", 1)) if z]
    made = [block_launches(SOURCE, e, size, (parts, z), ROW_BLOCK, (*pointers, SCRATCH), own) for e, z in chosen]
    return tuple(launch for (launch,) in made)


def _blocks(words: Words) -> int:
    """The blocks of a row."""
    return blocks_of(words[at.SEGMENTS] * words[at.LENGTH], ROW_BLOCK)


def _is_in_parts(words: Words) -> bool:
    return _blocks(words) > 1 and 0 < words[at.ROWS] < 2 * PROCESSORS


def _form(name: str, *, clusters: bool = True) -> CudaForm:
    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        n = words[at.SEGMENTS] * words[at.LENGTH]
        if n == 0 and name in ("normalize", "normalize_grad"):
            return ()
        bias = words[at.BIAS] if name == "normalize" else 0
        own = (*words[: at.STATISTICS + 1], bias, INPUTS[name], *divisor(max(words[at.LENGTH], 1)))
        if _is_in_parts(words):
            return (_in_clusters if clusters and _fits_clusters(name, words) else _in_parts)(
                name, dtype.itemsize, words, own
            )
        return row_launches(SOURCE, name, dtype.itemsize, words[at.ROWS], n, _pointers(name, words), own)

    def scratch(dtype: np.dtype[Any], words: Words) -> int:
        return KINDS * words[at.ROWS] * _blocks(words) * dtype.itemsize if _is_in_parts(words) else 0

    return CudaForm(launches, scratch, _form(name, clusters=False) if clusters else None)


def _sums_down(name: str, arrays: int) -> CudaForm:
    """Sums down columns, of which the CPU's words are rows, columns and what is added below the root."""

    def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
        rows, columns, *eps = words[: 2 + (name == "inverse_deviations")]
        return column_launches(COLUMNS, name, dtype.itemsize, (1, rows, columns), arrays, (len(eps), *eps))

    return CudaForm(launches, lambda dtype, words: sums_bytes(dtype.itemsize, (1, words[0], words[1])))


def _column_slopes(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    rows, columns, weight = words[:3]
    if columns * rows == 0:
        return ()
    given = (dtype.itemsize, (1, rows, columns), 6 if weight else 5, (weight,))
    return column_launch(COLUMNS, "slope_chains", *given, layers=2), column_launch(COLUMNS, "column_slopes", *given)


written.update({name: _form(name) for name in INPUTS})
written["inverse_deviations"] = _sums_down("inverse_deviations", 3)
written["column_weight_grad"] = _sums_down("column_weight_grad", 4)
written["column_slopes"] = CudaForm(
    _column_slopes, lambda dtype, words: sums_bytes(dtype.itemsize, (1, words[0], words[1]), kinds=2)
)
