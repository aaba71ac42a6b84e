"""Layers with parameters beside PyTorch's of the same name, in float64: outputs, states and every gradient."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import Context, ShapeError, Tape, nn, ops

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch: pip install -e '.[test,torch]'")

Array = npt.NDArray[Any]

TOLERANCE = 1e-10
N, BATCH, FEATURES, HIDDEN = 5, 3, 4, 2
LENGTHS = (5, 2, 4)
KINDS: dict[str, dict[str, Any]] = {
    "one layer": {},
    "two layers, both directions": {"num_layers": 2, "bidirectional": True},
    "batch first, no bias": {"batch_first": True, "bias": False},
}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def close(got: Any, expected: Any, what: str) -> None:
    found = got.numpy() if hasattr(got, "numpy") else np.asarray(got)
    np.testing.assert_allclose(found, expected.detach().numpy(), TOLERANCE, TOLERANCE, err_msg=what)


def filled(peer: Any, layer: nn.Layer) -> dict[str, Array]:
    """Parameters of a layer that are those of its peer."""
    p = layer.init(3, np.float64)
    p = {name: a + rng().standard_normal(a.shape) / 5 for name, a in p.items()}
    peer.double().load_state_dict({name: torch.tensor(a) for name, a in p.items()})
    return p


def compare(
    layer: nn.Layer,
    peer: Any,
    p: Mapping[str, Array],
    inputs: Mapping[str, Array],
    ours: Callable[..., list[Any]],
    theirs: Callable[..., list[Any]],
    names: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> None:
    """Results, and the gradients of their weighted sum by every parameter and every input."""
    tape = Tape[Any]()
    params, given = tape.params(p), {name: tape.leaf(a) for name, a in inputs.items()}
    beside = {name: torch.tensor(a, requires_grad=a.dtype.kind == "f") for name, a in inputs.items()}
    found, expected = ours(params, **given), theirs(**beside)
    seeds = [rng().standard_normal(tuple(x.shape)) for x in expected]
    total: Any = 0.0
    for got, wanted, seed in zip(found, expected, seeds, strict=True):
        close(got, wanted, "value")
        total = total + ops.reduce_sum(got * seed)
    grads = tape.backward_scalar(total)
    sum((x * torch.tensor(seed)).sum() for x, seed in zip(expected, seeds, strict=True)).backward()
    wanted_grads = names({name: value.grad for name, value in peer.named_parameters()})
    for name, value in params.items():
        wanted = wanted_grads[name]
        close(grads[value], torch.as_tensor(wanted), f"gradient by {name}")
    for name, leaf in given.items():
        if beside[name].requires_grad:
            close(grads[leaf], beside[name].grad, f"gradient by {name}")


def flat(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_layers(name: str, kind: str) -> None:
    options = KINDS[kind]
    more: Any = {"nonlinearity": "relu"} if (name, kind) == ("RNN", "batch first, no bias") else {}
    layer = getattr(nn, name)(FEATURES, HIDDEN, **options, **more)
    peer = getattr(torch.nn, name)(FEATURES, HIDDEN, **options, **more)
    p = filled(peer, layer)
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    x = rng().standard_normal((BATCH, N, FEATURES) if layer.batch_first else (N, BATCH, FEATURES))
    starts = {f"state{i}": rng().standard_normal((count, BATCH, HIDDEN)) for i in range(1 + (name == "LSTM"))}

    def run(call: Callable[..., Any], x: Any, **state: Any) -> list[Any]:
        y, after = call(x, tuple(state.values()) if len(state) > 1 else state["state0"])
        return [y, *flat(after)]

    compare(
        layer, peer, p, {"x": x, **starts},
        lambda params, **given: run(lambda x, s: layer(params, x, state=s, return_state=True), **given),
        lambda **given: run(peer, **given),
    )  # fmt: skip


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_one_sequence_without_a_batch(name: str, batch_first: bool) -> None:
    layer = getattr(nn, name)(FEATURES, HIDDEN, 2, bidirectional=True, batch_first=batch_first)
    peer = getattr(torch.nn, name)(FEATURES, HIDDEN, 2, bidirectional=True, batch_first=batch_first)
    arrays = {"x": rng().standard_normal((N, FEATURES))}
    arrays |= {f"state{i}": rng().standard_normal((4, HIDDEN)) for i in range(1 + (name == "LSTM"))}

    def run(call: Callable[..., Any], x: Any, **state: Any) -> list[Any]:
        y, after = call(x, tuple(state.values()) if len(state) > 1 else state["state0"])
        return [y, *flat(after)]

    compare(
        layer, peer, filled(peer, layer), arrays,
        lambda params, **given: run(lambda x, s: layer(params, x, state=s, return_state=True), **given),
        lambda **given: run(peer, **given),
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
def test_an_lstm_that_projects(options: dict[str, Any]) -> None:
    layer, peer = (made(FEATURES, 5, proj_size=2, **options) for made in (nn.LSTM, torch.nn.LSTM))
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    arrays = {"x": (N, BATCH, FEATURES), "h": (count, BATCH, 2), "c": (count, BATCH, 5)}

    def run(call: Callable[..., Any], x: Any, h: Any, c: Any) -> list[Any]:
        y, after = call(x, (h, c))
        return [y, *after]

    compare(
        layer, peer, filled(peer, layer), {name: rng().standard_normal(shape) for name, shape in arrays.items()},
        lambda params, **given: run(lambda x, s: layer(params, x, state=s, return_state=True), **given),
        lambda **given: run(peer, **given),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["LayerNorm", "GroupNorm", "InstanceNorm", "BatchNorm"])
def test_norms_without_a_bias(name: str) -> None:
    sizes = (2, FEATURES) if name == "GroupNorm" else (FEATURES,)
    affine = {} if name == "LayerNorm" else {"affine": True}
    ending = "1d" if name in ("InstanceNorm", "BatchNorm") else ""
    layer = getattr(nn, name)(*sizes, bias=False, **affine)
    peer = getattr(torch.nn, name + ending)(*sizes, bias=False, **affine)
    p = layer.init(3, np.float64)
    assert list(p) == ["weight"] == [name for name, _ in peer.named_parameters()]
    peer.double().load_state_dict({"weight": torch.tensor(p["weight"])}, strict=False)
    x = rng().standard_normal((3, FEATURES) if name == "LayerNorm" else (3, FEATURES, 5))

    def ours(params: Any, x: Any) -> list[Any]:
        state = {n: x.tape.const(a) for n, a in layer.init_state(np.float64).items()}
        return [layer(params, x, Context(training=True, state=state))]

    compare(layer, peer, p, {"x": x}, ours, lambda x: [peer(x)])


def test_batch_norm_without_momentum_keeps_the_mean_over_all_steps() -> None:
    layer, peer = nn.BatchNorm(FEATURES, momentum=None), torch.nn.BatchNorm1d(FEATURES, momentum=None).double()
    state = nn.load_torch(peer.state_dict(), layer).state
    assert list(state) == ["running_mean", "running_var", "num_batches_tracked"]
    for step in range(1, 4):
        x, tape = rng().standard_normal((5, FEATURES)) * step, Tape[Any]()
        ctx = Context(training=True, state={name: tape.const(a.astype(np.float64)) for name, a in state.items()})
        close(layer(tape.params(layer.init(0, np.float64)), tape.const(x), ctx), peer(torch.tensor(x)), "value")
        state = {name: value.numpy() for name, value in ctx.state.items()}
        there = nn.to_torch(layer, layer.init(0), state)
        for name in state:
            close(there[name], peer.state_dict()[name], f"{name} after step {step}")
        assert there["num_batches_tracked"] == step


@pytest.mark.parametrize("row", [0, 2, -1])
def test_an_embedding_with_a_row_for_padding(row: int) -> None:
    layer, peer = nn.Embedding(4, 3, padding_idx=row), torch.nn.Embedding(4, 3, padding_idx=row)
    indices = np.array([[0, 1, 3], [3, 2, 2]])
    p = filled(peer, layer)
    assert np.array_equal(layer.init(0)["weight"] == 0, np.arange(4)[:, None].repeat(3, 1) == row % 4)
    compare(layer, peer, p, {"x": indices}, lambda params, x: [layer(params, x)], lambda x: [peer(x)])


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("masks", [False, True])
def test_a_decoder_block(pre_norm: bool, masks: bool) -> None:
    layer = nn.TransformerDecoderBlock(6, 2, 8, activation=nn.ReLU(), pre_norm=pre_norm)
    peer = torch.nn.TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True, norm_first=pre_norm).double()
    with torch.no_grad():
        for value in peer.parameters():
            value.copy_(torch.tensor(rng().standard_normal(tuple(value.shape)) / 2))
    p = nn.load_torch(peer.state_dict(), layer).params
    there = {name: torch.tensor(a) for name, a in nn.to_torch(layer, p).items()}
    assert there.keys() == peer.state_dict().keys()
    assert all(torch.equal(a, there[name]) for name, a in peer.state_dict().items())
    inputs = {"x": rng().standard_normal((2, 5, 6)), "context": rng().standard_normal((2, 4, 6))}
    seen = np.arange(4) < np.array([[4], [2]])
    ours: Any = {"context_key_mask": seen} if masks else {}
    theirs: Any = {"memory_key_padding_mask": torch.tensor(~seen)} if masks else {}
    before = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    compare(
        layer, peer, p, inputs,
        lambda params, x, context: [layer(params, x, context=context, **ours)],
        lambda x, context: [peer(x, context, tgt_mask=before, tgt_is_causal=True, **theirs)],
        lambda grads: nn.load_torch({name: a.numpy() for name, a in grads.items()}, layer).params,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_sequences_of_unequal_length(name: str) -> None:
    """A mask against PyTorch's packed sequences, of which the states are those of each sequence's own end."""
    layer = getattr(nn, name)(FEATURES, HIDDEN, 2, bidirectional=True)
    peer = getattr(torch.nn, name)(FEATURES, HIDDEN, 2, bidirectional=True)
    p, x = filled(peer, layer), rng().standard_normal((N, BATCH, FEATURES))
    mask = np.arange(N)[:, None] < np.array(LENGTHS)

    def theirs(x: Any) -> list[Any]:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        y, state = peer(packed)
        padded, _ = torch.nn.utils.rnn.pad_packed_sequence(y)
        return [padded, *flat(state)]

    def ours(params: Any, x: Any) -> list[Any]:
        y, state = layer(params, x, mask=mask, return_state=True)
        return [y * mask[:, :, None].astype(np.float64), *flat(state)]

    compare(layer, peer, p, {"x": x}, ours, theirs)


@pytest.mark.parametrize("name", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells(name: str) -> None:
    layer, peer = getattr(nn, name)(FEATURES, HIDDEN), getattr(torch.nn, name)(FEATURES, HIDDEN)
    arrays = {"x": rng().standard_normal((BATCH, FEATURES))}
    arrays |= {f"state{i}": rng().standard_normal((BATCH, HIDDEN)) for i in range(1 + (name == "LSTMCell"))}

    def run(call: Callable[..., Any], x: Any, **state: Any) -> list[Any]:
        return flat(call(x, tuple(state.values()) if len(state) > 1 else state["state0"]))

    compare(
        layer, peer, filled(peer, layer), arrays,
        lambda params, **given: run(lambda x, s: layer(params, x, state=s), **given),
        lambda **given: run(peer, **given),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "peer", "shape"),
    [
        (nn.PReLU(), lambda: torch.nn.PReLU(), (2, 3)),
        (nn.PReLU(3), lambda: torch.nn.PReLU(3), (2, 3, 4)),
        (nn.GLU(), lambda: torch.nn.GLU(), (2, 6)),
        (nn.GLU(1), lambda: torch.nn.GLU(1), (2, 4, 3)),
    ],
)
def test_small_layers(layer: nn.Layer, peer: Callable[[], Any], shape: tuple[int, ...]) -> None:
    beside = peer()
    p = filled(beside, layer)
    x = rng().standard_normal(shape)
    compare(layer, beside, p, {"x": x}, lambda params, x: [layer(params, x)], lambda x: [beside(x)])


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(bias: bool) -> None:
    layer, peer = nn.Bilinear(3, 2, 4, bias=bias), torch.nn.Bilinear(3, 2, 4, bias=bias)
    arrays = {"x": rng().standard_normal((2, 5, 3)), "other": rng().standard_normal((2, 5, 2))}
    compare(
        layer, peer, filled(peer, layer), arrays,
        lambda params, x, other: [layer(params, x, other=other)], lambda x, other: [peer(x, other)],
    )  # fmt: skip


def divided(grads: dict[str, Any]) -> dict[str, Any]:
    """Our names for the parameters of `torch.nn.MultiheadAttention`, which multiplies from the other side."""
    found = {"wo": grads["out_proj.weight"].T, "bo": grads["out_proj.bias"]}
    if "in_proj_weight" in grads:
        weights = dict(zip("qkv", grads["in_proj_weight"].chunk(3), strict=True))
    else:
        weights = {name: grads[f"{name}_proj_weight"] for name in "qkv"}
    biases = zip("qkv", grads["in_proj_bias"].chunk(3), strict=True)
    return {**found, **{f"w{n}": w.T for n, w in weights.items()}, **{f"b{n}": b for n, b in biases}}


MASKS: dict[str, dict[str, Array]] = {
    "none": {},
    "keys": {"key_mask": np.arange(4) < np.array([[4], [2]])},
    "bools": {"mask": np.tri(3, 4, 1, dtype=np.bool_)},
    "added": {"mask": np.linspace(-2.0, 2.0, 12).reshape(3, 4)},
    "bools and keys": {"mask": np.tri(3, 4, 1, dtype=np.bool_), "key_mask": np.arange(4) < np.array([[4], [2]])},
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("widths", [{}, {"kdim": 5, "vdim": 3}])
def test_attention(masks: str, widths: dict[str, int]) -> None:
    """Its booleans say the opposite: true hides a key."""
    layer = nn.MultiHeadAttention(6, 2, **widths)  # type: ignore[arg-type]
    peer = torch.nn.MultiheadAttention(6, 2, batch_first=True, **widths).double()
    with torch.no_grad():
        for value in peer.parameters():
            value.copy_(torch.tensor(rng().standard_normal(tuple(value.shape)) / 2))
    p = {name: a.detach().numpy().copy() for name, a in divided(dict(peer.named_parameters())).items()}
    p = {name: p[name] for name in layer.parameters()}
    arrays = {"x": (2, 3, 6), "context": (2, 4, widths.get("kdim", 6)), "value": (2, 4, widths.get("vdim", 6))}
    inputs = {name: rng().standard_normal(shape) for name, shape in arrays.items()}
    given = MASKS[masks]
    mask, key_mask = given.get("mask"), given.get("key_mask")
    hidden = {
        "attn_mask": None if mask is None else torch.tensor(~mask if mask.dtype == np.bool_ else mask),
        "key_padding_mask": None if key_mask is None else torch.tensor(~key_mask),
    }
    compare(
        layer, peer, p, inputs,
        lambda params, x, **more: [layer(params, x, **more, **{n: x.tape.const(m) for n, m in given.items()})],
        lambda x, context, value: [peer(x, context, value, need_weights=False, **hidden)[0]],
        divided,
    )  # fmt: skip


def test_a_transformer_block_under_a_mask_of_keys() -> None:
    layer = nn.TransformerBlock(6, 2, 8, activation=nn.ReLU())
    peer = torch.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True, norm_first=True).double()
    with torch.no_grad():
        for value in peer.parameters():
            value.copy_(torch.tensor(rng().standard_normal(tuple(value.shape)) / 2))

    def named(values: dict[str, Any]) -> dict[str, Any]:
        inside = {n.removeprefix("self_attn."): v for n, v in values.items() if n.startswith("self_attn.")}
        return {**values, **{f"attention.{n}": v for n, v in divided(inside).items()}}

    p = {name: named(dict(peer.named_parameters()))[name].detach().numpy().copy() for name in layer.parameters()}
    seen = np.arange(5) < np.array([[5], [3]])
    x, tape = rng().standard_normal((2, 5, 6)), Tape[Any]()
    found = layer(tape.params(p), tape.const(x), key_mask=tape.const(seen)).numpy()
    expected = peer(torch.tensor(x), src_key_padding_mask=torch.tensor(~seen)).detach().numpy()
    assert np.abs(found - expected)[seen].max() < TOLERANCE * 100


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("spatial", [(7,), (3, 4), (2, 3, 4)])
def test_instance_norm_of_one_sample_is_that_of_a_batch_of_one(spatial: tuple[int, ...], affine: bool) -> None:
    layer = nn.InstanceNorm(FEATURES, affine=affine)
    peer = getattr(torch.nn, f"InstanceNorm{len(spatial)}d")(FEATURES, affine=affine)
    p, sample = filled(peer, layer), rng().standard_normal((FEATURES, *spatial))
    close(layer(p, sample[None])[0], peer(torch.tensor(sample)), "value")
    if len(spatial) == 1:
        close(layer(p, sample), peer(torch.tensor(sample)), "value")


@pytest.mark.parametrize("spatial", [(1,), (1, 1)])
def test_instances_of_one_element_are_refused_by_both(spatial: tuple[int, ...]) -> None:
    x = np.ones((2, FEATURES, *spatial))
    with pytest.raises(ValueError, match="Expected more than 1 spatial element"):
        getattr(torch.nn, f"InstanceNorm{len(spatial)}d")(FEATURES)(torch.tensor(x))
    with pytest.raises(ShapeError, match="expected at least 2 elements of each channel in a sample"):
        nn.InstanceNorm(FEATURES)({}, x)
