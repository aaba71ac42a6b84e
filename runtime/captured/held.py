"""Arrays that a captured function closes over: read where they lie, at every run."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...base.arrays import Array
from ..ir.record import Recorded


def hold(first: Recorded, second: Recorded, trained: Iterable[Array], *, here: bool) -> dict[str, Array]:
    """Have constants of two recordings read where they lie, if both took them from the same memory.

    What lies in other memory each time was made by the function and belongs to the recording. What was changed between
    the two, the function changes itself. ``trained`` are arrays that the step writes; ``here`` says whether it runs on
    this machine's memory.

    Returns the arrays that both took from the same memory but that are not to be read there: as numbers of another
    type, say. They must be compared before each run.
    """
    written, compared, sources = list(trained), dict[str, Array](), first.tape.sources
    first.tape.sources = {}
    for id, array in sources.items():
        again = second.tape.sources.get(id)
        if again is None or not _same(array, again) or not _same_elements(first, second, id):
            continue
        if (
            here
            and _as_it_lies(array, first.tape.node(id).value.dtype)
            and not any(np.may_share_memory(array, other) for other in written)
        ):
            first.tape.held[id], second.tape.held[id] = array, array
        else:
            compared[f"an array of shape {array.shape}, value %{id},"] = array
    return compared


def hold_alike(first: Recorded, again: Recorded) -> None:
    """Have the same constants read where they lie in a recording made later, where they lie in the same memory."""
    for id, array in first.tape.held.items():
        source = again.tape.sources.get(id)
        if source is not None and _same(array, source):
            again.tape.held[id] = array


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays are the same elements in the same memory."""
    return a is b or ((a.shape, a.dtype, a.strides) == (b.shape, b.dtype, b.strides) and a.ctypes.data == b.ctypes.data)


def _same_elements(first: Recorded, second: Recorded, id: int) -> bool:
    return first.tape.node(id).value.array.tobytes() == second.tape.node(id).value.array.tobytes()


def _as_it_lies(array: Array, dtype: np.dtype[Any]) -> bool:
    """Whether a kernel can read the array itself as numbers of this type."""
    return array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned and array.size > 0
