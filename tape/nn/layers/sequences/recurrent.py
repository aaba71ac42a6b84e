"""Recurrent layers: a cell along a sequence, in several layers and both directions."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

from .... import ops
from ....errors import DTypeError, ShapeError
from ....numerics.sizes import Sizes
from ....record.kinds.values import PROBABILITY, Beside
from ....values.dtypes import boolean
from ....var.arithmetic import Constant
from ....var.var import AnyVar, Var
from ...context import Context
from ...initializers import uniform_fan_in
from ...kinds import SIZE, either
from ...parameters import Parameter
from ...scope import Params, parameter
from ..dropout import dropped
from .cells import ELMAN, GRU_UNIT, LSTM_UNIT, Memory, Stepped, Unit, listed, projected, zeros_beside

SMALLER = Beside(
    "0, or less than hidden_size",
    lambda given: 0 <= given["proj_size"] < given["hidden_size"],
    lambda given: (-1, given["hidden_size"]),
    -1,
)


LONG = 16
"""Places from which on a sequence is one loop, on the tape and captured: a few places are easier to look at."""

Rows = tuple[AnyVar, Memory]
"""What each place is given: its input, and the masks of the parts of the state, if there are any."""
After = Callable[[Memory, Rows], tuple[Memory, AnyVar]]
"""The state after a place, and h."""


def along(x: AnyVar, axis: int) -> list[AnyVar]:
    """The slices along an axis, by halving: their gradients come back in n log n steps, not n²."""
    n = tuple(x.shape)[axis]
    if n == 1:
        return [ops.getitem(x, (*(slice(None),) * axis, 0))]
    half = n // 2
    return along(ops.narrow(x, 0, half, axis), axis) + along(ops.narrow(x, half, n - half, axis), axis)


def _written_out(after: After, state: Memory, given: Rows, axis: int, reverse: bool) -> tuple[AnyVar, Memory]:
    """h at each place along an axis, and the state at the end: every place has nodes of its own."""
    (x, masks), found = given, dict[int, AnyVar]()
    rows, kept = along(x, axis), list(zip(*[along(mask, axis) for mask in masks], strict=True))
    places = range(len(rows))
    for t in reversed(places) if reverse else places:
        state, found[t] = after(state, (rows[t], kept[t] if kept else ()))
    return ops.stack([found[t] for t in places], axis), state


def _looped(after: After, state: Memory, given: Rows, axis: int, reverse: bool) -> tuple[AnyVar, Memory]:
    """The same as one loop, with the same bits."""
    x, masks = given
    rows = _first(x, axis), tuple([_first(mask, axis) for mask in masks])
    end, found = ops.scan(after, state, rows, reverse=reverse)
    return _first(found, axis), end


def _first(x: AnyVar, axis: int) -> AnyVar:
    """``x`` with an axis exchanged with the first."""
    made: AnyVar = x if axis == 0 else ops.swapaxes(x, 0, axis)
    return made


def _placed(value: Any, x: AnyVar) -> AnyVar:
    """A Var, or an array on the tape of ``x``."""
    held: Any = cast(Any, value) if isinstance(value, Var) else x.tape.const(value)
    made: AnyVar = held
    return made


def _with_axis(x: AnyVar, axis: int) -> AnyVar:
    """``x`` with an axis of one element before another axis."""
    shape = tuple(x.shape)
    made: AnyVar = ops.reshape(x, (*shape[:axis], 1, *shape[axis:]))
    return made


class Recurrent(Stepped, kinds={"num_layers": SIZE, "dropout": PROBABILITY}):
    """What recurrent layers have in common: PyTorch's sizes, options and names of parameters.

    Shapes: x (n, batch, input_size) -> (n, batch, D hidden_size), as in `RNN`
    Dtypes: x, state, the parameters and the result float32 or float64, all alike; mask bool.
    Raises:
        DomainError: when called, dropout needs a context and none is given.
        ShapeError: when called, x, state or mask does not fit, or n is 0.
        DTypeError: when called, they have other dtypes.
    """

    num_layers: int
    batch_first: bool
    dropout: float
    bidirectional: bool

    @property
    def sizes(self) -> Sizes:
        """How many elements each part of the state has: h, which is what the layer gives, and what else it keeps."""
        return (self.hidden_size,) * self.unit.kept

    def _passes(self) -> Iterator[tuple[int, str]]:
        """The number of each layer with the ending of the names of its parameters, once for each direction."""
        for number in range(self.num_layers):
            yield from ((number, f"_l{number}{way}") for way in ("", "_reverse")[: 1 + self.bidirectional])

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, then ``…_l0_reverse``, ``…_l1``."""
        rows, start, given = self.unit.gates * self.hidden_size, uniform_fan_in(self.hidden_size), self.sizes[0]
        named = dict[str, Parameter]()
        for number, ending in self._passes():
            features = given * (1 + self.bidirectional) if number else self.input_size
            named[f"weight_ih{ending}"] = Parameter((rows, features), start)
            named[f"weight_hh{ending}"] = Parameter((rows, given), start)
            for of in ("ih", "hh") if self.bias else ():
                named[f"bias_{of}{ending}"] = Parameter((rows,), start, "bias")
            if given != self.hidden_size:
                named[f"weight_hr{ending}"] = Parameter((given, self.hidden_size), start)
        return named

    def __call__(
        self,
        p: Params,
        x: AnyVar,
        ctx: Context | None = None,
        *,
        state: Any = None,
        mask: AnyVar | Constant | None = None,
        return_state: bool = False,
    ) -> Any:
        """The states h of the last layer at each place, or with ``return_state`` those and the state at the end.

        Where ``mask`` (n, batch), or (batch, n) with ``batch_first``, is false, the state is that of the place before.
        """
        self._require_sequences(x, mask)
        if len(x.shape) == 2:
            return self._of_one(p, x, ctx, state, mask, return_state)
        time = int(self.batch_first)
        batch, kept = tuple(x.shape)[1 - time], () if mask is None else self._along_mask(x, mask)
        starts, ends = self._starts(x, batch, state), list[Memory]()
        for number in range(self.num_layers):
            if number:
                x = dropped(self, x, self.dropout, ctx)
            found = [
                self._run(p, x, ending, starts[len(ends) + place], kept, time)
                for place, ending in enumerate(ending for of, ending in self._passes() if of == number)
            ]
            x = found[0][0] if len(found) == 1 else ops.append(found[0][0], found[1][0], -1)
            ends += [end for _, end in found]
        return (x, self._stacked(ends)) if return_state else x

    def _of_one(self, p: Params, x: AnyVar, ctx: Context | None, state: Any, mask: Any, return_state: bool) -> Any:
        """The same of one sequence, without an axis for the batch."""
        batch = 1 - int(self.batch_first)
        parts: Any = cast(Any, state) if isinstance(state, tuple | list) else (state,)
        starts = None if state is None else tuple(_with_axis(_placed(part, x), 1) for part in parts)
        held = None if mask is None else _with_axis(_placed(mask, x), batch)
        y, ends = self(p, _with_axis(x, batch), ctx, state=starts, mask=held, return_state=True)
        y = y[(slice(None),) * batch + (0,)]
        if not return_state:
            return y
        return y, ends[:, 0] if self.unit.kept == 1 else tuple([end[:, 0] for end in ends])

    def _run(self, p: Params, x: AnyVar, ending: str, state: Memory, kept: Memory, time: int) -> tuple[AnyVar, Memory]:
        """One layer in one direction: h at each place, and the state at the end."""
        bias_ih, bias_hh = (parameter(p, self, f"bias_{of}{ending}") if self.bias else None for of in ("ih", "hh"))
        inputs = projected(x, parameter(p, self, f"weight_ih{ending}"), bias_ih)
        weight, step = parameter(p, self, f"weight_hh{ending}"), self.unit.step
        narrow = parameter(p, self, f"weight_hr{ending}") if self.sizes[0] != self.hidden_size else None

        def after(state: Memory, given: tuple[AnyVar, Memory]) -> tuple[Memory, AnyVar]:
            row, mask = given
            new = step(row, state, weight, bias_hh)
            new = new if narrow is None else (projected(new[0], narrow, None), *new[1:])
            state = tuple(map(ops.where, mask, new, state)) if mask else new
            return state, state[0]

        loop = _looped if tuple(x.shape)[time] >= LONG else _written_out
        return loop(after, state, (inputs, kept), time, ending.endswith("_reverse"))

    def _along_mask(self, x: AnyVar, mask: Any) -> Memory:
        """The mask, repeated for all elements of each part of the state."""
        held = _placed(mask, x)
        repeated = {n: ops.broadcast_to(held[:, :, None], (*tuple(held.shape), n)) for n in dict.fromkeys(self.sizes)}
        return tuple([repeated[n] for n in self.sizes])

    def _starts(self, x: AnyVar, batch: int, state: Any) -> list[Memory]:
        """The state before the first place, of each layer and direction."""
        count = self.num_layers * (1 + self.bidirectional)
        if state is None:
            zeros = {n: zeros_beside(x, batch, n) for n in dict.fromkeys(self.sizes)}
            return [tuple([zeros[n] for n in self.sizes])] * count
        whole = listed(self, state, [(count, batch, n) for n in self.sizes])
        return list(zip(*[along(_placed(part, x), 0) for part in whole], strict=True))

    def _stacked(self, ends: list[Memory]) -> Any:
        made = tuple([ops.stack(list(parts), 0) for parts in zip(*ends, strict=True)])
        return made[0] if self.unit.kept == 1 else made

    def _require_sequences(self, x: AnyVar, mask: Any) -> None:
        shape = tuple(x.shape)
        axes = "(batch, n, {0}) or (n, {0})" if self.batch_first else "(n, batch, {0}) or (n, {0})"
        time = int(self.batch_first and len(shape) == 3)
        if len(shape) not in (2, 3) or shape[-1] != self.input_size or not shape[time]:
            wanted = axes.format(self.input_size)
            raise ShapeError(f"{self!r}: argument 'x': expected shape {wanted} with n of at least 1, got {shape}")
        if mask is None:
            return
        if tuple(mask.shape) != shape[:-1]:
            raise ShapeError(f"{self!r}: argument 'mask': expected shape {shape[:-1]}, got {tuple(mask.shape)}")
        if mask.dtype != boolean.dtype:
            raise DTypeError(f"{self!r}: argument 'mask': expected bool, got {mask.dtype}; convert with ops.cast")


@dataclass(frozen=True)
class RNN(Recurrent, kinds={"nonlinearity": either("tanh", "relu")}):
    """`RNNCell` along sequences, in ``num_layers`` layers, each of which reads the one below.

    A ``bidirectional`` layer also runs from the end, with weights of its own, and gives both states side by side.
    ``dropout`` acts between layers in training. Where a mask is false the state keeps still, so sequences of unequal
    length end with the state of their last place. From 16 places on a sequence is one `dgrr.tape.ops.scan`, with the
    same bits: neither the tape nor a captured step's plan grow with it.

    Source: Elman (1990), Finding structure in time; torch.nn.RNN, whose names, layouts and defaults these are.
    Shapes: x (n, batch, input_size) -> (n, batch, D hidden_size), D 2 if ``bidirectional``, else 1; ``state``
        (D num_layers, batch, hidden_size), zeros unless given; ``mask`` (n, batch); with ``batch_first`` x, mask and
        the result begin with batch, n; of one sequence all are without the axis of the batch

    >>> import numpy as np
    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.RNN(3, 2)
    >>> y, h = layer(tape.params(layer.init(seed=0)), tape.const(np.ones((5, 1, 3), np.float32)), return_state=True)
    >>> y.shape, h.shape, np.array_equal(y.numpy()[-1], h.numpy()[0])
    ((5, 1, 2), (1, 1, 2), True)
    """

    input_size: int
    hidden_size: int
    num_layers: int = 1
    nonlinearity: str = "tanh"
    _: KW_ONLY
    bias: bool = True
    batch_first: bool = False
    dropout: float = 0.0
    bidirectional: bool = False

    @property
    def unit(self) -> Unit:
        """What is computed at each place."""
        return ELMAN[self.nonlinearity]


@dataclass(frozen=True)
class Gated(Recurrent):
    """A recurrent layer without options of its own."""

    input_size: int
    hidden_size: int
    num_layers: int = 1
    _: KW_ONLY
    bias: bool = True
    batch_first: bool = False
    dropout: float = 0.0
    bidirectional: bool = False


@dataclass(frozen=True)
class GRU(Gated):
    """`GRUCell` along sequences; everything else is as in `RNN`.

    Source: Cho and others (2014); torch.nn.GRU, whose names, layouts and defaults these are.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.GRU(3, 2, bidirectional=True)
    >>> layer(tape.params(layer.init(seed=0)), tape.const(np.ones((5, 1, 3), np.float32))).shape
    (5, 1, 4)
    """

    UNIT: ClassVar[Unit] = GRU_UNIT


@dataclass(frozen=True)
class LSTM(Gated, kinds={"proj_size": SMALLER}):
    """`LSTMCell` along sequences; everything else is as in `RNN`. ``state`` is the pair (h, c).

    With ``proj_size`` h is a product ``h @ weight_hr.T`` of so many elements, which the layer gives and remembers.

    Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers, Schmidhuber and Cummins (2000);
        torch.nn.LSTM, whose names, layouts and defaults these are.
    Shapes: as of `RNN`, h with ``proj_size`` instead of ``hidden_size``
    Raises:
        DomainError: when called, dropout needs a context and none is given, or ``state`` is no pair.

    >>> import numpy as np
    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.LSTM(3, 2, batch_first=True)
    >>> p, x = tape.params(layer.init(seed=0)), tape.const(np.ones((1, 5, 3), np.float32))
    >>> y, (h, c) = layer(p, x, return_state=True)
    >>> y.shape, h.shape, c.shape
    ((1, 5, 2), (1, 1, 2), (1, 1, 2))
    """

    UNIT: ClassVar[Unit] = LSTM_UNIT

    _: KW_ONLY
    proj_size: int = 0

    @property
    def sizes(self) -> Sizes:
        """Those of h and c."""
        return self.proj_size or self.hidden_size, self.hidden_size
