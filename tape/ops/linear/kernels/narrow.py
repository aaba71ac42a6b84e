"""Small products whose rows are one vector or a half: most of their time is what surrounds the sums of other products.

Nothing is cut into blocks and panels here, and b is read where it lies if its rows do. The sums are those of `gemm`.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import share
from ....numerics.simd.pack import PANEL_VECTORS, itemsize, pack_panel, vector_size
from ....numerics.simd.sums import CHAIN_BLOCK
from . import product as w
from .narrow_tile import compute_narrow_rows
from .tile import NARROW, TileCall, rows_of


@njit(inline="always")
def is_narrow(table, ints):
    """Whether it is one matrix of such rows whose sums have one chain; registers of 16 bytes have no halves."""
    row, vector = word(ints, w.N) * itemsize(table), vector_size()
    one_chain = word(ints, w.BATCH) == 1 and word(ints, w.K) <= CHAIN_BLOCK
    return vector >= 32 and (row == vector or 2 * row == vector) and one_chain


@njit(inline="always")
def narrow(table, ints, part, parts, panel):
    """A share of the rows of such a product; ``panel`` has room for b, which is one panel."""
    m, k, size, together = word(ints, w.M), word(ints, w.K), itemsize(table), rows_of(NARROW)
    tiles = (m + together - 1) // together
    first, count = share(tiles, part, parts) if parts > 1 else (0, tiles)
    b, b_row, b_column = entry(table, w.B), word(ints, w.B_ROW), word(ints, w.B_COLUMN)
    if b_column != size:
        if not word(ints, w.PANELS):
            pack_panel(table, b, b_row, b_column, k, word(ints, w.N), panel)
            b = panel
        b_row = PANEL_VECTORS * vector_size()
    top, n, out_row, added = first * together, word(ints, w.N), word(ints, w.N) * size, word(ints, w.ADDED)
    mask, addend, _ = w.optional(ints)
    call = TileCall(
        entry(table, w.A) + top * word(ints, w.A_ROW), word(ints, w.A_ROW), word(ints, w.A_COLUMN), b, b_row, k,
        entry(table, w.OUT) + top * out_row, out_row, min(count * together, m - top), n, 0,
        entry(table, w.FIRST_OPTIONAL) if word(ints, w.BIAS) else 0, word(ints, w.RELU),
        entry(table, mask) + top * out_row if word(ints, w.MASK) else 0,
        entry(table, addend) + top * added if added else 0, added,
    )  # fmt: skip
    if out_row == vector_size():
        compute_narrow_rows(table, 1, call)
    else:
        compute_narrow_rows(table, 2, call)
    return 0
