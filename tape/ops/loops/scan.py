"""``scan``: a loop whose body is recorded once."""

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, overload

from ...values.dtypes import DType
from ...var.var import Var
from .owner import owner_of

C = TypeVar("C")
D = TypeVar("D", bound=DType)
E = TypeVar("E", bound=DType)
N = TypeVar("N")
S = TypeVarTuple("S")
T = TypeVarTuple("T")


@overload
def scan(
    body: Callable[[C, Var[D, *S]], tuple[C, Var[E, *T]]],
    carry: C,
    xs: Var[D, N, *S],
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[C, Var[E, N, *T]]: ...
@overload
def scan(
    body: Callable[[C, Var[D, *S]], tuple[C, None]],
    carry: C,
    xs: Var[D, N, *S],
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[C, None]: ...
@overload
def scan(
    body: Callable[[C, Any], tuple[C, None]],
    carry: C,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[C, None]: ...
@overload
def scan(
    body: Callable[[C, Any], tuple[C, Any]],
    carry: C,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[C, Any]: ...
def scan(body: Any, carry: Any, xs: Any = None, *, length: Any = None, reverse: Any = False) -> tuple[Any, Any]:
    """A loop of ``carry, y = body(carry, x)`` over the rows x of ``xs``: the last carry, and the ys stacked.

    The body is called once, with Vars that have shapes and no values, and recorded; what it uses from around it, such
    as parameters, gets gradients too. The loop is one call on the tape, with a node for each result. Values and
    gradients have the bits of the same loop in Python with `stack` behind it, ``x`` being ``xs[t]``. Random draws in
    the body take the same numbers in every step, unless their step number comes with x or carry.

    Args:
        body: ``(carry, x) -> (carry, y)``; the carry it returns is nested as the one it is given, with the same shapes
            and dtypes. y may be None.
        carry: the first carry: a Var or an array, or a tuple, list or dict of them.
        xs: what is cut along its first axis, nested likewise; None for a body that needs no x.
        length: the number of steps, where xs is None.
        reverse: from the last row to the first; ys lie where their x did.

    Source: jax.lax.scan.
    Shapes: xs (n, *A) each -> ys (n, *B) each; no steps leave carry as it is and give ys without rows
    Dtypes: any, each part of the carry the same before and after a step
    Raises:
        ShapeError: xs have no first axis or different ones, or the body changes a shape or the form of carry.
        DTypeError: the body returns no pair, or something else than Vars, arrays and their nests.
        TapeError: no Var is among carry and xs, Vars are of different tapes, or the body reads a value.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> w, xs = tape.param(2.0), tape.const(np.array([1.0, 2.0, 3.0]))
    >>> def body(h, x):
    ...     h = h * w + x
    ...     return h, h
    >>> last, every = ops.scan(body, np.array(0.0), xs)
    >>> last.item(), every.numpy(), tape.backward_scalar(last)[w].item()
    (11.0, array([ 1.,  4., 11.]), 6.0)
    """
    owner = owner_of("scan", [carry, xs], "carry or xs")
    results: tuple[Any, Any] = owner.call_bodies("scan", body, carry, xs, length, reverse)
    return results
