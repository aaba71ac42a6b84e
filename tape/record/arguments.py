"""The inputs of an op as tensors: arrays are copied, numbers become constants, the rest is refused."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..errors import DTypeError, TapeError
from ..values.attributes import plain
from ..values.tensor import AnyTensor
from ..var.broadcasting import shape_of
from ..var.var import Var
from .kinds import require_in_range
from .signature import Signature

ARRAYS = AnyTensor | np.ndarray
"""Types of what says how many elements a number stands for."""

NUMBERS = int | float | np.integer | np.floating | np.bool_
"""Types of numbers that become constants."""


def tensors_of(signature: Signature, inputs: Sequence[Any]) -> list[AnyTensor | None]:
    """Every input as a tensor.

    A number has the element type that its input has, which is that of the tensors whose annotation names the same,
    and their shape. A whole number for an input of integers is one index.

    Raises TapeError if no input is a tensor, DTypeError for what cannot become one.
    """
    if AnyTensor not in map(type, inputs) and not any(isinstance(x, AnyTensor) for x in inputs):
        raise TapeError(f"{signature.name}: expected a Var among the arguments; put an array on a tape with tape.leaf")
    return [x if x.__class__ is AnyTensor else _tensor(signature, i, x, inputs) for i, x in enumerate(inputs)]


def _tensor(signature: Signature, i: int, x: Any, inputs: Sequence[Any]) -> AnyTensor | None:
    if isinstance(x, AnyTensor):
        return x
    given: Any = x
    if x.__class__ is float:
        return _constant(signature, given, i, inputs)
    where = signature.where(signature.inputs[i])
    index = isinstance(x, int | np.integer) and signature.inputs[i] in signature.indices
    if index or isinstance(x, np.ndarray | list | tuple):
        _require_no_vars(where, given)
        return AnyTensor.leaf(given, where)
    if isinstance(x, NUMBERS):
        return _constant(signature, given, i, inputs)
    if x is None:  # whether it may be omitted, `infer_spec` knows
        return None
    raise no_tensor(where, given)


def _constant(signature: Signature, x: float | np.generic, i: int, inputs: Sequence[Any]) -> AnyTensor:
    """A number as a constant: of the element type and the shape of what it stands beside."""
    own, like = signature.own_dtypes[i], None
    for j in signature.alike[i]:
        if _is_array(inputs[j]):
            like = inputs[j]
            break
    if own is not None:  # where nothing has its type, any tensor says how many
        like = next((y for y in inputs if _is_array(y)), None) if like is None else like
    if like is None:
        raise _no_type(signature, x, i, inputs)
    dtype = like.dtype if own is None else own
    if dtype.kind != "f" or x.__class__ is not float:
        _require_exact(signature.where(signature.inputs[i]), x, dtype)
    return AnyTensor.number(x, dtype, shape_of(like))


def _no_type(signature: Signature, x: object, i: int, inputs: Sequence[Any]) -> DTypeError:
    """The error for a number without a tensor whose element type it could have."""
    others = [f" or for {signature.inputs[j]!r}" for j in signature.alike[i] if j != i]
    shape = next(tuple(y.shape) for y in inputs if _is_array(y))
    return DTypeError(
        f"{signature.where(signature.inputs[i])}: expected an array here{''.join(others)}, got {x!r}: "
        "nothing says the number's element type; "
        f"write np.full({shape}, {x!r}, np.float32)"
    )


def no_tensor(where: str, x: object) -> DTypeError:
    """The error for an input that is no tensor."""
    advice = "; a dict that is unpacked gives its names: take each part by name" if isinstance(x, str) else ""
    return DTypeError(f"{where}: expected a Var, a tensor, an array or a number, got {type(x).__name__}{advice}")


def _require_no_vars(where: str, x: Any) -> None:
    """Raise DTypeError for Vars in tuples or lists, which is what becomes of lists of numbers in a batch."""
    first = x
    while isinstance(first, list | tuple) and first:
        first = cast(Sequence[Any], first)[0]
    if isinstance(first, Var | AnyTensor):
        raise DTypeError(
            f"{where}: expected a Var or an array, got a {type(x).__name__} of Vars; "
            "join Vars with ops.stack, and give a batch as arrays: a list in it is not one array but several"
        )


def _is_array(x: Any) -> bool:
    return isinstance(x, ARRAYS)


def _require_exact(where: str, x: float | np.generic, dtype: np.dtype[Any]) -> None:
    """Raise DTypeError or DomainError for a number that elements of integers or bools cannot be."""
    if dtype.kind in "ib" and np.array(x).dtype.kind == "f":
        raise DTypeError(f"{where}: expected a whole number beside {dtype}, got {x}; use ops.cast")
    if dtype.kind == "b" and x not in (0, 1):
        raise DTypeError(f"{where}: expected True or False beside bool, got {x}")
    require_in_range(where, plain(x), number=dtype.kind == "f")
