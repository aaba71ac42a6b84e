"""Generation: the bits of whole sequences, draws that are distributed, and what a model must be for it."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Generator, Trainer
from dgrr.tape import Context, DomainError, ShapeError, Tape, nn, ops
from dgrr.tape.nn.context import PlaceInSequence

CLASSES, WIDTH, LENGTH = 7, 8, 24


def model(positions: nn.Layer, **options: Any) -> nn.Sequential:
    return nn.Sequential(
        nn.Embedding(CLASSES, WIDTH),
        positions,
        nn.TransformerBlock(WIDTH, 4, 16, causal=True, **options),
        nn.TransformerBlock(WIDTH, 4, 16, causal=True, pre_norm=False, dropout=0.5),
        nn.LayerNorm(WIDTH),
        nn.Linear(WIDTH, CLASSES),
    )


MODELS = [
    model(nn.LearnedPositions(LENGTH, WIDTH)),
    model(nn.SinusoidalPositions(), num_kv_heads=2, window=5),
    model(nn.SinusoidalPositions(50.0), softcap=3.0),
    model(nn.Identity(), rotary=nn.Rotary()),
    model(nn.Identity(), num_kv_heads=2, window=7, rotary=nn.Rotary(100.0, interleaved=True)),
]


def whole(layers: Any, params: Any, tokens: Any) -> Any:
    """The logits of all places, of the sequence at once."""
    return layers(params, tokens)


@pytest.mark.parametrize("layers", MODELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_token_is_the_likeliest_of_the_whole_sequence(layers: Any, dtype: Any) -> None:
    params = {name: a + np.random.default_rng(0).standard_normal(a.shape) / 2 for name, a in layers.init(0).items()}
    params = {name: a.astype(dtype) for name, a in params.items()}
    start = np.array([[1, 2, 3], [4, 0, 6]])
    tokens = Generator(layers, params, LENGTH)(start, LENGTH - 3)
    assert tokens.shape == (2, LENGTH) and (tokens[:, :3] == start).all()
    for n in range(3, LENGTH):
        assert (tokens[:, n] == whole(layers, params, tokens[:, :n])[:, -1].argmax(-1)).all()
    assert len(set(tokens.ravel().tolist())) > 2


@pytest.mark.parametrize("layers", MODELS)
def test_logits_have_the_bits_of_the_whole_sequence(layers: Any) -> None:
    params, rng = layers.init(0), np.random.default_rng(1)
    tokens, tape = rng.integers(0, CLASSES, (3, LENGTH)), Tape[Any]()
    generator = Generator(layers, params, LENGTH)
    state = {name: tape.const(a) for name, a in generator._empty(3).items()}  # pyright: ignore[reportPrivateUsage]
    expected = whole(layers, params, tokens)
    for n in range(LENGTH):
        ctx = Context(state=state, place=PlaceInSequence(tape.const(np.array(n)), LENGTH))
        logits = layers(tape.params(params), tape.const(tokens[:, n : n + 1]), ctx)
        assert logits.numpy()[:, 0].tobytes() == expected[:, n].tobytes()
        state = dict(ctx.state)


def test_drawn_tokens_are_distributed_as_the_softmax_says_and_drawn_again_alike() -> None:
    layers: Any = nn.Sequential(nn.Embedding(3, 3))
    logits = np.array([[0.0, 1.0, 2.0]] * 3)
    generate = Generator(layers, {"0.weight": logits}, 400, temperature=2.0, seed=3)
    tokens = generate(np.zeros((50, 1), np.int64), 399)[:, 1:]
    chances = np.exp(logits[0] / 2) / np.exp(logits[0] / 2).sum()
    np.testing.assert_allclose(np.bincount(tokens.ravel()) / tokens.size, chances, atol=0.02)
    again = Generator(layers, {"0.weight": logits}, 400, temperature=2.0, seed=3)
    assert (again(np.zeros((50, 1), np.int64), 399)[:, 1:] == tokens).all()
    other = Generator(layers, {"0.weight": logits}, 400, temperature=2.0, seed=4)
    assert (other(np.zeros((50, 1), np.int64), 399)[:, 1:] != tokens).any()


def test_parameters_are_read_as_they_are_now() -> None:
    layers: Any = nn.Sequential(nn.Embedding(3, 3))

    def loss_fn(p: Any, batch: Any) -> Any:
        return ops.cross_entropy(layers(p, batch[0]), batch[1])

    trainer = Trainer(loss_fn, {"0.weight": np.eye(3)}, SGD(20.0))
    generate = Generator(layers, trainer.params, 4)
    assert generate([[0]], 3).tolist() == [[0, 0, 0, 0]]
    trainer.fit([(np.array([0, 1, 2]), np.array([1, 2, 0]))], epochs=5)
    assert generate([[0]], 3).tolist() == [[0, 1, 2, 0]]


@pytest.mark.parametrize(
    ("start", "count", "error", "text"),
    [
        (
            [1, 2],
            1,
            ShapeError,
            "expected whole numbers of shape (batch, n) with n of at least 1, got int64 of shape (2,)",
        ),
        (np.zeros((1, 0), int), 1, ShapeError, "with n of at least 1, got int64 of shape (1, 0)"),
        ([[1.0]], 1, ShapeError, "got float64 of shape (1, 1)"),
        ([[1, 2]], 23, DomainError, "Generator: argument 'count': expected 0 to 22, as the length is 24, got 23"),
        ([[1, 2]], -1, DomainError, "got -1"),
    ],
)
def test_what_a_call_refuses(start: Any, count: int, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        Generator(MODELS[0], MODELS[0].init(0), LENGTH)(start, count)
    assert text in str(caught.value)


def test_what_is_refused() -> None:
    with pytest.raises(DomainError, match="^Generator: argument 'length': expected at least 1, got 0$"):
        Generator(MODELS[0], {}, 0)
    with pytest.raises(
        DomainError, match="^Generator: argument 'temperature': expected a finite number of at least 0, "
    ):
        Generator(MODELS[0], {}, 3, temperature=-1.0)
    layers: Any = nn.Sequential(nn.Embedding(5, 8), nn.TransformerBlock(8, 2, 16), nn.Linear(8, 5))
    with pytest.raises(DomainError, match="expected causal attention, and one place of x, where keys and values"):
        Generator(layers, layers.init(0), 4)([[1]], 2)
    assert Generator(MODELS[0], MODELS[0].init(0), 4)([[1, 2]], 0).tolist() == [[1, 2]]
