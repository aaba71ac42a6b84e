"""Adding at indices, written slowly and plainly."""

import numpy as np

from ....base.arrays import Array


def index_add(x: Array, indices: Array, values: Array, axis: int = 0) -> Array:
    """``x`` with the slices of ``values`` added at ``indices``, one after the other."""
    out = x.copy()
    target, source = np.moveaxis(out, axis, 0), np.moveaxis(values, axis, 0)
    for j, i in enumerate(indices):
        target[i] = target[i] + source[j]
    return out
