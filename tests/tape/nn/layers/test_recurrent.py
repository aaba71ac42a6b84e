"""Recurrent layers: where masked the state keeps still, captured is eager, and long sequences are loops."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import Adam, CapturedStep, EagerStep
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import Context, DomainError, DTypeError, Random, ShapeError, Tape, nn, ops
from dgrr.tape.nn.layers.sequences import recurrent

Array = npt.NDArray[Any]
KINDS = (nn.RNN, nn.GRU, nn.LSTM)
rng = np.random.default_rng(0)
X = rng.standard_normal((5, 3, 4))
MASK = np.arange(5)[:, None] < np.array([5, 2, 0])


def outputs(layer: Any, p: dict[str, Array], x: Array, ctx: Context | None = None, **more: Any) -> list[Array]:
    """h at each place and the state at the end."""
    tape = Tape[Any]()
    y, state = layer(tape.params(p), tape.const(x), ctx, return_state=True, **more)
    return [part.numpy() for part in (y, *(state if isinstance(state, tuple) else (state,)))]


@pytest.mark.parametrize("kind", KINDS)
def test_where_masked_the_state_keeps_still(kind: Any) -> None:
    layer = kind(4, 2, bidirectional=True)
    p, start = layer.init(0, np.float64), rng.standard_normal((2, 3, 2))
    state = (start, start / 2) if kind is nn.LSTM else start
    y, h, *_ = outputs(layer, p, X, mask=MASK, state=state)
    alone, end, *_ = outputs(layer, p, X[:2], state=state)
    assert y[:2, 1].tobytes() == alone[:, 1].tobytes()  # in both directions, as if the rest were not there
    assert h[:, 1].tobytes() == end[:, 1].tobytes()
    assert np.all(y[2:, 1, :2] == y[1, 1, :2])
    assert np.all(y[:, 2] == start[:, 2].reshape(-1))
    unseen = X.copy()
    unseen[~MASK] = np.nan
    assert outputs(layer, p, unseen, mask=MASK, state=state)[0].tobytes() == y.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_step_by_step(kind: Any) -> None:
    layer, cell = kind(4, 2), getattr(nn, f"{kind.__name__}Cell")(4, 2)
    p, tape = layer.init(1), Tape[Any]()
    params, state = {name.removesuffix("_l0"): tape.param(a) for name, a in p.items()}, None
    for x in X.astype(np.float32):
        state = cell(params, tape.const(x), state=state)
    ends = outputs(layer, p, X.astype(np.float32))[1:]
    for end, part in zip(ends, state if isinstance(state, tuple) else (state,), strict=True):
        assert part is not None and end[0].tobytes() == part.numpy().tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_one_layer_reads_the_one_below(kind: Any) -> None:
    layer, first = kind(4, 2, 2, bidirectional=True), kind(4, 2, bidirectional=True)
    p = layer.init(0)
    below, *_ = outputs(first, {name: a for name, a in p.items() if "_l0" in name}, X.astype(np.float32))
    above = {name.replace("_l1", "_l0"): a for name, a in p.items() if "_l1" in name}
    y, *_ = outputs(kind(4, 2, bidirectional=True), above, below)  # 4 features: 2 of each direction
    assert y.tobytes() == outputs(layer, p, X.astype(np.float32))[0].tobytes()


def test_dropout_acts_between_layers_in_training() -> None:
    layer = nn.LSTM(4, 2, 2, dropout=0.5)
    p = layer.init(0)

    def run(training: bool, layer: Any = layer, seed: int = 0) -> bytes:
        tape = Tape[Any]()
        ctx = Context(training, Random(tape.const(0), seed=seed))
        return bytes(layer({n: tape.param(a) for n, a in p.items()}, tape.const(X.astype(np.float32)), ctx).numpy())

    assert run(training=False) == run(training=True, layer=nn.LSTM(4, 2, 2))
    assert len({run(training=False), run(training=True), run(training=True, seed=1)}) == 3
    with pytest.raises(DomainError, match=r"^LSTM\(.*\): argument 'ctx': expected a Context, got None"):
        outputs(layer, p, X.astype(np.float32))


def test_batch_first_is_another_order_of_axes() -> None:
    p = nn.GRU(4, 2).init(0, np.float64)
    y, h = outputs(nn.GRU(4, 2), p, X, mask=MASK)
    turned, state = outputs(nn.GRU(4, 2, batch_first=True), p, X.swapaxes(0, 1), mask=MASK.T)
    assert turned.swapaxes(0, 1).tobytes() == y.tobytes() and state.tobytes() == h.tobytes()


def test_names_and_layouts_are_pytorchs() -> None:
    shapes = {name: a.shape for name, a in nn.LSTM(4, 2, 2, bidirectional=True).init(0).items()}
    first = {"weight_ih": (8, 4), "weight_hh": (8, 2), "bias_ih": (8,), "bias_hh": (8,)}
    second = {**first, "weight_ih": (8, 4)}
    assert shapes == {
        f"{name}_l{layer}{way}": shape
        for layer, named in enumerate((first, second))
        for way in ("", "_reverse")
        for name, shape in named.items()
    }
    assert list(nn.GRU(4, 2, bias=False).init(0)) == ["weight_ih_l0", "weight_hh_l0"]
    assert max(abs(a).max() for a in nn.RNN(4, 16).init(0).values()) <= 0.25


def loss_of(layer: Any, *, masked: bool = True) -> Any:
    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        x, mask = batch
        y = layer(p, x, ctx, mask=mask) if masked else layer(p, x, ctx)
        return ops.reduce_mean(ops.square(y)), ctx.state

    return loss_fn


@pytest.mark.parametrize("kind", KINDS)
def test_captured_steps_are_eager_ones_to_the_bit(kind: Any) -> None:
    layer = kind(4, 2, 2, bidirectional=True, dropout=0.25)
    params, batch = layer.init(0), (X.astype(np.float32), MASK)
    eager, captured = (make(loss_of(layer), params, Recipe(Adam(0.1))) for make in (EagerStep, CapturedStep))
    for _ in range(3):
        assert eager(batch).tobytes() == captured(batch).tobytes()
        assert eager.digest() == captured.digest()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "layer",
    [
        nn.RNN(3, 2),
        nn.GRU(3, 2, 2, bidirectional=True),
        nn.LSTM(3, 5, 2, bidirectional=True, proj_size=2),
    ],
)
def test_a_long_sequence_is_a_loop_with_the_bits_that_it_has_written_out(
    layer: Any, masked: bool, batch_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, rng = replace(layer, batch_first=batch_first), np.random.default_rng(0)
    axes = (1, 0) if batch_first else (0, 1)
    x, mask = rng.standard_normal((17, 3, 3)), np.arange(17)[:, None] < np.array([17, 6, 1])

    def found(long: int) -> tuple[int, list[bytes]]:
        monkeypatch.setattr(recurrent, "LONG", long)
        tape = Tape[Any]()
        p, given = tape.params(layer.init(0)), tape.leaf(x.transpose(*axes, 2).astype(np.float32))
        held = tape.const(mask.transpose(axes)) if masked else None
        y, state = layer(p, given, mask=held, return_state=True)
        ends = state if isinstance(state, tuple) else (state,)
        loss = ops.reduce_sum(ops.square(y))
        for end in ends:
            loss = loss + ops.reduce_sum(ops.square(end))
        grads = tape.backward_scalar(loss)
        arrays = [each.numpy() for each in (y, *ends)] + [grads[each].numpy() for each in (*p.values(), given)]
        return len(tape), [np.ascontiguousarray(a).tobytes() for a in arrays]

    (few, looped), (many, written_out) = found(17), found(18)
    assert few < many / 5 and looped == written_out


def test_a_capture_of_a_long_sequence_does_not_grow_with_it() -> None:
    layer = nn.LSTM(4, 2)
    calls, nodes = [], []
    for n in (16, 64):
        tape = Tape[Any]()
        layer(tape.params(layer.init(0)), tape.const(np.zeros((n, 3, 4), np.float32)))
        step = CapturedStep(loss_of(layer, masked=False), layer.init(0), Recipe(Adam(0.1)))
        step((np.zeros((n, 3, 4), np.float32), np.ones((n, 3), np.bool_)))
        nodes.append(len(tape))
        calls.append(len(step.plan.program.ops))
    assert nodes[0] == nodes[1] and calls[0] == calls[1]


def test_a_capture_of_a_short_sequence_grows_with_it_and_its_kernels_do_not() -> None:
    layer = nn.LSTM(4, 2)
    params, nodes, calls, arenas, kernels = layer.init(0), [], [], [], []
    for n in (3, 6, 12):
        x, tape = np.zeros((n, 3, 4), np.float32), Tape[Any]()
        layer(tape.params(params), tape.const(x))
        step = CapturedStep(loss_of(layer, masked=False), params, Recipe(Adam(0.1)))
        step((x, np.ones((n, 3), np.bool_)))
        nodes.append(len(tape))
        calls.append(len(step.plan.program.ops))
        arenas.append(step.plan.arena_bytes)
        kernels.append({version for op in step.plan.program.ops for version in op.versions})
    assert nodes[2] - nodes[1] == 2 * (nodes[1] - nodes[0])
    assert calls[2] - calls[1] <= 2.1 * (calls[1] - calls[0])
    assert arenas[2] <= 2.1 * arenas[1]
    assert kernels[0] == kernels[1] == kernels[2]


REFUSED: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (
        X[0, 0],
        {},
        ShapeError,
        r"argument 'x': expected shape \(n, batch, 4\) or \(n, 4\) with n of at least 1, got \(4,\)$",
    ),
    (
        X[:0, 0],
        {},
        ShapeError,
        r"argument 'x': expected shape \(n, batch, 4\) or \(n, 4\) with n of at least 1, got \(0, 4\)$",
    ),
    (
        X[:0],
        {},
        ShapeError,
        r"argument 'x': expected shape \(n, batch, 4\) or \(n, 4\) with n of at least 1, got \(0, 3, 4\)$",
    ),
    (X[:, 0], {"mask": MASK}, ShapeError, r"argument 'mask': expected shape \(5,\), got \(5, 3\)$"),
    (X[..., :3], {}, ShapeError, r"argument 'x': expected shape \(n, batch, 4\) .*, got \(5, 3, 3\)$"),
    (X, {"mask": MASK.T}, ShapeError, r"argument 'mask': expected shape \(5, 3\), got \(3, 5\)$"),
    (
        X,
        {"mask": MASK.astype(np.int64)},
        DTypeError,
        r"argument 'mask': expected bool, got int64; convert with ops.cast$",
    ),
    (X, {"state": np.zeros((1, 3, 2))}, DomainError, r"argument 'state': expected \(h, c\), got 1 values$"),
    (X, {"state": (X[0, :, :2],) * 2}, ShapeError, r"argument 'state': expected shape \(1, 3, 2\), got \(3, 2\)$"),
]


@pytest.mark.parametrize(("x", "more", "error", "text"), REFUSED)
def test_what_does_not_fit(x: Array, more: dict[str, Any], error: type[Exception], text: str) -> None:
    layer = nn.LSTM(4, 2)
    with pytest.raises(error, match=r"^LSTM\(.*\): " + text):
        outputs(layer, layer.init(0, np.float64), x, **more)


@pytest.mark.parametrize("make", [nn.RNN, nn.RNNCell])
def test_another_nonlinearity(make: Any) -> None:
    with pytest.raises(
        DomainError, match=rf"^{make.__name__}: argument 'nonlinearity': expected 'tanh' or 'relu', got 'x'$"
    ):
        make(2, 3, nonlinearity="x")


def test_plain_arrays() -> None:
    layer: Any = nn.LSTM(4, 2)
    p = layer.init(0, np.float64)
    y, h, c = outputs(layer, p, X, mask=MASK)
    found, state = layer(p, X, mask=MASK, return_state=True)
    assert [a.tobytes() for a in (found, *state)] == [a.tobytes() for a in (y, h, c)]
