"""What a trainer calls, and what `dgrr.trace` hands out."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgrr.trace
from dgrr.runtime import SGD, Keep
from dgrr.runtime.training import recorder_protocol
from dgrr.trace import (
    CompletedStep,
    NonFiniteError,
    NonFiniteStepError,
    NotRecordedError,
    RuleGroup,
    Run,
    TraceRecorder,
    TraceWriteError,
    Verdict,
    open_trace,
    replay,
    validate,
)

from ....keeping import recorder_of

pytestmark = pytest.mark.quick

PARAMS: dict[str, Any] = {"w": np.ones((2, 2), np.float32), "b": np.zeros(2, np.float32)}
STATE: dict[str, Any] = {"step": np.array(0), "corrections": np.array([0.5, 0.25])}


def begin(path: Path, **options: Any) -> TraceRecorder:
    options = {
        "record": "grads",
        "params": PARAMS,
        "state": STATE,
        "rule": "none@1",
        "hyperparameters": ["lr"],
        "numerics": 1,
    } | options
    return recorder_of(path, **options)


def step(recorder: TraceRecorder, **changes: Any) -> None:
    arguments: dict[str, Any] = {
        "step": recorder.steps,
        "loss": np.array(1.5, np.float32),
        "hyper": {"lr": 0.5},
        "grads": PARAMS,
        "params": PARAMS,
        "state": STATE,
        "batch": (np.arange(3),),
    } | changes
    recorder.step(CompletedStep(**arguments))


def test_the_entry_point_is_the_package() -> None:
    (entry,) = entry_points(group="dgrr.recorder")
    assert entry.load() is dgrr.trace


def test_the_runtime_opens_and_resumes_through_the_entry_point(tmp_path: Path) -> None:
    params, rule = {"w": np.ones(2)}, SGD(0.5)
    run = Run(params, rule.init(params), [RuleGroup(rule.rule, rule.names)], numerics=1, seed=3)
    keep = Keep(tmp_path / "t")
    recorder_protocol.open_recorder(keep, run).close()
    recorder = recorder_protocol.resume_recorder(keep, run, steps=0)
    assert isinstance(recorder, TraceRecorder)
    assert isinstance(recorder, recorder_protocol.Recorder)
    recorder.commit()
    recorder.seal()
    assert validate(tmp_path / "t").ok


def test_importing_the_package_loads_no_compiler() -> None:
    program = "import sys, dgrr.trace; dgrr.trace.validate('x'); sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
    program = "import sys; from dgrr.trace import replay; sys.exit('numba' not in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_public_name_is_there() -> None:
    for name in dgrr.trace.__all__:
        assert getattr(dgrr.trace, name).__doc__
    with pytest.raises(AttributeError, match=r"^dgrr\.trace has no 'nothing'$"):
        _ = dgrr.trace.nothing  # type: ignore[attr-defined]


def test_both_versions_are_validated() -> None:
    report = validate(Path(__file__).parents[3] / "golden" / "v1_one_step.dgrr")
    assert (report.verdict, report.version, report.steps, report.update) == (Verdict.OK, 1, 1, "proven")


def test_a_foreign_file_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"DGRR\x03\x00\x00\x00")
    assert validate(tmp_path / "t").verdict is Verdict.UNSUPPORTED
    (tmp_path / "t").write_bytes(b"PNG")
    report = replay(tmp_path / "t")
    assert (report.verdict, report.exit_code) == (Verdict.CORRUPT, 3)
    golden = Path(__file__).parents[3] / "golden" / "v1_one_step.dgrr"
    data = bytearray(golden.read_bytes())
    data[100] ^= 1
    (tmp_path / "t").write_bytes(data)
    assert replay(tmp_path / "t").verdict is Verdict.CORRUPT
    (tmp_path / "t").write_bytes(data[:50])
    assert replay(tmp_path / "t").exit_code == 3


def test_scalars_of_a_step(tmp_path: Path) -> None:
    with begin(tmp_path / "t", seed=9) as recorder:
        assert recorder.path == str(tmp_path / "t")
        step(recorder, clip=(1.0, 0.125), micro_batches=4, loss=np.array(2.5))
        step(recorder)
        assert recorder.steps == 2
    with open_trace(tmp_path / "t") as trace:
        assert (trace[0].clip, trace[0].micro_batches, trace[0].loss) == ((1.0, 0.125), 4, np.float64(2.5))
        assert (trace[1].clip, trace[1].micro_batches, trace[1].loss.dtype) == (None, 1, np.float32)
        assert trace[0].corrections == (0.5, 0.25)
        assert trace.header.seed == 9
        assert [e.kind for _, e in trace.events()] == ["environment"]


def test_a_with_block_seals_or_closes(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as recorder:
        step(recorder)
    assert validate(tmp_path / "a").ok

    def interrupted() -> None:
        with begin(tmp_path / "b") as recorder:
            step(recorder)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert validate(tmp_path / "b.partial").verdict is Verdict.UNSEALED
    with begin(tmp_path / "c") as recorder:
        recorder.seal()
    assert validate(tmp_path / "c").ok


BAD = np.array([1, np.nan], np.float32)


@pytest.mark.parametrize(
    ("changes", "tensor", "element", "text"),
    [
        ({"loss": np.array(np.nan)}, "loss", None, "got nan in 'loss' of step 1"),
        ({"loss": np.array(-np.inf, np.float32)}, "loss", None, "got -inf in 'loss'"),
        ({"grads": {"b": BAD}}, "b", 1, "got nan in 'b' at flat element 1 of step 1"),
        ({"grads": PARAMS | {"w": np.array([[1, 2], [np.inf, 3]], np.float32)}}, "w", 2, "got inf in 'w'"),
    ],
)
def test_nothing_of_a_non_finite_step_is_written(
    tmp_path: Path, changes: dict[str, Any], tensor: str, element: int | None, text: str
) -> None:
    with begin(tmp_path / "t", state_every=4) as recorder:
        step(recorder)
        with pytest.raises(NonFiniteStepError, match=text) as caught:
            step(recorder, **changes)
    assert (caught.value.step, caught.value.tensor, caught.value.element) == (1, tensor, element)
    assert (validate(tmp_path / "t").verdict, validate(tmp_path / "t").steps) == (Verdict.OK, 1)


def test_large_finite_gradients_are_finite(tmp_path: Path) -> None:
    huge = {"w": np.full((2, 2), 3e38, np.float32), "b": np.full(2, -3e38, np.float32)}
    with begin(tmp_path / "t") as recorder:
        step(recorder, grads=huge)
    with open_trace(tmp_path / "t") as trace:
        assert trace.tensor("w", step=0).tolist() == huge["w"].tolist()


def test_nan_is_written_in_one_form(tmp_path: Path) -> None:
    odd = np.array([0x7FC12345, 0xFFC00000], np.uint32).view(np.float32)
    plain = np.full(2, np.nan, np.float32)
    for name, b in (("odd", odd), ("plain", plain)):
        with begin(tmp_path / name, record="full", salt=bytes(16), created_at=0) as recorder:
            step(recorder, params=PARAMS | {"b": b}, batch={"x": b.astype(np.float64)})
    assert (tmp_path / "odd").read_bytes() == (tmp_path / "plain").read_bytes()
    with open_trace(tmp_path / "odd") as trace:
        bits = trace.tensor("b", step=0, what="after").view(np.uint32)
        assert bits.tolist() == [0x7FC00000, 0x7FC00000]


def test_strides_do_not_matter(tmp_path: Path) -> None:
    base = np.arange(8, dtype=np.float32).reshape(2, 4)
    for name, w in (("strided", base[:, ::2]), ("whole", base[:, ::2].copy())):
        with begin(tmp_path / name, salt=bytes(16), created_at=0) as recorder:
            step(recorder, grads={"w": w}, params=PARAMS | {"w": w}, batch=[w.T, w.astype(">f4")])
    assert (tmp_path / "strided").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_batch_is_recorded_by_names_and_values(tmp_path: Path) -> None:
    x, y = np.arange(3), np.arange(3.0)
    batches: list[Any] = [(x, y), [x, y], (y, x), {"0": x, "1": y}, {"1": y, "0": x}, x, (x,), {"x": x}]
    with begin(tmp_path / "t") as recorder:
        for batch in batches:
            step(recorder, batch=batch)
    with open_trace(tmp_path / "t") as trace:
        digests = [view.input_digest for view in trace]
    assert digests[0] == digests[1] == digests[3] == digests[4]
    assert digests[5] == digests[6]
    assert len(set(digests)) == 4


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"step": 3}, "recorder.step: expected step 0, got 3"),
        ({"loss": np.array([1.0])}, r"loss: expected a float32 or float64 scalar, got float64 \(1,\)"),
        ({"loss": np.array(1)}, "loss: expected a float32 or float64 scalar, got int64"),
        ({"grads": {"w": np.ones(2, np.float32)}}, r"gradient of 'w': expected float32 \(2, 2\)"),
        ({"grads": {"x": np.ones(2)}}, "gradients of unknown params: x"),
        ({"params": PARAMS | {"b": np.ones(2)}}, r"param 'b': expected float32 \(2,\) as at the beginning"),
        ({"state": STATE | {"step": np.array(1.0)}}, "optimizer state 'step': expected int64"),
        ({"batch": (np.array(["text"]),)}, "digest: expected one of the dtypes f32, f64"),
    ],
)
def test_errors_of_step(tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    recorder = begin(tmp_path / "t")
    with pytest.raises((ValueError, TypeError), match=text):
        step(recorder, **changes)
    step(recorder)
    recorder.seal()
    assert validate(tmp_path / "t").steps == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rule": "adam"}, "expected a name and a version, such as 'adam@1'"),
        ({"params": {"a\n": np.ones(1)}}, "control characters"),
        ({"params": {"w": np.ones(1, np.int64)}}, "param 'w': expected a float, got i64"),
        ({"params": {"w": np.ones(1, "M8[s]")}}, "expected one of the dtypes"),
        ({"params": {"step": np.ones(1)}}, "must be unique"),
    ],
)
def test_errors_of_open(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        begin(tmp_path / "t", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        ("Note", "x", "1 to 64 of the characters a-z0-9_-, got 'Note'"),
        ("note", "x" * 65536, "event: expected at most 65536 bytes in all, got 65548; write less"),
    ],
)
def test_errors_of_event(tmp_path: Path, kind: str, text: str, error: str) -> None:
    with begin(tmp_path / "t") as recorder, pytest.raises(ValueError, match=error):
        recorder.event(kind, text)
    assert validate(tmp_path / "t").ok


def test_the_last_state_is_sealed_if_it_is_known(tmp_path: Path) -> None:
    params = {name: p.copy() for name, p in PARAMS.items()}
    with begin(tmp_path / "t", params=params, state_every=4) as recorder:
        step(recorder, params=params)
        params["w"] += 1
        step(recorder, params=params)
    with open_trace(tmp_path / "t") as trace:
        assert trace.seal is not None
        assert len(trace.seal.final) == 5
    broken = begin(tmp_path / "b", params=params, state_every=4)
    step(broken, params=params)
    with pytest.raises(NonFiniteError):
        step(broken, loss=np.array(np.nan))
    broken.seal()
    with open_trace(tmp_path / "b") as trace:
        assert trace.seal is not None
        assert trace.seal.final == ()


def test_a_sealed_recorder_takes_no_more(tmp_path: Path) -> None:
    recorder = begin(tmp_path / "t")
    recorder.seal()
    with pytest.raises(TraceWriteError, match="takes no more data"):
        step(recorder)
    recorder.close()


def test_state_every_follows_the_size_of_the_state(tmp_path: Path) -> None:
    for size, every in ((2**17 - 3, 1), (2**17, 16)):  # with step and corrections: 1 MiB, and a little more
        with begin(tmp_path / str(size), params={"w": np.zeros(size)}) as recorder:
            assert recorder.steps == 0
        with open_trace(tmp_path / str(size)) as trace:
            assert trace.header.state_every == every


@pytest.mark.parametrize(
    ("batch", "kind", "name"),
    [
        ((np.ones(3), {"y": np.ones(3)}), "dict", "1"),
        ({"x": (np.ones(3), np.ones(2))}, "tuple", "x"),
        ((np.ones(3), [np.ones(3)]), "list", "1"),
    ],
)
def test_a_nested_batch_is_refused_by_the_name_of_its_nest(tmp_path: Path, batch: Any, kind: str, name: str) -> None:
    recorder = begin(tmp_path / "t")
    with pytest.raises(TypeError) as caught:
        step(recorder, batch=batch)
    assert str(caught.value) == (
        f"digest: expected a batch of arrays by name or in turn, got a {kind} for {name!r}; a trace takes no nests: "
        "give (x, y) or {'x': x, 'y': y}, not (x, {'y': y})"
    )
    step(recorder, batch=([[1, 2], [3, 4]], 3.0, np.float32(2)))
    assert recorder.steps == 1
    recorder.close()


def _told(step: int, w: Any, grad: Any) -> CompletedStep:
    run: dict[str, Any] = {"hyper": {"lr": 0.5}, "params": {"w": w}, "state": {}, "batch": np.ones(2)}
    return CompletedStep(step=step, loss=np.array(1.0), grads={"w": grad}, **run)


def test_values_of_a_run_of_one_step_are_written_once(tmp_path: Path) -> None:
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1, "values": 100}
    with recorder_of(tmp_path / "t", record="bare", params={"w": np.ones(2)}, state={}, **run) as recorder:
        recorder.step(_told(0, np.zeros(2), np.ones(2)))
    assert validate(tmp_path / "t").ok


def test_values_that_changed_since_their_step_are_left_out(tmp_path: Path) -> None:
    w, grad = np.array([3.0, 4.0]), np.ones(2)
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1, "values": 100}
    with recorder_of(tmp_path / "t", record="bare", params={"w": np.ones(2)}, state={}, **run) as recorder:
        recorder.step(_told(0, np.zeros(2), np.ones(2)))
        recorder.step(_told(1, w, grad))
        grad += 1
    assert validate(tmp_path / "t").ok
    with open_trace(tmp_path / "t") as trace:
        assert trace.tensor("w", step=1, what="after").tolist() == [3.0, 4.0]
        with pytest.raises(NotRecordedError):
            trace.tensor("w", step=1, what="grad")
