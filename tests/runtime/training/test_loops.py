"""Models with loops in trainers: one run in every mode and on ranks, proven from its trace, op by op where asked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Dataset, Keep, Trainer
from dgrr.tape import checkpoint, nn, ops
from dgrr.trace import open_trace, replay

from ..fake_ranks import FakeRank, run_ranks

RNG = np.random.default_rng(4)
MODEL = nn.GRU(2, 3, batch_first=True)
X = RNG.standard_normal((20, 18, 2)).astype(np.float32)


def loss_fn(p: Any, x: Any) -> Any:
    """The layer's own loop, one around it, a choice, a checkpoint and a loop that ends by itself."""

    def body(h: Any, row: Any) -> Any:
        return ops.tanh(h + row * p["bias_hh_l0"][:3]), None

    y = MODEL(p, x[0])
    last, _ = ops.scan(body, y[:, 0], ops.swapaxes(y, 0, 1))
    last = ops.cond(ops.reduce_sum(last) > 0.2, lambda h: h * p["bias_hh_l0"][3:6], ops.tanh, last)
    last = checkpoint(lambda h: ops.sin(ops.tanh(h)) * h)(last)
    size = ops.while_loop(
        lambda s: s < 1.0, lambda s: s * 2.0, ops.stop_gradient(ops.reduce_max(ops.absolute(last))) + 0.01
    )
    return ops.reduce_mean(ops.square(last / size - 0.5))


def batches() -> Any:
    """Four of five samples."""
    return Dataset(X).batches(5, seed=1)


def trained(**options: Any) -> Any:
    """Digest and losses of two epochs."""
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(0.01), seed=3, **options)
    result = trainer.fit(batches(), epochs=2)
    return result.state_digest, result.losses.tolist()


@pytest.mark.parametrize("order", ["chain", "tree"])
def test_every_mode_makes_one_run(order: Any) -> None:
    options = {"accumulate": 2, "order": order}
    eager = trained(mode="eager", **options)
    assert trained(mode="capture", **options) == eager == trained(mode="replay", **options)


def test_ranks_make_the_run_of_one_process() -> None:
    options: dict[str, Any] = {"accumulate": 4, "order": "tree"}
    expected = trained(**options)

    def run(rank: FakeRank) -> Any:
        return trained(ranks=rank, **options)

    assert run_ranks(2, run) == [expected] * 2


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_trace_proves_the_run_and_knows_the_results_of_loops(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.dgrr"
    trained(mode=mode, trace=Keep(path, ops="every"))
    report = replay(path, loss_fn=loss_fn, batches=batches())
    assert report.ok and (report.update, report.gradient, report.data) == ("proven",) * 3, report
    with open_trace(path) as trace:
        names = [node.op for node in trace.ops(0).nodes]
    assert names.count("scan") == 3
