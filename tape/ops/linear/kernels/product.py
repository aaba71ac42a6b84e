"""What the kernels of matrix products are told: a `Product`, the words that say it, and the positions in them."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

from numba import njit

from ....numerics.engine.intrinsics import word
from ....numerics.engine.launch import Words
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.sums import CHAIN_BLOCK
from ....numerics.sizes import Sizes

# Positions of the words: sizes; matrices in a group; strides in bytes (group, matrix, row, column) of a and b; what
# follows the sums, of what is added the bytes from row to row; bytes of packed rows of a for each part, 0 if a is read
# where it lies; whether the products of the batch are summed; whether b is given in panels.
BATCH, M, N, K, GROUP, A_GROUP, A_MATRIX, A_ROW, A_COLUMN, B_GROUP, B_MATRIX, B_ROW, B_COLUMN = range(13)
BIAS, RELU, MASK, ADDED, PACKED, SUMMED, PANELS = range(13, 20)

OUT, A, B, FIRST_OPTIONAL = range(4)
"""Positions of the table."""

BLOCK_BYTES = 2048
"""Bytes of a column of a block of rows of a: with 256 columns it fills half of a usual second-level cache."""

MOST_LANES = 16
"""Elements of the widest vector."""

LAYOUTS_KEPT = 1024
"""Products and stride patterns for which the words are kept ready."""

PAGE = 4096
"""Rows this many bytes apart, or a multiple, fall into the same set of a first-level cache."""

FEW_COLUMNS, FEW_COLUMNS_APART = 1024, 256
"""Bytes of a row of b below which packing a costs more than it saves, and the same where a is transposed and its
columns are pages apart: what a tile reads of a then falls into one set of the first cache."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product ``out[b] = a[b] @ b[b]`` of (batch, m, k) by (batch, k, n) and what is done to its totals.

    In this order: ``bias[j]`` is added; ``relu`` replaces what is ``<= 0`` by +0; ``mask`` keeps a total where
    ``mask[b, i, j] > 0``, else it becomes +0; an array like the output is added, whose rows, counted through the batch,
    are ``added`` bytes apart (0: there is none). Arrays of the kernel: out, a, b, then bias, mask and addend if there
    are any, then `scratch` bytes if that is not 0. All but a, b and the addend are row-major.

    The batch may have two axes, of which the second has ``group`` elements: heads of a sequence lie that way.

    ``summed`` adds the products of the batch, which has one axis then, to one matrix in their order, each to all before
    it; what is added comes before the first. They have at most `CHAIN_BLOCK` terms each, and nothing else follows them.

    With ``panels`` b is one matrix for all, as `pack_panels` leaves it.
    """

    batch: int
    m: int
    n: int
    k: int
    itemsize: int
    _: KW_ONLY
    bias: bool = False
    relu: bool = False
    mask: bool = False
    added: int = 0
    group: int = 1
    summed: bool = False
    panels: bool = False

    @property
    def flops(self) -> int:
        """Its multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k

    def words(self, strides: tuple[Sizes, ...]) -> Words:
        """The words for operands with these strides in bytes; without a batch axis one matrix serves all.

        >>> Product(1, 2, 3, 4, itemsize=4).words(((16, 4), (12, 4))).values.tolist()
        [1, 2, 3, 4, 1, 0, 0, 16, 4, 0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 0]
        """
        return _words(self, strides[:2])

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes of memory that ``parts`` shares need to work in; 0 if none, as for all small products."""
        packed = _packed_bytes(self, strides[0])
        return packed * parts + CACHE_LINE if packed else 0


@lru_cache(LAYOUTS_KEPT)
def _words(product: Product, strides: tuple[Sizes, ...]) -> Words:
    sizes = (product.batch, product.m, product.n, product.k, product.group)
    strides = (strides[0], (0, rounded(product.k) * product.itemsize)) if product.panels else strides
    a, b = ((*(*s[:-2], 0, 0)[:2], *s[-2:]) for s in strides)  # one axis of the batch counts groups of one
    finish = (int(product.bias), int(product.relu), int(product.mask), product.added)
    flags = (int(product.summed), int(product.panels))
    return Words(*sizes, *a, *b, *finish, _packed_bytes(product, strides[0]), *flags)


def _packed_bytes(product: Product, a: Sizes) -> int:
    """Bytes of a block of rows of a for one part; 0 if a is better read where it lies."""
    size = product.itemsize
    terms = product.k * product.batch if product.summed else product.k
    conflicting = a[-1] == size and a[-2] % PAGE == 0
    transposed = a[-2] == size and a[-1] != size
    few = FEW_COLUMNS_APART if transposed and a[-1] % PAGE == 0 else FEW_COLUMNS
    if not (conflicting or transposed) or product.n * size < few or product.m < 16 or terms < 64:
        return 0
    rows = min(BLOCK_BYTES // size, -(-product.m // CACHE_LINE) * CACHE_LINE)
    return rows * (CHAIN_BLOCK * size + CACHE_LINE)


def rounded(depth: int) -> int:
    """Terms from chain to chain where several are packed: squares of `MOST_LANES` are written whole."""
    return (depth + MOST_LANES - 1) // MOST_LANES * MOST_LANES


spaced = njit(inline="always")(rounded)


@njit(inline="always")
def optional(ints):
    """Positions of the mask, of what is added and of scratch in the table; what is missing takes none."""
    mask = FIRST_OPTIONAL + word(ints, BIAS)
    addend = mask + word(ints, MASK)
    return mask, addend, addend + (word(ints, ADDED) > 0)


@njit(inline="always")
def matrix(ints, operand, batch, group_stride, matrix_stride):
    """The address of one matrix of an operand; the words at the last two positions are its batch strides."""
    group = word(ints, GROUP)
    return operand + batch // group * word(ints, group_stride) + batch % group * word(ints, matrix_stride)
