"""What becomes of the terms of a loss: their mean, their sum, or themselves."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, DTypeError, ShapeError
from ...numerics.math import reference_sums
from ...numerics.sizes import Sizes
from ...record.op import OPS
from ...record.samples import Bad, bad
from ...values.shape import can_broadcast
from ...var.var import AnyVar, shape_of
from ..reduce.reduce import reduce_mean, reduce_sum

REDUCTIONS = ("mean", "sum", "none")
SUMS = {"batch": "by default it averages over the batch"}


def require_reduction(name: str, reduction: str) -> None:
    """Raise DomainError for another reduction."""
    if reduction not in REDUCTIONS:
        raise DomainError(f"{name}: argument 'reduction': expected 'mean', 'sum' or 'none', got {reduction!r}")


def reduced(terms: Any, reduction: str) -> AnyVar:
    """The terms, their sum or their mean."""
    made: AnyVar = terms if reduction == "none" else reduce_sum(terms) if reduction == "sum" else reduce_mean(terms)
    return made


def reference_reduced(terms: Array, reduction: str) -> Array:
    """The same, slow and obvious."""
    with np.errstate(all="ignore"):
        return terms if reduction == "none" else reference_sums.reduce_sum(terms, mean=reduction == "mean")


def unknown_reduction(name: str, *arrays: Any, **attrs: Any) -> Bad:
    """A sample of a reduction that there is not."""
    text = f"{name}: argument 'reduction': expected 'mean', 'sum' or 'none', got 'max'"
    return bad(DomainError, text, *arrays, reduction="max", **attrs)


def mismatch(name: str, second: str, *more: Any) -> Bad:
    """A sample of two inputs of different shapes, which no loss repeats."""
    return bad(ShapeError, f"{name}: argument {second!r}: expected shape (3, 1), got (3,)", (3, 1), (3,), *more)


def other_dtype(name: str, second: str) -> Bad:
    """A sample of two inputs of different dtypes."""
    return bad(DTypeError, f"{name}: argument {second!r}: expected float32, got float64", (3,), np.zeros(3))


def require_repeatable(name: str, argument: str, x: Any, shape: Sizes) -> None:
    """Raise ShapeError for what is given for several elements at once and cannot be repeated to all."""
    if x is not None and not can_broadcast(shape_of(x), shape):
        given = shape_of(x)
        raise ShapeError(
            f"{name}: argument {argument!r}: expected a shape that can be repeated to {shape}, got {given}"
        )


def formula(name: str) -> Any:
    """The reference of an op, for those of functions that are made of it."""
    record: Any = OPS[name]
    return record.reference


def require_numbers(name: str, low: float, **attrs: float) -> None:
    """Raise DomainError for a number below ``low`` or not finite."""
    for argument, value in attrs.items():
        if not low <= value < float("inf"):
            raise DomainError(
                f"{name}: argument {argument!r}: expected a finite number of at least {low:g}, got {value!r}"
            )
