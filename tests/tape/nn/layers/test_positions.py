"""Positional encodings: the tables, and that rotary attention depends on distances alone."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, ShapeError, Tape, nn, ops

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 5, 6))


def test_the_sinusoidal_table(run: Any) -> None:
    angles = np.arange(5)[:, None] / 100.0 ** (np.arange(3) / 3)
    expected = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(5, 6)
    assert run(nn.SinusoidalPositions(100.0), {}, X) == pytest.approx(X + expected, abs=1e-14)
    single = run(nn.SinusoidalPositions(100.0), {}, np.zeros((5, 6), np.float32))
    assert single.tobytes() == run(nn.SinusoidalPositions(100.0), {}, np.zeros((5, 6))).astype(np.float32).tobytes()


def test_learned_positions_are_rows_of_a_table(run: Any) -> None:
    layer = nn.LearnedPositions(8, 6)
    p = layer.init(0, np.float64)
    assert p["weight"].shape == (8, 6) and 0.01 < p["weight"].std() < 0.03
    assert run(layer, p, X).tobytes() == (X + p["weight"][:5]).tobytes()


@pytest.mark.parametrize("interleaved", [False, True])
def test_products_of_turned_vectors_depend_on_their_distance(interleaved: bool) -> None:
    layer, tape = nn.Rotary(50.0, interleaved=interleaved), Tape[Any]()
    one, other = (np.broadcast_to(x, (7, 6)) for x in rng.standard_normal((2, 6)))
    scores = np.asarray(layer({}, tape.const(one)).numpy()) @ np.asarray(layer({}, tape.const(other)).numpy()).T
    for distance in range(-6, 7):
        along = np.diagonal(scores, distance)
        assert along == pytest.approx(np.full(along.shape, along[0]))
    assert scores[0, 0] == pytest.approx(one[0] @ other[0])
    assert abs(scores[0, 1] - scores[0, 0]) > 1e-3


def test_pairs_are_halves_or_neighbours() -> None:
    tape = Tape[Any]()
    order = [0, 2, 4, 1, 3, 5]  # neighbours become halves
    turned = nn.Rotary(interleaved=True)({}, tape.const(X)).numpy()
    assert turned[..., order].tobytes() == nn.Rotary()({}, tape.const(X[..., order])).numpy().tobytes()


def test_an_offset_goes_on_where_a_cache_ends() -> None:
    tape = Tape[Any]()
    whole = ops.rotary(tape.const(X)).numpy()
    assert ops.rotary(tape.const(X[:, 3:]), offset=3).numpy().tobytes() == whole[:, 3:].tobytes()


def test_attention_turns_queries_and_keys_but_not_values(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 1, rotary=nn.Rotary(20.0))
    p, tape = layer.init(0, np.float64), Tape[Any]()
    v = tape.params(p)
    q, k, value = (ops.matmul(tape.const(X), v[f"w{n}"]) + v[f"b{n}"] for n in "qkv")
    mixed = ops.scaled_dot_product_attention(ops.rotary(q, 20.0), ops.rotary(k, 20.0), value)
    expected = (ops.matmul(mixed, v["wo"]) + v["bo"]).numpy()
    assert run(layer, p, X) == pytest.approx(expected, abs=1e-14)
    assert np.abs(run(nn.MultiHeadAttention(6, 1), p, X) - expected).max() > 1e-3


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda run: run(nn.LearnedPositions(4, 6), {"weight": np.ones((4, 6))}, X), ShapeError,
         r"^LearnedPositions: argument 'x': expected shape \(\*Bs, n, 6\) with n of at most 4, got \(2, 5, 6\)$"),
        (lambda run: run(nn.SinusoidalPositions(), {}, X[..., :5]), ShapeError,
         r"^SinusoidalPositions: argument 'x': expected shape \(\*Bs, n, size\) with an even size, got \(2, 5, 5\)$"),
        (lambda run: run(nn.Rotary(), {}, X[..., :5]), ShapeError,
         r"^rotary: argument 'x': expected an even number of features, got shape \(2, 5, 5\)$"),
        (lambda run: nn.Rotary(0.0), DomainError,
         r"^Rotary: argument 'base': expected a positive finite number, got 0.0$"),
        (lambda run: nn.SinusoidalPositions(-1.0), DomainError,
         r"^SinusoidalPositions: argument 'base': expected a positive finite number, got -1.0$"),
        (lambda run: nn.MultiHeadAttention(6, 2, rotary=nn.Rotary()), DomainError,
         r"^MultiHeadAttention: argument 'embed_dim': expected an even number of features for each head, which "),
    ],
)  # fmt: skip
def test_what_does_not_fit(run: Any, make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make(run)
