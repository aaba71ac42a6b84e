"""Products in CUDA C++ against the CPU's kernel, bit for bit, on the host."""

import numpy as np
import pytest

from dgrr.tape.numerics.cuda.tiles import TILES
from dgrr.tape.ops import cuda_forms
from dgrr.tape.ops.linear.cuda import products as cuda_products
from dgrr.tape.ops.linear.cuda.choice import chosen
from dgrr.tape.ops.linear.kernels import product as kernels_product
from dgrr.tape.ops.linear.kernels.product import Product

from .host import KINDS, NO_FAULT, PACKAGE, Host, enumerators, needs_cuda, output, wrong
from .product_cases import EPILOGUES, SHAPES, case, way, wrong_bits

pytestmark = needs_cuda
FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))
EVERY_TILE = [(dtype, name) for dtype in FLOATS for name in TILES[dtype.itemsize]]


@pytest.mark.parametrize(("dtype", "name"), EVERY_TILE, ids=str)
def test_every_tile_has_the_bits_of_the_cpu(host: Host, dtype: np.dtype, name: str) -> None:  # type: ignore[type-arg]
    rng = np.random.default_rng(len(name))
    others = EVERY_TILE.index((dtype, name)) % 3  # every third shape: a third of the programs to compile
    for i, shape in list(enumerate(SHAPES))[others::3]:
        given = case(rng, shape, ("NN", "TN", "NT", "TT")[i % 4], KINDS[i % 6], EPILOGUES[i % 5], dtype)
        found = wrong_bits(host, given, way(name, dtype, given, 1 + i % 2), dtype, i)
        assert not found, f"{found} of {given.want.size} elements of {shape}"


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT", "UN", "NU", "UU"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_operands_lie_as_they_like(host: Host, dtype: np.dtype, layout: str) -> None:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    for i, kind in enumerate(KINDS):
        given = case(rng, (2, 36, 40, 300 - 4 * i), layout, kind, EPILOGUES[i % 5], dtype)
        assert not wrong_bits(host, given, way("small", dtype, given), dtype, i), kind


def test_one_matrix_for_all_and_vectors_that_are_repeated(host: Host) -> None:
    rng, dtype = np.random.default_rng(0), FLOATS[0]
    a, b = rng.standard_normal((6, 8, 20)).astype(dtype), rng.standard_normal((20, 1)).astype(dtype)
    words = tuple(Product(6, 8, 12, 20, 4).words((a.strides, (4, 0))).values.tolist())
    got, _ = output((6, 8, 12), dtype)
    assert cuda_forms.FORMS["gemm"].launches(dtype, words)
    assert host.run("gemm", [got, a, b], words, dtype) == NO_FAULT
    expected = case(rng, (1, 48, 1, 20), "NN", "normal", "", dtype)
    host.run("gemm", [one := np.empty((1, 48, 1), dtype), a, b], expected.words, dtype)
    assert not wrong(got, np.broadcast_to(one.reshape(6, 8, 1), got.shape))


def test_nothing_is_launched_for_nothing() -> None:
    form = cuda_forms.FORMS["gemm"]
    for sizes in ((0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4)):
        words = tuple(Product(*sizes, 4).words(((16, 4), (12, 4))).values.tolist())
        assert form.launches(FLOATS[0], words) == () and form.scratch(FLOATS[0], words) == 0


SIZES = [
    (1, 4096, 4096, 4096), (1, 2048, 2048, 256), (1, 1024, 1024, 1024), (1, 256, 2048, 2048), (1, 512, 512, 784),
    (1, 128, 512, 784), (1, 128, 10, 512), (1, 512, 784, 128), (96, 64, 64, 64), (1, 1, 1, 1 << 20), (1, 4, 1 << 20, 1),
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_what_is_launched_fits_a_device(dtype: np.dtype, size: tuple[int, ...]) -> None:  # type: ignore[type-arg]
    batch, m, n, k = size
    bytes_of = dtype.itemsize
    words = tuple(Product(*size, bytes_of).words(((k * bytes_of, bytes_of), (bytes_of, k * bytes_of))).values.tolist())
    form = cuda_forms.FORMS["gemm"]
    launches = form.launches(dtype, words)
    assert launches
    for launch in launches:
        assert len(launch.pointers) <= 8 and len(launch.words) <= 24
        assert launch.shared <= 232448 and 0 < launch.block[0] <= 1024 and launch.block[0] % 32 == 0
        assert 0 < launch.grid[0] < 1 << 31 and 0 < launch.grid[2] < 1 << 16
    assert form.scratch(dtype, words) <= max(n * k, batch * m * n * -(-k // 256)) * bytes_of


FASTEST = [
    ((1, 8192, 384, 384), "flat"),
    ((1, 8192, 1536, 384), "split"),
    ((1, 8192, 384, 1536), "flat"),
    ((1, 384, 384, 8192), "flat"),
    ((192, 256, 64, 256), "thin"),
    ((192, 256, 256, 64), "thin tall"),
    ((1, 2048, 2048, 2048), "wide"),
    ((1, 3072, 3072, 3072), "flat"),
    ((1, 4096, 4096, 4096), "wide"),
    ((1, 256, 2048, 2048), "split"),
    ((1, 768, 768, 768), "flat"),
    ((1, 512, 512, 512), "half low"),
    ((1, 64, 64, 1024), "few4"),
    ((1, 32, 256, 1024), "few4"),
    ((1, 32, 1024, 256), "few"),
    ((1, 128, 512, 512), "slices8"),
    ((64, 64, 64, 16), "low"),
    ((1, 2048, 384, 384), "low"),
    ((1, 1024, 512, 128), "half"),
]
"""Products of float32, and the tiles within 6 % of the fastest, timed on an H200 and an H100; "split" on an H100."""


@pytest.mark.parametrize(("size", "names"), FASTEST, ids=str)
def test_the_tile_is_among_the_fastest(size: tuple[int, ...], names: str) -> None:
    *_, n, k = size
    words = tuple(Product(*size, 4).words(((4 * k, 4), (4 * n, 4))).values.tolist())
    assert chosen(4, words).tile in [TILES[4][name] for name in names.split()]


def test_the_words_have_the_positions_of_the_cpu() -> None:
    numbers = enumerators(PACKAGE / cuda_products.SOURCE, "BATCH")
    assert numbers.pop("EACH") == kernels_product.ADDED + 1
    for name, i in numbers.items():
        assert getattr(kernels_product, name.removeprefix("W_")) == i, name
