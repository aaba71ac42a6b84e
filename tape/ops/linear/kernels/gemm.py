"""Matrix products: per output element one fma chain over the contraction index, in blocks of 256.

``total = s_0, then total + s_1, …`` where ``s_b`` is the chain ``acc = fma(a, b, acc)`` from +0 over block b.
The block of the contract is also the block of the cache: the loops are those of Goto and van de Geijn
(Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34, 2008), with the running total in the output.
Tiles, blocks of rows and shares split outputs only, so they cannot be seen in the bits. A sum of products has a chain
for each of them; as many chains lie in a block as fit.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from typing import NamedTuple

from numba import njit

from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import kernel, share
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.pack import (
    PANEL_VECTORS,
    block_pitch,
    itemsize,
    pack_block,
    pack_panel,
    panel_memory,
    vector_size,
)
from ....numerics.simd.sums import CHAIN_BLOCK
from . import product as w
from .gemm_reference import gemm_reference
from .narrow import is_narrow, narrow
from .tile import MIDDLE, NARROW, SHORT, TALL, WIDE, TileCall, compute_tile, rows_of, vectors_of
from .turned_tile import FEW_TURNED, compute_turned_rows

ROWS_TOGETHER = 4
"""Rows that shares do not split."""

ROWS_OF_A_PART, SMALL_B = 24, 1 << 17
"""Rows of a part, and bytes of b, for which a product is split by rows though it has more columns: what made a was
split so, too, and its rows lie in the cache of the core that reads them. A large b each thread rather packs in part."""

FEW_ROWS = 8
"""Rows for which copying b costs more than it saves."""


@njit(inline="always")
def _advanced(address, distance):
    """An address moved by a distance in bytes; what is absent stays so."""
    return address + distance if address else 0


class Chains(NamedTuple):
    """Chains of one block: how many, of how many terms, and bytes from one to the next in both operands."""

    number: int
    depth: int
    a: int
    b: int


@njit(inline="always")
def _tile(table, call, turned):
    """One tile, as high as it can be such that the last ones have few rows left over; how many rows it has."""
    tall, middle, short, row = rows_of(TALL), rows_of(MIDDLE), rows_of(SHORT), call.columns * itemsize(table)
    if turned:
        return _turned_tile(table, call)
    if row <= vector_size():
        compute_tile(table, NARROW, call)
        return rows_of(NARROW)
    if row > PANEL_VECTORS * vector_size():
        compute_tile(table, WIDE, call)
        return 1
    if call.rows >= tall + middle or tall <= call.rows < tall + short:
        compute_tile(table, TALL, call)
        return tall
    if call.rows > short:
        compute_tile(table, MIDDLE, call)
        return middle
    compute_tile(table, SHORT, call)
    return short


@njit(inline="always")
def _turned_tile(table, call):
    """The same where the columns of b lie side by side."""
    if call.rows == 1:
        compute_turned_rows(table, 1, call)
    else:
        compute_turned_rows(table, FEW_TURNED, call)
    return FEW_TURNED


@njit(inline="always")
def _panel(table, call, rows, chains, turned):
    """All tiles of one panel, each with the sums of all chains, while its outputs lie in the first cache."""
    i = 0
    while i < rows:
        height = 0
        out = call.out + i * call.out_row
        mask, addend = _advanced(call.mask, i * call.out_row), _advanced(call.addend, i * call.addend_row)
        for c in range(chains.number):
            here = TileCall(
                call.a + i * call.a_row + c * chains.a, call.a_row, call.a_column, call.b + c * chains.b, call.b_row,
                call.depth, out, call.out_row, rows - i, call.columns, int(call.adds or c > 0), call.bias, call.relu,
                mask, addend * (c == 0), call.addend_row,
            )  # fmt: skip
            height = _tile(table, here, turned)
        i += height


@njit(inline="always")
def _packed_rows(table, ints, a, rows, chains, block):
    """Rows of a packed, those of each chain behind those of the one before; bytes from chain to chain."""
    step = w.spaced(chains.depth) * itemsize(table)
    for c in range(chains.number):
        source, target = a + c * chains.a, block + c * step
        pack_block(table, source, word(ints, w.A_ROW), word(ints, w.A_COLUMN), rows, chains.depth, target)
    return step


@njit(inline="always")
def _packed_columns(table, ints, b, columns, chains, panel):
    """Columns of b packed, as `_packed_rows` does it with rows of a."""
    step = w.spaced(chains.depth) * PANEL_VECTORS * vector_size()
    for c in range(chains.number):
        source, target = b + c * chains.b, panel + c * step
        pack_panel(table, source, word(ints, w.B_ROW), word(ints, w.B_COLUMN), chains.depth, columns, target)
    return step


@njit(inline="always")
def _b_row(ints):
    """Bytes from row to row of b."""
    return PANEL_VECTORS * vector_size() if word(ints, w.PANELS) else word(ints, w.B_ROW)


@njit(inline="always")
def _is_turned(table, ints, rows, columns, depth):
    """Whether a tile of b is read where it lies with its columns side by side, in whole squares."""
    size, lanes = itemsize(table), vector_size() // itemsize(table)
    lies = word(ints, w.B_ROW) == size and word(ints, w.B_COLUMN) != size and not word(ints, w.PANELS)
    return lies and rows <= FEW_TURNED and columns >= lanes and depth % lanes == 0


@njit(inline="always")
def _vectors(table, ints, rows, columns, turned):
    """Vectors in a row of the next tile at most."""
    if turned:
        return 1
    wide, lies = vectors_of(WIDE), word(ints, w.B_COLUMN) == itemsize(table) and not word(ints, w.PANELS)
    return wide if rows == 1 and lies and columns * itemsize(table) >= wide * vector_size() else PANEL_VECTORS


@njit(inline="always")
def _block(table, ints, a, b, out, bias, mask, addend, begun, last, chains, rows, left, right, panel, block):
    """The sums of one block of terms for some rows, in columns ``left`` to ``right``."""
    size, lanes = itemsize(table), vector_size() // itemsize(table)
    a_row, a_column, b_row, b_column = word(ints, w.A_ROW), word(ints, w.A_COLUMN), _b_row(ints), word(ints, w.B_COLUMN)
    a_chain = chains.a
    if block:
        a_chain = _packed_rows(table, ints, a, rows, chains, block)
        a, a_row, a_column = block, block_pitch(table), size
    j = left
    while j < right:
        turned = _is_turned(table, ints, rows, right - j, chains.depth)
        columns = min(right - j, _vectors(table, ints, rows, right - j, turned) * lanes)
        source, source_row, b_chain = b + j * b_column, b_column if turned else b_row, chains.b
        in_place = rows <= FEW_ROWS and b_column == size and columns >= PANEL_VECTORS * lanes
        if not (turned or in_place or word(ints, w.PANELS)):
            b_chain = _packed_columns(table, ints, source, columns, chains, panel)
            source, source_row = panel, PANEL_VECTORS * vector_size()
        call = TileCall(
            a, a_row, a_column, source, source_row, chains.depth, out + j * size, word(ints, w.N) * size, rows, columns,
            begun, _advanced(bias * last, j * size), word(ints, w.RELU) * last, _advanced(mask * last, j * size),
            _advanced(addend, j * size), word(ints, w.ADDED),
        )  # fmt: skip
        _panel(table, call, rows, Chains(chains.number, chains.depth, a_chain, b_chain), turned)
        j += columns


@njit(inline="always")
def _chains(ints, first):
    """The chains of the block that begins with this one, of all that there are."""
    k = word(ints, w.K)
    if word(ints, w.SUMMED):
        count = min(word(ints, w.BATCH) - first, CHAIN_BLOCK // w.spaced(k))
        return Chains(count, k, word(ints, w.A_GROUP), word(ints, w.B_GROUP))
    depth = min(k - first * CHAIN_BLOCK, CHAIN_BLOCK)
    return Chains(1, depth, CHAIN_BLOCK * word(ints, w.A_COLUMN), CHAIN_BLOCK * _b_row(ints))


@njit(inline="always")
def _rectangle(table, ints, batch, top, bottom, left, right, panel, block):
    """Rows ``top`` to ``bottom`` and columns ``left`` to ``right`` of one product, a block of rows after the other."""
    m, n, size, summed = word(ints, w.M), word(ints, w.N), itemsize(table), word(ints, w.SUMMED)
    a_first = w.matrix(ints, entry(table, w.A), batch, w.A_GROUP, w.A_MATRIX)
    b = w.matrix(ints, entry(table, w.B), batch, w.B_GROUP, w.B_MATRIX)
    bias = entry(table, w.FIRST_OPTIONAL) if word(ints, w.BIAS) else 0
    mask_place, addend_place, _ = w.optional(ints)
    height, total = w.BLOCK_BYTES // size, word(ints, w.BATCH) if summed else -(-word(ints, w.K) // CHAIN_BLOCK)
    for i in range(top, bottom, height):
        a = a_first + i * word(ints, w.A_ROW)
        start = (batch * m + i) * n * size
        mask = entry(table, mask_place) + start if word(ints, w.MASK) else 0
        addend = entry(table, addend_place) + (batch * m + i) * word(ints, w.ADDED) if word(ints, w.ADDED) else 0
        first, rows, out = 0, min(bottom - i, height), entry(table, w.OUT) + start
        while first < max(total, 1):
            chains = _chains(ints, first)
            a_here, b_here, last = a + first * chains.a, b + first * chains.b, first + chains.number >= total
            added = addend * (first == 0 if summed else last)
            _block(
                table, ints, a_here, b_here, out, bias, mask, added, int(first > 0), int(last), chains, rows, left,
                right, panel, block,
            )  # fmt: skip
            first += chains.number


@njit(inline="always")
def _own_block(table, ints, part):
    """Where this part packs rows of a; 0 if it does not."""
    packed = word(ints, w.PACKED)
    if packed == 0:
        return 0
    _, _, place = w.optional(ints)
    return (entry(table, place) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE + part * packed


@kernel
def gemm(table, ints, part, parts):
    """A `Product`; shares are ranges of rows or, of wide products, columns, counted through all matrices."""
    m, n = word(ints, w.M), word(ints, w.N)
    panel, block = panel_memory(), _own_block(table, ints, part)
    if is_narrow(table, ints):
        return narrow(table, ints, part, parts, panel)
    small = word(ints, w.K) * n * itemsize(table) <= SMALL_B
    by_rows = m >= n or (small and m >= ROWS_OF_A_PART * parts)
    extent = m if by_rows else n
    vectors = PANEL_VECTORS if word(ints, w.PANELS) else 1
    unit = ROWS_TOGETHER if by_rows else vectors * vector_size() // itemsize(table)
    units = (extent + unit - 1) // unit
    start, count = share((1 if word(ints, w.SUMMED) else word(ints, w.BATCH)) * units, part, parts)
    stop = start + count
    while start < stop:
        batch, first = start // units, start % units
        last = min(units, first + stop - start)
        begin, end = first * unit, min(last * unit, extent)
        top, bottom = (begin, end) if by_rows else (0, m)
        left, right = (0, n) if by_rows else (begin, end)
        _rectangle(table, ints, batch, top, bottom, left, right, panel, block)
        start += last - first
    return 0


gemm.variants["reference"] = gemm_reference  # a plan can run it in place of this one
