"""Recovering one run from several files: copies that are damaged at other places, and what a resumed run left."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.trace import InvalidTraceError, Recovery, Verdict, compare, open_trace, recover, replay, validate
from dgrr.trace.cli.main import main
from dgrr.trace.file_version import TraceFileError

from ..read.test_damage import frame_bounds
from ..read.test_hostile import frame
from .test_recover import EVENT, KEYFRAME, OPS, SEAL, STEP, bounds_of, flipped, links, with_ops

RecordRun = Callable[..., Path]


def joined(tmp_path: Path, *halves: bytes) -> Recovery:
    """Recover from files of these bytes, with what every recovery promises."""
    paths = [tmp_path / f"half{i}" for i in range(len(halves))]
    for path, data in zip(paths, halves, strict=True):
        path.write_bytes(data)
    for old in tmp_path.glob("new*"):
        old.unlink()
    found = recover(paths, tmp_path / "new")
    assert [path.read_bytes() for path in paths] == list(halves)
    assert [source.path for source in found.sources] == list(map(str, paths))
    assert all(source.found.verdict is validate(source.path).verdict for source in found.sources)
    assert all(validate(part.path).ok for part in found.parts)
    assert found.exit_code == (7 if found.lossy else 0)
    return found


def damaged(data: bytes, *frames: tuple[int, int]) -> bytes:
    for start, _ in frames:
        data = flipped(data, start + 60)
    return data


def test_any_two_damages_of_two_copies(record_run: RecordRun, tmp_path: Path) -> None:
    """What one has lost, the other has: all but the random parts of the file is there again."""
    data = record_run(steps=4, optimizer="sgd", keyframe_every=2, commit_every=2).read_bytes()
    whole, bounds = links(tmp_path / "run.dgrr"), frame_bounds(data)[1:]
    for i, a in enumerate(bounds):
        for b in (bounds[(i + 1) % len(bounds)], bounds[(i + 4) % len(bounds)]):
            found = joined(tmp_path, flipped(data, a[0] + 9), flipped(data, b[1] - 17))
            assert not found.lossy, (a, b, str(found))
            assert [(part.first, part.steps) for part in found.parts] == [(0, 4)]
            assert links(tmp_path / "new") == whole
            with open_trace(tmp_path / "run.dgrr") as run, open_trace(tmp_path / "new") as new:
                texts = [(at, event.kind, event.text) for at, event in new.events() if event.kind != "recover"]
                assert texts == [(at, event.kind, event.text) for at, event in run.events()]
                assert [new.has_keyframe(k) for k in range(4)] == [True, False, True, False]
            assert replay(tmp_path / "new").ok


def test_what_both_have_lost_is_lost(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(keyframe_every=4).read_bytes()
    steps = bounds_of(data, STEP)
    found = joined(tmp_path, damaged(data, steps[2]), damaged(data, steps[0], steps[2]))
    assert [(part.first, part.steps) for part in found.parts] == [(0, 2), (4, 2)]
    assert found.lost_steps == ((2, 3),)
    assert found.lost_frames["STEP"] >= 1
    assert found.exit_code == 7
    assert found.sources[0].taken == ((0, 1), (4, 5))
    assert found.in_several == 4


def test_what_came_from_where(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    steps = bounds_of(data, STEP)
    found = joined(tmp_path, damaged(data, steps[2], steps[3]), damaged(data, steps[0], steps[5]))
    assert not found.lossy
    assert [source.taken for source in found.sources] == [((0, 1), (4, 5)), ((2, 3),)]
    assert found.in_several == 2
    text = str(found)
    assert text.startswith(f"{tmp_path / 'half0'} and {tmp_path / 'half1'}: ok (they were corrupt, corrupt, and are un")
    assert f"  {tmp_path / 'half1'}: corrupt; from it: steps 2 to 3\n" in text
    assert "  equal 2 steps that stand in more than one of them\n" in text
    with open_trace(tmp_path / "new") as new:
        notes = [json.loads(event.text) for _, event in new.events() if event.kind == "recover"]
        assert new.header.parent_root == data[-16:].ljust(32, b"\0")
    first = {"steps": [[0, 1], [4, 5]], "verdict": "corrupt"}
    joined_of = [first, {"steps": [[2, 3]], "verdict": "corrupt"}]
    assert notes == [{"first": 0, "verdict": "corrupt", "joined": joined_of}]


def test_halves_that_only_adjoin(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run().read_bytes()
    steps = bounds_of(data, STEP)
    found = joined(tmp_path, data[: steps[3][0] + 60], damaged(data, *steps[:3]))
    assert not found.lossy
    assert found.in_several == 0
    assert [source.taken for source in found.sources] == [((0, 2),), ((3, 5),)]
    with pytest.raises(
        InvalidTraceError, match="no step is in both, and neither begins where the other ends"
    ) as raised:
        joined(tmp_path, data[: steps[2][0]], damaged(data, *steps[:3]))
    assert raised.value.verdict is Verdict.DIVERGED
    three = joined(tmp_path, data[: steps[2][0]], damaged(data, *steps[:3]), damaged(data, *steps[3:], *steps[:2]))
    assert links(tmp_path / "new") == links(tmp_path / "run.dgrr")
    assert [source.taken for source in three.sources] == [((0, 1),), ((3, 5),), ((2, 2),)]


def test_a_frame_that_no_reader_knows_is_left_out(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(steps=4, seal=False).read_bytes()
    extra, _ = frame(data[-16:], 200, len(frame_bounds(data)), 4, b"told by a later writer")
    found = joined(tmp_path, data + extra, data[: bounds_of(data, STEP)[2][0]])
    assert [(part.first, part.steps) for part in found.parts] == [(0, 4)]
    assert links(tmp_path / "new") == links(tmp_path / "run.dgrr.partial")
    assert not bounds_of((tmp_path / "new").read_bytes(), 200)


def test_a_damaged_value_is_taken_from_the_other(record_run: RecordRun, tmp_path: Path) -> None:
    """No chain holds the bodies: the step is known by its digests."""
    data = record_run(dtype=np.float64).read_bytes()
    _, end = bounds_of(data, STEP)[2]
    found = joined(tmp_path, flipped(data, end - 16 - 8), data)
    assert not found.lossy
    assert found.sources[1].taken == ((2, 2),)
    assert compare(tmp_path / "new", tmp_path / "run.dgrr", proven=True).same


def test_what_is_told_of_steps_is_joined(tmp_path: Path) -> None:
    data = with_ops(tmp_path / "run.dgrr")
    steps, ops = bounds_of(data, STEP), bounds_of(data, OPS)
    found = joined(tmp_path, damaged(data, steps[1], ops[3]), damaged(data, steps[2], ops[0]))
    assert not found.lossy
    with open_trace(tmp_path / "run.dgrr") as run, open_trace(tmp_path / "new") as new:
        assert [new.ops(k) for k in range(4)] == [run.ops(k) for k in range(4)]
        assert new.ops(0) is not None
    both = joined(tmp_path, damaged(data, ops[1]), damaged(data, ops[1]))
    assert both.lost_frames == {"OPS": 1}
    assert both.exit_code == 7


def test_another_recording_of_the_run(record_run: RecordRun, tmp_path: Path) -> None:
    """Of other salt, time and keyframes: what the run computed is the same."""
    a = record_run("a.dgrr").read_bytes()
    b = record_run("b.dgrr", salt=b"b" * 16, created_at=8, keyframe_every=2, events=False).read_bytes()
    found = joined(tmp_path, damaged(a, bounds_of(a, STEP)[1]), damaged(b, bounds_of(b, STEP)[4]))
    assert not found.lossy
    assert links(tmp_path / "new") == links(tmp_path / "a.dgrr")
    lost = joined(tmp_path, damaged(a, bounds_of(a, EVENT)[1]), b)
    assert lost.lost_frames == {"EVENT": 1}


def test_a_hole_that_the_other_file_has_filled_otherwise(record_run: RecordRun, tmp_path: Path) -> None:
    """Two lives of one file: of the same salt, and the same up to there. What the hole held is in neither."""
    a = record_run("a.dgrr").read_bytes()
    b = record_run("b.dgrr", events=False).read_bytes()
    start, end = bounds_of(a, EVENT)[1]
    assert a[:start] == b[:start]
    found = joined(tmp_path, flipped(a, start + 1), b)
    assert found.lost_frames == {"unknown": 1}
    cut = joined(tmp_path, a[: end - 8], b)
    assert cut.lost_frames == {"EVENT": 1}
    assert not joined(tmp_path, a[: start + 20], a).lossy  # less than a head is left, and the other has it


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seed": 1}, "step 0 is another one"),
        ({"diverge": 3}, "step 3 is another one"),
        ({"optimizer": "sgd"}, "they differ in SCHEMA"),
        ({"record": "digest"}, "they differ in record mode"),
        ({"numerics": 99}, "they differ in numerics version"),
        ({"state_every": 2}, "they differ in state_every"),
        ({"digest": "sha256"}, "they differ in digest"),
    ],
)
def test_files_of_two_runs(record_run: RecordRun, tmp_path: Path, options: dict[str, object], text: str) -> None:
    a, b = record_run("a.dgrr").read_bytes(), record_run("b.dgrr", **options).read_bytes()
    with pytest.raises(InvalidTraceError) as raised:
        joined(tmp_path, a, b)
    one, two = tmp_path / "half0", tmp_path / "half1"
    assert raised.value.text == (
        f"recover: {one} and {two} are not halves of one run: {text}; recover each to a separate file, "
        "and find where they part with dgrr diff"
    )
    assert raised.value.verdict is Verdict.DIVERGED
    assert not list(tmp_path.glob("new*"))


def fit(path: Path, steps: int, *, checkpoint: bool, dies: bool = False) -> None:
    def tell(trainer: object, step: int, loss: float) -> None:
        if dies and step == 4:
            raise KeyboardInterrupt

    callback = type("Dies", (), {"on_step": staticmethod(tell)})()
    place = path.with_suffix(".ckpt")
    trainer = Trainer(
        lambda p, x: (p["w"] * x).sum(),
        {"w": np.ones(2)},
        SGD(0.1),
        mode="eager",
        trace=path,
        callbacks=[callback],
        checkpoint=place if checkpoint else None,
        checkpoint_every=3 if checkpoint else None,
    )
    if place.exists():
        trainer.load(place)
    try:
        trainer.fit([np.array([1.0, 2.0 + i]) for i in range(8)], steps=steps, progress=False)
    except KeyboardInterrupt:
        assert dies


def test_what_a_killed_run_left_and_what_the_resumed_one_wrote(tmp_path: Path) -> None:
    run = tmp_path / "run.dgrr"
    fit(tmp_path / "whole.dgrr", 8, checkpoint=False)
    fit(run, 8, checkpoint=True, dies=True)
    partial = tmp_path / "run.dgrr.partial"
    killed = partial.read_bytes()[:-30]  # inside STEP 4
    partial.write_bytes(killed)
    fit(run, 8, checkpoint=True)
    torn = tmp_path / "run.dgrr.torn"
    assert torn.read_bytes().endswith(killed[bounds_of(killed, STEP)[3][0] - 16 :])
    resumed = run.read_bytes()
    found = joined(tmp_path, killed, damaged(resumed, bounds_of(resumed, STEP)[1]))
    assert not found.lossy
    assert found.in_several == 3  # STEPs 0, 2 and 3
    assert links(tmp_path / "new") == links(tmp_path / "whole.dgrr")

    (tmp_path / "new").unlink()
    with_tail = recover([run, torn], tmp_path / "new")  # the tail held STEP 3 and a part of STEP 4, which are there
    assert (with_tail.lost_frames, with_tail.in_several) == ({}, 1)
    assert "run.dgrr.torn: torn-tail; from it: no steps" in str(with_tail)
    with pytest.raises(
        InvalidTraceError, match="torn-tail: nothing can be recovered: no intact KEYFRAME is followed by steps"
    ):
        recover(torn, tmp_path / "other")


def test_steps_in_a_torn_tail(record_run: RecordRun, tmp_path: Path) -> None:
    """Behind a damaged frame there may be whole ones: a run was resumed from before it, and died again."""
    data = record_run().read_bytes()
    steps = bounds_of(data, STEP)
    (tmp_path / "run.dgrr.partial").write_bytes(data[: steps[4][0]])
    beginning, kept = bounds_of(data, KEYFRAME)[0][0], steps[2][0] - 16
    (tmp_path / "run.dgrr.torn").write_bytes(data[:beginning] + damaged(data, steps[2])[kept:])
    (tmp_path / "run.dgrr").rename(tmp_path / "whole.dgrr")
    found = recover([tmp_path / "run.dgrr", tmp_path / "run.dgrr.torn"], tmp_path / "new")
    assert found.sources[1].taken == ((4, 5),)
    assert found.in_several == 1
    assert links(tmp_path / "new") == links(tmp_path / "whole.dgrr")


def test_refusals(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run()
    with pytest.raises(ValueError, match=r"recover: argument 'path': expected at least one path, got none"):
        recover([], tmp_path / "new")
    with pytest.raises(ValueError, match=r"recover: argument 'path': expected different files, got .*run\.dgrr twice"):
        recover([path, tmp_path / "." / "run.dgrr"], tmp_path / "new")
    with pytest.raises(TraceFileError, match="No such file"):
        recover([path, tmp_path / "missing"], tmp_path / "new")
    with pytest.raises(TraceFileError, match="No such file"):
        recover([path, tmp_path / "missing.torn"], tmp_path / "new")
    data = path.read_bytes()
    with pytest.raises(InvalidTraceError, match="nothing can be recovered of .*half1 without header and SCHEMA"):
        joined(tmp_path, data, flipped(data, 300))


def test_the_command(record_run: RecordRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = record_run().read_bytes()
    steps, new = bounds_of(data, STEP), tmp_path / "new"
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(damaged(data, steps[1]))
    b.write_bytes(damaged(data, steps[4], bounds_of(data, SEAL)[0]))
    assert main(["recover", str(a), str(b), "-o", str(new), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["paths"] == [str(a), str(b)]
    assert [source["taken"] for source in answer["result"]["recovery"]["sources"]] == [[[0, 0], [2, 5]], [[1, 1]]]
    b.write_bytes(record_run("other.dgrr", diverge=2).read_bytes())
    assert main(["recover", str(a), "-o", str(tmp_path / "no"), str(b)]) == 4
    assert "are not halves of one run: step 2 is another one" in capsys.readouterr().err
    assert main(["recover", str(a), str(a), "-o", str(tmp_path / "no")]) == 1
    assert "argument PATH: recover: argument 'path': expected different files" in capsys.readouterr().err
