"""Kernels of convolutions against the slow reference, bit for bit: shapes, strips, tiles, shares, memory."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-call,no-untyped-def,call-arg"
# pyright: basic, reportCallIssue=false
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape.numerics.engine.kernel import Kernel
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops.conv.kernels import plan as kernels_plan
from dgrr.tape.ops.conv.kernels.axis import PlanAxis, adjoint, forward
from dgrr.tape.ops.conv.kernels.forward import convolve, interleave, pack_weights
from dgrr.tape.ops.conv.kernels.plan import ConvPlan
from dgrr.tape.ops.conv.kernels.weight_grad import convolve_weights
from dgrr.tape.ops.conv.kernels.words import Workspace, interleave_words, weight_words, words
from dgrr.tape.ops.conv.reference import dense as reference_dense

from ..bits import same

Array = npt.NDArray[Any]
Sizes = tuple[int, ...]
Run = Callable[..., int]
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
GUARD = 64
JUNK = 7
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40)


@dataclass(frozen=True)
class Case:
    """A convolution: x (samples, groups * channels, *size), weight (groups * outputs, channels, *kernel)."""

    samples: int
    groups: int
    channels: int
    outputs: int
    size: Sizes
    kernel: Sizes
    stride: Sizes
    low: Sizes
    dilation: Sizes
    out: Sizes

    @classmethod
    def of(cls, samples: int, channels: int, outputs: int, size: Sizes, kernel: Sizes, **given: Any) -> "Case":
        """With the attributes given as one number for all axes or as tuples, and padding on both sides."""
        each = {name: given.get(name, 0 if name == "low" else 1) for name in ("stride", "low", "dilation")}
        tuples = {n: v if isinstance(v, tuple) else (v,) * len(size) for n, v in each.items()}
        ends = zip(size, tuples["low"], kernel, tuples["dilation"], tuples["stride"], strict=True)
        out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, k, d, s in ends)
        return cls(samples, given.get("groups", 1), channels, outputs, size, kernel, **tuples, out=out)

    @property
    def attributes(self) -> tuple[Sizes, Sizes, Sizes, int]:
        return self.stride, self.low, self.dilation, self.groups

    def axes(self, make: Callable[..., PlanAxis], source: Sizes, results: Sizes) -> tuple[PlanAxis, ...]:
        return tuple(map(make, source, results, self.kernel, self.stride, self.low, self.dilation))

    def arrays(self, rng: np.random.Generator, dtype: np.dtype[Any], special: bool) -> tuple[Array, ...]:
        """Of x, weight, cotangent and bias."""
        shapes = (
            (self.samples, self.groups * self.channels, *self.size),
            (self.groups * self.outputs, self.channels, *self.kernel),
            (self.samples, self.groups * self.outputs, *self.out),
            (self.groups * self.outputs,),
        )
        made = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
        for x in made if special else []:
            if x.size:
                x.flat[rng.integers(0, x.size, x.size // 50 + 1)] = rng.choice(np.array(SPECIAL, dtype))
        return tuple(made)


def guarded(shape: Sizes, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Junk of a shape, and the memory that it lies in the middle of."""
    memory = np.full(prod(shape) + 2 * GUARD, JUNK, dtype)
    return memory, memory[GUARD : GUARD + prod(shape)].reshape(shape)


def kernel_call(
    run: Run, kernel: Kernel, shape: Sizes, inputs: list[Array], numbers: Words, part_bytes: int, parts: int
) -> Array:
    """What a kernel writes, checked to write its output and its scratch memory alone."""
    memory, out = guarded(shape, inputs[0].dtype)
    nbytes = Workspace(numbers, part_bytes, flops=0).scratch((), parts) if part_bytes else 0
    scratch, inside = guarded((nbytes,), np.dtype(np.uint8))
    assert run(kernel, numbers, [out, *inputs, *([inside] if nbytes else [])], parts) == 0
    for around in (memory, scratch):
        assert (around[:GUARD] == JUNK).all() and (around[around.size - GUARD :] == JUNK).all()
    return out


def results(run: Run, plan: ConvPlan, x: Array, weight: Array, bias: Array | None, parts: int) -> Array:
    """(samples, channels, *classes, *results) by the kernels."""
    packed = (plan.groups * plan.padded * plan.depth,)
    weights = kernel_call(run, pack_weights, packed, [weight], Words(*weight_words(plan)), 0, parts)
    given = [x, weights] if bias is None else [x, weights, bias]
    shape = (plan.samples, plan.groups * plan.outputs, *plan.classes, *(axis.results for axis in plan.axes))
    return kernel_call(run, convolve, shape, given, words(plan), plan.image_bytes, parts)


def run_conv(run: Run, case: Case, x: Array, weight: Array, bias: Array | None = None, parts: int = 1) -> Array:
    axes = case.axes(forward, case.size, case.out)
    sizes = (case.samples, case.groups, case.channels, case.outputs)
    y = results(run, ConvPlan(*sizes, axes, x.itemsize, bias=bias is not None), x, weight, bias, parts)
    return y.reshape(*y.shape[:2], *case.out)


def run_input_grad(run: Run, case: Case, g: Array, weight: Array, parts: int = 1) -> Array:
    axes = case.axes(adjoint, case.out, case.size)
    plan = ConvPlan(case.samples, case.groups, case.outputs, case.channels, axes, g.itemsize, swapped=True)
    y = results(run, plan, g, weight, None, parts)
    shape = (case.samples, case.groups * case.channels, *case.size)
    return kernel_call(run, interleave, shape, [y], Words(*interleave_words(plan, case.size)), 0, parts)


def run_weight_grad(run: Run, case: Case, x: Array, g: Array, parts: int = 1) -> Array:
    sizes = (case.samples, case.groups, case.channels, case.outputs)
    plan = ConvPlan(*sizes, case.axes(forward, case.size, case.out), x.itemsize)
    shape = (case.groups, plan.depth, case.outputs)
    y = kernel_call(run, convolve_weights, shape, [x, g], words(plan), plan.gradient_bytes, parts)
    return np.array(y.transpose(0, 2, 1).reshape(case.groups * case.outputs, case.channels, *case.kernel))


def assert_reference(run: Run, case: Case, arrays: tuple[Array, ...], *parts: int) -> None:
    """All three kernels give the reference's bits in any number of shares."""
    x, weight, g, bias = arrays
    with np.errstate(all="ignore"):
        y = reference_dense.conv(x, weight, case.out, *case.attributes)
        biased = reference_dense.with_bias(y, bias)
        dx = reference_dense.conv_input_grad(g, weight, case.size, *case.attributes)
        dw = reference_dense.conv_weight_grad(x, g, case.kernel, *case.attributes)
    for n in parts:
        assert same(run_conv(run, case, x, weight, parts=n), y), (case, n)
        assert same(run_conv(run, case, x, weight, bias, n), biased), (case, n)
        assert same(run_input_grad(run, case, g, weight, n), dx), (case, n)
        assert same(run_weight_grad(run, case, x, g, n), dw), (case, n)


def random_case(rng: np.random.Generator) -> Case:
    """Small enough for the reference; any rank, stride, dilation, padding and number of groups."""
    while True:
        rank = int(rng.choice([1, 2, 3], p=[0.3, 0.5, 0.2]))
        size, kernel = (tuple(rng.integers(1, most, rank).tolist()) for most in ((40, 10, 5)[rank - 1], 4))
        stride, dilation = (tuple(rng.choice([1, 1, 1, 2, 3], rank).tolist()) for _ in range(2))
        low, groups = tuple(rng.integers(0, 4, rank).tolist()), int(rng.choice([1, 1, 2, 3]))
        samples, channels, outputs = (int(rng.integers(1, most)) for most in (4, 7, 20))
        if rng.random() < 0.25:  # small groups
            channels, outputs, groups = (int(rng.integers(*ends)) for ends in ((1, 3), (1, 4), (2, 12)))
        given = {"stride": stride, "low": low, "dilation": dilation, "groups": groups}
        case = Case.of(samples, channels, outputs, size, kernel, **given)
        terms = samples * prod(case.out) * channels * prod(kernel) * outputs * groups
        if min(case.out) > 0 and samples * prod(case.out) < 200 and terms < 30_000:
            return case


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "seed", [0, 1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)]
)
def test_random_convolutions(run: Run, monkeypatch: pytest.MonkeyPatch, seed: int, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(seed)
    for i in range(60):
        monkeypatch.setattr(kernels_plan, "IMAGE_BYTES", int(rng.choice([1, 2000, 1 << 18])))
        monkeypatch.setattr(kernels_plan, "FEWEST_RESULTS", int(rng.choice([1, 64])))
        case = random_case(rng)
        assert_reference(run, case, case.arrays(rng, dtype, special=i % 6 == 0), int(rng.integers(1, 8)))


BLOCKS = {
    "contraction of two blocks": Case.of(1, 30, 2, (3, 4), (3, 3), low=1),
    "contraction of one block": Case.of(1, 256, 2, (2, 2), (1, 1)),
    "gradient of a whole block": Case.of(1, 1, 2, (16, 16), (1, 1)),
    "gradient of blocks that cross samples": Case.of(7, 1, 2, (10, 9), (2, 2), low=1),
    "many blocks, samples of one position": Case.of(600, 1, 1, (2,), (2,)),
    "one vector": Case.of(2, 3, 3, (4, 4), (3, 3), low=1),
    "tall tiles, and a short one": Case.of(1, 2, 29, (7, 7), (3, 3), low=1),
    "more classes than taps": Case.of(1, 2, 3, (7, 8), (1, 2), stride=(3, 4)),
    "stride and dilation of one size": Case.of(2, 2, 3, (9, 11), (3, 3), stride=2, dilation=2, low=1),
    "three axes": Case.of(2, 3, 2, (4, 5, 6), (2, 3, 2), low=(0, 1, 1), stride=(1, 2, 1), dilation=(2, 1, 1)),
    "a kernel that is mostly in the padding": Case.of(1, 2, 2, (2, 1), (5, 5), low=4),
    "more channels alone than a vector has lanes": Case.of(2, 1, 1, (9, 11), (3, 3), groups=19, low=1),
    "channels alone, blocks that cross rows": Case.of(
        3, 1, 1, (23, 29), (2, 3), groups=3, stride=(1, 2), dilation=(2, 1), low=(1, 2)
    ),
    "channels alone along one axis": Case.of(7, 1, 1, (40,), (4,), groups=5, low=2),
    "channels alone, rows of one": Case.of(2, 1, 1, (300, 1), (2, 1), groups=2, stride=(2, 1)),
    "channels alone, a large kernel": Case.of(1, 1, 1, (6, 7), (5, 5), groups=2, low=4),
    "channels alone of three axes": Case.of(1, 1, 1, (3, 4, 5), (2, 2, 2), groups=3, low=1),
    "small groups, vectors that begin within one": Case.of(2, 2, 3, (9, 5), (3, 3), groups=7, stride=2, low=1),
    "small groups of no channel": Case.of(1, 0, 2, (4,), (2,), groups=3),
    "channels alone, no sample": Case.of(0, 1, 1, (4,), (2,), groups=3),
    "no channel": Case.of(2, 0, 3, (4,), (2,)),
    "no output": Case.of(2, 3, 0, (4,), (2,)),
    "no sample": Case.of(0, 3, 2, (4,), (2,)),
}
"""Sizes at which something begins."""


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", BLOCKS)
def test_edges_in_any_number_of_shares(run: Run, name: str, dtype: np.dtype[Any]) -> None:
    arrays = BLOCKS[name].arrays(np.random.default_rng(1), dtype, special=False)
    assert_reference(run, BLOCKS[name], arrays, 1, 2, 3, 50)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("image_bytes", [1, 4096, 1 << 30])
def test_strips_cannot_be_seen(
    run: Run, monkeypatch: pytest.MonkeyPatch, image_bytes: int, dtype: np.dtype[Any]
) -> None:
    monkeypatch.setattr(kernels_plan, "IMAGE_BYTES", image_bytes)
    monkeypatch.setattr(kernels_plan, "FEWEST_RESULTS", 1)
    rng = np.random.default_rng(2)
    for case in (
        Case.of(2, 3, 5, (17, 6), (3, 2), low=1),
        Case.of(2, 2, 3, (13, 5), (3, 3), stride=3, low=2, dilation=2),
        Case.of(1, 2, 2, (300,), (3,), stride=2),
    ):
        assert_reference(run, case, case.arrays(rng, dtype, special=False), 1, 4)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_totals_of_minus_zero(run: Run, dtype: np.dtype[Any]) -> None:
    """Minus zero comes from underflow alone; neither blocks nor a bias of -0 may lose its sign."""
    tiny = np.finfo(dtype).smallest_subnormal
    case = Case.of(1, 300, 3, (2,), (1,))
    x, weight = np.full((1, 300, 2), tiny, dtype), np.full((3, 300, 1), -tiny, dtype)
    minus = np.full((1, 3, 2), -0.0, dtype)
    assert same(run_conv(run, case, x, weight), minus)
    assert same(run_conv(run, case, x, weight, np.full(3, -0.0, dtype)), minus)
    assert same(run_conv(run, case, x, weight, np.zeros(3, dtype)), np.zeros((1, 3, 2), dtype))
    of_samples = Case.of(300, 1, 1, (1,), (1,))
    g, xs = np.full((300, 1, 1), -tiny, dtype), np.full((300, 1, 1), tiny, dtype)
    assert same(run_weight_grad(run, of_samples, xs, g), np.full((1, 1, 1), -0.0, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_an_order_of_its_own_would_be_seen(run: Run, dtype: np.dtype[Any]) -> None:
    case, rng = Case.of(3, 40, 4, (9, 9), (3, 3), low=1), np.random.default_rng(3)
    x, weight, g, _ = case.arrays(rng, dtype, special=False)
    assert not same(run_conv(run, case, x[:, ::-1].copy(), weight[:, ::-1].copy()), run_conv(run, case, x, weight))
    moved = run_weight_grad(run, case, x[::-1].copy(), g[::-1].copy())
    assert not same(moved, run_weight_grad(run, case, x, g))
    by_outputs = run_input_grad(run, case, g[:, ::-1].copy(), weight[::-1].copy())
    assert not same(by_outputs, run_input_grad(run, case, g, weight))
