"""A second fit goes on with the run: with its data, and in its trace, finished or not."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Callback, Dataset, Trainer
from dgrr.runtime.data import Batches
from dgrr.trace import UnsealedTraceWarning, open_trace, replay, validate

from ...keeping import kept

DATA = Dataset(np.arange(22.0).reshape(11, 2))
FIRST, ALL = 8, 19
"""Steps of the first fit and of both; an epoch has 6, so that the first ends within one."""


def loss_fn(p: Any, batch: Any) -> Any:
    return ((p["w"] * batch[0]) ** 2).mean()


def batches() -> Batches[Any]:
    return DATA.batches(2, seed=1)


def new_trainer(path: Path | None, **options: Any) -> Trainer:
    return Trainer(loss_fn, {"w": np.ones(2)}, Adam(0.1), **({} if path is None else kept(path, options)))


def links(path: Path) -> list[bytes]:
    with open_trace(path) as trace:
        assert trace.sealed
        return [view.link for view in trace]


def whole(folder: Path, **options: Any) -> list[bytes]:
    """The state chain of the run that is one fit."""
    new_trainer(folder / "whole", **options).fit(batches(), steps=ALL)
    return links(folder / "whole")


KEPT: list[dict[str, Any]] = [
    {},
    {"record": "digest", "digest": "sha256", "ema": 0.9},
    {"ops": "first", "keyframe_every": 3},
    {"keyframe_every": 2, "keyframe_budget": 200, "mode": "eager"},
]


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_two_fits_of_a_trainer_are_one_run(tmp_path: Path, kept: dict[str, Any]) -> None:
    trainer = new_trainer(tmp_path / "t", **kept)
    trainer.fit(batches(), steps=FIRST)
    trainer.fit(batches(), steps=ALL - FIRST)
    assert links(tmp_path / "t") == whole(tmp_path, **kept)
    assert validate(tmp_path / "t").ok
    assert replay(tmp_path / "t", loss_fn=loss_fn, batches=batches()).ok
    assert sorted(os.listdir(tmp_path)) == ["t", "whole"]


def test_a_loaded_fit_that_had_ended_goes_on_to_larger_totals(tmp_path: Path) -> None:
    files: dict[str, Any] = {"path": tmp_path / "t", "checkpoint": tmp_path / "ckpt"}
    new_trainer(**files).fit(batches(), steps=FIRST)
    before = (tmp_path / "t").read_bytes()
    again = new_trainer(**files)
    again.load(tmp_path / "ckpt")
    assert again.fit(batches(), steps=FIRST).steps == 0
    assert (tmp_path / "t").read_bytes() == before
    longer = new_trainer(**files)
    longer.load(tmp_path / "ckpt")
    assert longer.fit(batches(), steps=ALL).steps == ALL - FIRST
    assert links(tmp_path / "t") == whole(tmp_path)


def test_a_checkpoint_saved_between_two_fits_begins_a_new_one_in_the_same_trace(tmp_path: Path) -> None:
    first = new_trainer(tmp_path / "t")
    first.fit(batches(), epochs=1)
    first.save(tmp_path / "ckpt")
    again = new_trainer(tmp_path / "t", overwrite=True)
    again.load(tmp_path / "ckpt")
    assert again.fit(batches(), steps=2).steps == 2
    assert len(links(tmp_path / "t")) == 8


def test_other_weights_do_not_go_on_in_the_trace(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "t")
    trainer.fit(batches(), steps=FIRST)
    before = (tmp_path / "t").read_bytes()
    trainer.params["w"][0] = 5.0
    with pytest.raises(
        ValueError, match=r"resume: 'w' is not what .* expected the digest \w+, got \w+; .*another name"
    ):
        trainer.fit(batches(), steps=1)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("t", before)]


class Killed(BaseException):
    """Stands for the end of the process."""


def killed_in_the_copy(path: Path) -> None:
    """What a process leaves that is killed while it copies the finished trace."""
    Path(f"{path}.partial").write_bytes(path.read_bytes()[:1000])


def killed_after_the_copy(path: Path) -> None:
    Path(f"{path}.partial").write_bytes(path.read_bytes())


def killed_within_the_second_fit(path: Path) -> None:
    class Stop(Callback):
        def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
            if step == FIRST + 2:
                raise Killed
            return None

    again = new_trainer(path, checkpoint=path.parent / "ckpt", callbacks=[Stop()])
    again.load(path.parent / "ckpt")
    with pytest.raises(Killed):
        again.fit(batches(), steps=ALL)


KILLS = [killed_in_the_copy, killed_after_the_copy, killed_within_the_second_fit]


@pytest.mark.parametrize("killed", KILLS)
def test_a_kill_loses_nothing_of_the_finished_trace(tmp_path: Path, killed: Callable[[Path], None]) -> None:
    path = tmp_path / "t"
    new_trainer(path, checkpoint=tmp_path / "ckpt").fit(batches(), steps=FIRST)
    before = path.read_bytes()
    killed(path)
    assert path.read_bytes() == before
    with (
        pytest.warns(UnsealedTraceWarning, match="exists too: a longer run, or a later one"),
        open_trace(path) as trace,
    ):
        assert len(trace) == FIRST
    again = new_trainer(path, checkpoint=tmp_path / "ckpt")
    again.load(tmp_path / "ckpt")
    again.fit(batches(), steps=ALL)
    assert not Path(f"{path}.partial").exists()
    assert links(path) == whole(tmp_path)


def test_trainers_that_share_batches_train_on_the_same(tmp_path: Path) -> None:
    shared = batches()
    list(shared)
    digests = [new_trainer(None).fit(shared, steps=4).state_digest for _ in range(2)]
    assert digests == [new_trainer(None).fit(batches(), steps=4).state_digest] * 2


def test_a_replay_begins_with_the_first_epoch_whatever_was_iterated(tmp_path: Path) -> None:
    shared = batches()
    new_trainer(tmp_path / "t", record="digest").fit(shared, epochs=2)
    assert [replay(tmp_path / "t", loss_fn=loss_fn, batches=shared).ok for _ in range(2)] == [True, True]


def test_a_second_fit_goes_on_with_the_data_and_counts_the_epoch_that_was_begun() -> None:
    trainer, one = new_trainer(None), new_trainer(None)
    trainer.fit(batches(), steps=FIRST)
    assert trainer.fit(batches(), epochs=2).steps == 10
    assert trainer.fit(batches()).steps == 6
    assert one.fit(batches(), epochs=4).state_digest == trainer.fit(batches(), steps=0).state_digest


def test_other_batches_begin_with_their_first_epoch() -> None:
    other = Dataset(np.arange(8.0).reshape(4, 2)).batches(2, seed=4)
    trainer, lists = new_trainer(None), new_trainer(None)
    trainer.fit(batches(), steps=FIRST)
    lists.fit(batches(), steps=FIRST)
    assert trainer.fit(other).state_digest == lists.fit(list(other.epoch(0))).state_digest
