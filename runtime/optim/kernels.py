"""The kernels of optimizers and of clipping; the rules and `clip_by_global_norm` state what they compute.

Scalars that change from step to step (step count, bias corrections, hyperparameters, clip scale) are read
from arrays in memory and never from the call's words, so that one set of words serves every step. They are
float64; a constant that follows from them is computed in float64 and rounded once to the element type.
"""

# numba's decorators and intrinsics carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="call-arg,attr-defined,import-untyped"
# pyright: basic, reportCallIssue=false, reportPrivateImportUsage=false
from typing import Any

import numpy as np
from numba import njit

from ...tape.numerics.engine.intrinsics import real, word
from ...tape.numerics.engine.kernel import kernel, share, vector, vector_as
from ...tape.numerics.simd.operations import Number, constant, select, sqrt
from ...tape.numerics.simd.pointwise import kernel_of
from ...tape.numerics.simd.sums import square_sum
from .laws.formulas import whole_power


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
        corrections[0] = 1.0 - whole_power(hyper[1], step)
        corrections[1] = 1.0 - whole_power(hyper[2], step)
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


# ------------------------------------------------------------------ formulas of each place and a number from memory

TEXT: Any = None
"""The formula of a kernel."""

PLACE = 0
"""Where the number stands in its array."""


def _by_number(table, ints, part, parts):
    """Table: out, x, an array with the number (float64). Words: elements."""
    start, n = share(word(ints, 0), part, parts)
    out, x, number = vector(table, 0, start, n), vector(table, 1, start, n), vector_as(table, 0.0, 2, PLACE, 1)[0]
    for i in range(n):
        out[i] = TEXT(x[i], number)
    return 0


def scaled(x: Number, scale: float) -> Number:
    """``x`` times a scale."""
    return constant(x, scale) * x


def clamped(x: Number, limit: float) -> Number:
    """``x`` held between ``-limit`` and ``limit``; NaN stays."""
    bound = constant(x, limit)
    return select(x > bound, bound, select(x < -bound, -bound, x))


scale_by = kernel_of(_by_number, scaled, name="scale_by", PLACE=1)
"""``out = scale * x``, of the norm and scale that `norm_scale` gives."""

clamp_to = kernel_of(_by_number, clamped, name="clamp_to", PLACE=0)
"""``out = x`` held between -limit and limit."""
