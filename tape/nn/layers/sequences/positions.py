"""Where an element stands in its sequence: learned, as sines, or by turning queries and keys."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .... import ops
from ....errors import ShapeError
from ....ops.attention.positions import turns
from ....ops.attention.rotary import turned
from ....record.kinds.values import POSITIVE
from ....var.var import AnyVar
from ...context import Context, PlaceInSequence
from ...initializers import normal
from ...kinds import SIZE
from ...layer import Layer
from ...parameters import Parameter
from ...scope import Params, parameter


def _row(table: AnyVar, place: PlaceInSequence) -> AnyVar:
    """The row of a table that is of the one element of a sequence."""
    made: AnyVar = ops.take(table, ops.reshape(place.position, (1,)))
    return made


@dataclass(frozen=True)
class LearnedPositions(Layer, kinds={"max_length": SIZE, "size": SIZE}):
    """``x + weight[:n]``: one row for each position below ``max_length``, which starts as N(0, 0.02).

    Source: Radford, Narasimhan, Salimans and Sutskever (2018), Improving language understanding by generative
        pre-training; the start is GPT-2's.
    Shapes: x (*Bs, n, size) -> (*Bs, n, size)
    Dtypes: x, weight and the result float32 or float64, all alike.
    Raises:
        ShapeError: when called, x has other features, or more than ``max_length`` positions.
        DTypeError: when called, x has another dtype than weight.

    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.LearnedPositions(10, 2)
    >>> layer({"weight": tape.param(np.ones((10, 2)))}, tape.const(np.zeros((1, 3, 2)))).shape
    (1, 3, 2)
    """

    max_length: int
    size: int

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``."""
        return {"weight": Parameter((self.max_length, self.size), normal(0.0, 0.02), "embedding")}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        shape = tuple(x.shape)
        if len(shape) < 2 or shape[-2] > self.max_length or shape[-1] != self.size:
            raise ShapeError(
                f"LearnedPositions: argument 'x': expected shape (*Bs, n, {self.size}) with n of at most "
                f"{self.max_length}, got {shape}"
            )
        weight, place = parameter(p, self, "weight"), None if ctx is None else ctx.place
        rows = ops.narrow(weight, 0, shape[-2], 0) if place is None else _row(weight, place)
        return ops.add(x, ops.broadcast_to(rows, shape))


class Positions(Layer, kinds={"base": POSITIVE}):
    """What has a period for each pair of features, from 2 pi up to ``base`` times that.

    Shapes: x (*Bs, n, size) -> (*Bs, n, size); size is even
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        ShapeError: when called, x has an odd number of features, or no axis for them.
        DTypeError: when called, x holds no floats.
    """

    base: float


@dataclass(frozen=True)
class SinusoidalPositions(Positions):
    """``x + table``: at position t ``sin(t / base ** (2 i / size))`` in column 2 i and the cosine in column 2 i + 1.

    Source: Vaswani and others (2017), section 3.5.

    >>> from dgrr.tape import Tape, nn
    >>> nn.SinusoidalPositions()({}, Tape().leaf(np.zeros((2, 2)))).numpy().round(4)
    array([[0.    , 1.    ],
           [0.8415, 0.5403]])
    """

    base: float = 10000.0

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        shape = tuple(x.shape)
        if len(shape) < 2 or shape[-1] % 2:
            raise ShapeError(
                f"SinusoidalPositions: argument 'x': expected shape (*Bs, n, size) with an even size, got {shape}"
            )
        place = None if ctx is None else ctx.place
        length = shape[-2] if place is None else place.length
        table = np.stack(turns(0, length, shape[-1] // 2, float(self.base), x.dtype), -1).reshape(length, shape[-1])
        rows = x.tape.const(table)
        return ops.add(x, ops.broadcast_to(rows if place is None else _row(rows, place), shape))


@dataclass(frozen=True)
class Rotary(Positions):
    """Pairs of features turned by an angle that grows with the position: `ops.rotary` as a layer.

    Give it to ``MultiHeadAttention(rotary=…)``, which turns the queries and keys of each head by it.

    Source: Su, Lu, Pan, Murtadha, Wen and Liu (2021); torchtune.modules.RotaryPositionalEmbeddings is interleaved.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Rotary()({}, Tape().leaf([[1.0, 0.0], [1.0, 0.0]])).numpy().round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]])
    """

    base: float = 10000.0
    _: KW_ONLY
    interleaved: bool = False

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        place, shape = None if ctx is None else ctx.place, tuple(x.shape)
        y: Any
        if place is None:
            y = ops.rotary(x, self.base, 0, self.interleaved)  # pyright: ignore[reportUnknownVariableType]
        else:
            tables = turns(0, place.length, shape[-1] // 2, float(self.base), x.dtype)
            half = (*shape[:-1], shape[-1] // 2)
            sines, cosines = (ops.broadcast_to(_row(x.tape.const(table), place), half) for table in tables)
            y = turned(x, sines, cosines, self.interleaved)
        made: AnyVar = y
        return made
