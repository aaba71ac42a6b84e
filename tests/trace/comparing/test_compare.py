"""Where two traces part: bisected or step by step, and what cannot be compared."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import Cause, Trace, Verdict, assert_same, compare, open_trace
from dgrr.trace.v2.read.reader import TraceReader

pytestmark = pytest.mark.quick

RecordRun = Write = Callable[..., Path]


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
    assert len(reads) < 800  # of which the curves of the losses take 500; a scan would take more than 6,000


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
    assert found.sentence == "the models differ: param 'w' f32 (3, 2) became param 'w' f64 (3, 2); 1 more differ"


# ------------------------------------------------------------------ how much is read


def counted(monkeypatch: pytest.MonkeyPatch, a: Path, b: Path) -> int:
    """How many reads a comparison of two open traces takes."""
    with open_trace(a) as x, open_trace(b) as y, monkeypatch.context() as patched:
        reads: list[int] = []
        real = os.pread
        patched.setattr(os, "pread", lambda d, n, o: reads.append(n) or real(d, n, o))
        compare(x, y)
    return len(reads)


def test_reads_grow_with_the_logarithm(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["loss"] = told["loss"] if step < 100 else told["loss"] + 1

    short, long = (
        counted(
            monkeypatch,
            write(f"a{steps}", steps=steps, record="digest"),
            write(f"b{steps}", changed, steps=steps, record="digest"),
        )
        for steps in (250, 1000)
    )
    assert abs(long - short) < 60  # two more halvings, and where in the file the curves are read


def test_equal_traces_take_a_few_reads(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(monkeypatch, write("a", steps=200), write("b", steps=200)) < 50


# ------------------------------------------------------------------ what is in the way


def test_digests_of_two_kinds(write: Write) -> None:
    found = compare(write("a"), write("b", digest="sha256"))
    assert (found.verdict, found.cause, found.step) == (Verdict.UNPROVEN, None, None)
    assert (
        found.sentence
        == "nothing that is recorded in both differs, but their digests are of different kinds; record with one"
    )
    assert found.settings == {"digest": ("XXH3-128", "SHA256")}

    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"][0, 1] += step == 5

    found = compare(write("c"), write("d", changed, digest="sha256"))
    assert (found.verdict, found.step, found.tensors[0].name) == (Verdict.DIVERGED, 5, "w")


def test_a_file_that_ends_before_its_first_keyframe(write: Write, tmp_path: Path) -> None:
    whole = write("a")
    content = whole.read_bytes()
    second = content.index(b"\xdaGRF\x02")  # KEYFRAME 0
    for end in (0, 3, 255, 300, second, second + 60):
        (tmp_path / "cut").write_bytes(content[:end])
        for pair in ((whole, tmp_path / "cut"), (tmp_path / "cut", whole)):
            found = compare(*pair)
            assert (found.verdict, found.same, found.cause) == (Verdict.TORN_TAIL, False, None), end
            assert str(tmp_path / "cut") in found.sentence
    assert "it ends before KEYFRAME 0, the beginning of the run: nothing to compare" in found.sentence


def test_what_is_no_trace(write: Write, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x" * 300)
    for other, verdict in (
        (tmp_path / "text", Verdict.CORRUPT),
        (tmp_path / "none", Verdict.IO),
        (tmp_path, Verdict.IO),
    ):
        found = compare(write(f"a{verdict}{other.name}"), other)
        assert (found.verdict, bool(found)) == (verdict, False)
        assert str(other) in found.sentence


def test_a_torn_tail_is_compared_as_far_as_it_goes(write: Write, tmp_path: Path) -> None:
    whole = write("a")
    (tmp_path / "torn").write_bytes(whole.read_bytes()[:-900])
    found = compare(whole, tmp_path / "torn")
    assert found.cause is Cause.LENGTH
    assert found.notes[0].startswith("b is damaged after step ")


def test_an_unfinished_run(write: Write) -> None:
    whole, unsealed = write("a"), write("b", steps=5, seal=False)
    found = compare(whole, unsealed)
    assert (found.cause, found.step) == (Cause.LENGTH, 5)
    assert found.notes[0] == "b is not sealed: its run was not finished"
    same = compare(unsealed, write("c", steps=5), proven=True)
    assert same.same
    assert same.notes[0] == "a is not sealed: its run was not finished"


def damaged_body(path: Path, target: Path, step: int) -> Path:
    """A copy with one bit of a recorded gradient turned, which no link and no CRC covers."""
    with open_trace(path) as trace:
        value = trace.tensor("w", step=step).tobytes()
    content = bytearray(path.read_bytes())
    at = content.index(value)
    content[at] ^= 1
    target.write_bytes(content)
    return target


def test_damage_that_no_link_shows(write: Write, tmp_path: Path) -> None:
    whole = write("a")
    bad = damaged_body(whole, tmp_path / "bad", 3)
    found = compare(whole, bad)
    assert found.same
    assert found.notes == [
        "by the last links of both; not read: earlier links and recorded values (proven=True reads them)"
    ]
    for pair in ((whole, bad), (bad, whole)):
        found = compare(*pair, proven=True)
        assert (found.verdict, found.same) == (Verdict.CORRUPT, False)
        assert found.sentence.startswith(f"{bad}: the digest of 'w' (grad) of frame ")
    assert compare(whole, whole, proven=True).notes == ["both files are proven from their first byte to their last"]


def test_damage_that_is_met_names_the_file(write: Write, tmp_path: Path) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"][0, 1] += step == 3

    whole = write("a")
    found = compare(whole, damaged_body(write("b", changed), tmp_path / "bad", 3))
    assert found.verdict is Verdict.CORRUPT
    assert found.sentence.startswith(f"{tmp_path / 'bad'}: the digest of 'w' (grad)")


def test_no_steps(write: Write) -> None:
    assert compare(write("a", steps=0), write("b", steps=0)).same
    found = compare(write("c", steps=0), write("d", steps=3))
    assert (found.cause, found.step, found.sentence) == (
        Cause.LENGTH,
        0,
        "equal to the bit for 0 steps; then d goes on, to 3".replace(" d ", " b "),
    )
    str(found)


def test_links_that_lie(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = write("a"), write("b")
    real = TraceReader.__getitem__

    def lying(trace: Trace, index: Any) -> Any:
        view = real(trace, index)
        if trace.path == str(b) and view.step >= 4:
            view._record = view.record._replace(link=bytes(16))
        return view

    monkeypatch.setattr(TraceReader, "__getitem__", lying)
    found = compare(a, b)
    assert (found.verdict, found.same) == (Verdict.CHAIN, False)
    assert "the links of step 4 differ, but not what they link" in found.sentence


# ------------------------------------------------------------------ record modes and tolerances


@pytest.mark.parametrize("modes", [("digest", "full"), ("grads", "digest"), ("grads", "full")])
def test_record_modes_may_differ(write: Write, modes: tuple[str, str]) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"][0, 1] += step == 3

    a = write("a", record=modes[0])
    assert compare(a, write("b", record=modes[1])).same
    found = compare(a, write("c", changed, record=modes[1]))
    assert (found.step, found.tensors[0].title, found.tensors[0].recorded) == (
        3,
        "gradient of 'w'",
        "digest" not in modes,
    )
    assert found.settings == {"record": modes}


def test_a_tolerance_for_each_tensor(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["b"] = np.nextafter(told["grads"]["b"], np.float32(9))
        if step == 6:
            told["grads"]["w"] = told["grads"]["w"] * np.float32(1 + 1e-5)

    a, b = write("a"), write("b", changed)
    found = {
        str(policy): compare(a, b, policy=policy).step
        for policy in (
            "bitwise",
            "ulp=1",
            "rtol=1e-4",
            {"b": "ulp=1"},
            {"w": "rtol=1e-4"},
            {"b": "ulp=1", "*": "rtol=1e-4"},
        )
    }
    assert list(found.values()) == [0, 6, None, 6, 0, None]


def test_a_tolerance_holds_states_where_they_are_recorded(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        if step == 4:
            told["params"]["b"] = told["params"]["b"] + np.float32(1)

    found = compare(write("a"), write("b", changed), policy="rtol=1e-3")
    assert (found.step, found.cause, found.tensors[0].title) == (4, Cause.UPDATE, "'b' after the step")


def test_what_a_tolerance_cannot_decide_is_not_called_equal(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"] = np.nextafter(told["grads"]["w"], np.float32(9))

    a, b = write("a", record="digest"), write("b", changed, record="digest")
    found = compare(a, b, policy="ulp=4")
    assert (found.verdict, found.same, found.cause) == (Verdict.UNPROVEN, False, None)
    assert found.sentence == (
        "digests have no tolerance, and those of gradient of 'w' differ, of which no values are recorded; "
        "record with record='grads', or compare bitwise"
    )
    assert compare(a, write("c", record="digest"), policy="ulp=4").same  # digests that agree are enough
    found = compare(a, write("d", begin=lambda p: p.update(w=p["w"] * 2), record="digest"), policy="ulp=4")
    assert found.tensors[0].what == "before"  # keyframes hold values


def test_another_numerics_version_is_refused_bitwise(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"] = told["grads"]["w"] * np.float32(1 + 1e-6 * (step > 2))

    a, same, other = write("a"), write("b", numerics=2), write("c", changed, numerics=2)
    found = compare(a, same)
    assert (found.verdict, found.cause, found.step, found.same) == (Verdict.NUMERICS, Cause.NUMERICS, None, False)
    found = compare(a, other)
    assert (found.verdict, found.step, found.tensors[0].name) == (Verdict.NUMERICS, 3, "w")
    assert found.sentence.startswith(
        "numerics versions 1 and 2 promise no equal bits: compare with a tolerance, or record"
    )
    assert any(note.startswith("at the last step, 7, the greatest relative difference: ") for note in found.notes)
    assert found.settings["numerics"] == (1, 2)
    assert compare(a, other, policy="rtol=1e-3,atol=1e-3").same
    reordered = write("d", lambda k, told: told.update(batch=told["batch"] + (k == 1)), numerics=2)
    assert compare(a, reordered).cause is Cause.DATA  # which arithmetic does not explain


def test_assert_same(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"][0, 1] += step == 3

    a, b = write("a"), write("b", changed)
    assert_same(a, a)
    assert_same(a, b, policy="atol=2")
    with pytest.raises(AssertionError) as caught:
        assert_same(a, b)
    assert str(caught.value) == str(compare(a, b))


def test_integers_have_no_tolerance(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        if step == 5:
            told["state"]["step"] = np.array(99)

    found = compare(write("a", record="digest"), write("b", changed, record="digest"), policy="ulp=4")
    assert (found.cause, found.step, found.tensors[0].title) == (Cause.UPDATE, 5, "'step' after the step")


def test_digests_of_two_kinds_alone_decide_nothing(write: Write) -> None:
    found = compare(write("a", record="digest"), write("b", record="digest", digest="sha256"))
    assert (found.verdict, found.tensors) == (Verdict.UNPROVEN, [])


def test_a_buffer_or_a_start_that_a_tolerance_cannot_decide(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["model_state"]["mean"] = told["model_state"]["mean"] + np.float32(1)

    def begun(params: dict[str, Any]) -> None:
        params["b"] = params["b"] + np.float32(1)

    found = compare(write("a", record="digest"), write("b", changed, record="digest"), policy="atol=2")
    assert (found.verdict, "those of 'mean' after the step differ" in found.sentence) == (Verdict.UNPROVEN, True)
    found = compare(write("c", record="bare"), write("d", begin=begun, record="bare"), policy="atol=2")
    assert (found.verdict, "those of 'b' before step 0 differ" in found.sentence) == (Verdict.UNPROVEN, True)


def test_values_of_some_steps_are_enough_for_a_tolerance(write: Write) -> None:
    def moved(by: float) -> Callable[[int, dict[str, Any]], None]:
        def changed(step: int, told: dict[str, Any]) -> None:
            told["grads"]["w"] = told["grads"]["w"] + np.float32(by)

        return changed

    a = write("a", record="bare", values=1 << 16)
    near = write("b", moved(0.25), record="bare", values=1 << 16)
    found = compare(a, near, policy="atol=0.5")
    assert found.same, found
    assert "; not compared, as no values are recorded there: " in found.sentence  # in the first line, not below
    far = write("c", moved(0.75), record="bare", values=1 << 16)
    found = compare(a, far, policy="atol=0.5")
    assert (found.step, found.tensors[0].title, found.tensors[0].differing) == (0, "gradient of 'w'", 6)
    assert compare(a, write("d", moved(0.25), record="bare"), policy="atol=0.5").verdict is Verdict.UNPROVEN


def test_bare_traces(write: Write) -> None:
    def changed(step: int, told: dict[str, Any]) -> None:
        told["grads"]["w"][0, 1] += step == 3

    def begun(params: dict[str, Any]) -> None:
        params["b"] = params["b"] + np.float32(1)

    a = write("a", record="bare")
    for other in (write("b", record="bare"), write("c"), write("d", record="digest")):
        assert compare(a, other).same
        assert compare(other, a, proven=True).same
    found = compare(a, write("e", changed, record="bare"))
    assert (found.step, found.tensors[0].title, found.tensors[0].recorded) == (3, "gradient of 'w'", False)
    found = compare(a, write("f", begin=begun))
    assert (found.cause, found.tensors[0].title, found.tensors[0].recorded) == (Cause.START, "'b' before step 0", False)
