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


@njit(inline="always")
def float64s(table, k, n):
    """The ``k``-th array of a table of any type as ``n`` float64 elements."""
    return vector_as(table, 0.0, k, 0, n)


@njit(inline="always")
def power(base, exponent):
    """``base ** exponent`` for a whole exponent of at least 0: binary powering from the lowest bit."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent = exponent >> 1
    return result


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


@kernel
def adam_step(table, ints, part, parts):
    """One step of Adam or AdamW.

    Table: parameter, m, v (in place), gradient, corrections (float64), hyperparameters (float64).
    Words: elements, 1 if weight decay is decoupled.
    """
    start, n = share(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 3, start, n)
    m, v = vector(table, 1, start, n), vector(table, 2, start, n)
    corrections, hyper = float64s(table, 4, 2), float64s(table, 5, 5)
    lr, beta1, beta2, decay = hyper[0], hyper[1], hyper[2], hyper[4]
    decoupled = word(ints, 1) != 0
    penalised, penalty = decay != 0.0 and not decoupled, real(table, decay)
    keep = real(table, 1.0 - lr * decay if decoupled else 1.0)
    near, old1, new1 = 1.0 - beta1 < 0.5, real(table, beta1), real(table, 1.0 - beta1)
    old2, new2 = real(table, beta2), real(table, 1.0 - beta2)
    size, root = real(table, lr / corrections[0]), real(table, sqrt(corrections[1]))
    eps = real(table, hyper[3])
    for i in range(n):
        slope = select(penalised, g[i] + penalty * p[i], g[i])
        change = slope - m[i]
        first = select(near, m[i] + new1 * change, slope - old1 * change)
        second = old2 * v[i] + (new2 * slope) * slope
        m[i], v[i] = first, second
        p[i] = keep * p[i] - (size * first) / (sqrt(second) / root + eps)
    return 0


@kernel
def sgd_step(table, ints, part, parts):
    """One step of SGD without momentum.

    Table: parameter (in place), gradient, hyperparameters. Words: elements.
    """
    start, n = share(word(ints, 0), part, parts)
    p, g, hyper = vector(table, 0, start, n), vector(table, 1, start, n), float64s(table, 2, 5)
    lr, penalised, penalty = real(table, hyper[0]), hyper[4] != 0.0, real(table, hyper[4])
    for i in range(n):
        p[i] = p[i] - lr * select(penalised, g[i] + penalty * p[i], g[i])
    return 0


@kernel
def sgd_momentum_step(table, ints, part, parts):
    """One step of SGD with momentum.

    Table: parameter, momentum buffer (in place), gradient, step (int64), hyperparameters. Words: elements.
    """
    start, n = share(word(ints, 0), part, parts)
    p, b, g = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    hyper = float64s(table, 4, 5)
    begins = vector_as(table, np.int64(0), 3, 0, 1)[0] == 1
    lr, momentum, rest = real(table, hyper[0]), real(table, hyper[1]), real(table, 1.0 - hyper[2])
    nesterov, penalised, penalty = hyper[3] != 0.0, hyper[4] != 0.0, real(table, hyper[4])
    for i in range(n):
        slope = select(penalised, g[i] + penalty * p[i], g[i])
        buffer = select(begins, slope, momentum * b[i] + rest * slope)
        b[i] = buffer
        p[i] = p[i] - lr * select(nesterov, slope + momentum * buffer, buffer)
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
