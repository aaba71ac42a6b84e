"""Recovering: what is whole of a trace that was cut, damaged or never finished."""

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import (
    CompletedStep,
    InvalidTraceError,
    Recovery,
    StepTape,
    TapeNode,
    TraceWriteError,
    Verdict,
    compare,
    open_trace,
    recover,
    replay,
    validate,
)
from dgrr.trace.cli.main import main
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.v2.repair.rollback import rollback_v2

from ....keeping import recorder_of
from ..read.test_damage import frame_bounds
from ..read.test_hostile import frame

RecordRun = Callable[..., Path]
KEYFRAME, STEP, COMMIT, INDEX, SEAL, EVENT, OPS, NODES, VALUES, METRICS = 2, 3, 4, 5, 6, 7, 128, 129, 130, 131


def links(path: Path | str) -> list[bytes]:
    with open_trace(path) as trace:
        return [view.link for view in trace]


def kinds(data: bytes) -> list[int]:
    return [data[start + 4] for start, _ in frame_bounds(data)]


def bounds_of(data: bytes, kind: int) -> list[tuple[int, int]]:
    return [b for b in frame_bounds(data) if data[b[0] + 4] == kind]


def recovered(tmp_path: Path, data: bytes) -> Recovery:
    """Recover from these bytes, with what every recovery promises."""
    source, out = tmp_path / "source", tmp_path / "new"
    for old in tmp_path.glob("new*"):
        old.unlink()
    source.write_bytes(data)
    found = recover(source, out)
    assert source.read_bytes() == data
    assert found.found.verdict is validate(source).verdict
    assert found.parts
    assert found.parts[0].path == str(out)
    assert sorted(map(str, tmp_path.glob("new*"))) == [part.path for part in found.parts]
    for part in found.parts:
        assert validate(part.path).ok
        assert part.report.ok
        assert part.report.steps == part.steps == len(links(part.path))
    assert found.verdict is (Verdict.LOSSY if found.lossy else Verdict.OK)
    assert found.exit_code == (7 if found.lossy else 0)
    return found


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 4]) + data[offset + 1 :]


@pytest.mark.long
def test_every_truncation(record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a thousand files, none of which is to last
    path = record_run(steps=2, optimizer="sgd")
    data, whole = path.read_bytes(), links(path)
    bounds = frame_bounds(data)
    begun = bounds[1][1]
    for length in range(len(data)):
        if length < begun:
            (tmp_path / "source").write_bytes(data[:length])
            with pytest.raises(TraceFileError):
                recover(tmp_path / "source", tmp_path / "new")
            assert not list(tmp_path.glob("new*"))
            continue
        found = recovered(tmp_path, data[:length])
        steps = sum(end <= length for _, end in bounds_of(data, STEP))
        assert [part.steps for part in found.parts] == [steps], length
        assert links(tmp_path / "new") == whole[:steps]
        last = next(start for start, end in bounds if length < end)
        made_anew = data[last + 4] in (COMMIT, INDEX, SEAL) and length >= last + 48
        assert found.lossy is not (length == last or made_anew), length
        assert found.lost_bytes == (length - last if found.lossy else 0)


def test_a_flipped_bit_in_every_frame(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run(keyframe_every=2, commit_every=2)
    data, whole = path.read_bytes(), links(path)
    assert {KEYFRAME, STEP, COMMIT, INDEX, SEAL, EVENT} <= set(kinds(data))
    for start, end in frame_bounds(data)[1:]:
        kind, step = data[start + 4], int.from_bytes(data[start + 16 : start + 24], "little")
        for at in (start + 1, start + 9, start + 50, end - 17):  # sync, head, front, body or front
            found = recovered(tmp_path, flipped(data, at))
            known = at > start + 48
            assert found.lossy is not (known and kind in (COMMIT, INDEX, SEAL)), (kind, at)
            if kind == STEP:
                behind = -(-(step + 1) // 2) * 2  # the next keyframe
                parts = [(0, step)] + ([(behind, 6 - behind)] if behind < 6 else [])
                assert [(p.first, p.steps) for p in found.parts] == parts
                assert found.lost_steps == ((step, min(behind, 6) - 1),)
                assert links(tmp_path / "new") == whole[:step]
                if known:
                    assert found.lost_frames["STEP"] >= 1
            elif kind == KEYFRAME and step == 0:
                assert [(p.first, p.steps) for p in found.parts] == [(2, 4)]
                assert found.lost_steps == ((0, 1),)
            else:
                assert [(p.first, p.steps) for p in found.parts] == [(0, 6)]
                assert links(tmp_path / "new") == whole


def test_steps_behind_damage_are_a_trace_of_their_own(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run(keyframe_every=2)
    data = path.read_bytes()
    found = recovered(tmp_path, flipped(data, bounds_of(data, STEP)[2][0] + 60))
    child = found.parts[1].path
    assert child == f"{tmp_path / 'new'}.1"
    assert replay(child).ok
    with open_trace(path) as run, open_trace(child) as trace:
        assert [view.loss for view in trace] == [run[k].loss for k in (4, 5)]
        assert [view.grad_digests for view in trace] == [run[k].grad_digests for k in (4, 5)]
        assert trace.keyframe_digests(0) == run.keyframe_digests(4)
        assert trace.header.parent_root != bytes(32)
        assert trace.header.parent_steps == 2
        assert trace.header.salt != run.header.salt
        events = [(event.kind, event.text) for _, event in trace.events()]
        assert [kind for kind, _ in events] == ["recover", "environment"]
        assert json.loads(events[0][1]) == {"first": 4, "verdict": "corrupt"}
    assert "new.1: steps 4 to 5, as steps 0 to 1; structure proven, chain proven" in str(found)
    assert "lost  steps 2 to 3" in str(found)
    assert replay(found.parts[0].path).ok


def test_without_a_keyframe_behind_damage_there_is_one_part(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=100).read_bytes()
    found = recovered(tmp_path, flipped(data, bounds_of(data, STEP)[2][0] + 60))
    assert [(p.first, p.steps) for p in found.parts] == [(0, 2)]
    assert found.lost_steps == ((2, 5),)


def test_two_damages_make_three_parts(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(steps=9, keyframe_every=2).read_bytes()
    steps = bounds_of(data, STEP)
    found = recovered(tmp_path, flipped(flipped(data, steps[1][0] + 60), steps[5][0] + 60))
    assert [(p.first, p.steps) for p in found.parts] == [(0, 1), (2, 3), (6, 3)]
    assert found.lost_steps == ((1, 1), (5, 5))
    assert found.to_dict()["lost_steps"] == [[1, 1], [5, 5]]


def test_traces_of_another_library_have_no_second_part(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=2, numerics=0).read_bytes()
    found = recovered(tmp_path, flipped(data, bounds_of(data, STEP)[2][0] + 60))
    assert [(p.first, p.steps) for p in found.parts] == [(0, 2)]
    assert found.lost_steps == ((2, 5),)


def test_frames_of_unknown_types(record_run: RecordRun, tmp_path: Path) -> None:
    """What may be skipped is lost, and said to be; what may not stops a recovery."""
    data = record_run(seal=False).read_bytes()
    seq = len(frame_bounds(data))
    found = recovered(tmp_path, data + frame(data[-16:], 200, seq, 6, b"more")[0])
    assert found.lost_frames == {"type 200": 1}
    assert found.parts[0].steps == 6
    (tmp_path / "source").write_bytes(data + frame(data[-16:], 77, seq, 6, b"more")[0])
    with pytest.raises(InvalidTraceError, match="unsupported: a frame of the unknown type 77"):
        recover(tmp_path / "source", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_frames_that_say_again_what_was_said_are_left_out(record_run: RecordRun, tmp_path: Path) -> None:
    """With right links: an old KEYFRAME and its STEP, an EVENT of another step, OPS twice."""
    data = record_run(seal=False, keyframe_every=2, record="bare").read_bytes()
    seq = len(frame_bounds(data))
    for kind, step, place in ((KEYFRAME, 2, 1), (STEP, 2, 2), (EVENT, 0, 0)):
        start, end = bounds_of(data, kind)[place]
        front = data[start + 48 : start + 48 + int.from_bytes(data[start + 28 : start + 32], "little")]
        assert end - start == 64 + -(-len(front) // 8) * 8
        data += frame(data[-16:], kind, seq, step, front)[0]
        seq += 1
    found = recovered(tmp_path, data)
    assert [(p.first, p.steps) for p in found.parts] == [(0, 6)]
    assert found.lost_frames == {"KEYFRAME": 1, "STEP": 1, "EVENT": 1}
    ops = with_ops(tmp_path / "ops.dgrr")
    start, end = bounds_of(ops, OPS)[-1]
    front, data = ops[start + 48 : end - 16], ops[:end]
    again = recovered(tmp_path, data + frame(data[-16:], OPS, len(frame_bounds(data)), 3, front)[0])
    assert again.lost_frames == {"OPS": 1}


def test_the_parent_is_the_chain_where_a_part_ends(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    start = bounds_of(data, STEP)[3][0]
    recovered(tmp_path, data[: start + 60])
    with open_trace(tmp_path / "new") as trace:
        assert trace.header.parent_root == data[start - 16 : start].ljust(32, b"\0")
        assert trace.header.parent_steps == 3


@pytest.mark.parametrize("state_every", [1, 4])
def test_a_lost_seal(record_run: RecordRun, tmp_path: Path, state_every: int) -> None:
    """Where the last state was not due, the SEAL alone knew its digests."""
    data = record_run(state_every=state_every).read_bytes()
    found = recovered(tmp_path, flipped(data, bounds_of(data, SEAL)[0][0] + 52))
    assert found.lost_frames == ({} if state_every == 1 else {"SEAL": 1})
    assert compare(tmp_path / "run.dgrr", tmp_path / "new").same
    assert replay(tmp_path / "new").verdict is (Verdict.OK if state_every == 1 else Verdict.UNPROVEN)
    gone = recovered(tmp_path, data[: bounds_of(data, SEAL)[0][0]])
    assert not gone.lossy


def test_what_the_seal_knows_is_kept(record_run: RecordRun, tmp_path: Path) -> None:
    found = recovered(tmp_path, record_run(state_every=4).read_bytes())
    assert not found.lossy
    with open_trace(tmp_path / "run.dgrr") as run, open_trace(tmp_path / "new") as new:
        assert run.seal is not None
        assert new.seal is not None
        assert new.seal.final == run.seal.final != ()


def test_steps_of_another_run_are_not_joined(record_run: RecordRun, tmp_path: Path) -> None:
    """With our salt, and the number that is due: the state chain alone tells."""
    ours, theirs = (record_run(name, diverge=d).read_bytes() for name, d in (("run.dgrr", None), ("b.dgrr", 0)))
    steps = bounds_of(ours, STEP)
    found = recovered(tmp_path, ours[: steps[3][0]] + theirs[steps[2][0] :])
    assert [(p.first, p.steps) for p in found.parts] == [(0, 3)]
    assert links(tmp_path / "new") == links(tmp_path / "run.dgrr")[:3]
    assert found.lost_steps == ((3, 5),)


@pytest.mark.parametrize("kind", [COMMIT, SEAL, NODES])
def test_a_file_full_of_heads_is_read_a_few_times(
    record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    """Each says that it has all that follows for its front."""
    data = record_run(seal=False).read_bytes() + bytes(64)
    size = 48 * 2000
    for left in range(size, 0, -48):
        head = struct.pack("<4sBBHQQII8sI", b"\xdaGRF", kind, 0, 0, 9, 6, left - 48, left - 48, bytes(8), 1)
        data += head + struct.pack("<I", zlib.crc32(head, zlib.crc32(bytes(16))))
    data += bytes(64)
    real, counted = os.pread, [0]

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        counted[0] += length
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", counting)
    found = recovered(tmp_path, data)
    assert found.parts[0].steps == 6
    assert found.lossy
    assert counted[0] < 30 * len(data)


def test_a_lost_index_in_the_middle(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(steps=1100, optimizer="sgd", record="digest").read_bytes()
    first, last = bounds_of(data, INDEX)
    for at in (first, last):
        found = recovered(tmp_path, flipped(data, at[0] + 60))
        assert not found.lossy
        assert found.parts[0].steps == 1100
    assert compare(tmp_path / "run.dgrr", tmp_path / "new").same
    removed = recovered(tmp_path, data[: first[0]] + data[first[1] :])  # the frame behind it has no chain then
    assert removed.lossy
    assert "unknown" in removed.lost_frames


def test_bytes_behind_a_seal(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    for garbage in (b"\0", bytes(100), data, data[256:]):
        found = recovered(tmp_path, data + garbage)
        assert not found.lossy
        assert found.parts[0].steps == 6
    assert links(tmp_path / "new") == links(tmp_path / "run.dgrr")


def test_whole_frames_moved_about_are_no_steps(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=2).read_bytes()
    whole = links(tmp_path / "run.dgrr")
    bounds = frame_bounds(data)
    parts = [data[start:end] for start, end in bounds]
    for i in range(2, len(parts) - 1):
        for moved in (
            [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]],
            [*parts[: i + 1], *parts[i:]],
            [*parts[:i], *parts[i + 1 :]],
        ):
            found = recovered(tmp_path, data[:256] + b"".join(moved))
            for part in found.parts:
                if part.first == 0:
                    assert links(part.path) == whole[: part.steps]


def with_ops(path: Path, steps: int = 4) -> bytes:
    w = np.array([1.0, -2.0])
    leaf = TapeNode("leaf", "float64", (2,), (), "", "w", "", "")
    mul = TapeNode("mul", "float64", (2,), (0, 0), "", "", "", "n.py:7: w * w")
    recorder = recorder_of(
        path,
        record="digest",
        params={"w": w},
        state={},
        rule="sgd@1",
        hyperparameters=["lr"],
        numerics=1,
        salt=bytes(16),
        keyframe_every=2,
        ops="every",
        values=1 << 10,
    )
    for k in range(steps):
        tape = StepTape((leaf, mul), [w, w * w + k], [None, w])
        told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {"w": w + k}, "params": {"w": w - k}, "state": {}}
        told["metrics"] = {"accuracy": k / 4}
        recorder.step(CompletedStep(step=k, loss=np.array(1.0), batch=w, tape=tape, **told))
    recorder.seal()
    return path.read_bytes()


def test_ops_values_and_metrics_are_kept(tmp_path: Path) -> None:
    data = with_ops(tmp_path / "run.dgrr")
    assert {OPS, NODES, VALUES, METRICS} <= set(kinds(data))
    found = recovered(tmp_path, flipped(data, bounds_of(data, STEP)[1][0] + 60))
    assert [(p.first, p.steps) for p in found.parts] == [(0, 1), (2, 2)]
    with open_trace(tmp_path / "run.dgrr") as run, open_trace(found.parts[1].path) as child:
        assert [child.ops(k) for k in (0, 1)] == [run.ops(k) for k in (2, 3)]
        assert child.ops(0) is not None
        assert [child.metrics(k) for k in (0, 1)] == [{"accuracy": k / 4} for k in (2, 3)]
    assert kinds(Path(found.parts[1].path).read_bytes()).count(VALUES) == kinds(data).count(VALUES) // 2
    lone = recovered(tmp_path, flipped(data, bounds_of(data, NODES)[0][0] + 60))
    assert lone.parts[0].steps == 4
    assert lone.lost_frames["NODES"] == 1
    assert lone.lost_frames["OPS"] == 4  # nothing says any more what they are of
    lone = recovered(tmp_path, flipped(data, bounds_of(data, METRICS)[1][0] + 60))
    assert (lone.parts[0].steps, dict(lone.lost_frames)) == (4, {"METRICS": 1})
    with open_trace(lone.parts[0].path) as trace:
        assert [view.metrics() for view in trace] == [{"accuracy": 0.0}, {}, {"accuracy": 0.5}, {"accuracy": 0.75}]


def test_an_unfinished_trace(record_run: RecordRun, tmp_path: Path) -> None:
    partial = record_run(seal=False)
    before = partial.read_bytes()
    found = recover(tmp_path / "run.dgrr", tmp_path / "new")
    assert (found.path, found.found.verdict, found.verdict) == (str(partial), Verdict.UNSEALED, Verdict.OK)
    assert partial.read_bytes() == before
    assert not (tmp_path / "run.dgrr").exists()
    assert replay(tmp_path / "new").ok
    with pytest.raises(ValueError, match=r"run.dgrr.partial exists; recover writes only new files"):
        recover(partial, tmp_path / "run.dgrr")
    assert partial.read_bytes() == before


def test_refusals(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run(keyframe_every=2)
    data = path.read_bytes()
    for there in (path, tmp_path, Path("/dev/null")):
        with pytest.raises(ValueError, match="exists; recover writes only new files; choose another name"):
            recover(path, there)
    with pytest.raises(TraceFileError, match="No such file"):
        recover(tmp_path / "missing", tmp_path / "new")
    with pytest.raises(TraceFileError, match="not a regular file"):
        recover("/dev/null", tmp_path / "new")
    (tmp_path / "other").write_bytes(b"no trace at all")
    with pytest.raises(TraceFileError, match="not a DGRR trace"):
        recover(tmp_path / "other", tmp_path / "new")
    for version, text in ((1, "of version 1, which has no keyframes"), (9, "of version 9, expected 2")):
        (tmp_path / "other").write_bytes(data[:4] + bytes([version]) + data[5:])
        with pytest.raises(InvalidTraceError, match=text) as raised:
            recover(tmp_path / "other", tmp_path / "new")
        assert raised.value.verdict is Verdict.UNSUPPORTED
    (tmp_path / "other").write_bytes(flipped(data, 300))
    with pytest.raises(InvalidTraceError, match="nothing can be recovered of .*other without header and SCHEMA"):
        recover(tmp_path / "other", tmp_path / "new")
    with pytest.raises(TraceWriteError, match="cannot create"):
        recover(path, tmp_path / "no" / "folder")
    assert not list(tmp_path.glob("new*"))
    assert path.read_bytes() == data


def test_a_taken_name_of_a_later_part_is_refused_before_anything_is_written(
    record_run: RecordRun, tmp_path: Path
) -> None:
    data = record_run(keyframe_every=2).read_bytes()
    (tmp_path / "source").write_bytes(flipped(data, bounds_of(data, STEP)[2][0] + 60))
    (tmp_path / "new.1").write_text("mine")
    with pytest.raises(ValueError, match=r"new\.1 exists"):
        recover(tmp_path / "source", tmp_path / "new")
    assert [p.name for p in tmp_path.glob("new*")] == ["new.1"]
    assert (tmp_path / "new.1").read_text() == "mine"


def test_what_was_recovered_can_be_recovered_and_rolled_back(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=2).read_bytes()
    recovered(tmp_path, flipped(data, bounds_of(data, STEP)[2][0] + 60))
    assert not recover(tmp_path / "new.1", tmp_path / "again").lossy
    assert links(tmp_path / "again") == links(tmp_path / "new.1")
    rollback_v2(tmp_path / "again", 1, tmp_path / "first")
    assert validate(tmp_path / "first").ok


def test_the_command(record_run: RecordRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = record_run().read_bytes()
    cut, new = tmp_path / "cut", tmp_path / "new"
    cut.write_bytes(data[: bounds_of(data, STEP)[3][0] + 60])
    assert main(["recover", str(cut), "-o", str(new)]) == 7
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith(f"{cut}: lossy (it was torn-tail, and is unchanged)\n")
    assert f"  kept  {new}: steps 0 to 2; structure proven, chain proven\n  lost  60 bytes: 1 STEP\n" in said.err
    assert main(["recover", str(cut), "-o", str(new)]) == 1
    assert "argument --out: recover: " in capsys.readouterr().err
    cut.write_bytes(data[:-3])
    os.unlink(new)
    assert main(["recover", str(cut), "--out", str(new)]) == 0
    assert f"kept  {new}: steps 0 to 5; structure proven" in capsys.readouterr().out


@pytest.mark.long
def test_hostile_files() -> None:
    """Mutated traces: nothing but its own errors, and what is written validates."""
    fuzz = Path(__file__).parents[3] / "fuzz"
    program = """if True:
        import sys, tempfile
        from pathlib import Path
        from random import Random
        sys.path.insert(0, sys.argv[1])
        from mutate import mutated
        from dgrr.trace import recover, validate, InvalidTraceError
        from dgrr.trace.file_version import TraceFileError
        golden = Path(sys.argv[1]).parent / "golden"
        seeds = [(golden / name).read_bytes() for name in ("v2_digest.dgrr", "v2_grads.dgrr")]
        with tempfile.TemporaryDirectory() as folder:
            path, made = Path(folder, "t"), 0
            for seed in range(600):
                path.write_bytes(mutated(seeds, Random(seed)))
                try:
                    found = recover(path, Path(folder, "new"))
                except TraceFileError as error:
                    assert "does not validate" not in str(error), (seed, str(error))
                    assert not list(Path(folder).glob("new*")), seed
                    continue
                made += 1
                assert all(validate(part.path).ok for part in found.parts), seed
                for new in Path(folder).glob("new*"):
                    new.unlink()
            assert made > 100, made
    """
    subprocess.run([sys.executable, "-c", program, str(fuzz)], check=True, timeout=120)
