"""A trace held against the model as it is now."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Trainer
from dgrr.runtime.optim import StepDecay
from dgrr.tape import NUMERICS, ops
from dgrr.trace import Cause, NotRecordedError, Verdict, compare, diff_with_model, open_trace
from dgrr.trace.comparing import with_model
from dgrr.trace.v2.repair.rollback import rollback_v2

from ...keeping import kept, recorder_of

STEPS = 7


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((4, 3)), rng.standard_normal((4, 2))) for _ in range(3)]


def loss_fn(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"], p["b"]), batch[1])


def other_loss_fn(p: Any, batch: Any) -> Any:
    return loss_fn(p, batch) * 2


def with_state(p: Any, batch: Any, ctx: Any) -> Any:
    ctx.update("mean", ctx.state["mean"] * 0.75)
    return loss_fn(p, batch), ctx.state


def params() -> dict[str, Any]:
    return {"w": np.full((2, 3), 0.1), "b": np.zeros(2)}


def train(path: Path, loss_fn: Callable[..., Any] = loss_fn, *, steps: int = STEPS, **options: Any) -> Path:
    options = {"mode": "eager", "optimizer": Adam(1e-2)} | options
    Trainer(loss_fn, params(), options.pop("optimizer"), **kept(path, options)).fit(
        batches(), steps=steps, progress=False
    )
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"record": "digest"},
        {"clip_norm": 0.125},
        {"clip_value": 0.0625},
        {"accumulate": 2, "steps": 2},
        {"seed": 5},
    ],
)
def test_the_same_model(tmp_path: Path, options: dict[str, Any]) -> None:
    path = train(tmp_path / "t", **options)
    found = diff_with_model(path, loss_fn, batches())
    assert found.same, found
    assert found.sentence == f"equal to the bit: {options.get('steps', STEPS)} steps"
    assert (found.a, found.b) == (str(path), "loss_fn, computed now")


def test_a_model_with_a_state(tmp_path: Path) -> None:
    path = train(tmp_path / "t", with_state, model_state={"mean": np.ones(3)})
    assert diff_with_model(path, with_state, batches()).same
    given = {"params": params(), "model_state": {"mean": np.ones(3)}}
    assert diff_with_model(path, with_state, batches(), **given).same


def test_another_model_and_where_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = train(tmp_path / "t")
    lengths: list[int] = []

    def noted(a: Any, b: Any, **options: Any) -> Any:
        if isinstance(b, Path) and b.name == "anew.dgrr":
            with open_trace(b) as trace:
                lengths.append(len(trace))
        return compare(a, b, **options)

    monkeypatch.setattr(with_model, "compare", noted)
    found = diff_with_model(path, other_loss_fn, batches())
    assert (found.verdict, found.cause, found.step, found.tensors[0].title) == (
        Verdict.DIVERGED,
        Cause.GRADIENT,
        0,
        "loss",
    )
    assert found.settings == {}
    assert not diff_with_model(path, other_loss_fn, batches(), policy="atol=1e-9").same
    assert diff_with_model(path, other_loss_fn, batches(), policy="atol=1e9").same
    assert lengths == [1, STEPS, STEPS]  # a tolerance looks at the whole run


def test_other_batches(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    changed = batches()
    changed[1][0][0, 0] += 1
    found = diff_with_model(path, loss_fn, changed)
    assert (found.cause, found.step) == (Cause.DATA, 1)
    found = diff_with_model(path, loss_fn, iter(batches()))
    assert (found.cause, found.step) == (Cause.DATA, 3)
    assert found.sentence.startswith(
        "step 3 is the first that differs: there are no more batches; pass those of the run"
    )


def test_another_start_and_another_shape(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    assert diff_with_model(path, loss_fn, batches(), params=params()).same
    moved = {**params(), "b": np.ones(2)}
    found = diff_with_model(path, loss_fn, batches(), params=moved)
    assert (found.cause, found.tensors[0].title) == (Cause.START, "'b' before step 0")
    np.testing.assert_array_equal(moved["b"], np.ones(2))  # what is given is not trained
    wider = {"w": np.ones((2, 4)), "b": np.ones(2)}
    found = diff_with_model(path, loss_fn, batches(), params=wider)
    assert (found.cause, found.settings) == (Cause.MODEL, {})


def test_a_schedule_is_followed_as_it_was_recorded(tmp_path: Path) -> None:
    path = train(tmp_path / "t", optimizer=SGD(StepDecay(0.1, every=3, factor=0.5)))
    with open_trace(path) as trace:
        assert len({view.hyper["lr"] for view in trace}) == 3
    assert diff_with_model(path, loss_fn, batches()).same


def test_what_is_not_finite_now(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    found = diff_with_model(path, lambda p, batch: loss_fn(p, batch) * float("nan"), batches())
    assert (found.cause, found.step) == (Cause.GRADIENT, 0)
    assert found.sentence == "step 0 is the first that differs: computed now, 'loss' is not finite"


def test_a_trace_that_cannot_be_read(tmp_path: Path) -> None:
    assert diff_with_model(tmp_path / "none", loss_fn, batches()).verdict is Verdict.IO


def test_a_trace_without_steps(tmp_path: Path) -> None:
    rollback_v2(train(tmp_path / "t"), 0, tmp_path / "child")
    found = diff_with_model(tmp_path / "child", loss_fn, batches())
    assert found.same
    assert "no step is recorded: nothing was computed" in found.notes


def test_start_values_that_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = train(tmp_path / "t", record="digest")

    def refuse(*_: Any) -> Any:
        raise NotRecordedError("bare")

    monkeypatch.setattr(with_model.TraceReader, "keyframe", refuse)
    with pytest.raises(
        NotRecordedError, match="^diff_with_model: the trace holds no values of its beginning: give params="
    ):
        diff_with_model(path, loss_fn, batches())
    assert diff_with_model(path, loss_fn, batches(), params=params()).same


def test_arguments(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    with pytest.raises(ValueError, match="policy: expected"):
        diff_with_model(path, loss_fn, batches(), policy="ulps")
    with pytest.raises(ValueError, match="expected classes of rules"):
        diff_with_model(path, loss_fn, batches(), rules=[Adam(1e-2)])  # type: ignore[list-item]


def hidden(p: Any, batch: Any, *, activation: Any = ops.tanh) -> Any:
    return ops.mse_loss(activation(ops.linear(batch[0], p["w"], p["b"])), batch[1])


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_the_first_op_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    path = train(tmp_path / "t", hidden, ops="every", mode=mode)
    assert diff_with_model(path, hidden, batches()).same
    found = diff_with_model(path, lambda p, batch: hidden(p, batch, activation=ops.sigmoid), batches())
    assert (found.cause, found.step) == (Cause.MODEL, 0)
    assert found.op is not None
    assert (found.op.what, found.op.node.op, found.op.was and found.op.was.op) == ("changed", "sigmoid", "tanh")
    assert "test_with_model.py:" in found.op.node.place

    def later(p: Any, batch: Any) -> Any:
        calls.append(1)
        return hidden(p, batch, activation=ops.sigmoid if len(calls) == 4 else ops.tanh)

    calls: list[int] = []
    found = diff_with_model(path, later, batches())
    assert (found.cause, found.step, found.op and found.op.node.op) == (Cause.MODEL, 3, "sigmoid")
    calls.clear()
    found = diff_with_model(path, later, batches(), policy="atol=1e-300")
    assert (found.cause, found.step, found.op and found.op.node.op) == (Cause.MODEL, 3, "sigmoid")


def test_an_op_that_computes_otherwise(tmp_path: Path) -> None:
    def scaled(by: list[float]) -> Callable[..., Any]:
        def loss_fn(p: Any, batch: Any) -> Any:
            return hidden(p, batch) * batch[0].tape.const(np.float64(by.pop(0)))

        return loss_fn

    path = train(tmp_path / "t", scaled([1.0] * 99), ops="every")
    found = diff_with_model(path, scaled([1.0] * 4 + [2.0] * 9), batches())
    assert (found.cause, found.step) == (Cause.GRADIENT, 4)
    assert found.op is not None
    assert (found.op.what, found.op.node.op, found.op.node.shape) == ("value", "leaf", ())
    assert found.tensors[0].title == "loss"


def test_ops_of_one_side_alone(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    found = diff_with_model(path, other_loss_fn, batches())
    assert found.op is None
    assert "which op: not recorded in a at step 0 (Keep.ops)" in found.notes


def test_a_bare_trace_needs_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rule, values = Adam(1e-2), params()
    state = rule.init(values)
    recorder = recorder_of(
        path,
        record="bare",
        ops="every",
        values=1 << 20,
        params=values,
        state=state,
        rule=rule.rule,
        hyperparameters=list(rule.names),
        numerics=NUMERICS,
    )
    Trainer(hidden, params(), rule, trace=recorder, mode="eager").fit(batches(), steps=STEPS, progress=False)
    with pytest.raises(NotRecordedError, match="give params="):
        diff_with_model(path, hidden, batches())
    assert diff_with_model(path, hidden, batches(), params=params()).same
    moved = {**params(), "b": np.ones(2)}
    found = diff_with_model(path, hidden, batches(), params=moved)
    assert (found.cause, found.tensors[0].recorded) == (Cause.START, False)
    found = diff_with_model(path, other_loss_fn, batches(), params=params())
    assert (found.cause, found.step, [t.title for t in found.tensors if t.recorded][:2]) == (
        Cause.MODEL,
        0,
        ["loss", "gradient of 'b'"],
    )


def square(p: Any, batch: Any) -> Any:
    return (p["w"] * p["w"]).sum()


def test_what_cannot_be_computed_is_unproven(write: Callable[..., Path]) -> None:
    found = diff_with_model(write("a"), square, batches())  # a rule of another name for its hyperparameters
    assert (found.verdict, found.same, found.b) == (Verdict.UNPROVEN, False, "square, computed now")
    assert found.sentence.startswith("step 0 cannot be applied: make_rule: sgd@1: expected lr, momentum, dampening")
    found = diff_with_model(write("b", rule="mine@1"), square, batches())
    assert found.sentence.startswith("step 0 cannot be applied: the rule 'mine@1' is not known to this library")
    found = diff_with_model(write("c", rule="mine@1"), square, batches(), params=params())
    assert found.sentence.startswith("the start cannot be made: the rule 'mine@1' is not known")
    found = diff_with_model(write("d", micro_batches=1 << 17), square, batches())
    assert found.sentence == "131072 micro-batches in one step; at most 65536 are executed again"
