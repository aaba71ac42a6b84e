"""Small planes side by side: the first cells of sixteen of them beside each other, then their second ones, and so on.

So each lane of a vector has a plane of its own, whatever the windows are. Arrays are brought into this order on the
stack, as squares transposed in registers, and back from there; in between, kernels do what they do for planes one by
one. What is brought is stored as whole vectors at the start of cache lines, which can be loaded again at once.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import entry, pointer, put_word, stack_words, table_at, word
from ....numerics.engine.kernel import share, vector
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.lanes import inlined
from ....numerics.simd.pack import itemsize, transpose_square, vector_size
from ....numerics.simd.strided import transpose_block
from ....numerics.simd.vectors import LANES
from .fold import room, visit_lines, visit_share
from .windows import BESIDE, BESIDE_CELLS, COLUMNS, LINES, PLANE, SOURCE_PLANE

WORD = 8
ARRAYS = 3
ROOM = BESIDE_CELLS * LANES
"""Words for each array: as long as the longest elements."""
AREA = ARRAYS * (1 + ROOM) + CACHE_LINE // WORD


@njit(inline="always")  # numba, not LLVM, makes it part of its caller: the area lives as long as that
def _own_table(table):
    """A table of as many arrays as a kernel has, with room for sixteen planes each."""
    area = stack_words(AREA)
    for k in range(ARRAYS):
        put_word(area, k, (area + WORD * (ARRAYS + k * ROOM) + CACHE_LINE - 1) & -CACHE_LINE)
    return table_at(table, area)


@inlined
def bring(table, own, k, cells, plane, planes):
    """Bring planes of the ``k``-th array, from ``plane`` on, side by side."""
    size, lanes = itemsize(table), vector_size() // itemsize(table)
    source, target, pitch = entry(table, k) + plane * cells * size, entry(own, k), LANES * size
    for j in range(0, planes, lanes):
        for i in range(0, cells, lanes):
            square = source + (j * cells + i) * size
            transpose_square(table, square, cells * size, target + i * pitch + j * size, pitch, planes - j, cells - i)


@inlined
def bring_back(table, own, cells, plane, planes):
    """Bring planes of the output back, to ``plane`` and those behind it."""
    out = vector(table, 0, plane * cells, planes * cells)
    transpose_block(out, cells, pointer(own, 0, 0), LANES * out.itemsize, planes, cells)


@inlined
def bring_source(table, own, ints, plane, planes):
    """Bring planes of the first input, which has the shape of the source."""
    bring(table, own, 1, word(ints, SOURCE_PLANE), plane, planes)


@inlined
def bring_back_windows(table, own, ints, plane, planes):
    """Bring back planes of an output with an element for each window."""
    bring_back(table, own, word(ints, PLANE), plane, planes)


@inlined
def visit_planes(visit, before, after, unit, table, ints, part, parts):
    """`visit_share`, or the same for planes side by side, if the words say so; shares split no ``unit`` of lines.

    ``before`` and ``after`` bring the inputs and bring back the output: ``before(table, own, ints, plane, planes)``.
    """
    if GPU:
        return visit_share(visit, table, ints, part, parts, room(table))
    beside, rows, line = word(ints, BESIDE), word(ints, PLANE) // word(ints, COLUMNS), room(table)
    planes = word(ints, LINES) // rows
    start, count = share((planes + LANES - 1) // LANES if beside else word(ints, LINES) // unit, part, parts)
    own, words, rounds, first, stop = table, ints, 1, start * unit, (start + count) * unit
    if beside:
        own, words, rounds, first, stop = _own_table(table), ints + WORD * beside, count, 0, rows
    for group in range(start, start + rounds):  # one copy of what is visited serves both
        plane = group * LANES
        if beside:
            before(table, own, ints, plane, min(LANES, planes - plane))
        visit_lines(visit, own, words, first, stop, line)
        if beside:
            after(table, own, ints, plane, min(LANES, planes - plane))
    return 0
