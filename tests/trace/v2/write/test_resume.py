"""A trace cut anywhere and resumed says what the uninterrupted one says."""

import json
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.runtime import SGD, Adam
from dgrr.tape import NUMERICS
from dgrr.trace import CompletedStep, TraceRecorder, Verdict, replay, validate

from ....keeping import recorder_of, resumed

SCHEMA, KEYFRAME, STEP, COMMIT, INDEX, SEAL, EVENT = range(1, 8)
STEPS = 9
NOTE_AFTER = 2  # steps


class Frame(NamedTuple):
    type: int
    step: int
    front: bytes
    body: bytes
    end: int


def frames_of(data: bytes, digest_size: int) -> Iterator[Frame]:
    """Every whole frame of intact bytes, parts joined, by docs/trace_format.md alone."""
    at, front, body = 256, b"", b""
    while at + 48 <= len(data):
        more, part = data[at + 5] & 1, int.from_bytes(data[at + 6 : at + 8], "little")
        step, length, front_length = struct.unpack_from("<QII", data, at + 16)
        payload, end = data[at + 48 : at + 48 + length], at + 48 + (length + 7) // 8 * 8 + digest_size
        if end > len(data):
            return
        front, body = (front, body + payload) if part else (payload[:front_length], payload[front_length:])
        if not more:
            yield Frame(data[at + 4], step, front, body, end)
        at = end


def said(frame: Frame) -> Any:
    """What a frame says, apart from offsets in the file."""
    if frame.type == COMMIT:
        return frame.front[:8]
    if frame.type == INDEX:
        first, steps, keyframes = struct.unpack_from("<QII", frame.front)
        return first, steps, struct.unpack_from(f"<{steps + 2 * keyframes}Q", frame.front, 24)[steps::2]
    if frame.type == SEAL:
        indexes = int.from_bytes(frame.front[12:16], "little")
        return frame.front[: -16 - 8 * indexes]
    return frame.front, frame.body


def run_of(data: bytes, digest_size: int) -> list[Any]:
    """The header and everything but the EVENTs."""
    frames = frames_of(data, digest_size)
    return [data[:256], *((f.type, f.step, said(f)) for f in frames if f.type != EVENT)]


def events_of(data: bytes, digest_size: int) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    for frame in frames_of(data, digest_size):
        if frame.type == EVENT:
            length = int.from_bytes(frame.front[:4], "little")
            found.append((frame.step, frame.front[8 : 8 + length].decode(), frame.front[8 + length :].decode()))
    return found


class Run:
    """A run that was computed before: what its recorder is told, and the state before each step."""

    def __init__(self, steps: int, size: int, rule: Any, **options: Any) -> None:
        rng = np.random.default_rng(0)
        params: dict[str, Any] = {"w": rng.standard_normal(size), "b": np.zeros(2, np.float32)}
        state = rule.init(params)
        self.options = options
        self.names: dict[str, Any] = {
            "rule": rule.rule,
            "hyperparameters": list(rule.hyperparameters()),
            "numerics": NUMERICS,
        }
        self.digest_size = 32 if options.get("digest") == "sha256" else 16
        self.told: list[dict[str, Any]] = []
        self.states = [(copied(params), copied(state))]
        for k in range(steps):
            grads: dict[str, Any] = {
                n: rng.standard_normal(p.shape).astype(p.dtype) for n, p in params.items() if k % 3 or n == "w"
            }
            rule.step(params, grads, state)
            batch = (rng.standard_normal(3),)
            told: dict[str, Any] = {
                "loss": np.array(1 / (k + 1)),
                "hyper": rule.hyperparameters(),
                "grads": grads,
                "batch": batch,
            }
            self.told.append(told)
            self.states.append((copied(params), copied(state)))

    def begin(self, path: Path) -> TraceRecorder:
        params, state = self.states[0]
        options: dict[str, Any] = {"salt": bytes(16), "created_at": 7} | self.names | self.options
        return recorder_of(path, params=params, state=state, **options)

    def resume(self, path: Path, steps: int) -> TraceRecorder:
        params, state = self.states[steps]
        options: dict[str, Any] = {"params": params, "state": state} | self.names
        options |= {n: self.options[n] for n in ("record", "keyframe_every", "commit_every") if n in self.options}
        return resumed(path, steps=steps, **options)

    def go_on(self, recorder: TraceRecorder, until: int | None = None) -> None:
        for k in range(recorder.steps, len(self.told) if until is None else until):
            params, state = self.states[k + 1]
            recorder.step(CompletedStep(step=k, params=params, state=state, **self.told[k]))
            if k + 1 == NOTE_AFTER:
                recorder.event("note", "here")


def copied(arrays: Any) -> dict[str, Any]:
    return {name: array.copy() for name, array in arrays.items()}


@cache
def runs() -> list[Run]:
    """Modes, digests, frames in parts; states, keyframes and commits due at different steps."""
    return [
        Run(STEPS, 3, Adam(1e-2), record="grads", state_every=1, keyframe_every=4, commit_every=3),
        Run(STEPS, 2, SGD(0.1, momentum=0.5), record="digest", digest="sha256", state_every=2, keyframe_every=3),
        Run(STEPS, 600, SGD(0.1), record="full", state_every=3, keyframe_every=3, largest_payload=4096, commit_every=2),
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The uninterrupted trace of each run."""
    found: list[bytes] = []
    for i, run in enumerate(runs()):
        path = tmp_path_factory.mktemp("whole") / str(i)
        with run.begin(path) as recorder:
            run.go_on(recorder)
        found.append(path.read_bytes())
    return found


TAILS = st.one_of(st.just(b""), st.just(bytes(100)), st.binary(max_size=80), st.just(b"\xdaGRF" * 30))


def kept_of(there: list[Frame], steps: int) -> list[Frame]:
    """The frames that resuming after `steps` steps keeps."""
    beyond = [i for i, f in enumerate(there) if f.type in (INDEX, SEAL) or (f.type == STEP and f.step >= steps)]
    return there[: beyond[0]] if beyond else there


def state_is_known(there: list[Frame], steps: int, run: Run) -> bool:
    sealed = there[-1].type == SEAL and there[-1].step == steps
    return sealed or steps % run.options["state_every"] == 0


class Round(NamedTuple):
    """One kill and one resumption."""

    cut: float
    tail: bytes
    steps: float
    until: float


SHARES = st.floats(0, 1)
ROUNDS = st.lists(st.builds(Round, SHARES, TAILS, SHARES, SHARES), min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@given(number=st.integers(0, 2), rounds=ROUNDS)
@pytest.mark.long
def test_cut_anywhere_and_resumed(
    number: int, rounds: list[Round], whole: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, size, data = runs()[number], runs()[number].digest_size, whole[number]
    path = tmp_path_factory.mktemp("cut") / "t"
    begun = next(frame.end for frame in frames_of(data, size) if frame.type == KEYFRAME)
    for cut, tail, steps, until in rounds:
        damaged = data[: begun + round(cut * (len(data) - begun))] + tail
        data = after_one_round(run, path, data, damaged, steps, until)
    with run.resume(path, len([f for f in frames_of(data, size) if f.type == STEP])) as recorder:
        run.go_on(recorder)
    assert run_of(path.read_bytes(), size) == run_of(whole[number], size)
    assert validate(path).ok
    assert replay(path).verdict is (Verdict.UNPROVEN if run.options["record"] == "digest" else Verdict.OK)


def after_one_round(run: Run, path: Path, data: bytes, damaged: bytes, share: float, until: float) -> bytes:
    """Resume a damaged copy of an intact trace, go on for some steps and check what was written."""
    size = run.digest_size
    same = next((i for i, pair in enumerate(zip(data, damaged, strict=False)) if pair[0] != pair[1]), len(damaged))
    there = list(frames_of(data[:same], size))
    steps = round(share * sum(frame.type == STEP for frame in there))
    kept = kept_of(there, steps)
    prefix = data[: kept[-1].end]
    Path(f"{path}.partial").write_bytes(damaged)
    last = steps + round(until * (STEPS - steps))
    recorder = run.resume(path, steps)
    run.go_on(recorder, last)
    recorder.close()
    resumed = Path(f"{path}.partial").read_bytes()
    assert resumed.startswith(prefix)
    (number, kind, text), *later = events_of(resumed, size)[len(events_of(prefix, size)) :]
    note = json.loads(text)
    state = "compared" if state_is_known(there, steps, run) else "not recorded"
    assert (number, kind, note["step"], note["state"]) == (steps, "resume", steps, state)
    cut = damaged[len(prefix) :]
    assert note["cut_bytes"] == len(cut)
    assert note["cut_steps"] >= sum(frame.type == STEP for frame in there) - steps
    tails = sorted(path.parent.glob("t.torn*"), key=lambda tail: tail.stat().st_mtime_ns)
    assert not cut or tails[-1].read_bytes() == prefix[: there[0].end] + prefix[-size:] + cut
    assert note["environment"]["numpy"] == np.__version__
    assert later == ([(NOTE_AFTER, "note", "here")] if steps < NOTE_AFTER <= last else [])
    return resumed


@pytest.fixture(scope="module")
def long_run() -> Run:
    return Run(1027, 1, SGD(0.1), record="digest", keyframe_every=1024, commit_every=1024)


@pytest.mark.parametrize("steps", [0, 1023, 1024, 1026])
def test_cut_between_the_marks_of_the_1024th_step(long_run: Run, tmp_path: Path, steps: int) -> None:
    """INDEX, COMMIT and KEYFRAME stand behind STEP 1023; those that the kill took are made anew."""
    path = tmp_path / "t"
    with long_run.begin(path) as recorder:
        long_run.go_on(recorder)
    whole = path.read_bytes()
    path.unlink()
    frames = list(frames_of(whole, 16))
    (at,) = (i for i, frame in enumerate(frames) if (frame.type, frame.step) == (STEP, 1023))
    assert [frame.type for frame in frames[at:]] == [STEP, INDEX, COMMIT, KEYFRAME, STEP, STEP, STEP, INDEX, SEAL]
    for frame in frames[at:] if steps == 1024 else frames[-3:]:
        path.unlink(missing_ok=True)
        Path(f"{path}.partial").write_bytes(whole[: frame.end])
        with long_run.resume(path, steps) as recorder:
            long_run.go_on(recorder)
        assert run_of(path.read_bytes(), 16) == run_of(whole, 16), frame.type
        assert validate(path).ok


def test_a_seal_without_an_index_before_it_is_cut(tmp_path: Path) -> None:
    """The INDEX of STEP 1023 lists all there is, and the process died between seal and rename."""
    run = Run(1026, 1, SGD(0.1), record="digest", keyframe_every=2048)
    for name, stop in (("cut", 1024), ("whole", 1026)):
        with run.begin(tmp_path / name) as recorder:
            run.go_on(recorder, stop)
    sealed = list(frames_of((tmp_path / "cut").read_bytes(), 16))
    assert [frame.type for frame in sealed[-4:]] == [STEP, INDEX, COMMIT, SEAL]
    (tmp_path / "cut").rename(tmp_path / "cut.partial")
    with run.resume(tmp_path / "cut", 1024) as recorder:
        run.go_on(recorder)
    assert run_of((tmp_path / "cut").read_bytes(), 16) == run_of((tmp_path / "whole").read_bytes(), 16)


def test_a_trace_is_sealed_right_after_it_was_resumed(whole: list[bytes], tmp_path: Path) -> None:
    """Where the last state is due, and where nothing but the arrays handed in tells it."""
    for number, run in enumerate(runs()):
        path = tmp_path / str(number)
        Path(f"{path}.partial").write_bytes(whole[number][:-40])
        run.resume(path, STEPS).seal()
        assert run_of(path.read_bytes(), run.digest_size) == run_of(whole[number], run.digest_size)
