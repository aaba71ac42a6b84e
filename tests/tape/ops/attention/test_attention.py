"""Attention: one test for each decision, beside the properties that hold for all ops."""

# Lambdas and captured steps carry no types.
# pyright: basic
from collections import Counter
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, CapturedStep
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import AnyTensor, ShapeError, Tape, TapeError, gradcheck, ops
from dgrr.tape.numerics.math.exact import inverse_root
from dgrr.tape.record.samples import Make

from ..properties.cases import assert_same_bits

Array = npt.NDArray[Any]
FLOATS = (np.float32, np.float64)


def drawn(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[Array]:
    make = Make(dtype)
    return [make(*shape) for shape in shapes]


def weights(query: Array, key: Array, mask: Array | None = None, **attrs: Any) -> Array:
    out: Any = ops.attention_weights(*(None if a is None else AnyTensor(a.copy()) for a in (query, key, mask)), **attrs)
    return out.array


def attended(inputs: list[Array], mask: Array | None = None, seed: Array | None = None, **attrs: Any) -> list[Array]:
    """The result of scaled_dot_product_attention and the gradients by query, key and value."""
    tape: Tape[Any] = Tape()
    leaves = [tape.leaf(a) for a in inputs]
    out = ops.scaled_dot_product_attention(*leaves, None if mask is None else tape.const(mask), **attrs)
    grads = tape.backward_dense(out, Make(inputs[0].dtype, seed=1)(*out.shape) if seed is None else seed)
    return [out.numpy(), *(np.asarray(grads[x]) for x in leaves)]


# ------------------------------------------------------------------ which keys are seen


def test_true_keeps_a_key() -> None:
    query, key = drawn((2, 3), (4, 3))
    mask = np.array([[True, False, False, False], [False, True, True, False]])
    found = weights(query, key, mask)
    assert found[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.array_equal(found > 0, mask)


def test_a_query_that_may_see_no_key_has_no_output_and_no_gradient() -> None:
    inputs, (seed,) = drawn((3, 4), (5, 4), (5, 6)), drawn((3, 6))
    mask = np.ones((3, 5), np.bool_)
    mask[2] = False
    out, by_query, *others = attended(inputs, mask, seed)
    assert out[2].tobytes() == bytes(out[2].nbytes)  # +0
    assert not by_query[2].any()
    kept = [inputs[0][:2], *inputs[1:]]
    for got, alone in zip((out[:2], by_query[:2], *others), attended(kept, seed=seed[:2]), strict=True):
        assert np.allclose(got, alone, rtol=1e-14)


@pytest.mark.parametrize("queries", [1, 5, 70])
@pytest.mark.parametrize("keys", [1, 5, 70])
@pytest.mark.parametrize("dtype", FLOATS)
def test_causal_is_the_lower_triangle_as_a_mask_to_the_bit(queries: int, keys: int, dtype: Any) -> None:
    inputs = drawn((2, queries, 3), (2, keys, 3), (2, keys, 2), dtype=dtype)
    triangle = np.tril(np.ones((queries, keys), np.bool_))
    for got, expected in zip(attended(inputs, is_causal=True), attended(inputs, triangle), strict=True):
        assert_same_bits(got, expected, f"{queries} queries, {keys} keys")


def test_mask_and_causal_both_apply() -> None:
    query, key = drawn((6, 3), (6, 3))
    mask = Make(np.float64, seed=5).mask(6, 6)
    both = weights(query, key, mask, is_causal=True)
    assert_same_bits(both, weights(query, key, mask & np.tril(np.ones((6, 6), np.bool_))), "both")
    assert np.array_equal(both > 0, np.tril(mask))


def test_one_mask_serves_the_batch_as_if_it_were_repeated() -> None:
    query, key = drawn((2, 3, 4, 5), (2, 3, 6, 5))
    mask = Make(np.float64, seed=2).mask(4, 6)
    repeated = np.broadcast_to(mask, (2, 3, 4, 6))
    assert_same_bits(weights(query, key, mask), weights(query, key, repeated), "a mask of (L, S)")


def test_a_masked_score_has_no_part_in_the_maximum() -> None:
    query, key = np.array([[1.0]], np.float32), np.array([[-2000.0], [2000.0], [-2001.0]], np.float32)
    found = weights(query, key, np.array([[True, False, True]]))
    assert np.allclose(found, [[0.7310586, 0.0, 0.2689414]])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_weight_is_no_sooner_zero_than_that_of_softmax(dtype: Any, masked: bool) -> None:
    lowest = np.concatenate([[0.0], np.arange(-106.0, -80.0, 0.5), np.arange(-747.0, -700.0, 0.5)]).astype(dtype)
    found = weights(np.ones((1, 1), dtype), lowest[:, None], np.ones((1, lowest.size), np.bool_) if masked else None)
    plain: Any = ops.softmax(AnyTensor(lowest[None]))  # type: ignore[arg-type]
    assert_same_bits(found, plain.array, "scores near the end of the exponential")
    assert 0 < (found > 0).sum() < lowest.size


@pytest.mark.parametrize("hidden", [np.nan, np.inf])
def test_what_is_masked_cannot_be_seen_in_the_weights(hidden: float) -> None:
    query, key = drawn((2, 3), (4, 3))
    mask = np.array([[True, True, False, True]] * 2)
    plain = weights(query, key, mask)
    key[2, 1] = hidden
    assert_same_bits(weights(query, key, mask), plain, "a masked key")


def test_a_nan_fills_the_kept_weights_of_its_rows_alone() -> None:
    query, key = drawn((3, 2), (4, 2))
    query[1, 0] = np.nan
    mask = np.array([[True, False, True, True]] * 3)
    assert np.array_equal(np.isnan(weights(query, key, mask)), mask & [[False], [True], [False]])
    seen = np.tril(np.ones((3, 4), np.bool_))
    assert np.array_equal(np.isnan(weights(query, key, is_causal=True)), seen & [[False], [True], [False]])


def test_without_keys_the_output_is_zero() -> None:
    out, by_query, *_ = attended(drawn((2, 3, 4), (2, 0, 4), (2, 0, 5)))
    assert out.shape == (2, 3, 5)
    assert not out.any()
    assert not by_query.any()


# ------------------------------------------------------------------ the scale


def test_the_default_scale_is_the_inverse_root_rounded_once() -> None:
    with localcontext() as context:
        context.prec = 60
        for n in (*range(1, 3000), 2**31 - 1, 2**64 - 1, 10**30, 4**60):
            assert inverse_root(n) == float(1 / Decimal(n).sqrt()), n


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("features", [0, 1, 3, 7])
def test_the_default_scale_is_that_of_the_features(features: int, dtype: Any) -> None:
    query, key = drawn((4, features), (5, features), dtype=dtype)
    expected = weights(query, key, scale=inverse_root(features) if features else 1.0)
    assert_same_bits(weights(query, key), expected, "default")


@pytest.mark.parametrize("scale", [0.0, -0.0, -2.5, 1e-30, 3, 1e30])
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_scale_gives_the_bits_of_a_mask_that_keeps_all(scale: float, dtype: Any) -> None:
    """Without a mask the maximum is found before the scores are scaled."""
    query, key = drawn((5, 3), (70, 3), dtype=dtype)
    everything = np.ones((5, 70), np.bool_)
    assert_same_bits(weights(query, key, scale=scale), weights(query, key, everything, scale=scale), f"{scale}")


def test_scores_are_scaled_behind_their_sums() -> None:
    query, key = drawn((4, 300), (5, 300), dtype=np.float32)
    scaled = ops.softmax(ops.scale(ops.matmul(AnyTensor(query), AnyTensor(key.T)), 0.1))  # type: ignore[arg-type]
    assert_same_bits(weights(query, key, scale=0.1), np.asarray(scaled), "one product behind the sum")
    early = ops.softmax(ops.matmul(ops.scale(AnyTensor(query), 0.1), AnyTensor(key.T)))  # type: ignore[arg-type]
    assert (np.asarray(early) != weights(query, key, scale=0.1)).any()


# ------------------------------------------------------------------ what the tape and the plan hold


def test_the_weights_are_a_node_and_their_product_is_the_output(tape: Tape[Any]) -> None:
    query, key, value = (tape.leaf(a) for a in drawn((2, 3, 4), (2, 5, 4), (2, 5, 6)))
    out = ops.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert [node.op_name for node in tape][3:] == ["attention_weights", "matmul"]
    again = ops.matmul(ops.attention_weights(query, key, is_causal=True), value)
    assert_same_bits(out.numpy(), again.numpy(), "composed by hand")


def kernels_of(loss: Any, params: dict[str, Array], batch: dict[str, Array]) -> Counter[str]:
    """How often each kernel runs in the captured step."""
    made = CapturedStep(loss, params, Recipe(SGD(0.1)))
    made(batch)
    return Counter(op.kernel.name for op in made.lowered.ops)


def test_a_captured_step_computes_weights_and_their_gradient_once() -> None:
    params = dict(zip("qkv", drawn((2, 3, 4), (2, 5, 4), (2, 5, 6)), strict=True))

    def loss(p: Any, batch: Any) -> Any:
        return ops.reduce_sum(ops.square(ops.scaled_dot_product_attention(p["q"], p["k"], p["v"], batch["mask"])))

    found = kernels_of(loss, params, {"mask": Make(np.float64).mask(3, 5)})
    assert found["masked_softmax"] == found["scaled_softmax_grad"] == 1
    assert found["gemm"] == 6


def test_the_heads_are_read_where_they_lie() -> None:
    """The heads' results are put side by side by a copy, and so are the gradients by query, key and value."""
    params = dict(zip(("x", "wq", "wk", "wv", "wo"), drawn((2, 3, 4), *[(4, 4)] * 4), strict=True))

    def loss(p: Any, batch: Any) -> Any:
        return ops.reduce_sum(ops.mul(ops.multi_head_attention(**p, num_heads=2, is_causal=True), batch["seed"]))

    assert kernels_of(loss, params, {"seed": drawn((2, 3, 4))[0]})["copy"] == 4


# ------------------------------------------------------------------ several heads

SHAPES = {"x": (2, 3, 4), "wq": (4, 6), "wk": (4, 6), "wv": (4, 6), "wo": (6, 4)}


def heads_of(x: Any, count: int, split: Any) -> Any:
    b, n, width = x.shape
    return split(x, (b, n, count, width // count), (b, count, n, width // count))


def right_split(x: Any, columns_split: tuple[int, ...], _: tuple[int, ...]) -> Any:
    return ops.swapaxes(ops.reshape(x, columns_split), 1, 2)


def wrong_split(x: Any, _: tuple[int, ...], heads_first: tuple[int, ...]) -> Any:
    return ops.reshape(x, heads_first)


def by_hand(split: Any, x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    parts = [heads_of(ops.matmul(x, w), 2, split) for w in (wq, wk, wv)]
    out = ops.swapaxes(ops.scaled_dot_product_attention(*parts), 1, 2)
    return ops.matmul(ops.reshape(out, (2, 3, 6)), wo)


def test_a_head_is_a_range_of_columns_not_a_range_of_the_memory() -> None:
    """Reshaping (n, H * dh) to (H, n, dh) mixes positions: then a causal output changes with what comes later."""
    arrays = drawn(*SHAPES.values())
    tensors = [AnyTensor(a.copy()) for a in arrays]
    found = ops.multi_head_attention(*tensors, 2)  # type: ignore[arg-type]
    assert_same_bits(np.asarray(found), np.asarray(by_hand(right_split, *tensors)), "split, then swapped")
    assert not np.allclose(np.asarray(found), np.asarray(by_hand(wrong_split, *tensors)))
    later = arrays[0].copy()
    later[:, 2] += 1
    changed = ops.multi_head_attention(AnyTensor(later), *tensors[1:], 2, is_causal=True)  # type: ignore[arg-type]
    before = ops.multi_head_attention(*tensors, 2, is_causal=True)  # type: ignore[arg-type]
    assert_same_bits(np.asarray(changed)[:, :2], np.asarray(before)[:, :2], "positions before the change")


def test_the_gradient_through_the_heads_is_the_slope() -> None:
    report = gradcheck(lambda *inputs: ops.multi_head_attention(*inputs, 2, is_causal=True), *drawn(*SHAPES.values()))
    assert report.ok, str(report)
    assert len(report.elements) == sum(int(np.prod(shape)) for shape in SHAPES.values())


def test_a_mask_of_the_batch_serves_all_heads() -> None:
    arrays, mask = drawn(*SHAPES.values()), Make(np.float64, seed=3).mask(2, 3, 3)
    found = ops.multi_head_attention(*map(AnyTensor, arrays), 3, AnyTensor(mask))  # type: ignore[arg-type]
    for b in range(2):
        single = [arrays[0][b], *arrays[1:]]
        alone = ops.multi_head_attention(*map(AnyTensor, single), 3, AnyTensor(mask[b]))  # type: ignore[arg-type]
        assert_same_bits(np.asarray(found)[b], np.asarray(alone), f"batch {b}")


def test_the_context_gives_keys_and_values(tape: Tape[Any]) -> None:
    x, wq, wk, wv, wo, context = (tape.leaf(a) for a in drawn((2, 3, 4), (4, 6), (5, 6), (5, 6), (6, 4), (2, 7, 5)))
    out = ops.multi_head_attention(x, wq, wk, wv, wo, 2, context=context)
    assert tuple(out.shape) == (2, 3, 4)
    (seen,) = (node for node in tape if node.op_name == "attention_weights")
    assert seen.value.sizes == (2, 2, 3, 7)
    assert tape.backward_dense(out, np.ones((2, 3, 4)))[context] is not None


def test_biases_are_added_behind_the_products() -> None:
    arrays, biases = drawn(*SHAPES.values()), drawn((6,), (6,), (6,), (4,))
    x, wq, wk, wv, wo = map(AnyTensor, arrays)
    ones = AnyTensor(np.concatenate([arrays[0], np.ones((2, 3, 1))], -1))
    wide = [AnyTensor(np.concatenate([w, b[None]])) for w, b in zip(arrays[1:4], biases[:3], strict=True)]
    named = dict(zip(("bq", "bk", "bv", "bo"), map(AnyTensor, biases), strict=True))
    found = ops.multi_head_attention(x, wq, wk, wv, wo, 2, **named)  # type: ignore[arg-type]
    without = ops.multi_head_attention(  # the biases as a row more of the weights, under a feature that is 1
        ones,
        *wide,
        AnyTensor(np.pad(arrays[4], ((0, 0), (0, 1)))),
        2,  # type: ignore[arg-type]
    )
    assert np.allclose(np.asarray(found), np.asarray(without)[..., :4] + biases[3])


def test_weights_of_another_tape_are_refused_before_anything_is_recorded(tape: Tape[Any]) -> None:
    x, *w = drawn(*SHAPES.values())
    given = [tape.leaf(x), *(tape.leaf(a) for a in w[:3]), Tape[Any]().leaf(w[3])]
    with pytest.raises(TapeError):
        ops.multi_head_attention(*given, 2)  # type: ignore[arg-type]
    assert len(tape) == 4


def test_keys_must_have_the_features_of_the_weights_without_a_context() -> None:
    x, wq, wk, wv, wo = map(AnyTensor, drawn((3, 4), (4, 4), (5, 4), (5, 4), (4, 4)))
    with pytest.raises(ShapeError, match=r"argument 'wk': expected shape \(4, 4\), got \(5, 4\)"):
        ops.multi_head_attention(x, wq, wk, wv, wo, 2)  # type: ignore[arg-type]
