"""One step of recurrent layers: the new state of a sequence, from an input and the state before."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from .... import ops
from ....errors import DomainError, ShapeError
from ....numerics.sizes import Sizes
from ....var.var import AnyVar
from ...context import Context
from ...initializers import uniform_fan_in
from ...kinds import SIZE, either
from ...layer import Layer
from ...parameters import Parameter
from ...scope import Params, parameter

Memory = tuple[AnyVar, ...]
"""What a cell keeps: h, or h and c."""
Step = Callable[[AnyVar, Memory, AnyVar, AnyVar | None], Memory]
"""``step(x @ weight_ih.T + bias_ih, state, weight_hh, bias_hh)``."""


def gates(x: AnyVar, count: int) -> list[AnyVar]:
    """The columns of ``x`` in so many equal parts."""
    size = tuple(x.shape)[-1] // count
    return [ops.narrow(x, k * size, size, -1) for k in range(count)]


def projected(x: AnyVar, weight: AnyVar, bias: AnyVar | None) -> AnyVar:
    """``x @ weight.T + bias``."""
    y: Any = ops.linear(x, weight, bias)  # pyright: ignore[reportUnknownVariableType]
    made: AnyVar = y
    return made


def elman(activation: Callable[[Any], Any]) -> Step:
    """``h' = activation(x + h @ weight.T + bias)``."""
    return lambda x, state, weight, bias: (activation(ops.add(x, projected(state[0], weight, bias))),)


def lstm(x: AnyVar, state: Memory, weight: AnyVar, bias: AnyVar | None) -> Memory:
    """``c' = f c + i g`` and ``h' = o tanh(c')``; the gates are i, f, g, o."""
    h, c = state
    i, f, g, o = gates(ops.add(x, projected(h, weight, bias)), 4)
    kept = ops.add(ops.mul(ops.sigmoid(f), c), ops.mul(ops.sigmoid(i), ops.tanh(g)))
    return ops.mul(ops.sigmoid(o), ops.tanh(kept)), kept


def gru(x: AnyVar, state: Memory, weight: AnyVar, bias: AnyVar | None) -> Memory:
    """``h' = n + z (h - n)`` with ``n = tanh(x_n + r h_n)``; the gates are r, z, n."""
    (h,) = state
    of_x, of_h = gates(x, 3), gates(projected(h, weight, bias), 3)
    r, z = (ops.sigmoid(ops.add(a, b)) for a, b in zip(of_x[:2], of_h[:2], strict=True))
    n = ops.tanh(ops.add(of_x[2], ops.mul(r, of_h[2])))
    return (ops.add(n, ops.mul(z, ops.sub(h, n))),)


class Unit(NamedTuple):
    """What a recurrent layer computes at each place."""

    step: Step
    gates: int = 1
    """How many times as many rows as the state has elements the weights have."""
    kept: int = 1
    """How many Vars the state has."""


ELMAN = {"tanh": Unit(elman(ops.tanh)), "relu": Unit(elman(ops.relu))}
GRU_UNIT, LSTM_UNIT = Unit(gru, gates=3), Unit(lstm, gates=4, kept=2)


def zeros_beside(x: AnyVar, *shape: int) -> AnyVar:
    """Zeros on the tape of ``x``, of its element type."""
    made: AnyVar = x.tape.const(np.zeros(shape, x.dtype))
    return made


def listed(layer: Layer, state: Any, shapes: Sequence[Sizes]) -> Memory:
    """A state that was given: one Var, or as many as the layer keeps. Raises DomainError or ShapeError for another."""
    given: Any = cast(Any, state) if isinstance(state, tuple | list) else (state,)
    if len(given) != len(shapes):
        names = "(h, c)" if len(shapes) == 2 else "h"
        raise DomainError(f"{layer!r}: argument 'state': expected {names}, got {len(given)} values")
    for each, shape in zip(given, shapes, strict=True):
        if tuple(each.shape) != shape:
            raise ShapeError(f"{layer!r}: argument 'state': expected shape {shape}, got {tuple(each.shape)}")
    return tuple(given)


class Stepped(Layer, kinds={"input_size": SIZE, "hidden_size": SIZE}):
    """What cells and layers that run along a sequence have in common: sizes, and what they compute at each place.

    Dtypes: x, state, the parameters and the result float32 or float64, all alike.
    """

    UNIT: ClassVar[Unit]

    input_size: int
    hidden_size: int
    bias: bool

    @property
    def unit(self) -> Unit:
        """What is computed at each place."""
        return self.UNIT


@dataclass(frozen=True)
class Cell(Stepped):
    """One place of a sequence; its parameters are named as PyTorch's.

    Shapes: x (*Bs, input_size) -> (*Bs, hidden_size); ``state`` (*Bs, hidden_size), zeros unless given
    Raises:
        ShapeError: when called, x or state does not fit.
        DTypeError: when called, x or state has another dtype than the parameters.
    """

    input_size: int
    hidden_size: int
    _: KW_ONLY
    bias: bool = True

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight_ih``, ``weight_hh`` and, unless switched off, ``bias_ih``, ``bias_hh``."""
        rows, start = self.unit.gates * self.hidden_size, uniform_fan_in(self.hidden_size)
        sizes = {"weight_ih": self.input_size, "weight_hh": self.hidden_size}
        weights = {name: Parameter((rows, size), start) for name, size in sizes.items()}
        biases = {name: Parameter((rows,), start, "bias") for name in ("bias_ih", "bias_hh") if self.bias}
        return {**weights, **biases}

    def moved(self, p: Params, x: AnyVar, state: Any) -> Memory:
        """The state after an input; zeros before the first."""
        shape, kept = (*tuple(x.shape)[:-1], self.hidden_size), self.unit.kept
        before = (zeros_beside(x, *shape),) * kept if state is None else listed(self, state, (shape,) * kept)
        bias_ih, bias_hh = (parameter(p, self, f"bias_{of}") if self.bias else None for of in ("ih", "hh"))
        inputs = projected(x, parameter(p, self, "weight_ih"), bias_ih)
        return self.unit.step(inputs, before, parameter(p, self, "weight_hh"), bias_hh)

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None, *, state: AnyVar | None = None) -> AnyVar:
        """The new state."""
        return self.moved(p, x, state)[0]


@dataclass(frozen=True)
class RNNCell(Cell, kinds={"nonlinearity": either("tanh", "relu")}):
    """``h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)``, or ``relu`` by ``nonlinearity="relu"``.

    Source: Elman (1990), Finding structure in time; torch.nn.RNNCell.

    >>> from dgrr.tape import Tape, nn
    >>> tape, cell = Tape(), nn.RNNCell(3, 2)
    >>> cell(tape.params(cell.init(seed=0)), tape.const(np.zeros((5, 3), np.float32))).shape
    (5, 2)
    """

    _: KW_ONLY
    nonlinearity: str = "tanh"

    @property
    def unit(self) -> Unit:
        """What is computed at each place."""
        return ELMAN[self.nonlinearity]


@dataclass(frozen=True)
class GRUCell(Cell):
    """``h' = n + z (h - n)``, with gates r, z and n.

    They are ``r = sigmoid(x_r + h_r)``, ``z = sigmoid(x_z + h_z)`` and ``n = tanh(x_n + r h_n)``, of the parts of ``x @
    weight_ih.T + bias_ih`` and ``h @ weight_hh.T + bias_hh``; the rows of the weights are those of r, z and n.

    Source: Cho and others (2014); torch.nn.GRUCell, whose reset gate stands behind the product.

    >>> from dgrr.tape import Tape, nn
    >>> tape, cell = Tape(), nn.GRUCell(3, 2)
    >>> cell(tape.params(cell.init(seed=0)), tape.const(np.zeros((5, 3), np.float32))).shape
    (5, 2)
    """

    UNIT: ClassVar[Unit] = GRU_UNIT


@dataclass(frozen=True)
class LSTMCell(Cell):
    """``c' = f c + i g`` and ``h' = o tanh(c')``, a pair, where i, f, g and o are gates of x and h.

    They are ``sigmoid``, of g ``tanh``, of the parts of ``x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh``; the
    rows of the weights are those of i, f, g and o.

    Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers, Schmidhuber and Cummins (2000);
        torch.nn.LSTMCell.
    Shapes: x (*Bs, input_size) -> h and c (*Bs, hidden_size); ``state`` is such a pair, zeros unless given
    Dtypes: x, state, the parameters and the results float32 or float64, all alike.
    Raises:
        DomainError: when called, ``state`` is no pair.

    >>> from dgrr.tape import Tape, nn
    >>> tape, cell = Tape(), nn.LSTMCell(3, 2)
    >>> h, c = cell(tape.params(cell.init(seed=0)), tape.const(np.zeros((5, 3), np.float32)))
    >>> h.shape, c.shape
    ((5, 2), (5, 2))
    """

    UNIT: ClassVar[Unit] = LSTM_UNIT

    def __call__(  # type: ignore[override]  # a pair, as PyTorch's
        self, p: Params, x: AnyVar, ctx: Context | None = None, *, state: tuple[AnyVar, AnyVar] | None = None
    ) -> tuple[AnyVar, AnyVar]:
        """The new h and c."""
        h, c = self.moved(p, x, state)
        return h, c
