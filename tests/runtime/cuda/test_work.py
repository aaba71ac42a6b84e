"""Nothing walks alone: the work of one thread does not grow with what its kernel is given, but where it is said."""

from typing import Any

import numpy as np
import pytest

import dgrr.runtime as runtime
from dgrr.base.errors import DgrrError
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.record.op import OPS
from dgrr.tape.record.samples import Make

from . import growth

TEAM = "a row, or the rows of a column, are those of a team of 16 to 512 threads"
TILE = "an element's terms go down one chain, as the contract says; a tile shares what it reads"

WRITTEN = {
    **dict.fromkeys(("softmax", "log_softmax", "masked_softmax", "scaled_softmax_grad", "logsumexp"), TEAM),
    **dict.fromkeys(("cross_entropy_rows", "cross_entropy_grad", "row_statistics", "inverse_deviations"), TEAM),
    **dict.fromkeys(("normalize", "normalize_grad", "normalize_weight_grad", "column_weight_grad"), TEAM),
    **dict.fromkeys(("gemm", "convolve", "convolve_weights", "interleave"), TILE),
}
"""Written kernels whose threads have more to do of larger arrays."""

FACTORS = "each column follows from those before it"
EXTREMES = "a row, or a column, is one thread's: of few and long ones a GPU has little to do"
RUNNING = "each place follows from the one before it; a row is one thread's"
WINDOWS = "an element goes through the windows, or the sources, that it may have a part in"

TRANSLATED = {
    **dict.fromkeys(("cholesky", "solve", "solve_triangular", "reflections", "rotations"), FACTORS),
    **dict.fromkeys(("max_rows", "min_rows", "max_columns", "min_columns", "argmax_rows", "argmin_rows"), EXTREMES),
    **dict.fromkeys(("prod_rows", "prod_columns", "prod_but_one"), EXTREMES),
    **dict.fromkeys(("cumsum", "cumprod", "running_place"), RUNNING),
    **dict.fromkeys(("nll_grad", "one_hot"), "a row of classes is one thread's"),
    **dict.fromkeys(("give_to_largest", "last_sources"), WINDOWS),
    "argsort_rows": "each key is compared with all others of its row",
    "argtopk_rows": "a row is one thread's",
    "scatter_add_along_axis": "a row is one thread's, so that what meets at an index is added in order",
    "mean_of_counted": "the losses of all rows make one number, in one order",
}
"""Translated kernels whose threads have more to do of larger arrays: what is to be written next."""

MORE = {"recurrence": RUNNING, "window_shares": WINDOWS}
"""The same, of sizes that only more pairs of calls show (`growth.TIMES`)."""

OF_THE_HOST = tuple(f"dgrr.tape.numerics.{room}." for room in ("crc32", "prepared", "xxh3"))
"""Loops and choices, which a GPU has not, and what traces are made of."""

NOT_HELD = {
    "gemm_reference": "stands for gemm, which is written, where tests leave its tiles out",
    "chain": "its links are elementwise: a thread has one element",
    "finite": "of steps: see the test of updates",
    "join_columns": "made by a pass, of what append makes",
    "pack_panels": "made by a pass that is none on a GPU",
}


@pytest.mark.long
def test_written_kernels_that_walk_are_named() -> None:
    grown, held = set[str](), set[str]()
    for op in OPS:
        for small, large in growth.pairs(op, growth.SHAPED):
            before, after = growth.written_work(small.plan()), growth.written_work(large.plan())
            held |= before.keys()
            grown |= {name for name in before if growth.has_grown(before[name], after[name], 16)}
    assert grown ^ WRITTEN.keys() == set()
    assert growth.WRITTEN - held <= {"tensor_norm", "cross_entropy_rows_with_grad"}, "made by steps and passes"


@pytest.mark.long
@pytest.mark.xdist_group("cuda")
def test_translated_kernels_that_walk_are_named(stand_in: Any, host_gpu: Any) -> None:
    calls, run = growth.calls_of_translated(), growth.Runner(stand_in)
    stand_in.modules_of(growth.wanted(call for pair in calls for call in pair))
    grown, held = set[str](), set[str]()
    for small, large in calls:
        try:
            before, after = run(small), run(large)
        except DgrrError:
            continue  # a matrix without an inverse
        held |= before.keys()
        grown |= {name for name in before if growth.has_grown(before[name], after[name])}
    assert (grown - growth.WRITTEN - MORE.keys()) ^ TRANSLATED.keys() == set()
    homes = {name: kernel.body.__module__ for name, kernel in KERNELS.items()}
    own = {name for name, home in homes.items() if home.startswith("dgrr.tape.") and not home.startswith(OF_THE_HOST)}
    assert (own - held - growth.WRITTEN) ^ NOT_HELD.keys() == set()


@pytest.mark.xdist_group("cuda")
@pytest.mark.parametrize(("op", "walks"), [("exp", False), ("cumprod", True)])
def test_a_walk_is_seen(stand_in: Any, host_gpu: Any, op: str, walks: bool) -> None:
    run = growth.Runner(stand_in)
    small, large = next(growth.pairs(op, growth.RUN))
    before, after = run(small), run(large)
    assert [growth.has_grown(before[name], after[name]) for name in before] == [walks]


@pytest.mark.xdist_group("cuda")
def test_an_update_has_an_element_a_thread(stand_in: Any, host_gpu: Any) -> None:
    def work(elements: int) -> dict[str, int]:
        params = {f"w{i}": Make(np.float32)(elements) for i in range(2)}
        x = np.ones(elements, np.float32)
        step = runtime.capture(
            lambda p, x: sum((w * x for w in p.values()), x).sum(), params, runtime.Adam(0.1), x, device="cuda",
            clip_norm=1.0, clip_value=0.5, ema=0.9,
        )  # fmt: skip
        host_gpu.busiest.clear()
        step(x)
        return growth.Runner(stand_in).by_kernel()

    small, long = work(40), work(400)
    assert {"adam_step", "ema_step", "scale_by", "clamp_to"} <= small.keys()
    assert [name for name in small if growth.has_grown(small[name], long[name])] == []
