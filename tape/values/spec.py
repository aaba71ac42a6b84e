"""Specs: the shape and the element type of a value, one object for each pair of them."""

from math import prod
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ..numerics.sizes import Sizes


class Spec:
    """What is known of a value before it exists: ``shape``, ``dtype``, and what follows from them.

    Equal specs are one object, so that ops find what they have prepared for their operands by identity.

    >>> Spec((2, 3), np.dtype(np.float32)) is Spec((2, 3), np.dtype(np.float32))
    True
    """

    __slots__ = ("__weakref__", "dtype", "floating", "rank", "shape", "size")

    _all: ClassVar["WeakValueDictionary[tuple[Sizes, np.dtype[Any]], Spec]"] = WeakValueDictionary()
    _making = Lock()

    shape: Sizes
    dtype: np.dtype[Any]
    size: int
    """Number of elements."""
    rank: int
    """Number of axes."""
    floating: bool
    """Whether the elements are floats, which alone have gradients."""

    def __new__(cls, shape: Sizes, dtype: np.dtype[Any]) -> "Spec":
        """The one spec of this shape and element type."""
        return cls._all.get((shape, dtype)) or cls._made(shape, dtype)

    @classmethod
    def _made(cls, shape: Sizes, dtype: np.dtype[Any]) -> "Spec":
        with cls._making:  # two threads may miss the same one
            known = cls._all.get((shape, dtype))
            if known is None:
                known = super().__new__(cls)
                known.shape, known.dtype = tuple(map(int, shape)), dtype
                known.size, known.rank, known.floating = prod(known.shape), len(shape), dtype.kind == "f"
                cls._all[shape, dtype] = known  # at last: other threads look there without the lock
            return known

    def __reduce__(self) -> Any:
        """Copies and pickles are the one object, too."""
        return Spec, (self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"Spec(shape={self.shape}, dtype={self.dtype!r})"
