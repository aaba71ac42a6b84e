"""What ops that record bodies are given, and what the bodies give: Vars in nests, checked."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import DTypeError, GradientError, ShapeError
from ..values.dtypes import boolean
from ..values.pytree import Nest, beside, leaves, mapped
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, is_var
from .body_tape import BodyTape

TRUTH = Spec((), boolean.dtype)
"""What says whether."""


def vars_of(nest: Nest) -> list[AnyVar]:
    """All of them, in order."""
    return [x for _, x in leaves(nest)]


def placed(tape: Any, op: str, argument: str, nest: Nest) -> Nest:
    """Values on the tape of a call. Raises DTypeError for what has no element type, TapeError for another tape's."""
    return mapped(partial(_placed, tape, f"{op}: argument '{argument}"), nest)


def _placed(tape: Any, where: str, path: str, x: Any) -> AnyVar:
    if is_var(x):
        held = tape.held(x) if isinstance(tape, BodyTape) else x
        tape.node(held)
        return held
    if isinstance(x, np.ndarray | AnyTensor):
        made: AnyVar = tape.const(x)
        return made
    raise DTypeError(
        f"{where}{path}': expected a Var or an array, or a tuple, list or dict of them, got {type(x).__name__}; "
        "a number has no element type of its own: write np.zeros((), np.float32)"
    )


def returned(inner: BodyTape, argument: str, what: str, nest: Nest) -> Nest:
    """What the function that is this argument gives, on the tape of the body. Raises DTypeError for other values."""

    def held(path: str, x: Any) -> AnyVar:
        if is_var(x):
            return inner.held(x)
        if isinstance(x, np.ndarray | AnyTensor):
            return inner.const(x)
        raise DTypeError(
            f"{inner.why.call}: argument {argument!r}: expected a Var or an array for {what}{path}, "
            f"got {type(x).__name__}"
        )

    return mapped(held, nest)


def alike(where: str, name: str, like: str, first: Nest, second: Nest) -> Sequence[AnyVar]:
    """The values of the second nest. Raises ShapeError unless it is nested as the first, with the same shapes."""
    try:
        pairs = list(beside(first, second, where, name))
    except GradientError as error:
        wanted = str(error).removeprefix(f"{where}: argument '").replace("': expected", " as", 1)
        raise ShapeError(f"{where}: expected it to return {wanted}") from None
    for path, x, y in pairs:
        was, now = x.value.spec, None if y is None else y.value.spec
        if now is not was:
            got = "None" if now is None else f"{now.dtype} of shape {now.shape}"
            raise ShapeError(
                f"{where}: expected it to return {path} as {like}, {was.dtype} of shape {was.shape}, got {got}"
            )
    return [y for _, _, y in pairs]


def truth_of(where: str, x: Any, given: object) -> AnyVar:
    """A value that is one bool. Raises ShapeError, as from ``where``, for another one, which is what was given."""
    if is_var(x) and x.value.spec == TRUTH:
        return x
    got = f"{x.dtype} of shape {tuple(x.shape)}" if is_var(x) else type(given).__name__
    raise ShapeError(f"{where} one bool, of shape (), got {got}; compare and reduce it first")
