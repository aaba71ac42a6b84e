"""``cond``: one of two functions, both of which are recorded."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from ...values.dtypes import boolean
from ...var.var import SomeVar
from .owner import owner_of

R = TypeVar("R")
A = TypeVarTuple("A")


def cond(pred: SomeVar[boolean], on_true: Callable[[*A], R], on_false: Callable[[*A], R], *args: *A) -> R:
    """``on_true(*args)`` if ``pred`` holds, else ``on_false(*args)``: both are recorded, one runs.

    The functions are called once each, with Vars that have shapes and no values; what they use from around them, such
    as parameters, gets gradients too. The call is one on the tape, with a node for each result, and a captured step
    chooses anew each time. Gradients are those of the side that ran; what it does not use gets zeros. A captured step
    computes the side again on its way back. Under `vmap` each member runs its own side. A step on a GPU and ONNX files
    have none.

    Args:
        pred: one bool.
        on_true: gives a Var or an array, or a tuple, list or dict of them.
        on_false: gives the same, with the same shapes and dtypes.
        args: what both are given; nests of Vars and anything else.

    Source: jax.lax.cond.
    Shapes: pred () -> what the sides give
    Dtypes: pred bool
    Raises:
        ShapeError: pred is not one bool, or the sides give different shapes, dtypes or nests.
        DTypeError: a side gives something else than Vars, arrays and their nests.
        TapeError: no Var is among pred and args, Vars are of different tapes, a side reads a value, or the step
            runs on a GPU or becomes an ONNX file.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> x, w = tape.param(3.0), tape.param(2.0)
    >>> y = ops.cond(x > 1.0, lambda x: x * w, lambda x: x - 1.0, x)
    >>> grads = tape.backward_scalar(y)
    >>> y.item(), grads[x].item(), grads[w].item()
    (6.0, 2.0, 3.0)
    """
    made: R = owner_of("cond", [pred, list(args)], "pred and args").call_bodies("cond", pred, on_true, on_false, args)
    return made
