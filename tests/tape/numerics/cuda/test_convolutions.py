"""Convolutions in CUDA C++ against the CPU's kernels, bit for bit, on the host."""

import numpy as np
import pytest

from dgrr.tape.ops import cuda_forms
from dgrr.tape.ops.conv import cuda as cuda_convolutions
from dgrr.tape.ops.conv.kernels import words
from dgrr.tape.ops.conv.kernels.axis import forward
from dgrr.tape.ops.conv.kernels.plan import ConvPlan

from .convolution_cases import SINGLE, SMALL, TILED, Conv, checked
from .host import HEADERS, KINDS, Host, enumerators, needs_cuda

pytestmark = needs_cuda
FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))


@pytest.fixture
def _in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few the outputs and terms are."""
    monkeypatch.setattr(cuda_convolutions, "FEW_OUTPUTS", 0)
    monkeypatch.setattr(cuda_convolutions, "FEW_TERMS", 0)


@pytest.mark.usefixtures("_in_tiles")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("i", range(len(SMALL)))
def test_every_kernel_has_the_bits_of_the_cpu(host: Host, dtype: np.dtype, i: int) -> None:  # type: ignore[type-arg]
    for kind in {KINDS[i % 6], "tiny"}:
        found = dict(checked(host, SMALL[i], kind, dtype, bias=i % 2 == 0))
        assert not any(found.values()), found


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("i", range(len(SMALL + TILED)))
def test_threads_that_work_alone_have_the_bits_of_the_cpu(
    host: Host,
    dtype: np.dtype,
    i: int,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[type-arg]
) -> None:
    monkeypatch.setattr(cuda_convolutions, "FEW_OUTPUTS", 1000)
    kinds = ("tiny", "wide") if i % 2 else ("special", "wide")
    for kind in kinds:
        found = dict(checked(host, (SMALL + TILED)[i], kind, dtype, bias=i % 2 == 0))
        assert not any(found.values()), found


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_threads_with_several_results_have_the_bits_of_the_cpu(
    host: Host,
    dtype: np.dtype,  # type: ignore[type-arg]
    stride: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_convolutions, "PROCESSORS", 1)
    conv = Conv(2, 2, 1, 2, (15, 20), (3, 3), (stride, 1), (1, 1), (1, 1), (1, 1))  # more positions than threads
    for kind in ("special", "wide"):
        found = dict(checked(host, conv, kind, dtype, bias=stride == 1))
        assert not any(found.values()), found


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("processors", [1, cuda_convolutions.PROCESSORS])
@pytest.mark.parametrize("conv", SINGLE)
def test_single_channels_have_the_bits_of_the_cpu(
    host: Host,
    dtype: np.dtype,  # type: ignore[type-arg]
    processors: int,
    conv: Conv,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_convolutions, "PROCESSORS", processors)
    for name in ("convolve", "convolve_weights"):
        assert cuda_forms.FORMS[name].launches(dtype, plan_words(conv, dtype.itemsize))[0].source.endswith("planes.cu")
    for kind in ("special", "wide"):
        found = dict(checked(host, conv, kind, dtype, bias=processors == 1))
        assert not any(found.values()), found


@pytest.mark.usefixtures("_in_tiles")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("i", range(len(TILED)))
def test_every_tile_has_the_bits_of_the_cpu(
    host: Host,
    dtype: np.dtype,
    i: int,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[type-arg]
) -> None:
    monkeypatch.setattr(cuda_convolutions, "PROCESSORS", 1)
    for kind in ("tiny", "special", "wide"):
        found = dict(checked(host, TILED[i], kind, dtype, bias=i % 2 == 1))
        assert not any(found.values()), found


def plan_words(conv: Conv, itemsize: int) -> tuple[int, ...]:
    ends = zip(conv.size, conv.kernel, conv.stride, conv.low, conv.high, conv.dilation, strict=True)
    out = tuple((i + a + b - (d * (k - 1) + 1)) // s + 1 for i, k, s, a, b, d in ends)
    axes = tuple(map(forward, conv.size, out, conv.kernel, conv.stride, conv.low, conv.dilation))
    plan = ConvPlan(conv.samples, conv.groups, conv.channels, conv.outputs, axes, itemsize)
    return tuple(words.words(plan).values.tolist())


LAYERS = [
    Conv(128, 1, 3, 16, (32, 32), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(128, 1, 64, 64, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(32, 1, 256, 512, (28, 28), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    Conv(4, 1, 16, 32, (16, 32, 32), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    Conv(8, 64, 1, 1, (112, 112), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["convolve", "convolve_weights"])
def test_what_is_launched_fits_a_device(dtype: np.dtype, name: str) -> None:  # type: ignore[type-arg]
    for layer in LAYERS:
        given = plan_words(layer, dtype.itemsize)
        launches = cuda_forms.FORMS[name].launches(dtype, given)
        assert launches
        for launch in launches:
            assert launch.shared <= 232448 and 0 < launch.block[0] <= 1024 and launch.block[0] % 32 == 0
            assert 0 < launch.grid[0] < 1 << 31 and 0 < launch.grid[2] < 1 << 16


def test_a_batch_of_too_many_positions_is_refused() -> None:
    given = plan_words(Conv(1 << 11, 1, 1, 1, (1 << 20,), (1,), (1,), (0,), (0,), (1,)), 4)
    with pytest.raises(OverflowError, match=r"expected fewer than 2\^31 positions of all samples, got 2147483648"):
        cuda_forms.FORMS["convolve"].launches(FLOATS[0], given)


@pytest.mark.parametrize("first", ["SAMPLES", "WEIGHT_GROUPS", "LINES"])
def test_the_words_have_the_positions_of_the_cpu(first: str) -> None:
    for name, i in enumerators(HEADERS / "places.cuh", first).items():
        assert getattr(words, name) == i, name
