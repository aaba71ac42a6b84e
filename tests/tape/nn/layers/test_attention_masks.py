"""Attention under masks of every shape, with shared heads, windows and caps, against plain numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import DomainError, Tape, gradcheck, nn, ops

from .test_attention import MASK, X, attention, parameters, projected, rng

SEEN = np.arange(5) < np.array([[5], [3]])
"""Which of the five places of two sequences are there."""
CAUSAL = np.tri(5, dtype=bool)
NEAR = np.abs(np.arange(5)[:, None] - np.arange(5)) < 2
MASKS: dict[str, tuple[dict[str, Any], dict[str, Any], npt.NDArray[Any]]] = {
    "(L, S)": ({}, {"mask": MASK}, MASK),
    "(S,)": ({}, {"mask": SEEN[1]}, SEEN[1]),
    "(1, S)": ({}, {"mask": SEEN[1:]}, SEEN[1:]),
    "(B, 1, S)": ({}, {"mask": SEEN[:, None]}, SEEN[:, None]),
    "(B, L, S)": ({}, {"mask": MASK & SEEN[:, None]}, MASK & SEEN[:, None]),
    "(B, 1, L, S)": ({}, {"mask": (MASK & SEEN[:, None])[:, None]}, MASK & SEEN[:, None]),
    "keys, (B, S)": ({}, {"key_mask": SEEN}, SEEN[:, None]),
    "(L, S) and keys": ({}, {"mask": MASK, "key_mask": SEEN}, MASK & SEEN[:, None]),
    "causal and (L, S)": ({"causal": True}, {"mask": MASK}, MASK & CAUSAL),
    "window": ({"window": 2}, {}, NEAR),
    "all": ({"causal": True, "window": 2}, {"mask": MASK, "key_mask": SEEN}, MASK & CAUSAL & NEAR & SEEN[:, None]),
    "-inf": ({}, {"mask": np.where(MASK, 0.0, -np.inf)}, MASK),
    "-inf and the rest": (
        {"causal": True, "window": 2},
        {"mask": np.where(MASK, 0.0, -np.inf)[None, None], "key_mask": SEEN},
        MASK & CAUSAL & NEAR & SEEN[:, None],
    ),
}


@pytest.mark.parametrize("kind", MASKS)
def test_masks_of_every_shape(run: Any, kind: str) -> None:
    options, given, keep = MASKS[kind]
    layer = nn.MultiHeadAttention(6, 3, **options)
    p = parameters(layer)
    expected = attention(p, X, 3, np.broadcast_to(keep, (2, 5, 5)))
    assert run(layer, p, X, **given) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    block = nn.TransformerBlock(6, 3, 4, **options)
    params = block.init(0, np.float64)
    whole = {"mask": np.broadcast_to(keep, (2, 5, 5))[:, None]}
    plain = nn.TransformerBlock(6, 3, 4)
    assert run(block, params, X, **given) == pytest.approx(run(plain, params, X, **whole), rel=1e-12)


def test_a_mask_for_each_head(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 2)
    p, masks = {**parameters(layer), "wo": np.eye(6), "bo": np.zeros(6)}, np.stack([MASK, CAUSAL])
    whole = [run(layer, p, X, mask=mask) for mask in masks]
    found = run(layer, p, X, mask=masks[None])
    assert found[..., :3].tobytes() == whole[0][..., :3].tobytes()
    assert found[..., 3:].tobytes() == whole[1][..., 3:].tobytes()


@pytest.mark.parametrize("mask", [np.zeros((5, 5), bool), np.full((5, 5), -np.inf)])
def test_a_row_that_sees_nothing_gets_zeros_and_has_no_gradient(mask: npt.NDArray[Any]) -> None:
    layer = nn.MultiHeadAttention(6, 2, bias=False)
    tape, p = Tape[Any](), layer.init(0, np.float64)
    params, x = tape.params(p), tape.leaf(X)
    y = layer(params, x, mask=tape.const(mask))
    assert not y.numpy().any()
    grads = tape.backward_scalar(ops.reduce_sum(y))
    assert not np.asarray(grads[x]).any() and np.isfinite(np.asarray(grads[params["wq"]])).all()


def test_an_added_mask_has_a_gradient() -> None:
    layer = nn.MultiHeadAttention(4, 2, softcap=1.5)
    p = parameters(layer)

    def function(mask: Any) -> Any:
        return layer(mask.tape.params(p), mask.tape.const(X[:, :3, :4]), mask=mask)

    check = gradcheck(function, rng.standard_normal((2, 1, 3, 3)))
    assert check.ok, str(check)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_shared_keys_and_values_are_repeated_ones(run: Any, groups: int) -> None:
    layer, whole = nn.MultiHeadAttention(6, 6, num_kv_heads=groups), nn.MultiHeadAttention(6, 6)
    p = parameters(layer)
    assert p["wk"].shape == (6, groups) and p["bv"].shape == (groups,)
    wide = {**p, **{n: np.repeat(p[n], 6 // groups, -1) for n in ("wk", "wv", "bk", "bv")}}
    assert run(layer, p, X, mask=MASK).tobytes() == run(whole, wide, X, mask=MASK).tobytes()


def test_a_cap_bounds_the_scores(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 1, softcap=0.5)
    p = parameters(layer)
    scores = projected(p, "q", X) @ projected(p, "k", X).swapaxes(-1, -2) / np.sqrt(6)
    e = np.exp(0.5 * np.tanh(scores / 0.5)) * MASK
    total = e.sum(-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    expected = projected(p, "o", weights @ projected(p, "v", X))
    assert run(layer, p, X, mask=MASK) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_keys_and_values_of_other_widths(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 2, kdim=3, vdim=2)
    p, keys, values = parameters(layer), rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 4, 2))
    assert (p["wk"].shape, p["wv"].shape) == ((3, 6), (2, 6))
    wide = {**p, "wk": np.concatenate([p["wk"], np.zeros((2, 6))]), "wv": np.concatenate([np.zeros((3, 6)), p["wv"]])}
    both = np.concatenate([keys, values], -1)
    expected = run(nn.MultiHeadAttention(6, 2, kdim=5, vdim=5), wide, X, context=both)
    assert run(layer, p, X, context=keys, value=values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.MultiHeadAttention(8, 4, num_kv_heads=3),
         "MultiHeadAttention: argument 'num_heads': expected a multiple of num_kv_heads 3, got 4"),
        (lambda: nn.MultiHeadAttention(8, 4, kdim=0),
         "MultiHeadAttention: argument 'kdim': expected an int of at least 1, got 0"),
        (lambda: nn.MultiHeadAttention(8, 4, window=0),
         "MultiHeadAttention: argument 'window': expected at least 1 or None, got 0"),
        (lambda: nn.TransformerBlock(8, 4, 8, softcap=-1.0),
         "MultiHeadAttention: argument 'softcap': expected a positive finite number or None, got -1.0"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(make: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value) == text
