"""What if a value had been another one: parameters, states, gradients and nodes, against steps done by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.tape import DomainError
from dgrr.trace import Edits, PastStep, at, open_trace, replay

BATCHES = [np.array([1.0, 2.0]), np.array([3.0, -1.0])]


def loss_fn(p: Any, x: Any, ctx: Any) -> Any:
    h = p["w"] * x
    ctx.update("seen", ctx.state["seen"] + 1.0)
    return (h * h).sum(), ctx.state


@pytest.fixture
def run(tmp_path: Path) -> Path:
    trainer = Trainer(
        loss_fn,
        {"w": np.ones(2)},
        SGD(0.01, momentum=0.5),
        model_state={"seen": np.zeros(())},
        trace=Keep(tmp_path / "run", record="digest"),
        clip_value=4.0,
    )
    trainer.fit(BATCHES, steps=6, progress=False)
    return tmp_path / "run"


def past_of(run: Path, step: int = 3) -> PastStep:
    return at(run, step, loss_fn, BATCHES)


def by_hand(
    past: PastStep, steps: int, w: Any = None, momentum: Any = None, grad: Any = None, h: Any = None
) -> tuple[list[float], Any]:
    """The steps from one on; the gradient of (w x)^2 is 2 h x, and that of step 1 may be given, or its h."""
    w = past.params["w"].copy() if w is None else np.array(w)
    m = past.state["momentum/w"].copy() if momentum is None else np.array(momentum)
    losses = []
    for number in range(steps):
        x = BATCHES[(past.step + number) % 2]
        here = w * x if h is None or number else np.asarray(h)
        losses.append(float((here * here).sum()))
        g = np.clip(2 * here * x, -4.0, 4.0) if grad is None or number else np.asarray(grad)
        m = 0.5 * m + g
        w = w - 0.01 * m
    return losses, w


def same(child: Any, expected: tuple[list[float], Any]) -> None:
    np.testing.assert_allclose(child.losses, expected[0], rtol=1e-12)
    np.testing.assert_allclose(child.params["w"], expected[1], rtol=1e-12)


@pytest.mark.parametrize("mode", ["eager", "replay"])
@pytest.mark.parametrize("steps", [1, 3])
def test_each_kind(run: Path, mode: Any, steps: int) -> None:
    past = past_of(run)
    more: dict[str, Any] = {"steps": steps, "mode": mode}
    same(past.continue_with(**more), by_hand(past, steps))
    same(past.continue_with(**more, edits=Edits({"w": [2, -3]})), by_hand(past, steps, w=[2.0, -3.0]))
    other = Edits({"momentum/w": np.ones(2)})
    same(past.continue_with(**more, edits=other), by_hand(past, steps, momentum=[1.0, 1.0]))
    # not clipped: it is what the rule gets
    same(past.continue_with(**more, edits=Edits(grads={"w": [9, 0]})), by_hand(past, steps, grad=[9.0, 0.0]))
    node = next(node.id for node in past.tape if node.op_name == "mul")
    edits = Edits(nodes={(0, node): [0.25, 0.5]})
    same(past.continue_with(**more, edits=edits), by_hand(past, steps, h=[0.25, 0.5]))


def test_a_state_of_the_model(run: Path) -> None:
    child = past_of(run).continue_with(steps=2, edits=Edits({"seen": np.array(40)}))
    assert child.model_state["seen"] == 42.0


def test_what_stands_there_changes_nothing(run: Path) -> None:
    past = past_of(run)
    nodes = {(0, n.id): n.value.array for n in past.tape if n.op is not None and n.op_name != "leaf"}
    edits = Edits({**past.params, **past.state}, past.consumed, nodes)
    child, plain = past.continue_with(steps=3, edits=edits), past.continue_with(steps=3)
    assert child.state_digest == plain.state_digest and child.losses.tobytes() == plain.losses.tobytes()


def test_micro_batches(tmp_path: Path) -> None:
    """Each is one of its own; the mean is taken of what they give."""
    fit = {"trace": Keep(tmp_path / "run", record="digest"), "accumulate": 2}
    trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), **fit)  # type: ignore[arg-type]
    trainer.fit(BATCHES, steps=2, progress=False)
    past = at(tmp_path / "run", 0, trainer._step.loss_fn, BATCHES)
    node = next(node.id for node in past.tapes[1] if node.op_name == "mul")
    child = past.continue_with(steps=1, edits=Edits(nodes={(1, node): [10, 20]}))
    assert child.losses.tolist() == [(3.0 + 30.0) / 2]


def test_what_is_recorded_says_so_and_is_proven(run: Path, tmp_path: Path) -> None:
    past = past_of(run)
    edits = Edits({"w": np.zeros(2)})
    past.continue_with(steps=2, edits=edits, trace=tmp_path / "child")
    with open_trace(tmp_path / "child") as child:
        notes = [json.loads(event.text) for _, event in child.events() if event.kind == "continue"]
        assert notes == [{"step": 3, "edited": ["w"]}]
        assert child.keyframe(0)["w"].tolist() == [0, 0]
    assert replay(tmp_path / "child", loss_fn=loss_fn, batches=[BATCHES[1], BATCHES[0]]).ok
    past.continue_with(steps=2, edits=Edits(grads={"w": [9, 0]}), trace=tmp_path / "other")
    assert replay(tmp_path / "other").ok  # the update of the gradient that was set
    report = replay(tmp_path / "other", loss_fn=loss_fn, batches=[BATCHES[1], BATCHES[0]])
    assert (report.verdict.value, report.findings[0].step) == ("gradient", 0)


@pytest.mark.parametrize(
    ("edits", "error"),
    [
        (Edits({"v": np.zeros(2)}), "argument 'edits': expected a parameter or a state, such as 'w', got 'v'"),
        (Edits({"w": np.zeros(3)}), "argument 'edits': 'w': expected shape (2,), got (3,)"),
        (Edits(grads={"v": np.zeros(2)}), "argument 'edits': grads: there is no parameter 'v'"),
        (Edits(grads={"w": np.zeros(3)}), "argument 'edits': 'grad(w)': expected shape (2,), got (3,)"),
        (Edits(nodes={(0, 99): np.zeros(2)}), "argument 'edits': node 99 of micro-batch 0: the step has no such node"),
        (Edits(nodes={(1, 0): np.zeros(2)}), "argument 'edits': node 0 of micro-batch 1: the step has no such node"),
        (
            Edits(nodes={(0, 0): np.zeros(2)}),
            "argument 'edits': node 0 of micro-batch 0: expected a node that an op makes, got a leaf; give parameters "
            "as values",
        ),
        (Edits(nodes={(0, 4): np.zeros(3)}), "argument 'edits': 'node 4 (mul)': expected shape (2,), got (3,)"),
    ],
)
def test_what_does_not_fit(run: Path, edits: Edits, error: str) -> None:
    with pytest.raises(DomainError) as raised:
        past_of(run).continue_with(steps=1, edits=edits)
    assert str(raised.value) == f"trace.continue_with: {error}"
