"""The transformer block, against the ops it is made of, and a small model of it that learns."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import Context, DomainError, Random, Tape, gradcheck, nn, ops
from dgrr.tape.var.var import AnyVar

X = np.random.default_rng(0).standard_normal((2, 5, 6))
PARTS = ["norm1", "attention", "norm2", "linear1", "linear2"]


def composed(
    p: dict[str, AnyVar], x: AnyVar, random: Random, *, dropout: float, causal: bool, pre_norm: bool
) -> AnyVar:
    """The block of two heads by ops alone."""

    def normed(name: str, x: AnyVar) -> AnyVar:
        return ops.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])

    def split(name: str, x: AnyVar) -> AnyVar:
        y = ops.matmul(x, p[f"attention.w{name}"]) + p[f"attention.b{name}"]
        return ops.swapaxes(ops.reshape(y, (2, 5, 2, 3)), 1, 2)

    def drop(x: AnyVar) -> AnyVar:
        return random.dropout(x, dropout) if dropout else x

    def attend(x: AnyVar) -> AnyVar:
        weights = drop(ops.attention_weights(split("q", x), split("k", x), None, causal))
        y = ops.reshape(ops.swapaxes(ops.matmul(weights, split("v", x)), 1, 2), (2, 5, 6))
        return drop(ops.matmul(y, p["attention.wo"]) + p["attention.bo"])

    def feed_forward(x: AnyVar) -> AnyVar:
        hidden = drop(ops.gelu(ops.linear(x, p["linear1.weight"], p["linear1.bias"])))
        return drop(ops.linear(hidden, p["linear2.weight"], p["linear2.bias"]))

    if pre_norm:
        x = x + attend(normed("norm1", x))
        return x + feed_forward(normed("norm2", x))
    x = normed("norm1", x + attend(x))
    return normed("norm2", x + feed_forward(x))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("pre_norm", [True, False])
def test_the_block_is_its_ops_to_the_bit(run_with: Any, dropout: float, causal: bool, pre_norm: bool) -> None:
    block = nn.TransformerBlock(6, 2, 9, dropout, causal=causal, pre_norm=pre_norm)
    params = block.init(3, np.float64)
    params = {n: x + 0.1 * np.arange(x.size).reshape(x.shape) / x.size for n, x in params.items()}
    tape: Tape[Any] = Tape()
    random = Random(tape.const(np.array(7)), seed=2)
    expected = composed(tape.params(params), tape.const(X), random, dropout=dropout, causal=causal, pre_norm=pre_norm)
    y, _ = run_with(block, params, X, seed=2, step=7)
    assert y.tobytes() == expected.numpy().tobytes()


def test_the_activation_is_a_layer(run: Any) -> None:
    """One with parameters counts as a part like any other."""
    block = nn.TransformerBlock(6, 2, 4, activation=nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    params = block.init(0, np.float64)
    assert [name for name in params if name.startswith("activation")] == ["activation.0.weight", "activation.0.bias"]
    zeros = params | {"activation.0.weight": np.zeros((4, 4)), "activation.0.bias": -np.ones(4)}
    silent = params | {"linear2.weight": np.zeros((6, 4))}
    assert run(block, zeros, X).tobytes() == run(block, silent, X).tobytes()
    assert run(block, params, X).tobytes() != run(block, silent, X).tobytes()


def test_names_of_parameters() -> None:
    block = nn.TransformerBlock(6, 2, 9)
    names = list(block.parameters())
    assert list(dict.fromkeys(name.split(".")[0] for name in names)) == PARTS
    assert block.init(0)["linear1.weight"].shape == (9, 6)
    assert block.init(0)["linear2.weight"].shape == (6, 9)
    assert len(names) == 2 + 8 + 2 + 2 + 2


def test_gradients_through_a_block() -> None:
    block = nn.TransformerBlock(4, 2, 3, 0.2, causal=True)
    p = block.init(1, np.float64)

    def function(x: Any) -> Any:
        ctx = Context(training=True, random=Random(x.tape.const(np.array(0))))
        return block(x.tape.params(p), x, ctx)

    check = gradcheck(function, X[:1, :3, :4])
    assert check.ok, str(check)


def test_a_context_is_needed_for_dropout_alone(run: Any) -> None:
    block = nn.TransformerBlock(6, 2, 9)
    assert run(block, block.init(0, np.float64), X).shape == X.shape
    dropping = nn.TransformerBlock(6, 2, 9, dropout=0.1)
    text = r"^attention: MultiHeadAttention\(.*\): argument 'ctx': expected a Context, got None"
    with pytest.raises(DomainError, match=text):
        run(dropping, block.init(0, np.float64), X)


def test_causal_blocks_look_back_only(run: Any) -> None:
    model = nn.Sequential(*(nn.TransformerBlock(6, 3, 8, causal=True) for _ in range(2)))
    params = model.init(0, np.float64)
    changed = X.copy()
    changed[:, 3, 0] += 1
    before, after = run(model, params, X), run(model, params, changed)
    assert before[:, :3].tobytes() == after[:, :3].tobytes()
    assert np.all(before[:, 3:] != after[:, 3:])
