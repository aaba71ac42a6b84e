"""Rows of a table, one for each index."""

from dataclasses import dataclass

from ... import ops
from ...var.var import AnyVar
from ..context import Context
from ..initializers import normal
from ..kinds import SIZE
from ..layer import Layer, Params, parameter
from ..parameters import Parameter


@dataclass(frozen=True)
class Embedding(Layer, kinds={"count": SIZE, "size": SIZE}):
    """For each index below ``count`` its row of ``weight``, which is (count, size) and starts as N(0, 1).

    Source: torch.nn.Embedding; negative indices as in numpy.
    Shapes: x (*S) -> (*S, size)
    Dtypes: x int64; weight and the result float32 or float64, alike.
    Raises:
        BoundsError: when called, an index points outside the table.
        DTypeError: when called, x holds no integers.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.Embedding(10, 4)
    >>> layer(tape.params(layer.init(seed=0)), tape.const(np.array([[1, 2, 9]]))).shape
    (1, 3, 4)
    """

    count: int
    size: int

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``."""
        return {"weight": Parameter((self.count, self.size), normal(), "embedding")}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """Integers (…) to (…, size), negative ones counted from the end.

        Raises BoundsError for an index outside the table.
        """
        return ops.embedding(parameter(p, self, "weight"), x)
