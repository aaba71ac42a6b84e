"""Batches: nested tuples, lists and dicts of arrays, taken apart and put together again."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, cast

import numpy as np

from ...tape.values.dtypes import element_dtype

BatchSignature = tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]
"""Where each array of a batch stands, its shape and its element type."""

Leaf = Callable[[str, Any], Any]
"""What becomes of one array, given where it stands: ``batch[0]``, ``batch['x']``."""


def map_batch(leaf: Leaf, batch: Any, where: str = "batch") -> Any:
    """The same nesting with ``leaf(where, array)`` in place of each array; lists become tuples."""
    if isinstance(batch, Mapping):
        named = cast(Mapping[object, Any], batch)
        return {name: map_batch(leaf, part, f"{where}[{name!r}]") for name, part in named.items()}
    if isinstance(batch, tuple | list):
        parts = cast(Sequence[Any], batch)
        return tuple([map_batch(leaf, part, f"{where}[{i}]") for i, part in enumerate(parts)])
    return leaf(where, batch)


def batch_arrays(batch: Any) -> Iterator[Any]:
    """The arrays of a batch, in the order in which `map_batch` meets them."""
    if isinstance(batch, Mapping):
        for part in cast(Mapping[object, Any], batch).values():
            yield from batch_arrays(part)
    elif isinstance(batch, tuple | list):
        for part in cast(Sequence[Any], batch):
            yield from batch_arrays(part)
    else:
        yield batch


def batch_signature(batch: Any) -> BatchSignature:
    """What a plan depends on: the nesting, and each array's shape and element type as the tape would hold it.

    Raises DTypeError for an element type that the tape does not hold.
    """
    found: list[tuple[str, tuple[int, ...], np.dtype[Any]]] = []

    def note(where: str, leaf: Any) -> None:
        array = np.asarray(leaf)
        found.append((where, array.shape, element_dtype(where, array.dtype)))

    map_batch(note, batch)
    return tuple(found)


def row_count(batch: Any) -> int:
    """The rows of a batch's first array; 0 of what has none."""
    first = next(batch_arrays(batch), None)
    try:
        return len(first) if isinstance(first, Sized) else 0
    except TypeError:  # an array of no dimension
        return 0
