"""What a resumed run computes once more is compared with what was recorded of it, and nothing that is cut is lost."""

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import NUMERICS
from dgrr.trace import (
    CompletedStep,
    RepeatedStepWarning,
    open_trace,
    recover,
    replay,
    validate,
)

from ....keeping import resumed
from ..repair.test_halves import links
from ..repair.test_recover import STEP, bounds_of

Batch = np.ndarray[Any, np.dtype[np.float64]]
BATCHES: list[Batch] = [np.array([1.0, 2.0 + i]) for i in range(12)]


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum() + (p["b"] * p["b"]).sum()


def fit(path: Path, batches: Any = BATCHES, *, dies: int | None = None, loss: Any = loss_fn) -> None:
    """Train ten steps, up to a death behind one; with a checkpoint every four, from which it goes on."""

    def tell(trainer: object, step: int, loss: float) -> None:
        if step == dies:
            raise KeyboardInterrupt

    place = path.with_suffix(".ckpt")
    trainer = Trainer(
        loss,
        {"w": np.ones(2), "b": np.ones(1)},
        SGD(0.1, momentum=0.5),
        mode="eager",
        trace=path,
        callbacks=[type("Dies", (), {"on_step": staticmethod(tell)})()],
        checkpoint=place,
        checkpoint_every=4,
    )
    if place.exists():
        trainer.load(place)
    try:
        trainer.fit(batches, steps=10, progress=False)
    except KeyboardInterrupt:
        assert dies is not None


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that was killed behind step 6; its checkpoint is that of step 4."""
    fit(tmp_path / "run.dgrr", dies=6)
    return tmp_path / "run.dgrr"


def notes(path: Path, kind: str) -> list[Any]:
    with open_trace(path) as trace:
        return [(step, json.loads(event.text)) for step, event in trace.events() if event.kind == kind]


def test_the_same_steps_are_equal_and_said_to_be_compared(run: Path) -> None:
    killed = Path(f"{run}.partial").read_bytes()
    fit(run)
    assert notes(run, "differs") == []
    ((at, note),) = notes(run, "resume")
    assert (at, note["step"], note["cut_steps"]) == (4, 4, 3)
    tail = Path(f"{run}.torn").read_bytes()
    first = bounds_of(killed, STEP)[4][0]
    assert tail.endswith(killed[first - 16 :])
    assert killed.startswith(tail[: len(tail) - len(killed) + first - 16])


def late(x: Any) -> Any:
    return x + 1.0


OTHER = [*BATCHES[:5], *map(late, BATCHES[5:])]


def other_loss(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum() + (p["b"] * p["b"] * p["b"]).sum()


@pytest.mark.parametrize(
    ("changes", "step", "what", "tensor"),
    [
        ({"batches": OTHER}, 5, "the batch", None),
        ({"loss": other_loss}, 4, "the loss", None),
        ({"loss": lambda p, x: loss_fn(p, x) + 0.0 * p["b"].sum()}, None, "", None),
        ({"loss": lambda p, x: loss_fn(p, x) + p["b"].sum() - p["b"].value.item()}, 4, "the gradient of 'b'", "b"),
    ],
)
def test_the_first_difference_is_named(
    run: Path, changes: dict[str, Any], step: int | None, what: str, tensor: str | None
) -> None:
    if step is None:
        fit(run, **changes)
        assert notes(run, "differs") == []
        return
    with pytest.warns(RepeatedStepWarning) as caught:
        fit(run, **changes)
    assert [str(warning.message) for warning in caught] == [
        f"trace: {run}: step {step} differs from the one before the run was resumed: {what} differs. The run "
        f"continues with the new step; the old one is kept in {run}.torn. Batches, code, settings or machine have "
        "changed since: check the new step with dgrr replay --model, or undo the change and resume again"
    ]
    assert notes(run, "differs") == [(step + 1, {"step": step, "tensor": tensor, "what": what})]
    assert replay(run).ok


def repeat_step_4(run: Path, **changes: Any) -> None:
    """Go on with a trace by step 4 as it holds it, but for what changes."""
    old = shutil.copy(f"{run}.partial", run.with_name("old.dgrr"))
    rule = SGD(0.1, momentum=0.5)
    with open_trace(old) as trace:
        params = {name: trace.tensor(name, step=0, what="before") for name in ("w", "b")}
        state = rule.init(params)
        for k in range(4):
            rule.step(params, trace[k].gradients(), state)
        law: dict[str, Any] = {"rule": rule.rule, "hyperparameters": list(rule.hyperparameters()), "numerics": NUMERICS}
        with resumed(run, steps=4, params=params, state=state, record="grads", **law) as recorder:
            grads = trace[4].gradients()
            rule.step(params, grads, state)
            told: dict[str, Any] = {"hyper": rule.hyperparameters(), "grads": grads, "batch": BATCHES[4]}
            told |= {"params": params, "state": state, "loss": np.array(trace[4].loss)}
            recorder.step(CompletedStep(step=4, **(told | changes)))


def test_what_the_rule_was_told_and_what_it_has_made(run: Path) -> None:
    killed = Path(f"{run}.partial").read_bytes()
    repeat_step_4(run)
    assert notes(run, "differs") == []
    moved = {"w": np.array([1.0, np.nextafter(1.0, 2.0)]), "b": np.ones(1)}
    for changes, what, tensor in (
        ({"hyper": SGD(0.2, momentum=0.5).hyperparameters()}, "a hyperparameter", None),
        ({"params": moved}, "'w' after the step", "w"),
        ({"micro_batches": 2}, "the batch", None),
        ({"clip": (1.0, 0.5)}, "the scale of clipping or a bias correction", None),
    ):
        run.unlink()
        Path(f"{run}.torn").unlink()
        Path(f"{run}.partial").write_bytes(killed)
        with pytest.warns(
            RepeatedStepWarning, match=f"step 4 differs from the one before the run was resumed: {what} "
        ):
            repeat_step_4(run, **changes)
        assert notes(run, "differs") == [(5, {"step": 4, "tensor": tensor, "what": what})]


def test_every_life_keeps_its_tail_and_is_compared_with_all_before(run: Path) -> None:
    """The second life dies behind step 4, so that steps 5 and 6 stand in the first tail alone."""
    fit(run, dies=4)
    with pytest.warns(RepeatedStepWarning, match=rf"step 5 .*kept in {run}\.torn\. "):
        fit(run, OTHER)
    assert [note["cut_steps"] for _, note in notes(run, "resume")] == [3, 3]
    assert sorted(p.name for p in run.parent.glob("*.torn*")) == ["run.dgrr.torn", "run.dgrr.torn.1"]
    with open_trace(f"{run}.torn.1", mode="salvage") as tail, open_trace(run) as trace:
        assert [view.step for view in tail] == [4]
        assert tail[4].link == trace[4].link


def test_steps_of_a_life_that_had_parted_before_are_not_compared(run: Path) -> None:
    """The second life parts at step 5, saves at step 8 and dies: what is computed behind that is its own."""
    os.remove(run.with_suffix(".ckpt"))
    Path(f"{run}.partial").unlink()
    fit(run, dies=9)  # its checkpoint is that of step 8
    checkpoint = run.with_suffix(".ckpt").read_bytes()
    os.remove(run.with_suffix(".ckpt"))
    fit(run.with_name("four.dgrr"), dies=5)
    shutil.copy(run.with_name("four.ckpt"), run.with_suffix(".ckpt"))
    with pytest.warns(RepeatedStepWarning, match="step 5"):
        fit(run, OTHER, dies=8)  # so that step 9 stands in the first tail alone
    assert run.with_suffix(".ckpt").read_bytes() != checkpoint
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(run, OTHER)
    assert notes(run, "differs") == [(6, {"step": 5, "tensor": None, "what": "the batch"})]
    assert validate(run).ok


def test_a_tail_of_another_trace_or_of_none_is_left_alone(run: Path) -> None:
    other = run.with_name("other.dgrr")
    fit(other, OTHER, dies=6)
    fit(other, OTHER)
    stale = Path(f"{other}.torn").read_bytes()
    Path(f"{run}.torn").write_bytes(stale)
    Path(f"{run}.torn.1").write_bytes(b"a note")
    fit(run)
    assert notes(run, "resume")[0][1]["cut_steps"] == 3
    assert Path(f"{run}.torn").read_bytes() == stale
    assert Path(f"{run}.torn.1").read_bytes() == b"a note"
    assert Path(f"{run}.torn.2").exists()


def test_a_tail_that_was_removed_since(run: Path) -> None:
    tail = Path(f"{run}.torn")

    class Removes(list[Batch]):
        def __iter__(self) -> Any:
            for batch in OTHER:
                tail.unlink(missing_ok=True)
                yield batch

    with pytest.warns(RepeatedStepWarning, match="step 5 differs from the one .*: something differs"):
        fit(run, Removes(OTHER))


def test_what_is_cut_off_is_recovered(run: Path, tmp_path: Path) -> None:
    """The steps that a resumed run has cut off stand behind those that are left."""
    whole = tmp_path / "whole.dgrr"
    fit(whole)
    fit(run, dies=4)
    found = recover([f"{run}.torn", f"{run}.partial"], tmp_path / "new")
    assert not found.lossy
    assert found.in_several == 1  # STEP 4
    assert [source.taken for source in found.sources] == [((4, 6),), ((0, 3),)]
    assert links(tmp_path / "new") == links(whole)[:7]
