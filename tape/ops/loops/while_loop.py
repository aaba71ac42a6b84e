"""``while_loop``: a loop that ends when its state says so."""

from collections.abc import Callable
from typing import TypeVar

from ...values.dtypes import boolean
from ...var.var import SomeVar
from .owner import owner_of

C = TypeVar("C")


def while_loop(cond: Callable[[C], SomeVar[boolean]], body: Callable[[C], C], carry: C) -> C:
    """``carry = body(carry)`` as long as ``cond(carry)`` holds; the carry at the end.

    Both are recorded, on Vars that have shapes and no values, and may use what is around them. The loop is one call on
    the tape, with a node for each part of the carry; captured, compiled code runs it, which Ctrl-C ends. How many steps
    it takes is known only when it has run, so no derivative goes through it: `scan` has them, with a fixed length.
    Under `vmap` each member runs its own loop. A step on a GPU and ONNX files have none.

    Args:
        cond: gives one bool. It is called twice: for the first carry, and for what body gives.
        body: gives a carry nested as the one it is given, with the same shapes and dtypes.
        carry: the first carry: a Var or an array, or a tuple, list or dict of them.

    Source: jax.lax.while_loop.
    Shapes: carry any -> the same
    Dtypes: any, each part of the carry the same before and after a step
    Raises:
        ShapeError: cond gives something else than one bool, or the body changes a shape or the form of carry.
        DTypeError: the body gives something else than Vars, arrays and their nests.
        GradientError: a derivative arrives at what it gives.
        TapeError: no Var is in carry, Vars are of different tapes, a function reads a value, or the step runs on a GPU
            or becomes an ONNX file.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> start = (np.array(0), tape.const(3.0))
    >>> count, x = ops.while_loop(lambda c: c[1] < 100.0, lambda c: (c[0] + 1, c[1] * 2.0), start)
    >>> count.item(), x.item()
    (6, 192.0)
    """
    made: C = owner_of("while_loop", carry, "carry").call_bodies("while_loop", cond, body, carry)
    return made
