"""What users of other libraries ask of a Var: numpy's functions, and names of attributes. Each is refused with advice.

numpy's operators are taken, ``array + var`` being that of `Var`, and so is ``numpy.asarray``, which gives the value.
"""

from typing import Any, NoReturn

import numpy as np

from ...base.arrays import Array
from ...base.pytorch_names import row_of
from ...base.suggest import did_you_mean
from ..errors import DTypeError, MissingAttributeError
from .handle import Handle
from .op_table import COMPOSED, OPS

REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "matmul": "__rmatmul__",
    "power": "__rpow__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
}
"""The operators of arrays, by the names of numpy's functions behind them, and what they ask of the Var beside one."""

MIRRORED = {
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "equal": "__eq__",
    "not_equal": "__ne__",
}
"""The same of comparisons."""

OTHER_NAMES = {
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "invert": "logical_not",
    "power": "pow",
    "rint": "round",
    "transpose": "permute",
}
"""Ops by the names that numpy has for them, where these are others, and others than PyTorch's."""

WITHOUT_RECORD = ("concat", "einsum", "split", "stack", "topk")
"""Public functions of ``ops`` that stand in no table."""

ADVICE = {"copy": "a Var never changes, so it needs no copy"}
"""Attributes of numpy's arrays that PyTorch's tensors have not."""

ARGUMENTS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims"}
"""Names of arguments in PyTorch, and ours."""


def refuse_attribute(x: Any, name: str) -> NoReturn:
    """Raise MissingAttributeError for an attribute that a Var has not."""
    advice = _advice(name)
    ending = f"; {advice}" if advice else "" if name.startswith("_") else did_you_mean(name, dir(x), "x.{}")
    raise MissingAttributeError(f"Var: there is no attribute {name!r}{ending}", name=name, obj=None)


def _advice(name: str) -> str:
    """What stands in the place of an attribute; empty where nothing is known to."""
    if name.startswith("_") or name in ADVICE:
        return ADVICE.get(name, "")
    if row := row_of(name, "x"):
        return " ".join(filter(None, (row.here, row.note)))
    if _is_public(name):
        return f"write ops.{name}(x)"
    row = row_of(name, "ops")
    return "" if row is None else str(row)


def value_array(x: Any, dtype: Any = None, copy: bool | None = None) -> Array:
    """The value for ``numpy.asarray(x)``: read-only and without a copy, unless one is asked for."""
    return np.array(x.numpy(), dtype=dtype, copy=copy)


def refuse_function(x: Any, function: Any, types: Any, args: Any, options: Any) -> NoReturn:
    """Raise DTypeError: numpy computes on values alone."""
    raise _refusal(function.__name__)


def numpy_operator(x: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """``array + var``, of which numpy knows the function behind the operator. Raises DTypeError for any other one."""
    name = ufunc.__name__
    if "out" in options:
        raise DTypeError(f"numpy.{name}: an array cannot take a Var in place; write a = a + x instead of a += x")
    asked = REFLECTED.get(name) or MIRRORED.get(name)
    if method != "__call__" or options or asked is None or isinstance(inputs[0], Handle):
        raise _refusal(name)
    first = inputs[0]
    if name in MIRRORED and getattr(first, "ndim", 1) == 0:
        first = first[()]  # numpy makes an array of a number that it compares
    return getattr(inputs[1], asked)(first)


def _refusal(name: str) -> DTypeError:
    """What to say of a function of numpy that was given a Var."""
    ours = OTHER_NAMES.get(name) or _same_in_pytorch(name) or name
    advice = f"ops.{ours} for an op that is recorded, and " if _is_public(ours) else ""
    return DTypeError(f"numpy.{name}: expected arrays, got a Var; write {advice}x.numpy() for its value")


def _same_in_pytorch(name: str) -> str | None:
    """The op that PyTorch, which has most of numpy's names, has under this one."""
    row = row_of(name, "ops")
    return row.here.removeprefix("ops.") if row and row.is_name else None


def _is_public(name: str) -> bool:
    """Whether ``ops`` has a function of this name."""
    return name in WITHOUT_RECORD or name in COMPOSED or (name in OPS and not OPS[name].private)
