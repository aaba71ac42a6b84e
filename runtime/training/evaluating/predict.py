"""A model's outputs for inputs of any length."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ....tape import DomainError, ShapeError
from ...step.batch import batch_arrays, map_batch


def predicted(forward: Callable[[Any], Any], inputs: Any, batch: int) -> Any:
    """What a model gives for inputs of any length, computed in batches; arrays in place of its Vars.

    Raises DomainError for inputs of different lengths, ShapeError for outputs that are not one per sample.
    """
    n = _length(inputs)
    if n <= batch:
        return _copied(forward(inputs), n)
    parts = list[Any]()
    for start in range(0, n, batch):
        part = _slice(inputs, start, batch)
        parts.append(_copied(forward(part), min(batch, n - start)))
    columns = {where: [_leaves(part)[where] for part in parts] for where in _leaves(parts[0])}
    return map_batch(lambda where, leaf: np.concatenate(columns[where]), parts[0])


def _copied(outputs: Any, n: int) -> Any:
    """The outputs as arrays of the caller's own, each of ``n`` samples."""

    def copied(where: str, array: Array) -> Array:
        if array.shape[:1] != (n,):
            raise ShapeError(
                f"predict: {where.replace('batch', 'output', 1)}: expected {n} samples along the first axis, got shape "
                f"{array.shape}; use evaluate for figures of a whole batch"
            )
        return array.copy()

    return map_batch(copied, outputs) if outputs.__class__ is not np.ndarray else copied("batch", outputs)


def _leaves(outputs: Any) -> dict[str, Array]:
    found = dict[str, Array]()
    map_batch(found.__setitem__, outputs)
    return found


def _slice(inputs: Any, start: int, batch: int) -> Any:
    return map_batch(lambda where, array: np.asarray(array)[start : start + batch], inputs)


def _length(inputs: Any) -> int:
    if inputs.__class__ is np.ndarray and inputs.ndim:
        return len(inputs)
    shapes = [np.shape(array) for array in batch_arrays(inputs)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or None in lengths:
        raise DomainError(f"predict: argument 'inputs': expected arrays of as many samples, got shapes {shapes}")
    return cast(int, lengths.pop())
