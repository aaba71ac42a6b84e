"""A rule's formula read as ops on a tape, where its update is to be differentiated or looked at."""

from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import TypeIs

from ....tape import AnyVar, DomainError, ops
from ....tape.numerics.math import elementary
from ....tape.numerics.math.reference.functions import reading
from ....tape.numerics.simd.rebound import rebound
from ....tape.var.var import Var
from ..kinds import LARGEST_COUNT
from ..laws import formulas


def in_ops(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula of Vars: the parameter, its gradient, buffers; then the step and hyperparameters, floats or scalars.

    Scalars are Vars of float64. What a float decides is decided at once, and leaves no node.
    """
    return rebound(formula, OPERATIONS)


def _is_var(x: Any) -> TypeIs[AnyVar]:
    return isinstance(x, Var)


def _constant(x: AnyVar, value: Any) -> AnyVar:
    """A number rounded once to the dtype of ``x``."""
    return ops.cast(value, x.dtype) if _is_var(value) else x.tape.const(np.array(value, x.dtype))


def _select(condition: Any, yes: Any, no: Any) -> Any:
    if not _is_var(condition):
        return yes if condition else no
    a, b = (x if _is_var(x) else condition.tape.const(np.array(x)) for x in (yes, no))
    return ops.where(condition, a, b)


def _of_scalars(op: Callable[[Any], Any], text: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of a scalar on the tape, or of a float, whose value is that of its formula."""
    return lambda x: op(x) if _is_var(x) else float(reading(text)(np.array(x)))


def whole_power(base: float, exponent: Any) -> Any:
    """The power by its formula, of an exponent on the tape by as many squares as it may have bits."""
    if not _is_var(exponent):
        return formulas.whole_power(base, int(exponent))
    made = exponent * 0.0 + 1.0
    for _ in range(LARGEST_COUNT.bit_length()):
        half = ops.cast(ops.cast(exponent * 0.5, "int64"), "float64")
        made = ops.where(exponent > 2.0 * half, made * base, made)
        base, exponent = base * base, half
    return made


def _whole_times(count: Any, every: float) -> Any:
    """How often so many counts are done: below 2**53 no quotient is rounded up to a whole number."""
    return ops.cast(ops.cast(count / every, "int64"), "float64") if _is_var(count) else count // every


def _absent(*given: Any) -> Any:
    raise DomainError("in ops: expected a formula of operations that are ops, got a fused multiply-add, which no op is")


OPERATIONS: dict[str, Any] = {
    "constant": _constant,
    "select": _select,
    "sqrt": ops.sqrt,
    "larger": ops.maximum,
    "smaller": ops.minimum,
    "fma": _absent,
    "whole_power": whole_power,
    "whole_times": _whole_times,
    "real_power": ops.power,
    "exp": _of_scalars(ops.exp, elementary.exp),
    "log": _of_scalars(ops.log, elementary.log),
    "expm1": _of_scalars(ops.expm1, elementary.expm1),
}
"""What stands in the place of the operations that formulas of rules are written in, beside ``+ - * /``."""
