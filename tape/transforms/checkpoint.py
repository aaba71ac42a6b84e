"""``checkpoint``: memory for time, by computing values twice."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..ops.loops.owner import owner_of

P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(function: Callable[P, R]) -> Callable[P, R]:
    """The function, of which nothing is kept for the way back but what it is given and what it gives.

    Where a gradient needs more, it is computed again, with the same bits: rematerialisation. It may take anything, a
    Var among its positional arguments, gives Vars or a tuple, list or dict of them, and may use parameters from around
    it; it sees shapes and no values. Random draws in it are the same when they are drawn again.

    Every few steps of a loop is a loop in a loop whose body is a checkpoint: see docs/captured_steps.md.

    Raises TapeError if no argument is a Var, or the function reads a value; DTypeError if it gives something else.

    Source: Chen et al., Training deep nets with sublinear memory cost, 2016; jax.checkpoint, torch.utils.checkpoint.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> w = tape.param(np.array([1.0, 2.0]))
    >>> y = checkpoint(lambda x: ops.exp(ops.sin(x) * w).sum())(tape.const(np.array([0.5, 1.0])))
    >>> tape.backward_scalar(y)[w].numpy().round(3)
    array([0.774, 4.528])
    """

    def call(*args: Any, **options: Any) -> Any:
        def positional(*args: Any) -> Any:
            return function(*args, **options)

        owner = owner_of("checkpoint", list(args), "its arguments")
        return owner.call_bodies("checkpoint", positional if options else function, args)

    call.__name__ = call.__qualname__ = f"checkpoint({getattr(function, '__name__', type(function).__name__)})"
    return call
