"""Losses, written slowly and plainly."""

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference.sums import log_sum, row_max, row_sum, softmax


def cross_entropy(x: Array, labels: Array) -> Array:
    """The mean over rows of ``log s - (x[label] - m)``."""
    terms = [log_sum(row) - (row[i] - row_max(row)) for row, i in zip(x, labels, strict=True)]
    return np.asarray(row_sum(np.array(terms, x.dtype)) / x.dtype.type(len(x)))


def cross_entropy_grad(x: Array, labels: Array, g: Array) -> Array:
    """``(softmax(x) - onehot(labels)) * (g / rows)``."""
    out, weight = softmax(x), g / x.dtype.type(len(x))
    for r, label in enumerate(labels):
        out[r, label] = out[r, label] - x.dtype.type(1)
    scaled: Array = out * weight
    return scaled


def mse(a: Array, b: Array) -> Array:
    """The mean of the squared differences, the squares rounded before they are added."""
    difference = (a - b).reshape(-1)
    return np.asarray(row_sum(difference * difference) / a.dtype.type(a.size))
