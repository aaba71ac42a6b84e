"""Convolutions: decisions that the op records cannot say."""

# Lambdas carry no types.
# pyright: basic
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import AnyTensor, DTypeError, ShapeError, Tape, ops

Array = npt.NDArray[Any]
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def drawn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def value(function: Any, *arrays: Any, **attrs: Any) -> Array:
    """The result of an op on arrays."""
    return np.asarray(function(*[None if a is None else AnyTensor.leaf(a) for a in arrays], **attrs).array)


def grads(function: Any, *arrays: Array, seed: Array, **attrs: Any) -> list[Array]:
    """The gradients by all inputs."""
    tape: Tape[Any] = Tape()
    leaves = [tape.leaf(a) for a in arrays]
    found = tape.backward_dense(function(*leaves, **attrs), seed)
    return [found[leaf].numpy() for leaf in leaves]  # type: ignore[union-attr]


def same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


# ------------------------------------------------------------------ axes


@pytest.mark.parametrize("function", [ops.conv, ops.conv_transpose])
def test_any_leading_axes_are_samples_and_none_is_one(function: Any) -> None:
    x, w, b = drawn(2, 3, 4, 5, 6), drawn(4, 4, 3, 3), drawn(4)
    whole = value(function, x, w, b, padding=1)
    assert same(whole.reshape(6, *whole.shape[2:]), value(function, x.reshape(6, 4, 5, 6), w, b, padding=1))
    assert same(whole[1, 2], value(function, x[1, 2], w, b, padding=1))
    seed = drawn(*whole.shape, seed=1)
    joined = grads(function, x.reshape(6, 4, 5, 6), w, b, seed=seed.reshape(6, *whole.shape[2:]), padding=1)
    dx, dw, _ = grads(function, x, w, b, seed=seed, padding=1)
    assert same(dx.reshape(joined[0].shape), joined[0])
    assert same(dw, joined[1])
    alone, of_batch = (
        grads(function, part, w, b, seed=g, padding=1) for part, g in ((x[0, 0], seed[0, 0]), (x[:1, 0], seed[:1, 0]))
    )
    assert same(alone[0], of_batch[0][0])
    assert same(alone[1], of_batch[1])


def test_a_rank_has_no_special_rule(tape: Tape[Any]) -> None:
    x, w = drawn(2, 3, 9), drawn(4, 3, 4)
    flat = value(ops.conv, x, w, stride=2, padding=3, dilation=2)
    for axis in (2, 3):
        shapes = [tuple(np.insert(a.shape, axis, 1).tolist()) for a in (x, w)]
        attrs = {name: tuple(np.insert([n], axis - 2, fill).tolist()) for name, n, fill in PER_AXIS}
        deep = value(ops.conv, x.reshape(shapes[0]), w.reshape(shapes[1]), **attrs)
        assert same(deep.reshape(flat.shape), flat)


PER_AXIS = (("stride", 2, 1), ("padding", 3, 0), ("dilation", 2, 1))


# ------------------------------------------------------------------ padding


def test_same_padding_has_its_odd_cell_at_the_end() -> None:
    x, w = drawn(1, 2, 5, 6), drawn(3, 2, 2, 4)
    wider = np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 2)))
    assert same(value(ops.conv, x, w, padding="same"), value(ops.conv, wider, w))
    assert value(ops.conv, x, w, padding="same", dilation=(3, 1)).shape == (1, 3, 5, 6)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_padding_cells_are_terms(dtype: np.dtype[Any]) -> None:
    """An infinite weight meets the +0 of the padding: NaN, where a convolution that skips them has a number."""
    x, w = np.ones((1, 1, 3), dtype), np.array([[[np.inf, 1, 1]]], dtype)
    assert value(ops.conv, x, w, padding=1)[0, 0].tolist()[1:] == [np.inf, np.inf]
    assert np.isnan(value(ops.conv, x, w, padding=1)[0, 0, 0])
    by_weight = grads(ops.conv, x, w, seed=np.array([[[np.inf, 0, 0]]], dtype), padding=1)[1][0, 0]
    assert np.isnan(by_weight[0])
    assert by_weight[1:].tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_holes_of_strides_and_dilations_are_no_terms(dtype: np.dtype[Any]) -> None:
    """Of a stride of 2 each result meets every other tap; an infinite weight is not seen by the others."""
    x, w = np.ones((1, 1, 3), dtype), np.array([[[1, np.inf]]], dtype)
    assert value(ops.conv_transpose, x, w, stride=2)[0, 0].tolist() == [1, np.inf] * 3
    spread = np.array([[[1, np.inf, 1, np.inf, 1]]], dtype)
    assert value(ops.conv, spread, np.ones((1, 1, 3), dtype), dilation=2)[0, 0].tolist() == [3]
    assert value(ops.conv, spread, np.ones((1, 1, 1), dtype), stride=2)[0, 0].tolist() == [1, 1, 1]


def test_taps_of_the_class_that_are_out_of_range_are_terms() -> None:
    x, w = np.ones((1, 1, 2), np.float32), np.array([[[1, 1, np.inf]]], np.float32)
    found = value(ops.conv_transpose, x, w, stride=2)[0, 0]
    assert np.isnan(found[0])  # tap 2 would meet position -1
    assert found[1:].tolist() == [1, np.inf, 1, np.inf]


def test_results_that_meet_no_tap_are_the_bias() -> None:
    x, w, b = np.ones((1, 1, 2), np.float32), np.full((1, 1, 1), 2, np.float32), np.full(1, 5, np.float32)
    assert value(ops.conv_transpose, x, w, b, stride=3, output_padding=1)[0, 0].tolist() == [7, 5, 5, 7, 5]
    bare = value(ops.conv_transpose, x, w, None, stride=3)
    assert same(bare, np.array([[[2, 0, 0, 2]]], np.float32))  # of no term the sum is +0
    negative = value(ops.conv_transpose, x, -w, np.full(1, -0.0, np.float32), stride=3)
    assert same(negative, np.array([[[-2, 0, 0, -2]]], np.float32))


# ------------------------------------------------------------------ relations


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_transposed_convolution_is_the_gradient_of_the_convolution(dtype: np.dtype[Any]) -> None:
    attrs: dict[str, Any] = {"stride": (2, 3), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
    x, w = drawn(2, 4, 8, 9, dtype=dtype), drawn(6, 2, 3, 2, dtype=dtype)
    g = drawn(*value(ops.conv, x, w, **attrs).shape, dtype=dtype, seed=1)
    dx, dw = grads(ops.conv, x, w, seed=g, **attrs)
    assert same(dx, value(ops.conv_transpose, g, w, output_padding=(1, 0), **attrs))
    dg, by_weight = grads(ops.conv_transpose, g, w, seed=x, output_padding=(1, 0), **attrs)
    assert same(dg, value(ops.conv, x, w, **attrs))
    assert same(by_weight, dw)


@pytest.mark.parametrize("function", [ops.conv, ops.conv_transpose])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_bias_has_the_bits_of_a_sum_afterwards(function: Any, dtype: np.dtype[Any]) -> None:
    x, w, b = (drawn(*shape, dtype=dtype) for shape in ((2, 30, 5), (30, 30, 11), (30,)))
    bare = value(function, x, w, padding=5)
    assert same(value(function, x, w, b, padding=5), bare + b[:, None])


def test_the_gradient_of_the_bias_is_the_sum_over_all_but_channels() -> None:
    x, w, b, seed = drawn(2, 3, 2, 4, 4), drawn(3, 2, 3, 3), drawn(3), drawn(2, 3, 3, 2, 2, seed=1)
    found = grads(ops.conv, x, w, b, seed=seed)[2]
    assert same(found, value(ops.reduce_sum, seed, axis=(0, 1, 3, 4)))


def test_a_convolution_with_a_kernel_of_one_is_a_product() -> None:
    x, w = drawn(1, 300, 7), drawn(5, 300, 1)
    assert same(value(ops.conv, x, w)[0], value(ops.matmul, w[:, :, 0], x[0]))


def test_much_output_padding_needs_a_large_dilation(tape: Tape[Any]) -> None:
    x, w = drawn(1, 2, 3, dtype=np.float64), drawn(2, 1, 2, dtype=np.float64)
    attrs: dict[str, Any] = {"dilation": 4, "output_padding": 3, "padding": 2}
    y = value(ops.conv_transpose, x, w, **attrs)
    assert y.shape == (1, 1, 6)
    dx, dw = grads(ops.conv_transpose, x, w, seed=np.ones_like(y), **attrs)
    assert dx.shape == x.shape
    np.testing.assert_allclose((dx * x).sum(), y.sum(), rtol=1e-12)
    np.testing.assert_allclose((dw * w).sum(), y.sum(), rtol=1e-12)
    with pytest.raises(
        ShapeError, match="'output_padding': expected less than the stride or the dilation, got \\(4,\\)"
    ):
        value(ops.conv_transpose, x, w, dilation=4, output_padding=4)


# ------------------------------------------------------------------ arguments


def test_attributes_may_be_lists_and_numbers_of_numpy() -> None:
    x, w = drawn(1, 2, 6, 6), drawn(2, 1, 3, 3)
    plain = value(ops.conv, x, w, stride=(2, 1), padding=(1, 1), dilation=2, groups=2)
    given = value(ops.conv, x, w, stride=[2, 1], padding=np.int64(1), dilation=np.array(2)[()], groups=np.int32(2))
    assert same(plain, given)


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({"stride": (1, 0)}, r"'stride': expected a whole number of at least 1, or 2 of them, got \(1, 0\)"),
        ({"stride": 1.5}, "'stride': expected a whole number or a tuple of whole numbers, got 1.5"),
        ({"dilation": 0}, "'dilation': expected a whole number of at least 1, or 2 of them, got 0"),
        ({"padding": (1,)}, r"'padding': expected a whole number of at least 0, or 2 of them, or .*, got \(1,\)"),
        ({"groups": 1.0}, "'groups': expected a whole number, got 1.0"),
        ({"groups": 3}, r"'weight': expected a number of channels that 3 groups divide, got shape \(4, 2, 3, 3\)"),
        ({"groups": 2}, r"'x': expected shape \(\*Bs, 4, S1, S2\) to fit weight and groups, got \(1, 2, 5, 5\)"),
        ({"dilation": 3}, r"'x': expected spatial sizes that leave a result of at least 1, not of \(-1, -1\)"),
    ],
)
def test_what_does_not_fit_is_refused(attrs: Any, text: str) -> None:
    with pytest.raises((ShapeError, DTypeError), match=f"conv: argument {text}"):
        value(ops.conv, np.zeros((1, 2, 5, 5)), np.zeros((4, 2, 3, 3)), **attrs)
