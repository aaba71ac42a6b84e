"""Mode `salvage`: what is whole of a damaged file is read where it stands, and proves nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import (
    InvalidTraceError,
    NotRecordedError,
    Trace,
    Verdict,
    compare,
    open_trace,
    replay,
    validate,
)

from ..repair.test_recover import EVENT, KEYFRAME, SEAL, STEP, bounds_of, flipped, with_ops
from .test_damage import frame_bounds

RecordRun = Callable[..., Path]


def salvaged(path: Path, data: bytes, *frames: tuple[int, int]) -> Trace:
    """A copy with damage in these frames, read in mode `salvage`."""
    for start, _ in frames:
        data = flipped(data, start + 60)
    path.write_bytes(data)
    return open_trace(path, mode="salvage")


def test_steps_before_and_behind_damage(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=2).read_bytes()
    steps = bounds_of(data, STEP)
    with salvaged(tmp_path / "bad", data, steps[1], steps[4]) as found, open_trace(tmp_path / "run.dgrr") as run:
        assert (len(found), found.missing, found.salvaged, found.sealed) == (6, ((1, 1), (4, 4)), True, True)
        assert found.damage is not None
        assert found.damage.verdict is validate(tmp_path / "bad").verdict is Verdict.CORRUPT
        assert [view.step for view in found] == [0, 2, 3, 5]
        assert found.chained == ((0, 0), (2, 3), (5, 5))
        for view in found:
            assert view.link == run[view.step].link
            assert all(np.array_equal(view.grad(name), run[view.step].grad(name)) for name in view.grad_digests)
        assert np.isnan(found.loss).tolist() == [False, True, False, False, True, False]
        assert found.loss.dtype == run.loss.dtype == np.float32
        assert found[-1].loss == run[5].loss
        assert found.last_keyframe(3) == 2
        assert found.keyframe(4).keys() == run.keyframe(4).keys()
        assert [event.text for _, event in found.events()] == [event.text for _, event in run.events()]
        assert "6 steps, sealed, damaged, 2 steps missing, mode grads" in repr(found)


def test_a_missing_step_is_an_error(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    with salvaged(tmp_path / "bad", data, bounds_of(data, STEP)[1]) as found:
        text = "trace: step 1 is not whole in this damaged file; trace.missing says which are not"
        for ask in (
            lambda: found[1],
            lambda: found[-5],
            lambda: found[0:3],
            lambda: found.tensor("w", step=1),
            lambda: found.ops(1),
            lambda: found.gradients(1),
        ):
            with pytest.raises(NotRecordedError) as raised:
                ask()
            assert str(raised.value) == text
        with pytest.raises(IndexError, match="expected a step from 0 to 5, got 6"):
            _ = found[6]
        with pytest.raises(NotRecordedError, match="'w' before step 2 is not recorded"):
            found.tensor("w", step=2, what="before")


def test_steps_of_another_run_are_told_apart(record_run: RecordRun, tmp_path: Path) -> None:
    """Two files of one salt, joined where the first was cut: every frame is whole and every number is there."""
    a = record_run("a.dgrr").read_bytes()
    b = record_run("b.dgrr", diverge=1).read_bytes()
    at = bounds_of(a, STEP)[2][1]
    assert at == bounds_of(b, STEP)[2][1]
    for other, chained in ((a, ((0, 5),)), (b, ((0, 2), (3, 5)))):
        with salvaged(tmp_path / "bad", a[:at] + other[at - 16 :]) as found:
            assert (found.missing, found.chained) == ((), chained)


def test_a_damaged_value_alone(record_run: RecordRun, tmp_path: Path) -> None:
    """Its step is there, with its digests."""
    data = record_run(dtype=np.float64).read_bytes()
    (tmp_path / "bad").write_bytes(flipped(data, bounds_of(data, STEP)[2][1] - 24))
    with open_trace(tmp_path / "bad") as strict:  # which finds it when it reads that
        assert not strict.salvaged
    with open_trace(tmp_path / "bad", mode="salvage") as found:
        assert found.missing == ()
        with pytest.raises(InvalidTraceError, match="'w' is not what its digest says"):
            found[2].gradients()


def test_a_file_cut_short(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    start, _ = bounds_of(data, STEP)[4]
    with salvaged(tmp_path / "bad", data[: start + 60]) as found:  # its head is left
        assert (len(found), found.missing, found.sealed) == (5, ((4, 4),), False)
    with salvaged(tmp_path / "bad", data, bounds_of(data, STEP)[5], bounds_of(data, SEAL)[0]) as found:
        assert (len(found), found.missing) == (6, ((5, 5),))


def test_lost_keyframes(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=2).read_bytes()
    with salvaged(tmp_path / "bad", data, bounds_of(data, KEYFRAME)[0]) as found:
        assert found.missing == ()
        assert not found.has_keyframe(0)
        assert found.last_keyframe(5) == 4
        with pytest.raises(NotRecordedError, match="no keyframe at or before step 1 is whole in this damaged file"):
            found.last_keyframe(1)


def test_ops_and_values_behind_damage(tmp_path: Path) -> None:
    data = with_ops(tmp_path / "run.dgrr")
    with salvaged(tmp_path / "bad", data, bounds_of(data, STEP)[1]) as found, open_trace(tmp_path / "run.dgrr") as run:
        assert [found.ops(k) for k in (0, 2, 3)] == [run.ops(k) for k in (0, 2, 3)]
        assert np.array_equal(found.tensor("w", step=3), run.tensor("w", step=3))


def test_an_undamaged_file_is_read_as_ever(record_run: RecordRun, tmp_path: Path) -> None:
    with open_trace(record_run(), mode="salvage") as found:
        assert (len(found), found.missing, found.salvaged, found.damage) == (6, (), False, None)
        assert found.chained == ()
        assert compare(found, tmp_path / "run.dgrr").same
    with open_trace(record_run("unsealed", seal=False), mode="salvage") as found:
        assert (len(found), found.salvaged, found.sealed) == (6, False, False)


def test_it_proves_nothing(record_run: RecordRun, tmp_path: Path) -> None:
    data, bad = record_run().read_bytes(), tmp_path / "bad"
    with salvaged(bad, data, bounds_of(data, EVENT)[0]) as found:  # every step is there
        assert found.missing == ()
        assert (validate(bad).verdict, replay(bad).verdict) == (Verdict.CORRUPT, Verdict.CORRUPT)
        answer = compare(tmp_path / "run.dgrr", found)
        assert answer.verdict is Verdict.CORRUPT
        assert f"{bad}: read in mode 'salvage', which proves nothing: the CRC of a front is wrong" in " ".join(
            str(answer).split()
        )


def test_without_a_beginning_there_is_nothing(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    for at in (20, 300):
        (tmp_path / "bad").write_bytes(flipped(data, at))
        with pytest.raises(InvalidTraceError):
            open_trace(tmp_path / "bad", mode="salvage")


def test_every_damaged_frame(record_run: RecordRun, tmp_path: Path) -> None:
    """Whatever is damaged, all other steps are there, with their losses."""
    data = record_run(steps=4, keyframe_every=2, commit_every=2).read_bytes()
    with open_trace(tmp_path / "run.dgrr") as run:
        losses = run.loss.tolist()
    for start, _ in frame_bounds(data)[1:]:
        for at in (start + 1, start + 9, start + 50):
            (tmp_path / "bad").write_bytes(flipped(data, at))
            lost = int.from_bytes(data[start + 16 : start + 24], "little") if data[start + 4] == STEP else None
            with open_trace(tmp_path / "bad", mode="salvage") as found:
                assert {view.step: view.loss for view in found} == {
                    k: loss for k, loss in enumerate(losses) if k != lost
                }
                assert found.missing == (() if lost is None else ((lost, lost),))
