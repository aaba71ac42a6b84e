"""The kernel of unpooling: which source each cell of a plane is given by."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector


@kernel
def last_sources(table, ints, part, parts):
    """``out[p, c]`` is the last ``p·n + o`` with ``positions[p, o] == c``, or -1; ints: planes, n, cells of a plane.

    A position outside the plane is refused.
    """
    n, cells = word(ints, 1), word(ints, 2)
    start, mine = share(word(ints, 0), part, parts)
    for plane in range(start, start + mine):
        out, positions = vector(table, 0, plane * cells, cells), vector(table, 1, plane * n, n)
        out[:] = real(table, -1)
        for o in range(n):
            if not 0 <= positions[o] < cells:
                return plane * n + o + 1
            out[positions[o]] = plane * n + o
    return 0
