"""Recurrent layers, unrolled: each place of a sequence is the nodes of one step."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ....tape import AnyVar, ops
from ....tape.nn.layers.sequences.cells import Memory, gates, projected, zeros_beside
from ....tape.nn.layers.sequences.recurrent import along
from .operator import IMPORTERS, Operator

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"tanh": ops.tanh, "relu": ops.relu, "sigmoid": ops.sigmoid}


class DirectionWeights(NamedTuple):
    """What one direction computes with, beside what its inputs were multiplied by."""

    recurrent: AnyVar
    bias: AnyVar | None
    peepholes: AnyVar | None


Step = Callable[[Operator, AnyVar, Memory, DirectionWeights], Memory]


class RecurrentKind(NamedTuple):
    """A layer: its step, the rows of its weights in units of the state, its activations, and what its state holds."""

    step: Step
    rows: int
    activations: tuple[str, ...]
    kept: int = 1


def _elman(n: Operator, x: AnyVar, state: Memory, w: DirectionWeights) -> Memory:
    name = _activations(n, ("tanh",), 1)[0]
    return (ACTIVATIONS[name](x + projected(state[0], w.recurrent, w.bias)),)


def _gru(n: Operator, x: AnyVar, state: Memory, w: DirectionWeights) -> Memory:
    """The rows are those of z, r and h."""
    (h,) = state
    size = tuple(h.shape)[-1]
    both, own = (ops.narrow(w.recurrent, start, count, 0) for start, count in ((0, 2 * size), (2 * size, size)))
    bias, own_bias = (
        None if w.bias is None else ops.narrow(w.bias, start, count, 0)
        for start, count in ((0, 2 * size), (2 * size, size))
    )
    x_z, x_r, x_h = gates(x, 3)
    h_z, h_r = gates(projected(h, both, bias), 2)
    z, r = ops.sigmoid(x_z + h_z), ops.sigmoid(x_r + h_r)
    after = n.get("linear_before_reset", 0)
    made = r * projected(h, own, own_bias) if after else projected(r * h, own, own_bias)
    new = ops.tanh(x_h + made)
    return (new + z * (h - new),)


def _lstm(n: Operator, x: AnyVar, state: Memory, w: DirectionWeights) -> Memory:
    """The rows are those of i, o, f and c."""
    h, before = state
    i, o, f, c = gates(x + projected(h, w.recurrent, w.bias), 4)
    if w.peepholes is not None:
        p_i, p_o, p_f = gates(w.peepholes, 3)
        i, f = i + before * p_i, f + before * p_f
        after = ops.sigmoid(f) * before + ops.sigmoid(i) * ops.tanh(c)
        o = o + after * p_o
    else:
        after = ops.sigmoid(f) * before + ops.sigmoid(i) * ops.tanh(c)
    return ops.sigmoid(o) * ops.tanh(after), after


KINDS = {
    "RNN": RecurrentKind(_elman, 1, ("tanh",)),
    "GRU": RecurrentKind(_gru, 3, ("sigmoid", "tanh")),
    "LSTM": RecurrentKind(_lstm, 4, ("sigmoid", "tanh", "tanh"), kept=2),
}


def _activations(n: Operator, default: Sequence[str], directions: int) -> list[str]:
    """The names of the activations, in small letters."""
    given = n.get("activations", None) or [*default] * directions
    return [name.decode().lower() if isinstance(name, bytes) else name.lower() for name in given]


def _require_plain(n: Operator, kind: RecurrentKind, places: int, directions: int) -> None:
    """Raise ImportedModelError for what changes the layer otherwise than by numbers."""
    names = _activations(n, kind.activations, directions)
    wanted = [*kind.activations] * directions
    one = n.kind == "RNN" and len(set(names)) == 1 and names[0] in ACTIVATIONS
    if names != wanted and not one:
        raise n.error(f"expected the activations {', '.join(wanted)}, got {', '.join(names)}")
    for name in ("clip", "input_forget"):
        if n.get(name, 0):
            raise n.error(f"expected a layer without {name}, got {n.get(name, 0)}")
    if n.has(4) and (n.constant(4) != places).any():
        raise n.error(f"expected sequences of {places} places all, got lengths {n.constant(4).tolist()}")


def _recurrent(kind: RecurrentKind, n: Operator) -> Any:
    x, batch_first = n.var(0), bool(n.get("layout", 0))
    x = ops.swapaxes(x, 0, 1) if batch_first else x
    places, batch, _ = x.shape
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[n.get("direction", "forward")]
    _require_plain(n, kind, places, len(ways))
    size = tuple(n.var(2).shape)[-1]
    starts = [n.optional(place) for place in (5, 6)[: kind.kept]]
    starts = [s if s is None or not batch_first else ops.swapaxes(s, 0, 1) for s in starts]
    ends = [
        _one_way(kind, n, x, way, back, tuple(zeros_beside(x, batch, size) if s is None else s[way] for s in starts))
        for way, back in enumerate(ways)
    ]
    y = ops.stack([found for found, _ in ends], 1)
    states = [ops.stack([state[part] for _, state in ends], 0) for part in range(kind.kept)]
    if batch_first:
        y, states = ops.permute(y, (2, 0, 1, 3)), [ops.swapaxes(state, 0, 1) for state in states]
    return (y, *states)


def _one_way(kind: RecurrentKind, n: Operator, x: AnyVar, way: int, back: bool, state: Memory) -> tuple[AnyVar, Memory]:
    """h at each place, and the state at the end."""
    rows = kind.rows * tuple(state[0].shape)[-1]
    bias = n.var(3)[way] if n.has(3) else None
    of_x, of_h = (None if bias is None else ops.narrow(bias, start, rows, 0) for start in (0, rows))
    weights = DirectionWeights(n.var(2)[way], of_h, n.var(7)[way] if kind.kept == 2 and n.has(7) else None)
    inputs, found = along(projected(x, n.var(1)[way], of_x), 0), dict[int, AnyVar]()
    for t in range(len(inputs))[:: -1 if back else 1]:
        state = kind.step(n, inputs[t], state, weights)
        found[t] = state[0]
    return ops.stack([found[t] for t in range(len(inputs))], 0), state


IMPORTERS.update({name: partial(_recurrent, kind) for name, kind in KINDS.items()})
