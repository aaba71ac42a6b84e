"""Products of rows and columns, and running sums: one chain each, from the first element to the last."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector


@kernel
def prod_rows(table, ints, part, parts):
    """``out[r] = ((1 * x[r, 0]) * x[r, 1]) * ...``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, out = word(ints, 1), vector(table, 0, start, rows)
    for r in range(rows):
        x, total = vector(table, 1, (start + r) * n, n), real(table, 1.0)
        for i in range(n):
            total *= x[i]
        out[r] = total
    return 0


@kernel
def prod_columns(table, ints, part, parts):
    """``out[o, j]`` is the product of ``x[o, :, j]``, as one chain; ints: outer, n, inner."""
    outer, n, inner = word(ints, 0), word(ints, 1), word(ints, 2)
    start, mine = share(inner, part, parts)
    for o in range(outer):
        out = vector(table, 0, o * inner + start, mine)
        out[:] = real(table, 1.0)
        for r in range(n):
            x = vector(table, 1, (o * n + r) * inner + start, mine)
            for j in range(mine):
                out[j] *= x[j]
    return 0


@kernel
def prod_but_one(table, ints, part, parts):
    """``out[r, i]`` is the product of ``x[r]`` before i, ascending, times that after i, descending; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n = word(ints, 1)
    for r in range(start, start + rows):
        out, x = vector(table, 0, r * n, n), vector(table, 1, r * n, n)
        before, after = real(table, 1.0), real(table, 1.0)
        for i in range(n):
            out[i] = before
            before *= x[i]
        for i in range(n - 1, -1, -1):
            out[i] *= after
            after *= x[i]
    return 0


@kernel
def cumsum(table, ints, part, parts):
    """``out[o, r, j] = ((+0 + x[o, 0, j]) + ...) + x[o, r, j]``; ints: outer, n, inner.

    Shares split the chains, ``outer * inner`` of them in row-major order.
    """
    outer, n, inner = word(ints, 0), word(ints, 1), word(ints, 2)
    first, count = share(outer * inner, part, parts)
    for o in range(outer):
        start = max(first - o * inner, 0)
        mine = min(first + count - o * inner, inner) - start
        for r in range(n):
            place = (o * n + r) * inner + start
            out, x = vector(table, 0, place, mine), vector(table, 1, place, mine)
            for j in range(mine):
                before = vector(table, 0, place - inner, mine)[j] if r else real(table, 0.0)
                out[j] = before + x[j]
    return 0
