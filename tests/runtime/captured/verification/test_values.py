"""What plans compute and what replays do: each fault is found by its own check, and named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep
from dgrr.runtime.lower.bind import Bound
from dgrr.tape.record.derivative import Derivative
from dgrr.tape.var.op_table import OPS

# ------------------------------------------------------------------ loss and gradients


def test_a_loss_that_is_not_the_references(patient: Any) -> None:
    patient.break_kernel("relu", "neg")
    found = patient.check("references")
    assert found.startswith("the loss of the plan: element []: expected ")
    assert found.endswith("each node by itself computes what its reference does")


def test_a_kernel_that_is_not_its_reference(patient: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPS["relu"], "reference", lambda x: np.where(x <= 0, x * x.dtype.type(0.01), x))
    found = patient.check("references")
    assert found.startswith("step: node 1 (relu): reference and kernel differ: element [")
    assert patient.failed() == {"references", "finite differences"}


@pytest.mark.parametrize(
    ("kind", "where"),
    [("gradients", "gradients: '0.weight'"), ("dense", "dense gradients: '0.weight'"), ("step", "step: ")],
)
def test_gradients_that_are_not_the_eager_ones(patient: Any, kind: Any, where: str) -> None:
    patient.kind = kind
    patient.break_kernel("where_positive", "mul")
    assert patient.check("eager gradients").startswith(where)


def test_a_wrong_vjp(step_of: Callable[..., CapturedStep], monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager and captured gradients agree to the bit, and both are wrong: only finite differences can tell."""
    relu = OPS["relu"]
    leaky = Derivative("relu", lambda g, y: OPS["where_positive"](OPS["scale"](g, 1.01), y), relu.signature, ["g"])
    monkeypatch.setattr(relu, "vjp", (leaky,))
    report = step_of().verify(2)
    assert [check.name for check in report.failures] == ["finite differences"]
    assert report.failures[0].detail.startswith("the gradient of '0.weight': along a random direction it gives ")


def test_a_kink_is_no_fault(step_of: Callable[..., CapturedStep]) -> None:
    """All inputs of the relu are 0, where slopes differ from left and right, and among directions."""
    step = step_of()
    zeros = {name: np.zeros_like(array) for name, array in step.params.items()}
    step.load_state_dict({"params": {**zeros, "2.weight": step.params["2.weight"]}, "state": step.state})
    assert step.verify(2).ok


# ------------------------------------------------------------------ update


def test_an_update_that_is_missing(patient: Any) -> None:
    i = patient.op("adam_step")
    name = next(n for n, id in patient.plans.recording.params.items() if patient.program.root(id) == 0)
    assert patient.program.root(patient.program.ops[i].outputs[0]) == 0
    patient.drop_op(i)
    assert patient.check("update rule").startswith(f"replay 0: parameters: {name!r}: element [0, 0]: expected ")


def test_a_step_that_is_not_counted(patient: Any) -> None:
    patient.drop_op(patient.op("step_inc"))
    assert patient.check("update rule") == "replay 0: step counter: expected 4, got 3"


def test_bias_corrections_that_are_frozen(patient: Any) -> None:
    """The classical fault of captured steps: what changes from step to step was made a constant."""
    patient.drop_op(patient.op("bias_corr"))
    assert patient.check("update rule").startswith("replay 0: parameters: '0.weight': element [0, 0]: expected ")


def test_a_learning_rate_that_is_not_the_rules(patient: Any) -> None:
    hyper = next(value for value in patient.program.graph.values.values() if value.name == "hyper")
    patient.bound.memory[hyper.id].view(np.float64)[0] = 0.02
    assert patient.check("update rule").startswith("replay 0: parameters: '0.weight': element [0, 0]: expected ")


def test_a_buffer_that_is_not_the_rules(patient: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters are right, the second moment is not."""
    replay = CapturedStep.replay

    def spoiling(self: CapturedStep, n: int = 1) -> Any:
        losses = replay(self, n)
        self.state["v/2.bias"][1] += 1
        return losses

    monkeypatch.setattr(CapturedStep, "replay", spoiling)
    assert patient.check("update rule").startswith("replay 0: state: 'v/2.bias': element [1]: expected ")


def test_training_that_changes_nothing(patient_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan and rule agree, and both do nothing with gradients that are not zero."""
    monkeypatch.setattr(SGD, "step", lambda self, params, grads, state: self.advance(state))
    patient = patient_of(SGD(0.1), without_passes=("grouped-updates",))
    for _ in range(4):
        patient.drop_op(patient.op("sgd_step"))
    assert patient.check("update rule") == "3 replays with gradients that are not zero changed no parameter"


def test_a_rate_of_zero_may_change_nothing(step_of: Callable[..., CapturedStep]) -> None:
    assert step_of(SGD(0.0)).verify(2).ok


# ------------------------------------------------------------------ replays


def test_a_step_that_depends_on_what_lies_in_memory(patient_of: Any) -> None:
    patient = patient_of(without_passes=("epilogues", "in-place"))
    patient.drop_op(patient.op("where_positive"))
    expected = "two runs of replays from the same state differ first after step 0: state "
    assert patient.check("determinism").startswith(expected)


def test_replays_that_are_not_eager_steps(patient: Any) -> None:
    patient.break_kernel("where_positive", "mul")
    expected = "replays and eager steps from the same state differ first after step 0: state "
    assert patient.check("determinism").startswith(expected)


def test_several_steps_that_are_not_single_ones(patient: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = CapturedStep.steps
    monkeypatch.setattr(CapturedStep, "steps", lambda self, batches: steps(self, [batches[0]] * len(batches)))
    expected = "3 steps at once are not 3 single steps: the loss of step 1 differs first"
    assert patient.check("steps at once") == expected
    assert patient.failed() == {"steps at once"}


def test_a_last_batch_that_is_lost(patient: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses are taken before the update, so the last batch shows in the state alone."""

    def lossy(self: CapturedStep, batches: Any) -> Any:
        losses = np.array([self(batch) for batch in batches])
        self.params["0.bias"][0] += 1
        return losses

    monkeypatch.setattr(CapturedStep, "steps", lossy)
    expected = "3 steps at once are not 3 single steps: all losses are equal, the states are not"
    assert patient.check("steps at once") == expected


def test_a_recording_that_trains(step_of: Callable[..., CapturedStep]) -> None:
    steps: list[CapturedStep] = []

    def training(p: Any, batch: Any) -> Any:
        for step in steps:
            step.params["0.bias"][0] += 1
        return ((p["0.weight"] + 0.0) ** 2).sum() + p["0.bias"].sum()

    steps.append(step_of(loss=training))
    failed = {check.name: check.detail for check in steps[0].verify(1).failures}
    assert failed["recording"] == "recording the step changed its parameters or state: it must not run anything"


def test_a_recording_that_differs_from_the_last(step_of: Callable[..., CapturedStep]) -> None:
    factor = [1.0]

    def scaled(p: Any, batch: Any) -> Any:
        return sum((p[name] * factor[0]).sum() for name in p)

    step = step_of(loss=scaled)
    factor[0] = 2.0
    failed = {check.name: check.detail for check in step.verify(1).failures}
    assert (
        "float32[5, 3] 1.0), but in the verification as float32[5, 3] mul(%0, float32[5, 3] 2.0)" in failed["recording"]
    )


# ------------------------------------------------------------------ identity and allocation


@pytest.mark.parametrize(("part", "name"), [("params", "2.bias"), ("state", "m/0.weight")])
def test_an_array_that_is_replaced(patient: Any, monkeypatch: pytest.MonkeyPatch, part: str, name: str) -> None:
    call = CapturedStep.__call__

    def replacing(self: CapturedStep, batch: Any) -> Any:
        held = getattr(self, part)
        held[name] = held[name].copy()
        return call(self, batch)

    monkeypatch.setattr(CapturedStep, "__call__", replacing)
    what = "parameter" if part == "params" else "state"
    expected = f"{what} {name!r}: another array, or at another address, than before the step ran"
    assert patient.check("identity") == expected


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "given back"])
def test_a_step_that_allocates(patient: Any, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    run, hoard = Bound.run, list[Any]()

    def allocating(self: Bound, *stretch: int) -> None:
        run(self, *stretch)
        fresh = np.ones(1000)
        if kept:
            hoard.append(fresh)

    monkeypatch.setattr(Bound, "run", allocating)
    report = patient.step.verify(1)
    assert [check.name for check in report.failures] == ["allocation"]
    assert report.failures[0].detail.startswith("50 steps left ")
