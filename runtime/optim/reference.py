"""The living definition of the optimizers' primitives: each as its formula on the numerics page, in plain numpy.

They share no code with the kernels, which must agree with them bit for bit. Each takes the inputs of a `StateOp`, then
its attributes, and gives its outputs as fresh arrays. Constants that follow from hyperparameters are computed in
float64 and rounded once to the type of what is updated.
"""

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.math.reference_sums import row_sum
from .laws.formulas import power

Results = list[Array]


def copied(x: Array) -> Results:
    """``x`` as it is."""
    return [x.copy()]


def assigned(old: Array, new: Array) -> Results:
    """``new`` in the place of ``old``."""
    return [new.copy()]


def counted(step: Array) -> Results:
    """``step + 1``."""
    return [np.asarray(step + 1)]


def corrected(corrections: Array, step: Array, hyper: Array) -> Results:
    """``1 - beta ** step`` for both betas."""
    return [np.array([1.0 - power(beta, int(step)) for beta in hyper[1:3]])]


def norm(x: Array) -> Results:
    """The Euclidean norm of one tensor, in its dtype."""
    return [np.array([np.sqrt(row_sum(x * x))], np.float64)]


def norm_and_scale(*norms_and_largest: Array) -> Results:
    """The norm of the norms of all tensors, and what clipping multiplies by."""
    *norms, largest = norms_and_largest
    whole = norm(np.concatenate(norms))[0][0]
    scale = largest[0] / (whole + 1e-6)
    return [np.array([whole, 1.0 if scale > 1 else scale])]


def scaled(x: Array, clip: Array) -> Results:
    """``x`` times the scale of clipping."""
    return [np.asarray(x.dtype.type(clip[1]) * x)]


def clamped(x: Array, limit: Array) -> Results:
    """``x`` held between ``-limit`` and ``limit``."""
    bound = x.dtype.type(limit[0])
    low = np.where(x < -bound, -bound, x)
    return [np.where(low > bound, bound, low)]
