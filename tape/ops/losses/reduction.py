"""What becomes of the terms of a loss: their mean, their sum, or themselves; and which values arguments take."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError
from ...numerics.math.reference import sums as reference_sums
from ...record.kinds.values import NOT_NEGATIVE, Given, ValueKind, Values, Wrong
from ...record.op import OPS
from ...values.shape import can_broadcast
from ...var.var import AnyVar, shape_of
from ..elementwise.arithmetic import mul
from ..reduce.reduce import broadcast_to, reduce_mean, reduce_sum

Total = Literal["mean", "sum"]
"""The reductions that give a number."""
Each = Literal["none"]
"""The reduction that gives the terms."""

MOST_POWER = 1 << 20
"""The largest exponent of `power`."""


def reductions(*names: str) -> Values:
    """The kind of ``reduction``: these words."""
    *first, last = map(repr, names)
    return Values(f"{', '.join(first)} or {last}", lambda given: given in names, ("max", "", names[0].upper()))


REDUCTION = reductions("mean", "sum", "none")
SMOOTHING = Values("a number from 0 to 1", lambda s: 0 <= s <= 1, (1.5, -0.5, float("inf"), float("nan")))
NORM = Values("a positive number of at most 2**20", lambda p: 0 < p <= MOST_POWER, (0.0, -2.0, 2.0**21, float("nan")))
EXPONENT = Values("a number from 0 to 2**20", lambda p: 0 <= p <= MOST_POWER, (-1.0, 2.0**21, float("nan")))


def _is_share(given: float | None) -> bool:
    return given is None or NOT_NEGATIVE.fits(given)


SHARE = replace(NOT_NEGATIVE, fits=_is_share)
"""A finite number of at least 0; None for none."""


@dataclass(frozen=True)
class WeightsOf(ValueKind):
    """Weights of any shape that can be repeated to that of another input, or None."""

    input: str

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise ShapeError for another shape."""
        shape, target = given[argument], given[self.input]
        if shape is not None and not can_broadcast(shape, target):
            raise ShapeError(f"{op}: {self._wrong(shape, target).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """One element more than the last axis has, and one axis more."""
        target = given[self.input]
        return [self._wrong(shape, target) for shape in ((*target[:-1], target[-1] + 1), (2, *target))]

    def example(self) -> Wrong:
        """That of a matrix."""
        return self._wrong((2,), (2, 3))

    @staticmethod
    def _wrong(shape: Any, target: Any) -> Wrong:
        return Wrong(ShapeError, f"a shape that can be repeated to {target}", shape)


def reduced(terms: Any, reduction: str) -> AnyVar:
    """The terms, their sum or their mean."""
    made: AnyVar = terms if reduction == "none" else reduce_sum(terms) if reduction == "sum" else reduce_mean(terms)
    return made


def reference_reduced(terms: Array, reduction: str) -> Array:
    """The same, slow and obvious."""
    with np.errstate(all="ignore"):
        return terms if reduction == "none" else reference_sums.reduce_sum(terms, mean=reduction == "mean")


def weighted(terms: Any, weight: Any) -> Any:
    """The terms, times weights that can be repeated to their shape, if there are any."""
    if weight is None:
        return terms
    made: AnyVar = mul(terms, broadcast_to(weight, shape_of(terms)))
    return made


def reference_weighted(terms: Array, weight: Any) -> Array:
    """The same, slow and obvious."""
    return terms if weight is None else np.asarray(terms * weight)


def formula(name: str) -> Any:
    """The reference of an op, for those of functions that are made of it."""
    record: Any = OPS[name]
    return record.reference
