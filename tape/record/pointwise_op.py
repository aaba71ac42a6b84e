"""The record of a pointwise op: what `op` asks for, as far as the formula of its kernel says it.

Derived are the lowering, the reference, which is the formula as Python reads it, both derivatives from one, samples and
the batch axes.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...base.arrays import Array
from ..numerics.engine.kernel import Kernel
from ..numerics.math.reference.functions import reading
from ..values.dtypes import i64
from .derivative import NO_GRAD, NoGradient, RecordFunction
from .lowering import Slot, elementwise
from .op_decorator import op
from .samples import binary, unary, unary_positive
from .signature import TensorType

Function = TypeVar("Function", bound=Callable[..., Any])

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1e-3)
"""Signed zeros, infinities, NaN, subnormals, values near overflow."""


def pointwise_op(
    kernel: Kernel,
    *along: RecordFunction | NoGradient,
    jvp: RecordFunction | None = None,
    word: int | None = None,
    integer: Callable[..., Slot] | None = None,
    work: int = 1,
    positive: bool = False,
    at: Sequence[Sequence[float]] = (),
    **fields: Any,
) -> Callable[[Function], Function]:
    """Make an op of the kernel of a formula.

    Args:
        kernel: computes each element of the result from those at its place; attributes are its numbers.
        along: of each input, what a direction at it becomes; none where no input has a derivative.
        jvp: what the directions at all inputs become together, where that has other bits than their sum.
        word: which function the kernel computes, where it is one of several.
        integer: the lowering for whole numbers.
        work: how many additions take as long.
        positive: whether samples of one input are drawn above 0.
        at: rows of numbers that these have besides.
        fields: what `op` takes besides, or in the place of what is derived.
    """

    def make(function: Function) -> Function:
        inputs = {name: hint for name, hint in _arguments(function).items() if TensorType.of(hint)}
        attributes = {name: hint for name, hint in _arguments(function).items() if name not in inputs}

        def lower(*slots: Slot, **attrs: Any) -> Slot:
            if integer is not None and slots[0].dtype == i64.dtype:
                return integer(*slots)
            numbers = [hint(attrs[name]) for name, hint in attributes.items()] if word is None else [word]
            return elementwise(kernel, *slots, attrs=numbers, work=work)

        derived: dict[str, Any] = {
            "along": along or NO_GRAD,
            "jvp": jvp,
            "lower": lower,
            "reference": _reference(kernel, function, list(attributes)),
            "samples": binary if len(inputs) > 1 else (unary_positive if positive else unary)(SPECIAL, *at),
            "batch_axis": dict.fromkeys(inputs, 0),
        }
        made: Function = op(**{**derived, **fields})(function)
        return made

    return make


def _arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function takes, by name, and what it is said to be."""
    return {name: hint for name, hint in function.__annotations__.items() if name != "return"}


def read(kernel: Kernel) -> Callable[..., Array]:
    """The formula of a kernel as Python reads it."""
    assert kernel.formula is not None, "made of one"
    return reading(kernel.formula)


def _reference(kernel: Kernel, function: Callable[..., Any], attributes: list[str]) -> Callable[..., Array]:
    """The formula with what a call gives, or the function has, for its numbers."""
    values = function.__defaults__ or ()
    defaults = dict(zip(attributes[len(attributes) - len(values) :], values, strict=True)) if attributes else {}

    def reference(*arrays: Array, **attrs: Any) -> Array:
        known, real = {**defaults, **attrs}, arrays[-1].dtype.type
        return read(kernel)(*arrays, *(real(known[name]) for name in attributes))

    return reference
