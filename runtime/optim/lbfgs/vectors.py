"""What L-BFGS asks of vectors: sums in the fixed order of the ops, as Python floats."""

from typing import Any

from ....base.arrays import Array
from ....tape import AnyTensor, ops


def dot(a: Array, b: Array) -> float:
    """The inner product of two float64 vectors."""
    return _value(ops.reduce_sum(ops.mul(_tensor(a), _tensor(b))))


def total(a: Array) -> float:
    """The sum of the magnitudes."""
    return _value(ops.reduce_sum(ops.abs(_tensor(a))))


def largest(a: Array) -> float:
    """The largest magnitude, 0 of none; NaN if one is."""
    return _value(ops.reduce_max(ops.abs(_tensor(a)))) if a.size else 0.0


def _tensor(a: Array) -> Any:
    return AnyTensor(a)


def _value(tensor: Any) -> float:
    return float(tensor.array)
