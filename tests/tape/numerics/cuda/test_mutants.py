"""What the host finds: kernels that are wrong in one place, each of which another thread, padding or order shows."""

from pathlib import Path

import numpy as np
import pytest

from .convolution_cases import SINGLE, SMALL, checked
from .host import Host, needs_cuda
from .mutation import is_found, mutated
from .product_cases import case, way, wrong_bits

pytestmark = needs_cuda
DTYPE = np.dtype(np.float32)
TILES, PRODUCTS, CONVOLUTIONS = "tiles.cuh", "products.cu", "convolutions.cu"

MUTANTS = {
    "+0 behind the last term": (TILES, "(real)-0.0", "(real)0"),
    "blocks of 512": (TILES, "CHAIN = 256", "CHAIN = 512"),
    "a product and a sum for fma": (
        TILES,
        "acc[i][j] = fused(a[k % 2][i], b[k % 2][j], acc[i][j])",
        "acc[i][j] = add(mul(a[k % 2][i], b[k % 2][j]), acc[i][j])",
    ),
    "one barrier less in the loop": (
        TILES,
        "__syncthreads();\n          fragment(a[(k + 1)",
        "fragment(a[(k + 1)",
    ),
    "one wait less in the loop": (
        TILES,
        "if (k == BK - 1) {\n          wait_copies<STAGES - 2>();",
        "if (k == BK - 1) {\n          wait_copies<STAGES - 1>();",
    ),
    "one wait less before the loop": (
        TILES,
        "wait_copies<STAGES - 2>();\n  __syncthreads();",
        "wait_copies<STAGES - 1>();\n  __syncthreads();",
    ),
    "stages that overlap": (TILES, "STAGE = BK * (PA + PB)", "STAGE = BK * (PA + PB) - 8"),
    "the last block alone": (
        TILES,
        "if (first) {\n            const Run<VN> run",
        "if (false) {\n            const Run<VN> run",
    ),
}  # fmt: skip

SLICES = {
    "one barrier less before the sums": (
        PRODUCTS,
        "= run;\n      }\n    __syncthreads();\n    for (int s = 0; s < SLICES",
        "= run;\n      }\n    for (int s = 0; s < SLICES",
    ),
    "one wait less": (
        PRODUCTS,
        "wait_copies<STAGES - 2>();\n      __syncthreads();\n      load();",
        "wait_copies<STAGES - 1>();\n      __syncthreads();\n      load();",
    ),
    "one barrier less in the loop": (
        PRODUCTS,
        "wait_copies<STAGES - 2>();\n      __syncthreads();\n      load();",
        "wait_copies<STAGES - 2>();\n      load();",
    ),
}

CONVS = {
    "a ring of one block": (CONVOLUTIONS, "RING = 2 * CHAIN", "RING = CHAIN"),
    "a ring that is filled too late": (CONVOLUTIONS, "fill(block + 1);", "fill(block + 2);"),
    "no barrier behind the first entries": (
        CONVOLUTIONS,
        "table.fill(0);\n  __syncthreads();\n  const bool biased",
        "table.fill(0);\n  const bool biased",
    ),
    "no cells outside of the source": (
        "places.cuh",
        "  copy_one(to, base + offset, in);",
        "  copy_one(to, base, true);",
    ),
    "taps in another order": (CONVOLUTIONS, "term(w, before + k)", "term(w, before + (k ^ 1))"),
}

PLANES = "planes.cu"

SINGLES = {
    "no barrier behind the rows": (PLANES, "  wait_copies<0>();\n  __syncthreads();", "  wait_copies<0>();"),
    "planes without what lies between": (PLANES, "((int)call.words[EXTENT] - rows.step) * rows.pitch", "0"),
    "no columns outside of the source": (PLANES, "rows && (unsigned)(x + left) < columns", "rows"),
    "a row less": (PLANES, "(line(last) + (int)call.words[EXTENT]) * pitch", "(line(last) + 1) * pitch"),
    "the next block's cotangents": (PLANES, "(own % N * together + block)", "(own % N * together + block + 1)"),
    "the first plane alone": (PLANES, "y -= lines, from += plane", "y -= lines"),
}  # fmt: skip


PRODUCT_CASES = (((1, 40, 36, 267), "tiny"), ((1, 33, 64, 600), "normal"), ((2, 36, 32, 1030), "wide"))


def products(host: Host, name: str) -> int:
    """Wrong elements of a few products by a tile."""
    rng, found = np.random.default_rng(0), 0
    for i, (shape, kind) in enumerate(PRODUCT_CASES):
        given = case(rng, shape, "NN", kind, "", DTYPE)
        found += wrong_bits(host, given, way(name, DTYPE, given), DTYPE, i)
    return found


def convolutions(host: Host) -> int:
    """Wrong elements of a convolution of more than two blocks."""
    conv = SMALL[0]._replace(channels=70, outputs=6)
    return sum(found for kind in ("normal", "special") for _, found in checked(host, conv, kind, DTYPE, bias=True))


def singles(host: Host) -> int:
    """Wrong elements of a convolution of single channels, of several planes and blocks."""
    return sum(found for kind in ("normal", "special") for _, found in checked(host, SINGLE[0], kind, DTYPE, bias=True))


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.long
def test_a_wrong_product_is_found(mutant: str, tmp_path: Path, programs: Path) -> None:
    assert is_found(products, mutated(tmp_path, programs, *MUTANTS[mutant]), "small")


@pytest.mark.parametrize("mutant", SLICES)
def test_a_wrong_sliced_product_is_found(mutant: str, tmp_path: Path, programs: Path) -> None:
    assert is_found(products, mutated(tmp_path, programs, *SLICES[mutant]), "slices8")


@pytest.mark.parametrize("mutant", CONVS)
@pytest.mark.long
def test_a_wrong_convolution_is_found(mutant: str, tmp_path: Path, programs: Path) -> None:
    assert is_found(convolutions, mutated(tmp_path, programs, *CONVS[mutant]))


@pytest.mark.parametrize("mutant", SINGLES)
@pytest.mark.long
def test_a_wrong_convolution_of_single_channels_is_found(mutant: str, tmp_path: Path, programs: Path) -> None:
    assert is_found(singles, mutated(tmp_path, programs, *SINGLES[mutant]))


def test_without_a_mutant_nothing_is_found(host: Host) -> None:
    assert (
        not products(host, "small") and not products(host, "slices8") and not convolutions(host) and not singles(host)
    )
