"""Which indices are more than slices."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..values.tensor import AnyTensor
from .handle import Handle

ARRAYS = (list, np.ndarray, AnyTensor, Handle)


def has_arrays(index: Any) -> bool:
    """Whether an array of indices or a mask is among the parts of an index."""
    if isinstance(index, tuple):
        return any(isinstance(part, ARRAYS) for part in cast(Sequence[Any], index))
    return isinstance(index, ARRAYS)
