"""Ranks of which some compute on a GPU; the GPU is this machine, the code that of a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, EagerStep, Trainer
from dgrr.runtime.cuda import driver
from dgrr.runtime.ranks.ranked_step import RankedStep
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import BoundsError, nn, ops

from ..fake_ranks import FakeRank, run_ranks

pytestmark = [pytest.mark.usefixtures("host_gpu"), pytest.mark.xdist_group("cuda")]

MODEL = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.BatchNorm(3), nn.Dropout(0.5), nn.Linear(3, 2))
RNG = np.random.default_rng(0)
MICRO = [(RNG.standard_normal((5, 4)).astype(np.float32), RNG.integers(0, 2, 5)) for _ in range(15)]
BATCHES = [tuple(MICRO[k : k + 3]) for k in range(0, 15, 3)]


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    x, labels = batch
    loss = ops.cross_entropy(MODEL(p, x, ctx), labels)
    return loss, ctx.state, {"half": loss * 0.5}


RECIPE = Recipe(Adam(0.1), 3, clip_norm=0.5, ema=0.9, order="tree", frozen=["0.bias"])


def of_ranks(devices: str) -> list[Any]:
    """Losses, norms, metrics and the digest of each rank; "g" is one on a GPU, "c" one on the CPU."""

    def run(rank: FakeRank) -> Any:
        device: Any = {"g": "cuda", "c": "cpu"}[devices[rank.rank]]
        step = RankedStep(loss_fn, MODEL.init(0), RECIPE, rank, model_state=MODEL.init_state(), seed=3, device=device)
        rows = [
            (float(step(batch[step.own.start : step.own.stop])), step.norm, step.metrics["half"]) for batch in BATCHES
        ]
        return rows, step.digest()

    return run_ranks(len(devices), run)


@pytest.mark.long
def test_any_mixture_ends_with_the_bits_of_one_process() -> None:
    one = EagerStep(loss_fn, MODEL.init(0), RECIPE, MODEL.init_state(), seed=3)
    rows = [(float(one(batch)), one.norm, one.metrics["half"]) for batch in BATCHES]
    for devices in ("g", "gc", "cgc", "ggg"):
        assert of_ranks(devices) == [(rows, one.digest())] * len(devices), devices


def test_each_rank_asks_for_the_gpu_of_its_place_on_the_machine(monkeypatch: pytest.MonkeyPatch, host_gpu: Any) -> None:
    asked = list[int]()
    monkeypatch.setattr(driver, "_gpu", lambda number: (asked.append(number), host_gpu)[1])
    of_ranks("gcg")
    assert sorted(asked) == [0, 2]


@pytest.mark.long
def test_a_rank_is_replaced_by_one_of_the_other_kind(tmp_path: Path) -> None:
    """One GPU and two CPUs stop after two steps, and go on as a CPU, a GPU and a CPU from the checkpoint."""

    def made(rank: FakeRank | None, device: str) -> Trainer:
        given: dict[str, Any] = {"accumulate": 3, "order": "tree", "model_state": MODEL.init_state(), "device": device}
        return Trainer(loss_fn, MODEL.init(0), Adam(0.1), ranks=rank, **given)

    def first(rank: FakeRank) -> None:
        trainer = made(rank, ["cuda", "cpu", "cpu"][rank.rank])
        trainer.fit(MICRO, steps=2)
        trainer.save(tmp_path / "run.ckpt")

    def then(rank: FakeRank) -> tuple[str, float]:
        trainer = made(rank, ["cpu", "cuda", "cpu"][rank.rank])
        trainer.load(tmp_path / "run.ckpt")
        return trainer.fit(MICRO).state_digest, trainer.evaluate(MICRO[:4])

    run_ranks(3, first)
    alone = made(None, "cpu")
    alone.fit(MICRO, steps=2)
    digest = alone.fit(MICRO).state_digest
    assert run_ranks(3, then) == [(digest, alone.evaluate(MICRO[:4]))] * 3


def test_a_label_out_of_range_is_refused_in_the_words_of_the_cpu() -> None:
    wrong = tuple((x, np.full(5, 7)) for x, _ in BATCHES[0])
    found = set[str]()
    for device in ("cpu", "cuda"):
        given: dict[str, Any] = {"model_state": MODEL.init_state(), "device": device}
        step = RankedStep(loss_fn, MODEL.init(0), RECIPE, FakeRank.alone(), **given)
        with pytest.raises(BoundsError) as caught:
            step(wrong)
        found.add(str(caught.value))
    assert len(found) == 1
