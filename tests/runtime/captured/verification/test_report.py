"""The report, and that a verification leaves no trace in the step, whatever happens in it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, CapturedStep, capture
from dgrr.runtime.captured.verification import Check, VerifyReport, verify as module
from dgrr.runtime.captured.verification.subject import Subject
from dgrr.runtime.lower.compile import PASSES
from dgrr.runtime.optim import Cosine
from dgrr.tape import DomainError, ops

StepOf = Callable[..., CapturedStep]


def everything(step: CapturedStep) -> dict[str, bytes]:
    """All that a verification must leave as it is, to the bit and in place."""
    inputs = step._plans.inputs if step._plans else []
    named = {**step.params, **{f"state {n}": a for n, a in step.state.items()}}
    named |= {f"input {i}": array for i, array in enumerate(inputs)}
    named |= {"loss": step.loss, **{f"consumed {n}": a for n, a in step.consumed.items()}}
    return {f"{name} {id(array)} {array.ctypes.data}": array.tobytes() for name, array in named.items()}


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (Adam(1e-3), {}),
        (SGD(0.1), {}),
        (SGD(0.1, momentum=0.9), {"clip_norm": 0.05}),
        (AdamW(Cosine(1e-2, steps=5)), {"clip_value": 0.01}),
        (Adam(1e-3), {"without_passes": tuple(PASSES)}),
        *[(Adam(1e-3), {"without_passes": (name,)}) for name in PASSES],
    ],
    ids=str,
)
def test_every_check_holds_and_nothing_is_changed(step_of: StepOf, rule: Any, options: dict[str, Any]) -> None:
    step = step_of(rule, **options)
    before = everything(step)
    report = step.verify(replays=4)
    assert report.ok, str(report)
    assert bool(report)
    assert [check.name for check in report.checks] == list(module.CHECKS)
    assert everything(step) == before


def test_other_models(step_of: StepOf) -> None:
    def chained(p: Any, batch: Any) -> Any:
        weights = p["0.weight"]
        wide = ops.broadcast_to(weights.sum(), (41, 50))
        return (ops.tanh(ops.exp(wide) * ops.sigmoid(wide)) * wide).mean() + weights.sum() * 0.5 + batch[0].sum()

    report = step_of(loss=chained).verify(2)
    assert report.ok, str(report)
    assert "op 1 holds mul, op 9 holds mul" in next(check.detail for check in report.checks if check.name == "lowering")


def test_micro_batches_in_float64() -> None:
    def loss_fn(p: Any, batch: Any) -> Any:
        return ((batch["x"] @ p["w"] - batch["y"]) ** 2).mean()

    rng = np.random.default_rng(0)
    micro = [{"x": rng.standard_normal((4, 3)), "y": rng.standard_normal((4, 2))} for _ in range(2)]
    step = capture(loss_fn, {"w": rng.standard_normal((3, 2)), "unused": np.ones(2)}, SGD(0.1), micro, accumulate=2)
    report = step.verify(3)
    assert report.ok, str(report)


def test_a_kernel_in_place_of_another(step_of: StepOf) -> None:
    """A step with another kernel is verified as any other."""
    report = step_of().with_kernel("gemm", "reference").verify(2)
    assert report.ok, str(report)


def test_what_is_printed() -> None:
    graphs, arena = Check("graphs", held=True, detail="3 nodes"), Check("arena", held=False, detail="%1 over %2")
    report = VerifyReport((graphs, arena))
    assert str(report) == "[OK] graphs: 3 nodes\n[FAIL] arena: %1 over %2"
    assert not report
    assert report.failures == [report.checks[1]]
    assert report.table().title == "verification: 2 checks, 1 failed"
    assert [row["held"] for row in report.table()] == ["yes", "NO"]


def test_a_check_that_raises_is_a_failed_check(step_of: StepOf, monkeypatch: pytest.MonkeyPatch) -> None:
    step = step_of()
    before = everything(step)

    def broken(subject: Subject) -> str:
        subject.step.params["0.weight"] = np.zeros((5, 3), np.float32)
        subject.step.state["step"][...] = 77
        subject.plans.inputs[0][...] = 0
        raise ZeroDivisionError("no")

    monkeypatch.setitem(module.CHECKS, "graphs", broken)
    report = step.verify(2)
    assert str(report.checks[0]) == "[FAIL] graphs: ZeroDivisionError: no"
    assert all(check.held for check in report.checks[1:])
    assert everything(step) == before


def test_an_interrupt_restores_the_step(step_of: StepOf, monkeypatch: pytest.MonkeyPatch) -> None:
    step = step_of()
    before = everything(step)

    def interrupted(subject: Subject) -> str:
        subject.step.replay(1)
        raise KeyboardInterrupt

    monkeypatch.setitem(module.CHECKS, "arena", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step.verify(2)
    assert everything(step) == before


@pytest.mark.parametrize("replays", [0, -1, 1.5])
def test_the_number_of_replays(step_of: StepOf, replays: Any) -> None:
    with pytest.raises(DomainError, match=f"verify: replays: expected a whole number of at least 1, got {replays}"):
        step_of().verify(replays)


def test_a_step_without_a_batch(step_of: StepOf) -> None:
    step = step_of()
    step.forget()
    with pytest.raises(DomainError, match="verify: expected a batch to be bound"):
        step.verify()


def test_non_finite_gradients_fail_and_restore(step_of: StepOf) -> None:
    step = step_of()
    step._plans.inputs[0][0, 0] = np.inf  # type: ignore[union-attr]
    before = everything(step)
    report = step.verify(2)
    assert not report.ok
    assert "NonFiniteError" in str(report)
    assert everything(step) == before
