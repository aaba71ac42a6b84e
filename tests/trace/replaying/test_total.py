"""Replay answers every valid file and every model with a report: nothing that they hold or do is raised."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dgrr import runtime
from dgrr.runtime import SGD, Adam
from dgrr.tape import NUMERICS, Tape, ops
from dgrr.trace import Report, Verdict, replay, validate
from dgrr.trace.v2.format.constants import RecordMode, TensorRole
from dgrr.trace.v2.format.schema import CLIPPING, Group

from .nonsense import BATCH, SaidStep, write

RecordRun = Callable[..., Path]
PARAM, STATE, BUFFER = TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER
SGD_NAMES = tuple(SGD(0.5).hyperparameters())
PLAIN = tuple(SGD(0.5).hyperparameters().values())
W, COUNT = np.ones((1, 3)), np.array(0)


def linear(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"]), batch[1])


def sgd_trace(path: Path, said: SaidStep | None = None, **options: Any) -> Path:
    """A trace of one step of SGD on `linear`; the state after it is that before it, unless said otherwise."""
    roles = {"w": PARAM, "step": STATE}
    groups = [Group("sgd@1", SGD_NAMES, options.pop("corrections", 0), (0, 1))]
    start = {"w": W, "step": COUNT}
    said = said or SaidStep(start, {"w": W}, PLAIN)
    return write(path, roles, groups, start, [said], **options)


def answer(path: Path, loss_fn: Any = linear, batches: Any = (BATCH,)) -> Report:
    """What replay says of a digest trace, or of any other, with a model."""
    assert validate(path).ok
    report = replay(path, loss_fn=loss_fn, batches=batches)
    assert not report.ok
    return report


# What a file may say.


def test_a_file_that_ends_before_keyframe_0_is_torn(record_run: RecordRun, tmp_path: Path) -> None:
    data = record_run(seal=False, steps=1).read_bytes()
    schema_end = 256 + 48 + (int.from_bytes(data[256 + 24 : 256 + 28], "little") + 7) // 8 * 8 + 16
    for length in (0, 3, 8, 100, 256, 300, schema_end, schema_end + 60):
        (tmp_path / "t").write_bytes(data[:length])
        for report in (replay(tmp_path / "t"), replay(tmp_path / "t", loss_fn=linear, batches=[BATCH])):
            assert (report.verdict, report.steps, report.update) == (Verdict.TORN_TAIL, 0, "not proven")


def test_corrections_without_their_tensor(tmp_path: Path) -> None:
    said = SaidStep({"w": W - 0.5, "step": COUNT + 1}, {"w": W}, PLAIN, (0.5,))
    report = replay(sgd_trace(tmp_path / "t", said, corrections=1))
    assert (report.verdict, report.update) == (Verdict.UPDATE, "failed")
    assert "step 0: bias corrections: recorded (0.5,), and no tensor 'corrections' to hold them" in str(report)


@pytest.mark.parametrize("step", [None, np.zeros(2, np.int64), np.array(1.5), np.array(True)])
def test_no_count_of_steps(tmp_path: Path, step: Any) -> None:
    roles = {"w": PARAM} if step is None else {"w": PARAM, "step": STATE}
    state = {"w": W, "step": step}
    groups = [Group("sgd@1", SGD_NAMES, 0, tuple(range(len(roles))))]
    path = write(tmp_path / "t", roles, groups, state, [SaidStep(state, {"w": W}, PLAIN)])
    report = answer(path)
    assert report.verdict is Verdict.UNPROVEN
    assert "the trace has no tensor 'step' of one integer, from which the model's random draws follow" in str(report)


@pytest.mark.parametrize("threshold", [-1.0, float("nan"), float("-inf")])
def test_a_threshold_that_clips_nothing(tmp_path: Path, threshold: float) -> None:
    state = {"w": W, "step": COUNT}
    said = SaidStep(state, {"w": W}, PLAIN, clip=(threshold, 0.5), loss=np.array(9.0))
    report = answer(sgd_trace(tmp_path / "t", said))
    assert (report.verdict, report.gradient) == (Verdict.GRADIENT, "failed")
    assert "the recorded clipping cannot be executed again: " in str(report)
    assert "argument 'max_norm': expected a number of at least 0" in str(report)


def test_a_schema_that_does_not_fit_the_model(tmp_path: Path) -> None:
    report = answer(sgd_trace(tmp_path / "t"), lambda p, batch: linear({"w": p["v"]}, batch))
    assert (report.verdict, report.gradient) == (Verdict.GRADIENT, "failed")
    assert "step 0: the model cannot be executed again: KeyError: 'v'" in str(report)


def test_buffers_that_the_model_does_not_keep(tmp_path: Path) -> None:
    roles = {"w": PARAM, "step": STATE, "mean": BUFFER}
    state = {"w": W, "step": COUNT, "mean": np.zeros(2, np.int16)}
    groups = [Group("sgd@1", SGD_NAMES, 0, (0, 1))]
    path = write(tmp_path / "t", roles, groups, state, [SaidStep(state, {"w": W}, PLAIN, loss=np.array(9.0))])
    assert answer(path, lambda p, batch, ctx: linear(p, batch)).verdict is Verdict.GRADIENT


def test_a_loss_of_another_type(tmp_path: Path) -> None:
    said = SaidStep({"w": W, "step": COUNT}, {"w": W}, PLAIN, loss=np.array(9.0, np.float32))
    report = answer(sgd_trace(tmp_path / "t", said))
    assert "gradient: step 0, 'loss': the loss is of another type: recorded float32, found float64" in str(report)


def test_more_micro_batches_than_there_are_grains_of_sand(tmp_path: Path) -> None:
    def endless() -> Iterator[Any]:
        while True:
            yield BATCH

    said = SaidStep({"w": W, "step": COUNT}, {"w": W}, PLAIN, micro_batches=(1 << 32) - 1)
    report = answer(sgd_trace(tmp_path / "t", said), batches=endless())
    assert report.verdict is Verdict.UNPROVEN
    assert "4294967295 micro-batches in one step; at most 65536 are executed again" in str(report)


def test_hyperparameters_that_no_rule_takes(tmp_path: Path) -> None:
    for value in (float("nan"), float("inf"), -1.0):
        for place in range(len(PLAIN)):
            hyper = (*PLAIN[:place], value, *PLAIN[place + 1 :])
            said = SaidStep({"w": W, "step": COUNT}, {"w": W}, hyper)
            report = replay(sgd_trace(tmp_path / "t", said))
            assert report.verdict is Verdict.UPDATE
            (tmp_path / "t").unlink()


# What a model and its batches may do.


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(error: BaseException) -> Callable[..., Any]:
    def loss_fn(p: Any, batch: Any) -> Any:
        raise error

    return loss_fn


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (GeneratorExit(), "GeneratorExit"),
        (StopIteration(), "StopIteration"),
        (RecursionError("deep"), "RecursionError: deep"),
        (UnprintableError(), "UnprintableError: <exception str() failed>"),
        (ValueError("x" * 10_000), "x" * 300 + "…"),
    ],
)
def test_a_model_that_raises_anything(tmp_path: Path, error: BaseException, text: str) -> None:
    path = sgd_trace(tmp_path / "t", mode=RecordMode.DIGEST)
    report = answer(path, raising(error))
    assert (report.verdict, report.exit_code, report.gradient) == (Verdict.GRADIENT, 5, "failed")
    assert "step 0: the model cannot be executed again: " in str(report)
    assert text[-20:] in str(report)
    assert len(str(report)) < 1000


def test_memory_that_is_short_says_nothing_of_the_run(tmp_path: Path) -> None:
    report = answer(sgd_trace(tmp_path / "t"), raising(MemoryError()))
    assert (report.verdict, report.gradient) == (Verdict.UNPROVEN, "not proven")
    assert "the model cannot be executed again: there is not enough memory" in str(report)


def test_an_interrupt_of_a_replay_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        replay(sgd_trace(tmp_path / "t"), loss_fn=raising(KeyboardInterrupt()), batches=[BATCH])


NONSENSE: dict[str, Callable[..., Any]] = {
    "nothing": lambda p, batch: None,
    "a number": lambda p, batch: 1.0,
    "no scalar": lambda p, batch: p["w"],
    "a constant": lambda p, batch: batch[0].sum(),
    "a tuple": lambda p, batch: (1, 2, 3, 4),
    "metrics": lambda p, batch: (linear(p, batch), {"loss": linear(p, batch)}),
    "a state": lambda p, batch, ctx: (linear(p, batch), {"none": p["w"]}, {}),
    "too few arguments": lambda: None,
    "a value of the batch": lambda p, batch: float(batch[0]),
    "another tape": lambda p, batch: KEPT[0],
}
KEPT: list[Any] = []


@pytest.mark.parametrize("name", NONSENSE)
def test_a_model_that_returns_nonsense(tmp_path: Path, name: str) -> None:
    KEPT[:] = [Tape[Any]().params({"w": W})["w"].sum()]
    report = answer(sgd_trace(tmp_path / "t"), NONSENSE[name])
    assert (report.verdict, report.findings[0].step) == (Verdict.GRADIENT, 0)


class Failing:
    def __iter__(self) -> Iterator[Any]:
        yield BATCH
        raise OSError("the disk is gone")


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        (5, "TypeError: 'int' object is not iterable"),
        ([], "there are no more batches"),
        ([None], "TypeError"),
        ([3.5], "TypeError"),
        ([{1: W}], "AttributeError"),
        ([({"x": W}, W)], "a trace takes no nests"),
        ([(W.astype(complex), W)], "the batch is not the one that was recorded"),
        ([(object(), W)], "got object"),
        ([np.zeros(3)], "the batch is not the one that was recorded"),
    ],
)
def test_batches_that_are_none(tmp_path: Path, batches: Any, text: str) -> None:
    report = answer(sgd_trace(tmp_path / "t"), batches=batches)
    assert (report.verdict, report.data, report.findings[0].step) == (Verdict.DATA, "failed", 0)
    assert text in str(report)


def test_batches_that_fail_on_the_way(tmp_path: Path) -> None:
    roles, start = {"w": PARAM, "step": STATE}, {"w": np.zeros((1, 3)), "step": COUNT}
    groups = [Group("sgd@1", SGD_NAMES, 0, (0, 1))]
    zero = np.zeros((1, 3))
    said = [SaidStep({"w": zero, "step": COUNT + k}, {"w": zero}, PLAIN, loss=np.array(0.0)) for k in (1, 2)]
    path = write(tmp_path / "t", roles, groups, start, said)
    report = answer(path, batches=Failing())
    assert (report.verdict, report.findings[0].step) == (Verdict.DATA, 1)
    assert "the batches cannot be read: OSError: the disk is gone" in str(report)


# The gradient that is to blame, behind the scale that all of them bear.


def two(p: Any, batch: Any) -> Any:
    return linear(p, batch) + (p["v"] * p["v"]).sum()


@pytest.mark.parametrize("mode", [RecordMode.DIGEST, RecordMode.GRADS])
def test_behind_a_clip_scale_the_tensor_is_named(tmp_path: Path, mode: RecordMode) -> None:
    start = {"w": W, "v": np.full(2, 0.75), "step": COUNT}

    def hair(p: Any, batch: Any) -> Any:
        return two(p, batch) + ((p["v"] - 0.75) * 1e-3).sum()  # no other loss, another gradient of v

    loss, grads = runtime.gradients(two, {"w": W, "v": start["v"]}, BATCH)
    clipped = runtime.clip_by_global_norm(grads, 0.125)
    roles = {"w": PARAM, "v": PARAM, "step": STATE}
    groups = [Group("sgd@1", SGD_NAMES, 0, (0, 1, 2))]
    for lie in (1.0, 2.0):
        said = SaidStep(start, clipped.grads, PLAIN, clip=(0.125, clipped.scale * lie), loss=loss)
        path = write(tmp_path / f"{lie}", roles, groups, start, [said], mode)
        finding = answer(path, hair if lie == 1.0 else two).findings[0]
        assert (finding.verdict, finding.step) == (Verdict.GRADIENT, 0)
        if lie == 1.0:
            assert finding.tensor == "v"
            assert "re-execution gives another gradient" in finding.text
        else:
            assert finding.tensor is None
            assert finding.text == f"the clip scale: recorded {clipped.scale * 2!r}, found {clipped.scale!r}"


# Anything at all.

floats = st.sampled_from([0.0, -0.0, 1.0, 0.5, -1.0, 1e300, 5e-324, float("inf"), float("nan")]) | st.floats()
shapes = st.sampled_from([(), (1,), (2,), (1, 3), (0,), (2, 0, 1)])
RULES: list[tuple[str, tuple[str, ...]]] = [
    ("sgd@1", SGD_NAMES),
    ("adam@1", tuple(Adam(1e-3).hyperparameters())),
    ("adamw@1", ("lr",)),
    ("nope@9", ("x",)),
]


def array(draw: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    if dtype[0] == "f":
        values = draw(st.lists(floats, min_size=count, max_size=count))
        with np.errstate(all="ignore"):
            return np.array(values, dtype).reshape(shape)
    return np.array(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), dtype).reshape(shape)


@st.composite
def traces(draw: Any) -> dict[str, Any]:
    """Names, roles, rules, values: each possible, together mostly nonsense."""
    roles: dict[str, TensorRole] = {}
    start: dict[str, Any] = {}
    names = st.sampled_from(["w", "v", "step", "corrections", "momentum/w", "m/w", "v/w", "x"])
    for role, dtypes in ((PARAM, ["f4", "f8"]), (STATE, ["f4", "f8", "i8", "u8", "?"]), (BUFFER, ["f4", "f8", "i4"])):
        for name in draw(st.lists(names, max_size=3, unique=True)):
            if name not in roles:
                roles[name], shape = role, draw(shapes)
                start[name] = array(draw, draw(st.sampled_from(dtypes)), shape)
    owned = [i for i, role in enumerate(roles.values()) if role is not BUFFER]
    cut = draw(st.integers(0, len(owned)))
    groups = [CLIPPING] if draw(st.booleans()) else []
    for tensors in (owned[:cut], owned[cut:]):
        rule, hyper = draw(st.sampled_from(RULES))
        groups.append(Group(rule, hyper, draw(st.integers(0, 2)), tuple(tensors)))
    return {"roles": roles, "groups": groups, "start": start, "steps": draw(said_steps(roles, groups, start))}


@st.composite
def said_steps(draw: Any, roles: dict[str, TensorRole], groups: list[Group], start: dict[str, Any]) -> list[SaidStep]:
    steps: list[SaidStep] = []
    for _ in range(draw(st.integers(0, 2))):
        hyper = [draw(floats) for group in groups for _ in group.hyperparameters]
        if groups[0] == CLIPPING:
            hyper[0] = abs(hyper[0]) if hyper[0] == hyper[0] else 0.0
        params = [name for name, role in roles.items() if role is PARAM and draw(st.booleans())]
        steps.append(
            SaidStep(
                start if draw(st.booleans()) else {n: array(draw, a.dtype.str[1:], a.shape) for n, a in start.items()},
                {name: array(draw, start[name].dtype.str[1:], start[name].shape) for name in params},
                hyper,
                [draw(floats) for group in groups for _ in range(group.corrections)],
                draw(st.none() | st.tuples(floats, floats)),
                array(draw, draw(st.sampled_from(["f4", "f8"])), ()),
                draw(st.sampled_from([1, 1, 1, 2])),
            )
        )
    return steps


def everything(p: Any, batch: Any, ctx: Any) -> Any:
    total = sum((p[name].sum() for name in p), start=batch[0].sum() * 0.0)
    return (total, ctx.state) if ctx.state else total


MODELS: list[Any] = [None, linear, everything, raising(ZeroDivisionError()), NONSENSE["nothing"], NONSENSE["no scalar"]]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    said=traces(), mode=st.sampled_from(RecordMode), model=st.sampled_from(MODELS), ulp_tol=st.sampled_from([0, 0, 3])
)
def test_any_valid_file_is_answered(
    tmp_path: Path, said: dict[str, Any], mode: RecordMode, model: Any, ulp_tol: int
) -> None:
    path = tmp_path / "t"
    path.unlink(missing_ok=True)
    write(path, **said, mode=mode, numerics=NUMERICS)
    assert validate(path).ok
    options = {} if model is None else {"loss_fn": model, "batches": [BATCH, BATCH]}
    if ulp_tol and mode in (
        RecordMode.DIGEST,
        RecordMode.GRADS,
    ):  # a tolerance for states that are not recorded is the caller's mistake
        with pytest.raises(ValueError, match="ulp_tol: this trace records digests of its states"):
            replay(path, ulp_tol=ulp_tol, **options)
        return
    report = replay(path, ulp_tol=ulp_tol, **options)
    assert isinstance(report.verdict, Verdict)
    assert str(report)
