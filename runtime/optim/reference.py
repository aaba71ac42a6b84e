"""The living definition of the optimizers' primitives: each as its formula on the numerics page, in plain numpy.

They share no code with the kernels, which must agree with them bit for bit. Each takes the inputs of a `StateOp`, then
its attributes, and gives its outputs as fresh arrays. Constants that follow from hyperparameters are computed in
float64 and rounded once to the type of what is updated.
"""

from typing import Any

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.math.reference_sums import row_sum

Results = list[Array]


def power(base: Any, exponent: int) -> Any:
    """``base ** exponent`` for a whole exponent of at least 0: the squares whose bits it has, from the lowest."""
    result = np.float64(1)
    for bit in reversed(f"{exponent:b}"):
        result = result * base if bit == "1" else result
        base = base * base
    return result


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


def adam(p: Array, m: Array, v: Array, g: Array, corrections: Array, hyper: Array, decoupled: int = 0) -> Results:
    """Adam, and AdamW where the decay is ``decoupled``."""
    real, (lr, beta1, beta2, eps, decay) = p.dtype.type, hyper[:5]
    s = g + real(decay) * p if decay != 0 and not decoupled else g
    first = m + real(1 - beta1) * (s - m) if 1 - beta1 < 0.5 else s - real(beta1) * (s - m)
    second = real(beta2) * v + (real(1 - beta2) * s) * s
    kept = real(1 - lr * decay) * p if decoupled else p
    root = np.sqrt(second) / real(np.sqrt(corrections[1])) + real(eps)
    return [np.asarray(x) for x in (kept - (real(lr / corrections[0]) * first) / root, first, second)]


def sgd(p: Array, g: Array, hyper: Array) -> Results:
    """Gradient descent."""
    return [np.asarray(p - p.dtype.type(hyper[0]) * _penalised(p, g, hyper))]


def sgd_momentum(p: Array, b: Array, g: Array, step: Array, hyper: Array) -> Results:
    """Gradient descent with momentum, whose buffer begins as the first gradient."""
    real, (lr, momentum, dampening, nesterov) = p.dtype.type, hyper[:4]
    s = _penalised(p, g, hyper)
    buffer = s if step == 1 else real(momentum) * b + real(1 - dampening) * s
    way = s + real(momentum) * buffer if nesterov else buffer
    return [np.asarray(p - real(lr) * way), np.array(buffer)]


def _penalised(p: Array, g: Array, hyper: Array) -> Array:
    return g + p.dtype.type(hyper[4]) * p if hyper[4] != 0 else g


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
