"""Multi-head attention as a layer: its parameters, what it computes, its dropout."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import Context, DomainError, Random, ShapeError, Tape, gradcheck, nn, ops
from dgrr.tape.numerics.math.random import uniform

rng = np.random.default_rng(0)
X, CONTEXT = rng.standard_normal((2, 5, 6)), rng.standard_normal((2, 4, 6))
MASK = rng.random((5, 5)) < 0.6
MASK[2] = False  # a query that may see nothing


def parameters(layer: nn.Layer) -> dict[str, npt.NDArray[Any]]:
    """Fresh ones, with biases that do something."""
    p = layer.init(1, np.float64)
    return {name: rng.standard_normal(x.shape) if name.startswith("b") else x for name, x in p.items()}


def projected(p: dict[str, Any], name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    y: npt.NDArray[Any] = x @ p[f"w{name}"] + p.get(f"b{name}", 0.0)
    return y


def attention(
    p: dict[str, Any], x: Any, heads: int, keep: Any = None, source: Any = None, factor: Any = 1.0
) -> npt.NDArray[Any]:
    """Head by head, as Vaswani et al. (2017) write it; ``factor`` multiplies the weights."""
    source = x if source is None else source
    q, k, v = projected(p, "q", x), projected(p, "k", source), projected(p, "v", source)
    width, outputs = x.shape[-1] // heads, []
    for h in range(heads):
        part = slice(h * width, (h + 1) * width)
        e = np.exp(q[..., part] @ k[..., part].swapaxes(-1, -2) / np.sqrt(width))
        e = e if keep is None else e * keep
        total = e.sum(-1, keepdims=True)
        weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
        weights = weights * (factor if isinstance(factor, float) else factor[:, h])
        outputs.append(weights @ v[..., part])
    return projected(p, "o", np.concatenate(outputs, -1))


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_what_attention_computes(run: Any, heads: int, bias: bool, causal: bool) -> None:
    layer = nn.MultiHeadAttention(6, heads, bias=bias, causal=causal)
    p, triangle = parameters(layer), np.tri(5, dtype=bool)
    for keep in (None, MASK):
        both = triangle if keep is None and causal else keep & triangle if causal else keep
        more = {} if keep is None else {"mask": keep}
        for x in (X, X[0]):
            assert run(layer, p, x, **more) == pytest.approx(attention(p, x, heads, both), rel=1e-10, abs=1e-12)


def test_cross_attention(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 2)
    p, keep = parameters(layer), rng.random((2, 5, 4)) < 0.7
    assert run(layer, p, X, context=CONTEXT) == pytest.approx(attention(p, X, 2, source=CONTEXT), rel=1e-10)
    masked = run(layer, p, X, context=CONTEXT, mask=keep)
    assert masked == pytest.approx(attention(p, X, 2, keep, CONTEXT), rel=1e-10, abs=1e-12)


def test_it_is_the_op_to_the_bit(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 3, causal=True)
    p, tape = parameters(layer), Tape[Any]()
    v = tape.params(p)
    names = (v[f"b{name}"] for name in "qkvo")
    expected = ops.multi_head_attention(
        tape.const(X), v["wq"], v["wk"], v["wv"], v["wo"], 3, tape.const(MASK), True, *names
    )
    assert run(layer, p, X, mask=MASK).tobytes() == expected.numpy().tobytes()


def test_dropout_is_that_of_the_weights(run_with: Any) -> None:
    layer = nn.MultiHeadAttention(6, 2, dropout=0.4)
    p = parameters(layer)
    kept = uniform((2, 2, 5, 5), np.float32, seed=8, step=3) >= np.float32(0.4)
    y, _ = run_with(layer, p, X, seed=8, step=3)
    assert y == pytest.approx(attention(p, X, 2, factor=kept / 0.6), rel=1e-10)
    evaluated, _ = run_with(layer, p, X, training=False)
    assert evaluated == pytest.approx(attention(p, X, 2), rel=1e-10)


def test_gradients_through_masked_attention_with_dropout() -> None:
    layer = nn.MultiHeadAttention(4, 2, dropout=0.3, causal=True)
    p = parameters(layer)

    def function(x: Any, *values: Any) -> Any:
        ctx = Context(training=True, random=Random(x.tape.const(np.array(0))))
        return layer(dict(zip(p, values, strict=True)), x, ctx)

    check = gradcheck(function, X[:1, :3, :4], *p.values())
    assert check.ok, str(check)


def test_names_shapes_and_starts() -> None:
    """Weights Xavier-uniform on their own, biases 0."""
    layer = nn.MultiHeadAttention(24, 4)
    p, bound = layer.init(2), (6 / 48) ** 0.5
    assert [(name, x.shape) for name, x in p.items()] == [
        *((f"w{name}", (24, 24)) for name in "qkvo"),
        *((f"b{name}", (24,)) for name in "qkvo"),
    ]
    for name in "qkvo":
        assert 0.95 * bound < abs(p[f"w{name}"]).max() <= bound
        assert not p[f"b{name}"].any()
    assert list(nn.MultiHeadAttention(24, 4, bias=False).init(2)) == ["wq", "wk", "wv", "wo"]


def test_what_is_missing_or_does_not_fit(run: Any) -> None:
    layer = nn.MultiHeadAttention(6, 2)
    p = layer.init(0, np.float64)
    with pytest.raises(
        ShapeError, match=r"^multi_head_attention: argument 'wq': expected shape \(4, K\), got \(6, 6\)$"
    ):
        run(layer, p, X[..., :4])
    with pytest.raises(
        ShapeError,
        match=r"^multi_head_attention: argument 'mask': expected a shape that can be repeated to \(2, 5, 5\)",
    ):
        run(layer, p, X, mask=MASK[:4])
    del p["bk"]
    with pytest.raises(
        DomainError, match=r"^MultiHeadAttention\(.*\): argument 'p': expected a parameter 'bk', got 'wq'"
    ):
        run(layer, p, X)
