"""What if: runs that go on from a past step, recorded with where they come from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Dataset, NonFiniteError, Trainer
from dgrr.runtime.optim import Cosine, ops_rule
from dgrr.tape import nn, ops
from dgrr.trace import Trace, TraceWriteError, at, open_trace, replay, validate

from ...keeping import kept

RNG = np.random.default_rng(3)
DATA = Dataset(RNG.standard_normal((20, 3)), RNG.integers(0, 2, 20))
MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.25), nn.Linear(4, 2))


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    return ops.cross_entropy(MODEL(p, batch[0], ctx), batch[1]), ctx.state


def batches() -> Any:
    return DATA.batches(4, seed=5)


def train(path: Path, steps: int = 9, **options: Any) -> Trainer:
    chosen: dict[str, Any] = {"record": "digest", "keyframe_every": 4, "seed": 11, "clip_norm": 0.5, **options}
    rule = chosen.pop("rule", Adam(0.05))
    params = MODEL.init(seed=0, dtype=np.float64)
    trainer = Trainer(loss_fn, params, rule, model_state=MODEL.init_state(np.float64), **kept(path, chosen))
    trainer.fit(batches(), steps=steps, progress=False)
    return trainer


def content(trace: Trace, first: int = 0) -> list[Any]:
    """All that the state chain holds of each step from one on."""
    return [
        (v.loss, v.clip, v.hyper, v.corrections, v.input_digest, v.grad_digests, v.buffer_digests, v.state_digests)
        for v in list(trace)[first:]
    ]


@pytest.mark.parametrize("options", [{}, {"accumulate": 2, "clip_value": 0.1}, {"digest": "sha256", "clip_norm": None}])
def test_with_nothing_changed_it_is_the_run(tmp_path: Path, options: dict[str, Any]) -> None:
    """Its epochs, random draws, statistics and moments go on; 5 batches are an epoch, or 2 steps of 2 batches."""
    trainer = train(tmp_path / "run", **options)
    before = (tmp_path / "run").read_bytes()
    past = at(tmp_path / "run", 6, loss_fn, batches())
    child = past.continue_with(steps=3, trace=tmp_path / "child", mode="eager", record="digest")
    assert (child.first, child.trace) == (6, str(tmp_path / "child"))
    assert child.state_digest == trainer._step.digest()
    with open_trace(tmp_path / "run") as run, open_trace(tmp_path / "child") as trace:
        assert content(trace) == content(run, 6)
        assert child.losses.tolist() == run.loss[6:].tolist()
        assert (
            trace.header.parent_root == run.root.ljust(32, b"\0") == before[-run.layout.digest_size :].ljust(32, b"\0")
        )
        assert (trace.header.parent_steps, trace.header.seed) == (6, 11)
        assert trace.header.algorithm is run.header.algorithm
        notes = [json.loads(event.text) for _, event in trace.events() if event.kind == "continue"]
        assert notes == [{"step": 6}]
    assert validate(tmp_path / "child").ok
    assert (tmp_path / "run").read_bytes() == before


def test_the_notes_of_the_run_are_taken_over(tmp_path: Path) -> None:
    train(tmp_path / "run", notes={"lr": 0.05, "data": "made up"}, created_at=0)
    past = at(tmp_path / "run", 6, loss_fn, batches())
    past.continue_with(SGD(0.1), steps=1, trace=tmp_path / "child")
    with open_trace(tmp_path / "child") as trace:
        ((steps, noted),) = trace.noted()
        assert (steps, noted.notes) == (0, {"lr": 0.05, "data": "made up"})
        assert noted.time > "2020"  # of the child, not of the run


def test_captured_and_eager_children_are_the_same(tmp_path: Path) -> None:
    train(tmp_path / "run")
    past = at(tmp_path / "run", 6, loss_fn, batches())
    for mode in ("eager", "replay"):
        past.continue_with(steps=2, trace=tmp_path / mode, mode=mode)
    with open_trace(tmp_path / "eager") as a, open_trace(tmp_path / "replay") as b:
        assert [v.link for v in a] == [v.link for v in b]
    assert past.params["0.weight"].tobytes() == at(tmp_path / "run", 6, loss_fn, batches()).params["0.weight"].tobytes()


@pytest.mark.parametrize("step", [0, 1])
def test_from_the_first_steps(tmp_path: Path, step: int) -> None:
    """More than once, with batches whose epochs are counted."""
    train(tmp_path / "run", steps=7)
    past = at(tmp_path / "run", step, loss_fn, batches())
    for steps in (2, 7 - step, 3):
        child = past.continue_with(steps=steps, mode="eager")
        with open_trace(tmp_path / "run") as run:
            assert child.losses.tolist() == run.loss[step : step + steps].tolist()


def rest_of_the_run(first: int, steps: int) -> list[Any]:
    """The batches from a step on."""
    found: list[Any] = []
    again = batches()
    while len(found) < first + steps:
        found += list(again)
    return found[first : first + steps]


def test_another_rate(tmp_path: Path) -> None:
    """The moments go on, and the child is proven as any run is."""
    train(tmp_path / "run")
    past = at(tmp_path / "run", 5, loss_fn, batches())
    child = past.continue_with(Adam(0.5), steps=3, trace=tmp_path / "child", mode="eager")
    assert replay(tmp_path / "child", loss_fn=loss_fn, batches=rest_of_the_run(5, 3)).ok
    with open_trace(tmp_path / "run") as run, open_trace(tmp_path / "child") as trace:
        assert child.losses[0] == run[5].loss
        assert child.losses[1] != run[6].loss
        assert trace[0].hyper["lr"] == 0.5
        assert trace[0].corrections == run[5].corrections
        same = {name: digest for name, digest in run[4].state_digests.items() if name in past.state}
        assert {name: d for name, d in trace.keyframe_digests(0).items() if name in same} == same


@pytest.mark.parametrize("options", [{}, {"frozen": ["0.bias"], "ema": 0.5}])
def test_several_groups_go_on_as_they_were(tmp_path: Path, options: dict[str, Any]) -> None:
    """Of one rule too, so that no pattern but its own parameters tells a group."""
    rule = {"*.weight": Adam(0.05), "*": SGD(0.1, momentum=0.9)}
    two = {"3.*": Adam(0.05), "0.*": Adam(0.01), "*": SGD(0.1)}
    for name, rules in (("run", rule), ("other", two)):
        trainer = train(tmp_path / name, rule=rules, **options)
        past = at(tmp_path / name, 6, loss_fn, batches())
        child = past.continue_with(steps=3, trace=tmp_path / f"{name}.child", mode="eager", record="digest")
        assert child.state_digest == trainer._step.digest()
        with open_trace(tmp_path / name) as run, open_trace(tmp_path / f"{name}.child") as trace:
            assert trace.schema == run.schema
            assert content(trace) == content(run, 6)


def test_a_hyperparameter_alone(tmp_path: Path) -> None:
    train(tmp_path / "run", rule={"*.weight": Adam(0.05), "*": SGD(0.1, momentum=0.9)})
    past = at(tmp_path / "run", 5, loss_fn, batches())
    changed = {"*.weight": Adam(0.05), "*": SGD(0.2, momentum=0.9)}
    runs = [past.continue_with(hyper={"lr#1": 0.2}, steps=2), past.continue_with(changed, steps=2)]
    assert runs[0].state_digest == runs[1].state_digest != past.continue_with(steps=2).state_digest
    with pytest.raises(ValueError, match="argument 'hyper'") as caught:
        past.continue_with(hyper={"rate": 0.2}, steps=2)
    text = str(caught.value)
    assert text.startswith("trace.continue_with: argument 'hyper': expected names among lr, beta1, ")
    assert ", lr#1, momentum#1" in text and text.endswith(", got 'rate'")
    with pytest.raises(ValueError, match="argument 'hyper': it changes the run's own rule: pass no other 'rule'"):
        past.continue_with(Adam(0.1), hyper={"lr": 0.2}, steps=2)


def test_a_rule_that_is_not_known(tmp_path: Path) -> None:
    @ops_rule("halving@1")
    def halving(p: Any, g: Any, *, lr: Any = 0.5) -> Any:
        return p - lr * g

    train(tmp_path / "run", rule={"*.weight": Adam(0.05), "*": halving()})
    past = at(tmp_path / "run", 4, loss_fn, batches())  # a recorded state, so that no update is needed
    with pytest.raises(ValueError, match="not known") as caught:
        past.continue_with(steps=1)
    assert str(caught.value) == (
        "trace.continue_with: argument 'rule': a rule of the run is not known to this library ('adam@1', 'halving@1'): "
        "pass one to continue with"
    )
    known = at(tmp_path / "run", 4, loss_fn, batches(), rules=[type(halving())])
    assert len(known.continue_with(steps=1, mode="eager").losses) == 1


def test_another_law_begins_with_a_fresh_state(tmp_path: Path) -> None:
    train(tmp_path / "run")
    past = at(tmp_path / "run", 5, loss_fn, batches())
    child = past.continue_with(SGD(0.1, momentum=0.9), steps=2, trace=tmp_path / "child", mode="eager")
    assert child.state["step"] == 7
    with open_trace(tmp_path / "child") as trace:
        start = trace.keyframe(0)
        assert start["step"] == 5
        momenta = [a for name, a in start.items() if name not in past.params and name not in past.model_state]
        assert all(not a.any() for a in momenta if a.ndim)
    assert replay(tmp_path / "child", loss_fn=loss_fn, batches=rest_of_the_run(5, 2)).ok


def test_a_schedule_goes_on(tmp_path: Path) -> None:
    rule = Adam(Cosine(0.1, steps=9))
    train(tmp_path / "run", rule=rule)
    past = at(tmp_path / "run", 5, loss_fn, batches())
    past.continue_with(rule, steps=4, trace=tmp_path / "child", mode="eager", record="digest")
    held = past.continue_with(steps=2, trace=tmp_path / "held", mode="eager", record="digest")
    assert len(held.losses) == 2
    with (
        open_trace(tmp_path / "run") as run,
        open_trace(tmp_path / "child") as trace,
        open_trace(tmp_path / "held") as held_trace,
    ):
        assert content(trace) == content(run, 5)
        assert [v.hyper["lr"] for v in held_trace] == [run[5].hyper["lr"]] * 2 != [v.hyper["lr"] for v in run[5:7]]


def test_other_batches_and_another_loss(tmp_path: Path) -> None:
    train(tmp_path / "run")
    past = at(tmp_path / "run", 5, loss_fn, batches())
    own = [(np.ones((2, 3)), np.array([0, 1]))]

    def doubled(p: Any, batch: Any, ctx: Any) -> Any:
        loss, state = loss_fn(p, batch, ctx)
        return loss * 2.0, state

    child = past.continue_with(steps=3, batches=own, mode="eager")
    assert (len(child.losses), child.trace) == (3, None)
    twice = past.continue_with(steps=1, loss_fn=doubled, mode="eager")
    assert twice.losses[0] == 2 * past.loss


def test_what_is_refused(tmp_path: Path) -> None:
    train(tmp_path / "run")
    past = at(tmp_path / "run", 5, loss_fn, batches())
    for steps in (0, 1.5):
        with pytest.raises(ValueError, match="argument 'steps'") as caught:
            past.continue_with(steps=steps)  # type: ignore[arg-type]
        expected = "expected a whole number of at least 1"
        assert str(caught.value) == f"trace.continue_with: argument 'steps': {expected}, got {steps!r}"
    one = iter([(np.ones((2, 3)), np.array([0, 1]))])
    with pytest.raises(ValueError, match="argument 'batches'") as caught:
        past.continue_with(steps=2, batches=one, mode="eager", trace=tmp_path / "short")
    assert str(caught.value) == "trace.continue_with: argument 'batches': expected those of 2 steps, got 1"
    assert (tmp_path / "short.partial").exists()
    with pytest.raises(TraceWriteError, match="is finished, and is not overwritten"):
        past.continue_with(steps=1, mode="eager", trace=tmp_path / "run")
    bad = [(np.full((2, 3), np.inf), np.array([0, 1]))]
    with pytest.raises(NonFiniteError):
        past.continue_with(steps=1, batches=bad, mode="eager", trace=tmp_path / "bad")
    with open_trace(tmp_path / "bad") as trace:
        assert (len(trace), trace.sealed) == (0, True)
    assert past.continue_with(steps=1, batches=bad, mode="eager", on_nonfinite="record").losses.shape == (1,)
