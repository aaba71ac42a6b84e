"""GPUs before compute capability 9.0: no clusters, and 64 KiB of shared memory in a block."""

import numpy as np
import pytest

from dgrr.tape.numerics.cuda.written import OLDER_BYTES, Words
from dgrr.tape.numerics.engine.launch import Words as Packed
from dgrr.tape.ops.cuda_forms import FORMS
from dgrr.tape.ops.linear.kernels.product import Product

from .test_products import SIZES
from .test_rows import ROW_BLOCK, layouts

FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))


def product_words(size: tuple[int, int, int, int], itemsize: int) -> Words:
    strides = ((size[3] * itemsize, itemsize), (size[2] * itemsize, itemsize))
    return tuple(Product(*size, itemsize).words(strides).values.tolist())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_have_tiles_that_fit(dtype: np.dtype) -> None:  # type: ignore[type-arg]
    larger = 0
    for size in SIZES:
        words, form = product_words(size, dtype.itemsize), FORMS["gemm"]
        larger += any(launch.shared > OLDER_BYTES for launch in form.on("sm_90").launches(dtype, words))
        for arch in ("sm_75", "sm_89", "sm_120", "sm_121"):
            assert all(launch.shared <= OLDER_BYTES for launch in form.on(arch).launches(dtype, words)), size
            assert form.on(arch).scratch(dtype, words) >= 0
    assert FORMS["gemm"].on("sm_100") is FORMS["gemm"].on("sm_90") is FORMS["gemm"]
    assert larger, "the older form stands for nothing"


def test_rows_are_normalised_without_clusters() -> None:
    words = tuple(Packed(*layouts(2, 3 * ROW_BLOCK)["a layer"], 0, 1, 1e-5, 0, 0).values.tolist())
    form = FORMS["normalize"]
    assert [dict(launch.defines).get("CLUSTER") for launch in form.on("sm_90").launches(FLOATS[0], words)] == [4]
    older = form.on("sm_80").launches(FLOATS[0], words)
    assert len(older) == 3 and not any("CLUSTER" in dict(launch.defines) for launch in older)


def test_a_form_without_an_older_one_is_its_own() -> None:
    assert FORMS["softmax"].on("sm_75") is FORMS["softmax"]
