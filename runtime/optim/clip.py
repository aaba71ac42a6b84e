"""Clipping of gradients before an optimizer consumes them; the inputs are never changed."""

from typing import NamedTuple

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.engine.launch import launch
from .arrays import check_float, contiguous, prepared_words
from .kernels import clamp_to, norm_scale, scale_by, tensor_norm
from .kinds import BOUND, number

FLOAT64 = np.dtype(np.float64)


class ClippedByNorm(NamedTuple):
    """What `clip_by_global_norm` gives back."""

    grads: dict[str, Array]
    """The scaled gradients: new arrays in the order of the input."""

    norm: float
    """The norm of all gradients before clipping."""

    scale: float
    """What every gradient was multiplied by, at most 1."""


def clip_by_global_norm(grads: Arrays, max_norm: float) -> ClippedByNorm:
    """Scale all gradients alike so that their joint Euclidean norm is at most ``max_norm``.

    The joint norm is that of the norms of the tensors, in their order;
    ``scale = max_norm / (norm + 1e-6)``, at most 1; every element is multiplied by it. The norm of a tensor
    is computed in its dtype, the norm of norms and the scale in float64; the scale is rounded once to each
    dtype. A NaN anywhere makes norm, scale and every gradient NaN.

    Source: Pascanu, Mikolov and Bengio (2013), arXiv:1211.5063; torch.nn.utils.clip_grad_norm_.
    Shapes: gradients of any shape, which they keep.
    Dtypes: gradients float32 or float64, which they keep; norm and scale are Python floats.

    Args:
        grads: arrays of float32 or float64 by name; any strides.
        max_norm: at least 0; infinity measures the norm and leaves finite gradients as they are.

    Raises:
        DTypeError: a gradient is not an array of float32 or float64.
        DomainError: ``max_norm`` is negative or NaN.

    >>> from dgrr.runtime import clip_by_global_norm
    >>> clipped = clip_by_global_norm({"w": np.array([3.0, 4.0])}, max_norm=1.0)
    >>> clipped.norm, round(clipped.scale, 4), clipped.grads["w"].round(4)
    (5.0, 0.2, array([0.6, 0.8]))
    """
    return clip_by_norms(grads, max_norm, tensor_norms(grads))


def clip_by_norms(grads: Arrays, max_norm: float, norms: Array) -> ClippedByNorm:
    """`clip_by_global_norm` of gradients that are some of those whose `tensor_norms`, in their order, are given."""
    bound = _bound("clip_by_global_norm", "max_norm", max_norm)
    result = _norm_and_scale(norms, bound)
    norm, scale = result.tolist()
    return ClippedByNorm(_map(scale_by, _rows("clip_by_global_norm", grads), result), norm, scale)


def tensor_norms(grads: Arrays) -> Array:
    """The norm of each tensor (float64). Raises DTypeError as `clip_by_global_norm` does."""
    rows = _rows("clip_by_global_norm", grads)
    norms = np.empty(len(rows))
    for i, row in enumerate(rows.values()):
        launch(tensor_norm, row.dtype, prepared_words(row.size), (norms[i : i + 1], row), 0)
    return norms


def global_norm(grads: Arrays) -> float:
    """The joint norm of all gradients, as `clip_by_global_norm` measures it. Raises DTypeError as that does."""
    return float(_norm_and_scale(tensor_norms(grads), np.array([np.inf]))[0])


def clip_by_value(grads: Arrays, limit: float) -> dict[str, Array]:
    """Clip every element to ``[-limit, limit]``; NaN stays NaN.

    Source: torch.nn.utils.clip_grad_value_.
    Shapes: gradients of any shape, which they keep.
    Dtypes: gradients float32 or float64, which they keep.

    Args:
        grads: arrays of float32 or float64 by name; any strides.
        limit: at least 0; rounded once to each dtype.

    Returns:
        New arrays in the order of the input.

    Raises:
        DTypeError: a gradient is not an array of float32 or float64.
        DomainError: ``limit`` is negative or NaN.

    >>> from dgrr.runtime import clip_by_value
    >>> clip_by_value({"w": np.array([3.0, -0.5])}, limit=1.0)
    {'w': array([ 1. , -0.5])}
    """
    bound = _bound("clip_by_value", "limit", limit)
    return _map(clamp_to, _rows("clip_by_value", grads), bound)


def _bound(command: str, argument: str, value: float) -> Array:
    return np.array([number(command, argument, value, BOUND)])


def _rows(command: str, grads: Arrays) -> dict[str, Array]:
    return {name: contiguous(check_float(grad, "{}: gradient {!r}", command, name)) for name, grad in grads.items()}


def _norm_and_scale(norms: Array, bound: Array) -> Array:
    """The norm of the norms of tensors, and what these are multiplied by to keep a bound."""
    result = np.empty(2)
    launch(norm_scale, FLOAT64, prepared_words(norms.size), (result, norms, bound), 0)
    return result


def _map(kernel: Kernel, rows: Arrays, scalars: Array) -> dict[str, Array]:
    """A new array for every row: ``kernel`` on the row and the scalars."""
    outs = {name: np.empty(row.shape, row.dtype) for name, row in rows.items()}
    for name, out in outs.items():
        launch(kernel, out.dtype, prepared_words(out.size), (out, rows[name], scalars), out.size)
    return outs
