"""Comparing traces, rolling back, and the commands."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import Cause, InvalidTraceError, Verdict, compare, open_trace, replay, validate
from dgrr.trace.v2.check.difference import first_difference
from dgrr.trace.v2.write.rollback import rollback_v2

RecordRun = Callable[..., Path]


def links(path: Path) -> list[bytes]:
    with open_trace(path) as trace:
        return [view.link for view in trace]


def test_the_state_chain_does_not_depend_on_how_a_run_is_written(record_run: RecordRun) -> None:
    plain = record_run("a")
    others = [
        {"salt": bytes(range(16)), "created_at": 1},
        {"commit_every": 1, "keyframe_every": 2},
        {"commit_every": None, "events": False},
        {"record": "digest"},
        {"record": "full", "largest_payload": 4096},
        {"seal": False},
    ]
    for i, options in enumerate(others):
        other = record_run(f"b{i}", **options)
        assert other.read_bytes() != plain.read_bytes()
        assert links(other) == links(plain)
        assert compare(plain, other).verdict is Verdict.OK


@pytest.mark.parametrize("seed", range(3))
def test_unequal_links_stay_unequal(record_run: RecordRun, seed: int) -> None:
    a = links(record_run("a", steps=40, seed=seed))
    for step in (0, 1, 20, 39):
        b = links(record_run(f"b{step}", steps=40, seed=seed, diverge=step))
        assert [x == y for x, y in zip(a, b, strict=True)] == [k < step for k in range(40)]


@pytest.mark.parametrize("step", [0, 1, 3, 7, 18, 19])
def test_the_first_divergent_step_and_tensor(record_run: RecordRun, step: int) -> None:
    found = compare(record_run("a", steps=20), record_run("b", steps=20, diverge=step))
    assert (found.verdict, found.step) == (Verdict.DIVERGED, step)
    first, *others = found.tensors
    assert (first.name, first.what, first.differing, first.worst[0].index) == ("w", "grad", 1, (1, 0))
    assert [(t.name, t.what, t.recorded) for t in others] == [(n, "after", False) for n in ("w", "m/w", "v/w")]


def test_sealed_traces_are_bisected(record_run: RecordRun, monkeypatch: pytest.MonkeyPatch) -> None:
    a = record_run("a", steps=1500, record="digest", optimizer="sgd")
    b = record_run("b", steps=1500, record="digest", optimizer="sgd", diverge=1033)
    with open_trace(a) as x, open_trace(b) as y:
        reads: list[int] = []
        real = os.pread
        monkeypatch.setattr(os, "pread", lambda d, n, o: reads.append(n) or real(d, n, o))
        assert compare(x, y).step == 1033
    assert len(reads) < 700  # of which the curves of the losses take 500; a scan would take more than 6,000


def test_different_lengths(record_run: RecordRun) -> None:
    found = compare(record_run("a", steps=4), record_run("b", steps=6))
    assert (found.verdict, found.step) == (Verdict.DIVERGED, 4)
    assert (found.cause, found.sentence) == (Cause.LENGTH, "equal to the bit for 4 steps; then b goes on, to 6")


def test_different_state_every_is_compared_step_by_step(record_run: RecordRun) -> None:
    a, b = record_run("a", state_every=1), record_run("b", state_every=3)
    assert compare(a, b).verdict is Verdict.OK
    assert compare(a, record_run("c", state_every=3, diverge=4)).step == 4


def test_different_beginnings(record_run: RecordRun) -> None:
    found = compare(record_run("a"), record_run("b", seed=1))
    assert (found.verdict, found.step, found.cause) == (Verdict.DIVERGED, None, Cause.START)
    assert (found.tensors[0].name, found.tensors[0].what, found.tensors[0].differing) == ("w", "before", 6)
    assert compare(record_run("c"), record_run("d", optimizer="sgd")).cause is Cause.RULE
    found = compare(record_run("e"), record_run("f", dtype=np.float64))
    assert found.cause is Cause.MODEL
    assert found.sentence == "the models differ: param 'w' f32 (3, 2) became param 'w' f64 (3, 2)"


def test_first_difference() -> None:
    one = np.float32(1)
    a = np.array([1, 0, 0, np.nan, np.nan, 1, -1], np.float32)
    b = np.array([np.nextafter(one, np.float32(2)), -0.0, 1e-45, np.nan, 1, np.inf, 1], np.float32)
    assert first_difference(a[:2], b[:2], 1) is None
    difference = first_difference(a[1:2], b[1:2])
    assert difference is not None
    assert difference.ulp == 0  # at tolerance 0 the bits count, and +0 is not -0
    assert first_difference(np.array([1, 2]), np.array([1, 3])) == ((1,), 2, 3, None)


@pytest.mark.parametrize("step", [0, 3, 4, 6])
@pytest.mark.parametrize("state_every", [1, 4])
def test_rollback_makes_a_child(record_run: RecordRun, tmp_path: Path, step: int, state_every: int) -> None:
    path = record_run(state_every=state_every, keyframe_every=2)
    before = path.read_bytes()
    assert rollback_v2(path, step, tmp_path / "child") == 6 - step
    assert path.read_bytes() == before
    assert validate(tmp_path / "child").ok
    assert links(tmp_path / "child") == links(path)[:step]
    with open_trace(tmp_path / "child") as child:
        assert child.header.parent_root == before[-16:] + bytes(16)
        assert child.header.parent_steps == step
        assert child.header.salt != bytes(16)
    provable = state_every == 1 or step in (0, 4, 6)
    assert replay(tmp_path / "child").verdict is (Verdict.OK if provable else Verdict.UNPROVEN)


def test_rollback_refuses(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run()
    with pytest.raises(ValueError, match="step: expected 0 to 6, got 7"):
        rollback_v2(path, 7, tmp_path / "child")
    with pytest.raises(ValueError, match="always writes a new file"):
        rollback_v2(path, 2, path)
    (tmp_path / "torn").write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InvalidTraceError):
        rollback_v2(tmp_path / "torn", 2, tmp_path / "child")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.dgrr", "torn"]
