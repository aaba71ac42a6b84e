"""Clipping: bits against a scalar reference, values against numpy, and every error."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime.optim import clip_by_global_norm, clip_by_value, kernels
from dgrr.tape.errors import DTypeError
from dgrr.tape.numerics.engine import launch, threads as engine_threads

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]
Grads = dict[str, Array]

DTYPES: list[np.dtype[Any]] = [np.dtype(np.float32), np.dtype(np.float64)]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def scalar_sum_squares(x: Array) -> Any:
    """Blocks of 4096; in each 16 lanes of every sixteenth element, combined by halves."""
    total: Any = x.dtype.type(0)
    row = list(x.ravel())
    for number, start in enumerate(range(0, len(row), 4096)):
        lanes: list[Any] = [x.dtype.type(0)] * 16
        for i, element in enumerate(row[start : start + 4096]):
            lanes[i % 16] = lanes[i % 16] + element * element
        for half in (8, 4, 2, 1):
            lanes = [lanes[k] + lanes[k + half] for k in range(half)]
        total = lanes[0] if number == 0 else total + lanes[0]
    return total


def scalar_norm(grads: Grads) -> np.float64:
    norms = [np.float64(np.sqrt(scalar_sum_squares(grad))) for grad in grads.values()]
    return np.float64(np.sqrt(scalar_sum_squares(np.array(norms, np.float64))))


def gradients(sizes: list[int], dtype: np.dtype[Any]) -> Grads:
    rng = np.random.default_rng(sum(sizes))
    return {f"g{k}": rng.standard_normal(size).astype(dtype) for k, size in enumerate(sizes)}


def bits(array: Array) -> list[int]:
    numbers: list[int] = array.view(f"u{array.itemsize}").ravel().tolist()
    return numbers


@every_dtype
@pytest.mark.parametrize(
    "sizes",
    [
        [1],
        [0],
        [0, 3],
        [15],
        [16],
        [17],
        [33, 1, 40],
        [4095],
        [4096],
        [4097],
        [8192 + 21, 5],
        [1] * 37,
        [12345],
    ],
    ids=str,
)
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_bits_of_the_scalar_reference(sizes: list[int], dtype: np.dtype[Any], max_norm: float) -> None:
    grads = gradients(sizes, dtype)
    before = {name: grad.copy() for name, grad in grads.items()}
    clipped = clip_by_global_norm(grads, max_norm)
    norm = scalar_norm(grads)
    scale = min(max_norm / (norm + 1e-6), 1.0)
    assert (clipped.norm, clipped.scale) == (norm, scale)
    assert list(clipped.grads) == list(grads)
    for name, grad in grads.items():
        expected = np.array([grad.dtype.type(scale) * element for element in grad], dtype)
        assert bits(clipped.grads[name]) == bits(expected)
        assert bits(grad) == bits(before[name])
        assert not np.shares_memory(clipped.grads[name], grad)


@every_dtype
def test_the_norm_is_the_norm(dtype: np.dtype[Any]) -> None:
    grads = gradients([1000, 7, 5000], dtype)
    clipped = clip_by_global_norm(grads, 2.0)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert clipped.norm == pytest.approx(np.linalg.norm(np.concatenate(list(grads.values()))), rel=tolerance)
    assert clipped.scale == pytest.approx(2.0 / clipped.norm, rel=1e-6)
    after = np.linalg.norm(np.concatenate(list(clipped.grads.values())))
    assert after == pytest.approx(2.0, rel=1e-5)


def test_a_small_norm_changes_no_bit() -> None:
    grads = {"a": np.array([3.0, -0.0]), "b": np.array([[4.0]])}
    clipped = clip_by_global_norm(grads, 5.1)
    assert (clipped.norm, clipped.scale) == (5.0, 1.0)
    assert bits(clipped.grads["a"]) == bits(grads["a"])
    assert clipped.grads["b"].tolist() == [[4.0]]


def test_dtypes_may_be_mixed() -> None:
    grads: Grads = {"a": np.array([3.0], np.float32), "b": np.array([4.0], np.float64)}
    clipped = clip_by_global_norm(grads, 1.0)
    scale = 1.0 / (5.0 + 1e-6)
    assert clipped.scale == scale
    assert clipped.grads["a"][0] == np.float32(scale) * np.float32(3)
    assert clipped.grads["b"][0] == scale * 4.0
    assert [grad.dtype for grad in clipped.grads.values()] == [np.float32, np.float64]


def test_no_gradients() -> None:
    assert clip_by_global_norm({}, 1.0) == ({}, 0.0, 1.0)
    assert clip_by_value({}, 1.0) == {}


def test_not_a_number_spreads_to_every_gradient() -> None:
    clipped = clip_by_global_norm({"a": np.array([np.nan]), "b": np.ones(2)}, 1.0)
    assert np.isnan([clipped.norm, clipped.scale, *clipped.grads["a"], *clipped.grads["b"]]).all()


def test_an_infinite_gradient_scales_the_others_to_zero() -> None:
    clipped = clip_by_global_norm({"a": np.array([np.inf]), "b": np.ones(2)}, 1.0)
    assert (clipped.norm, clipped.scale) == (np.inf, 0.0)
    assert np.isnan(clipped.grads["a"]).all()
    assert clipped.grads["b"].tolist() == [0.0, 0.0]


def test_an_infinite_bound_only_measures() -> None:
    clipped = clip_by_global_norm({"a": np.array([3.0, 4.0])}, np.inf)
    assert (clipped.norm, clipped.scale) == (5.0, 1.0)


def test_subnormal_gradients_are_kept() -> None:
    tiny = np.array([1e-40, -3e-45], np.float32)
    clipped = clip_by_global_norm({"a": tiny, "b": np.ones(1, np.float32)}, 0.5)
    assert bits(clipped.grads["a"]) == bits(tiny * np.float32(clipped.scale))
    assert clipped.grads["a"].all()
    assert bits(clip_by_value({"a": tiny}, 1.0)["a"]) == bits(tiny)


@pytest.mark.parametrize("layout", ["transposed", "reversed", "strided"])
def test_gradients_of_any_layout(layout: str) -> None:
    x = np.random.default_rng(0).standard_normal((70, 90))
    strided = {"transposed": x.T, "reversed": x[::-1], "strided": x[:, ::2]}[layout]
    row_major = np.array(strided, order="C")
    clipped, expected = (clip_by_global_norm({"a": grad}, 1.0) for grad in (strided, row_major))
    assert (clipped.norm, clipped.scale) == (expected.norm, expected.scale)
    assert np.array_equal(clipped.grads["a"], expected.grads["a"])
    assert np.array_equal(clip_by_value({"a": strided}, 0.5)["a"], np.clip(row_major, -0.5, 0.5))


@every_dtype
def test_clip_by_value(dtype: np.dtype[Any]) -> None:
    values = [0.1, -0.1, 0.25, -7.0, 7.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 0.10000001]
    limit = dtype.type(0.1)
    grads = {"a": np.array(values, dtype), "b": np.array(-3.0, dtype), "c": np.zeros((0, 2), dtype)}
    clipped = clip_by_value(grads, 0.1)
    expected = [x if -limit <= x <= limit or x != x else np.copysign(limit, x) for x in grads["a"]]
    assert bits(clipped["a"]) == bits(np.array(expected, dtype))
    assert clipped["b"] == -limit
    assert [(grad.shape, grad.dtype) for grad in clipped.values()] == [
        ((11,), dtype),
        ((), dtype),
        ((0, 2), dtype),
    ]
    assert np.array_equal(grads["a"], np.array(values, dtype), equal_nan=True)


@every_dtype
def test_bits_do_not_depend_on_threads(dtype: np.dtype[Any], split_everything: None) -> None:
    grads = gradients([9001, 3, 1, 0], dtype)
    results: list[tuple[float, float, list[list[int]]]] = []
    for threads in (1, 2, 7):
        engine_threads.set_threads(threads)
        scaled, norm, scale = clip_by_global_norm(grads, 1.0)
        clamped = clip_by_value(grads, 0.5)
        results.append((norm, scale, [bits(grad) for grad in (*scaled.values(), *clamped.values())]))
    assert results[0] == results[1] == results[2]


@every_dtype
@pytest.mark.parametrize("kernel", [kernels.scale_by, kernels.clamp_to], ids=["scale_by", "clamp_to"])
def test_kernels_overwrite_junk(kernel: Any, dtype: np.dtype[Any]) -> None:
    x, scalars = np.linspace(-1, 1, 37).astype(dtype), np.array([0.5, 0.5])
    outs = [np.full(37, junk, dtype) for junk in (np.nan, 1e30)]
    for out in outs:
        launch.launch(kernel, dtype, launch.Words(37), (out, x, scalars), 0)
    assert bits(outs[0]) == bits(outs[1])
    assert np.isfinite(outs[0]).all()


@pytest.mark.parametrize("clip", [clip_by_global_norm, clip_by_value])
def test_gradients_that_are_no_float_arrays(clip: Any) -> None:
    with pytest.raises(DTypeError) as caught:
        clip({"a": np.ones(1, np.int64)}, 1.0)
    assert str(caught.value) == f"{clip.__name__}: gradient 'a': expected float32 or float64, got int64; use astype"
    with pytest.raises(DTypeError) as caught:
        clip({"a": 1.0}, 1.0)
    expected = "expected a numpy array of float32 or float64, got float; use np.asarray"
    assert str(caught.value) == f"{clip.__name__}: gradient 'a': {expected}"
