"""Batches: nested tuples, lists and dicts of arrays, taken apart and put together again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ...tape.values.dtypes import element_dtype

Signature = tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]
"""Where each array of a batch stands, its shape and its element type."""

Leaf = Callable[[str, Any], Any]
"""What becomes of one array, given where it stands: ``batch[0]``, ``batch['x']``."""


def mapped(batch: Any, leaf: Leaf, where: str = "batch") -> Any:
    """The same nesting with ``leaf(where, array)`` in place of each array; lists become tuples."""
    if isinstance(batch, Mapping):
        named = cast(Mapping[object, Any], batch)
        return {name: mapped(part, leaf, f"{where}[{name!r}]") for name, part in named.items()}
    if isinstance(batch, tuple | list):
        parts = cast(Sequence[Any], batch)
        return tuple([mapped(part, leaf, f"{where}[{i}]") for i, part in enumerate(parts)])
    return leaf(where, batch)


def leaves(batch: Any) -> Iterator[Any]:
    """The arrays of a batch, in the order in which `mapped` meets them."""
    if isinstance(batch, Mapping):
        for part in cast(Mapping[object, Any], batch).values():
            yield from leaves(part)
    elif isinstance(batch, tuple | list):
        for part in cast(Sequence[Any], batch):
            yield from leaves(part)
    else:
        yield batch


def signature(batch: Any) -> Signature:
    """What a plan depends on: the nesting, and each array's shape and element type as the tape would hold it.

    Raises DTypeError for an element type that the tape does not hold.
    """
    found: list[tuple[str, tuple[int, ...], np.dtype[Any]]] = []

    def note(where: str, leaf: Any) -> None:
        array = np.asarray(leaf)
        found.append((where, array.shape, element_dtype(where, array.dtype)))

    mapped(batch, note)
    return tuple(found)
