"""The kernels of optimizers and of clipping; the rules and `clip_by_global_norm` state what they compute.

Scalars that change from step to step (step count, bias corrections, hyperparameters, clip scale) are read
from arrays in memory and never from the call's words, so that one set of words serves every step. They are
float64; a constant that follows from them is computed in float64 and rounded once to the element type.
"""

# numba's decorators and intrinsics carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="call-arg,attr-defined,import-untyped"
# pyright: basic, reportCallIssue=false, reportPrivateImportUsage=false
import numpy as np
from numba import njit

from ...tape.numerics.engine.intrinsics import real, word
from ...tape.numerics.engine.kernel import kernel, share, vector, vector_as
from ...tape.numerics.simd.operations import select, sqrt
from ...tape.numerics.simd.sums import square_sum
from .laws.formulas import power


@njit(inline="always")
def float64s(table, k, n):
    """The ``k``-th array of a table of any type as ``n`` float64 elements."""
    return vector_as(table, 0.0, k, 0, n)


@njit(inline="always")
def _copied(table, ints, part, parts):
    """The second array of a table written into the first."""
    start, mine = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, mine), vector(table, 1, start, mine)
    for i in range(mine):
        out[i] = x[i]
    return 0


@kernel
def snapshot(table, ints, part, parts):
    """``out = x``. Table: out, x; ints: n."""
    return _copied(table, ints, part, parts)


@kernel
def assign(table, ints, part, parts):
    """``state = x``. Table: state, x; ints: n."""
    return _copied(table, ints, part, parts)


@kernel
def step_inc(table, ints, part, parts):
    """``step += 1``. Table (int64): step."""
    if part == 0:
        step = vector(table, 0, 0, 1)
        step[0] += 1
    return 0


@kernel
def bias_corr(table, ints, part, parts):
    """``1 - beta ** step`` for both betas.

    Table (float64): corrections (2), step (int64), hyperparameters of Adam.
    """
    if part == 0:
        corrections, hyper = vector(table, 0, 0, 2), vector(table, 2, 0, 5)
        step = vector_as(table, np.int64(0), 1, 0, 1)[0]
        corrections[0] = 1.0 - power(hyper[1], step)
        corrections[1] = 1.0 - power(hyper[2], step)
    return 0


@njit(inline="always")
def euclidean_norm(table, k, n):
    """The norm of the ``k``-th array of a table."""
    return sqrt(square_sum(vector(table, k, 0, n), real(table, 0.0)))


@kernel
def tensor_norm(table, ints, part, parts):
    """Euclidean norm in the element type. Table: norm (float64, 1), tensor. Words: elements."""
    if part == 0:
        norm = float64s(table, 0, 1)
        norm[0] = euclidean_norm(table, 1, word(ints, 0))
    return 0


@kernel
def norm_scale(table, ints, part, parts):
    """Norm of norms, and clip scale.

    Table (float64): norm and scale (2), norms, largest norm (1). Words: norms.
    """
    if part == 0:
        result, largest = vector(table, 0, 0, 2), vector(table, 2, 0, 1)[0]
        norm = euclidean_norm(table, 1, word(ints, 0))
        scale = largest / (norm + 1e-6)
        result[0], result[1] = norm, select(scale > 1.0, 1.0, scale)
    return 0


@kernel
def scale_by(table, ints, part, parts):
    """``out = scale * x``. Table: out, x, norm and scale (float64). Words: elements."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    scale = real(table, float64s(table, 2, 2)[1])
    for i in range(n):
        out[i] = scale * x[i]
    return 0


@kernel
def clamp_to(table, ints, part, parts):
    """``out = x`` held between -limit and limit; NaN stays.

    Table: out, x, limit (float64). Words: elements.
    """
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    limit = real(table, float64s(table, 2, 1)[0])
    for i in range(n):
        low = select(x[i] < -limit, -limit, x[i])
        out[i] = select(x[i] > limit, limit, low)
    return 0
