"""Rows of a table, one for each index."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....base.arrays import Array
from ... import ops
from ...numerics.sizes import Sizes
from ...record.kinds.values import Beside
from ...var.var import AnyVar
from ..context import Context
from ..initializers import normal
from ..kinds import SIZE
from ..layer import Layer
from ..parameters import Initialiser, Parameter
from ..scope import Params, parameter

ROW = Beside(
    "a row of the table, counted from either end, or None",
    lambda given: given["padding_idx"] is None or -given["count"] <= given["padding_idx"] < given["count"],
    lambda given: (given["count"], -given["count"] - 1),
    10,
)


def _empty_at(row: int | None, start: Initialiser) -> Initialiser:
    """The same start, but zeros in one row."""

    def initialise(shape: Sizes, dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        made = start(shape, dtype, seed, ordinal)
        made[row] = 0
        return made

    return start if row is None else initialise


@dataclass(frozen=True)
class Embedding(Layer, kinds={"count": SIZE, "size": SIZE, "padding_idx": ROW}):
    """For each index below ``count`` its row of ``weight``, which is (count, size) and starts as N(0, 1).

    The row ``padding_idx`` starts as zeros, and is not trained: its gradient is 0.

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
    padding_idx: int | None = None

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``."""
        return {"weight": Parameter((self.count, self.size), _empty_at(self.padding_idx, normal()), "embedding")}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """Integers (…) to (…, size), negative ones counted from the end.

        Raises BoundsError for an index outside the table.
        """
        weight = parameter(p, self, "weight")
        rows: AnyVar = ops.embedding(weight, x)
        if self.padding_idx is None:
            return rows
        empty = weight.tape.const(np.arange(self.count) == self.padding_idx % self.count)
        return ops.where(ops.take(empty, x)[..., None], ops.stop_gradient(rows), rows)
