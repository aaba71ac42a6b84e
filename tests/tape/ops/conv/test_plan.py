"""Plans of convolutions: where terms are read, how images are cut, what the tables of the kernels say."""

from itertools import product
from typing import Any

import pytest

from dgrr.tape.numerics.simd import codegen as simd
from dgrr.tape.ops.conv.kernels import plan as kernels_plan, tile
from dgrr.tape.ops.conv.kernels.axis import PlanAxis, adjoint, forward
from dgrr.tape.ops.conv.kernels.plan import ConvPlan
from dgrr.tape.ops.conv.kernels.words import Workspace, words

WIDTHS = (16, 32, 64)


@pytest.mark.parametrize(("kernel", "stride", "low", "dilation"), list(product((1, 2, 4), (1, 2, 3), (0, 2), (1, 2))))
def test_the_adjoint_meets_what_the_convolution_meets(kernel: int, stride: int, low: int, dilation: int) -> None:
    size, positions = 30, 8
    of_conv, of_adjoint = (make(30, 8, kernel, stride, low, dilation) for make in (forward, _adjoint))
    met = {(q * of_conv.step + start, t, q) for t, (_, start) in enumerate(of_conv.taps) for q in range(positions)}
    back = {
        (q * stride + c, t, q + start)
        for t, (c, start) in enumerate(of_adjoint.taps)
        for q in range(of_adjoint.results)
    }
    inside = {(i, t, q) for i, t, q in back if i < size and 0 <= q < positions}
    assert inside == {(i, t, q) for i, t, q in met if 0 <= i < size}


def _adjoint(size: int, positions: int, *rest: int) -> PlanAxis:
    return adjoint(positions, size, *rest)


def plan_of(channels: int, *axes: PlanAxis, outputs: int = 1, itemsize: int = 4) -> ConvPlan:
    return ConvPlan(1, 1, channels, outputs, axes, itemsize)


def test_an_image_that_fits_holds_all_rows() -> None:
    axis = forward(28, 28, 3, 1, 1, 1)
    assert plan_of(16, axis, axis).strip == 28


def test_strips_are_of_nearly_equal_height_and_fit() -> None:
    axis = forward(100, 100, 3, 1, 1, 1)
    plan = plan_of(16, axis, axis)
    assert plan.strip == 10  # 11 rows would fit, and leave one row for the last strip
    assert plan.image_bytes <= kernels_plan.IMAGE_BYTES
    assert 11 * 3 * 16 * 100 * 4 <= kernels_plan.IMAGE_BYTES < 14 * 3 * 16 * 100 * 4


def test_a_strip_has_results_for_two_tiles_however_many_channels_there_are() -> None:
    axis = forward(14, 14, 3, 1, 1, 1)
    plan = plan_of(4096, axis, axis)
    assert plan.strip * plan.inner >= kernels_plan.FEWEST_RESULTS
    assert plan.image_bytes > kernels_plan.IMAGE_BYTES


def test_only_rows_that_taps_meet_are_copied() -> None:
    plan = plan_of(1, forward(9, 3, 1, 3, 0, 1), forward(4, 4, 1, 1, 0, 1))
    assert plan.phases == (0,)
    assert plan.plane == 3 * 4
    assert plan_of(1, forward(9, 3, 3, 3, 0, 1), forward(4, 4, 1, 1, 0, 1)).phases == (0, 1, 2)


def test_a_convolution_of_one_axis_has_one_row() -> None:
    plan = plan_of(2, forward(50, 50, 3, 1, 1, 1))
    assert (plan.strip, plan.inner, plan.planes) == (1, 50, 3)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("outputs", [0, 1, 4, 5, 8, 9, 12, 13, 16, 29, 64])
def test_tiles_hold_all_outputs_and_little_more(monkeypatch: pytest.MonkeyPatch, width: int, outputs: int) -> None:
    monkeypatch.setattr(tile, "vector_bytes", lambda: width)
    height, short = (tile.shape(which)[0] for which in (tile.TALL, tile.SHORT))
    tall, rest = tile.tiles(outputs, height, short)
    assert outputs <= tall * height + rest * short < outputs + short


@pytest.mark.parametrize("outputs", [0, 1, 4, 5, 8, 9, 12, 13, 16, 29, 64])
def test_a_plan_has_room_for_the_tiles_of_every_machine(monkeypatch: pytest.MonkeyPatch, outputs: int) -> None:
    made = set[tuple[int, ...]]()
    for width in WIDTHS:
        monkeypatch.setattr(tile, "vector_bytes", lambda width=width: width)
        plan = plan_of(3, forward(4, 4, 1, 1, 0, 1), outputs=outputs)
        height, short = (tile.shape(which)[0] for which in (tile.TALL, tile.SHORT))
        tall, rest = tile.tiles(outputs, height, short)
        assert tall * height + rest * short <= plan.padded < outputs + 2 * short
        made.add((plan.padded, *words(plan).values.tolist()))
    assert len(made) == 1


def test_every_part_has_memory_and_the_first_begins_at_a_cache_line() -> None:
    plan = plan_of(3, forward(40, 40, 3, 1, 1, 1), outputs=5)
    made: Any = words(plan)
    for nbytes in (plan.image_bytes, plan.gradient_bytes):
        assert nbytes % simd.CACHE_LINE == 0
        assert Workspace(made, nbytes, plan.flops).scratch((), 3) == 3 * nbytes + simd.CACHE_LINE
    assert Workspace(made, 1, plan.flops).words(()) is made


@pytest.mark.parametrize("results", [1, 16, 17, 33])
def test_the_vectors_of_the_last_result_lie_inside_the_image(results: int) -> None:
    plan = plan_of(2, forward(results, results, 3, 1, 1, 1), forward(3, 3, 1, 1, 0, 1))
    last_result = plan.channels * plan.planes * plan.plane - 1
    assert last_result * plan.itemsize + 2 * max(WIDTHS) <= plan.image_bytes
