"""Matrix products against the slow reference, bit for bit: tiles, edges, strides, shares, what follows the sums."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-call,no-untyped-def,call-arg"
# pyright: basic, reportCallIssue=false
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit

from dgrr.tape.numerics.engine.kernel import Kernel
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.math.reference import sums as reference_sums
from dgrr.tape.numerics.simd.codegen import vector_bytes
from dgrr.tape.numerics.simd.operations import fma
from dgrr.tape.ops.elementwise.kernels.basic import relu, where_positive
from dgrr.tape.ops.linear.kernels.gemm import ROWS_OF_A_PART, SMALL_B, gemm
from dgrr.tape.ops.linear.kernels.gemm_reference import gemm_reference
from dgrr.tape.ops.linear.kernels.panels import pack_panels, panel_elements
from dgrr.tape.ops.linear.kernels.product import Product

from ..bits import same

Array = npt.NDArray[Any]
Run = Callable[..., int]
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
GUARD = 64
JUNK = 7


@njit
def plain_product(a, b, out):
    """The definition once more, compiled: fast enough for large products."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = out.dtype.type(0)
            for first in range(0, a.shape[1], 256):
                chain = out.dtype.type(0)
                for k in range(first, min(first + 256, a.shape[1])):
                    chain = fma(a[i, k], b[k, j], chain)
                total = chain if first == 0 else total + chain
            out[i, j] = total


def expected(a: Array, b: Array) -> Array:
    """The product of stacks of matrices by the compiled definition."""
    out = np.empty((len(a), a.shape[1], b.shape[2]), a.dtype)
    for x, y, z in zip(a.copy(), b.copy(), out, strict=True):  # row-major: one version to compile
        plain_product(x, y, z)
    return out


def special(dtype: np.dtype[Any]) -> Array:
    """Signed zeros, subnormals, infinities, NaN and numbers whose products overflow."""
    info = np.finfo(dtype)
    tiny, huge = info.smallest_subnormal, info.max
    return np.array([0.0, -0.0, tiny, -tiny, info.tiny / 3, np.inf, -np.inf, np.nan, huge, -huge], dtype)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Ordinary numbers, among them in every third array a few special ones."""
    x = rng.standard_normal(shape).astype(dtype)
    if x.size and rng.random() < 1 / 3:
        x.flat[rng.integers(0, x.size, x.size // 20 + 1)] = rng.choice(special(dtype), x.size // 20 + 1)
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "row-major": lambda x: x.copy(),
    "transposed": lambda x: x.swapaxes(1, 2).copy().swapaxes(1, 2),
    "padded rows": lambda x: np.pad(x, ((0, 0), (0, 0), (3, 2)))[:, :, 3:-2],
    "padded columns": lambda x: np.pad(x, ((0, 0), (1, 2), (0, 0))).swapaxes(1, 2).copy().swapaxes(1, 2)[:, 1:-2],
    "reversed": lambda x: x[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
    "every other": lambda x: x.repeat(2, 2)[:, :, ::2],
    "matrices last": lambda x: x.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    "rows alike": lambda x: np.broadcast_to(x[:, :1], x.shape) if x.shape[1] else x,
    "columns alike": lambda x: np.broadcast_to(x[:, :, :1], x.shape) if x.shape[2] else x,
    "matrices alike": lambda x: np.broadcast_to(x[:1], x.shape),
}


def guarded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Junk of a shape, and the memory that it lies in the middle of."""
    memory = np.full(int(np.prod(shape)) + 2 * GUARD, JUNK, dtype)
    return memory, memory[GUARD:-GUARD].reshape(shape)


def untouched(memory: Array) -> bool:
    return bool((memory[:GUARD] == JUNK).all() and (memory[-GUARD:] == JUNK).all())


def multiply(
    run: Run,
    a: Array,
    b: Array,
    parts: int = 1,
    bias: Array | None = None,
    relu: bool = False,
    mask: Array | None = None,
    added: Array | None = None,
) -> Array:
    """The kernel's product of stacks of matrices, checked to write its output and its scratch memory alone."""
    (batch, m, k), n = a.shape, b.shape[2]
    finish: dict[str, Any] = {"bias": bias is not None, "relu": relu, "mask": mask is not None}
    product = Product(batch, m, n, k, a.dtype.itemsize, added=0 if added is None else added.strides[1], **finish)
    strides = (a.strides, b.strides)
    memory, out = guarded((batch, m, n), a.dtype)
    scratch, inside = guarded((product.scratch(strides, parts),), np.dtype(np.uint8))
    arrays = [out, a, b, *(x for x in (bias, mask, added) if x is not None), *([inside] if inside.size else [])]
    assert run(gemm, product.words(strides), arrays, parts) == 0
    assert untouched(memory)
    assert untouched(scratch)
    return out


def summed(run: Run, kernel: Kernel, a: Array, b: Array, parts: int, added: Array | None) -> Array:
    """The kernel's sum of products, checked as `multiply` does it."""
    (batch, m, k), n = a.shape, b.shape[2]
    pitch = 0 if added is None else added.strides[0]
    product, strides = Product(batch, m, n, k, a.dtype.itemsize, added=pitch, summed=True), (a.strides, b.strides)
    memory, out = guarded((m, n), a.dtype)
    scratch, inside = guarded((product.scratch(strides, parts),), np.dtype(np.uint8))
    arrays = [out, a, b, *([] if added is None else [added]), *([inside] if inside.size else [])]
    assert run(kernel, product.words(strides), arrays, parts) == 0
    assert untouched(memory)
    assert untouched(scratch)
    return out


def multiply_panels(run: Run, kernel: Kernel, a: Array, b: Array, parts: int, bias: Array) -> Array:
    """The kernel's product with the panels of b, both checked to write their outputs alone."""
    (m, k), n, size = a.shape, b.shape[1], a.dtype.itemsize
    around, panels = guarded((panel_elements(k, n, size),), a.dtype)
    assert run(pack_panels, Words(k, n, *b.strides), [panels, b], parts) == 0
    assert untouched(around)
    product, strides = Product(1, m, n, k, size, bias=True, panels=True), (a.strides,)
    memory, out = guarded((m, n), a.dtype)
    scratch, inside = guarded((product.scratch(strides, parts),), np.dtype(np.uint8))
    arrays = [out, a, panels, bias, *([inside] if inside.size else [])]
    assert run(kernel, product.words(strides), arrays, parts) == 0
    assert untouched(memory)
    assert untouched(scratch)
    return out


# ------------------------------------------------------------------ the definition


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "shape", [(3, 5, 7), (2, 0, 3), (1, 256, 2), (2, 257, 3), (5, 13, 33), (13, 2, 17), (1, 600, 1)]
)
def test_the_kernel_and_the_compiled_definition_agree_with_the_reference(
    run: Run, shape: tuple[int, int, int], dtype: np.dtype[Any]
) -> None:
    rng, (m, k, n) = np.random.default_rng(sum(shape)), shape
    for draw in range(3):
        a, b = numbers(rng, (1, m, k), dtype), numbers(rng, (1, k, n), dtype)
        with np.errstate(all="ignore"):
            slow = reference_sums.matmul(a[0], b[0])[None]
        assert same(expected(a, b), slow), draw
        assert same(multiply(run, a, b), slow), draw


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_an_order_of_its_own_would_be_seen(run: Run, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((1, 8, 700)).astype(dtype), rng.standard_normal((1, 700, 8)).astype(dtype)
    found = multiply(run, a, b)
    assert not same(found, multiply(run, a[:, :, ::-1], b[:, ::-1]))
    assert not same(found, (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype))
    halves = multiply(run, a[:, :, :350], b[:, :350]) + multiply(run, a[:, :, 350:], b[:, 350:])
    assert not same(found, halves)


# ------------------------------------------------------------------ sizes


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_all_small_sizes(run: Run, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(0)
    a, b = numbers(rng, (1, 40, 3), dtype), numbers(rng, (1, 3, 50), dtype)
    whole = expected(a, b)
    for m in range(1, 41):
        for n in range(1, 51):
            assert same(multiply(run, a[:, :m], b[:, :, :n]), whole[:, :m, :n]), (m, n)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("k", [0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1025])
def test_all_lengths_of_the_contraction(run: Run, k: int, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(k)
    for m, n in ((1, 1), (13, 9), (29, 70)):
        a, b = numbers(rng, (1, m, k), dtype), numbers(rng, (1, k, n), dtype)
        for right in (b, LAYOUTS["transposed"](b)):
            assert same(multiply(run, a, right, parts=2), expected(a, b)), (m, n)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(0, 3, 4), (4, 3, 0), (0, 0, 0), (3, 0, 5)])
def test_nothing_to_sum_or_to_fill(run: Run, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
    m, k, n = shape
    out = multiply(run, np.ones((2, m, k), dtype), np.ones((2, k, n), dtype), parts=3)
    assert out.tobytes() == bytes(out.nbytes)  # +0


# ------------------------------------------------------------------ strides, shares, what follows the sums


def random_product(
    run: Run,
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    most: tuple[int, int],
    width: int | None = None,
    squares: bool = False,
) -> None:
    """One product of random layouts and epilogue in random shares, of at most so many rows and columns.

    It has exactly ``width`` columns if that is given, and a contraction in ``squares`` of vectors if it shall.
    """
    batch = int(rng.choice([1, 1, 1, 2, 5]))
    m, n = (int(rng.integers(1, limit)) for limit in most)
    n = width or n
    k = int(rng.choice([rng.integers(0, 40), rng.integers(250, 262), rng.integers(500, 600)], p=[0.6, 0.2, 0.2]))
    k = (k + 15) // 16 * 16 if squares else k
    names = [str(x) for x in rng.choice(list(LAYOUTS), 2)]
    a, b = (LAYOUTS[x](numbers(rng, s, dtype)) for x, s in zip(names, ((batch, m, k), (batch, k, n)), strict=True))
    out = expected(a, b)
    bias = numbers(rng, (n,), dtype) if rng.random() < 0.5 else None
    mask = numbers(rng, out.shape, dtype) if rng.random() < 0.3 else None
    rectified = bool(rng.random() < 0.5)
    if bias is not None:
        with np.errstate(all="ignore"):
            out = out + bias
    if rectified:
        out = np.where(out <= 0, dtype.type(0), out)
    if mask is not None:
        out = np.where(mask > 0, out, dtype.type(0))
    added = numbers(rng, (batch, m, n + 3), dtype)[:, :, :n] if rng.random() < 0.3 else None
    if added is not None:
        with np.errstate(all="ignore"):
            out = added + out
    for parts in (1, int(rng.integers(2, 6))):
        found = multiply(run, a, b, parts, bias, rectified, mask, added)
        epilogue = (bias is None, rectified, mask is None, added is None)
        assert same(found, out), (names, a.shape, b.shape, epilogue, parts)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_random_products(run: Run, seed: int, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        random_product(run, rng, dtype, (50, 50))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("part", [1, 2])
def test_random_products_of_rows_of_one_vector_and_of_a_half(run: Run, part: int, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(part)
    for _ in range(150):
        random_product(run, rng, dtype, (50, 50), width=vector_bytes() // part // dtype.itemsize)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("squares", [False, True])
def test_random_products_of_few_rows(run: Run, squares: bool, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(80):
        random_product(run, rng, dtype, (7, 700), squares=squares)
    for _ in range(20):
        random_product(run, rng, dtype, (2, 700), squares=squares)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_every_pair_of_layouts(run: Run, left: str, right: str, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(1)
    a, b = LAYOUTS[left](numbers(rng, (2, 21, 37), dtype)), LAYOUTS[right](numbers(rng, (2, 37, 67), dtype))
    assert same(multiply(run, a, b, parts=2), expected(a, b))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 2, 3), (0, 2, 3, 1), (2, 0, 3, 1)])
def test_a_batch_of_two_axes_is_read_where_it_lies(run: Run, axes: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    rng, back = np.random.default_rng(4), np.argsort(axes)
    shapes = ((2, 3, 21, 37), (2, 3, 37, 40))
    a, b = (numbers(rng, tuple(s[i] for i in axes), dtype).transpose(back) for s in shapes)
    dense = [np.array(x, order="C").reshape(6, *x.shape[2:]) for x in (a, b)]
    whole, product = expected(*dense), Product(6, 21, 40, 37, dtype.itemsize, group=3)
    for parts in (1, 2, 5):
        memory, out = guarded(whole.shape, dtype)
        assert run(gemm, product.words((a.strides, b.strides)), [out, a, b], parts) == 0
        assert same(out, whole), parts
        assert untouched(memory)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("parts", [2, 3])
def test_wide_products_are_shared_by_rows_or_by_columns(run: Run, parts: int, dtype: np.dtype[Any]) -> None:
    """By rows where each part has enough of them and b is small, else by columns."""
    rng, least = np.random.default_rng(5), ROWS_OF_A_PART * parts
    deep = SMALL_B // (130 * dtype.itemsize)
    for m, k in ((least - 1, 5), (least, 5), (least + 2, deep), (least, deep + 1)):
        a, b = numbers(rng, (2, m, k), dtype), numbers(rng, (2, k, 130), dtype)
        assert same(multiply(run, a, b, parts), expected(a, b)), (m, k)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", ["row-major", "transposed", "padded rows", "reversed"])
def test_large_products_in_any_number_of_shares(run: Run, layout: str, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(2)
    for m, k, n in ((530, 2048 // dtype.itemsize + 1, 259), (75, 1024, 530)):
        a, b = LAYOUTS[layout](numbers(rng, (2, m, k), dtype)), numbers(rng, (2, k, n), dtype)
        whole = expected(a, b)
        for parts in (1, 2, 3, 5):
            assert same(multiply(run, a, b, parts), whole), (m, k, n, parts)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "shape", [(5, 7, 3, 9), (3, 40, 32, 300), (9, 20, 100, 40), (2, 600, 33, 33), (4, 33, 51, 260), (3, 17, 256, 70)]
)
def test_products_are_summed_in_their_order(run: Run, shape: tuple[int, int, int, int], dtype: np.dtype[Any]) -> None:
    rng, (batch, m, k, n) = np.random.default_rng(sum(shape)), shape
    for left, right in (("row-major", "transposed"), ("transposed", "row-major")):
        a = LAYOUTS[left](numbers(rng, (batch, m, k), dtype))[::-1]
        b = LAYOUTS[right](numbers(rng, (batch, k, n), dtype))
        first = numbers(rng, (m, n), dtype)
        for added in (None, first):
            with np.errstate(all="ignore"):
                total = reduce(np.add, [*([] if added is None else [added]), *expected(a, b)])
            for kernel, parts in ((gemm, 1), (gemm, 3), (gemm_reference, 2)):
                assert same(summed(run, kernel, a, b, parts, added), total), (left, kernel, parts)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 3, 5),
        (9, 20, 100),
        (32, 300, 70),
        (40, 65, 257),
        (3, 530, 33),
        (70, 17, 40),
        (9, 20, 4),
        (13, 9, 8),
        (9, 20, 16),
    ],
)
def test_a_product_reads_panels_that_were_made_before(
    run: Run, shape: tuple[int, int, int], dtype: np.dtype[Any]
) -> None:
    rng, (m, k, n) = np.random.default_rng(sum(shape)), shape
    for left, right in (("row-major", "transposed"), ("transposed", "row-major"), ("row-major", "every other")):
        a, bias = LAYOUTS[left](numbers(rng, (1, m, k), dtype))[0], numbers(rng, (n,), dtype)
        b = LAYOUTS[right](numbers(rng, (1, k, n), dtype))[0]
        with np.errstate(all="ignore"):
            whole = expected(a[None], b[None])[0] + bias
        for kernel, parts in ((gemm, 1), (gemm, 2), (gemm, 3), (gemm_reference, 2)):
            assert same(multiply_panels(run, kernel, a, b, parts, bias), whole), (left, right, kernel, parts)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_more_shares_than_rows_and_columns(run: Run, dtype: np.dtype[Any]) -> None:
    a, b = np.ones((1, 3, 2), dtype), np.ones((1, 2, 5), dtype)
    assert same(multiply(run, a, b, parts=20), np.full((1, 3, 5), 2, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_relu_and_mask_are_those_of_the_elementwise_kernels(run: Run, dtype: np.dtype[Any]) -> None:
    totals = np.tile(special(dtype), 4)[None, None, :]
    one, gate = np.ones((1, 1, 1), dtype), np.repeat(special(dtype), 4)[None, None, :]
    totals = multiply(run, one, totals)  # a chain begins at +0 and has no -0
    minus_zero = np.full(totals.size, -0.0, dtype)
    n = Words(totals.size)
    rectified, gated = np.empty_like(totals), np.empty_like(totals)
    for bias in (None, minus_zero):
        run(relu, n, [rectified, totals])
        run(where_positive, n, [gated, totals, gate])
        assert same(multiply(run, one, totals, bias=bias, relu=True), rectified)
        assert same(multiply(run, one, totals, bias=bias, mask=gate), gated)
        run(where_positive, n, [gated, rectified, gate])
        assert same(multiply(run, one, totals, bias=bias, relu=True, mask=gate), gated)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_totals_of_minus_zero(run: Run, dtype: np.dtype[Any]) -> None:
    """Minus zero comes from underflow alone; later blocks, a bias or a mask must not lose its sign."""
    tiny = np.finfo(dtype).smallest_subnormal
    a, b = np.full((1, 2, 300), -tiny, dtype), np.full((1, 300, 9), tiny, dtype)
    minus = np.full((1, 2, 9), -0.0, dtype)
    assert same(multiply(run, a, b), minus)
    assert same(multiply(run, a, b, mask=np.ones((1, 2, 9), dtype)), minus)
    assert same(multiply(run, a, b, bias=np.full(9, -0.0, dtype)), minus)
    assert same(multiply(run, a, b, bias=np.zeros(9, dtype)), np.zeros((1, 2, 9), dtype))
    assert same(multiply(run, a, b, relu=True), np.zeros((1, 2, 9), dtype))
