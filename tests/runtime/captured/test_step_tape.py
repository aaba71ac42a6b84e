"""The tape of a step: every value and gradient in one order, eager and captured alike to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.completed_step import StepTape, TapeNode
from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep, Keep, Trainer, capture, completed
from dgrr.runtime.ir.step_tape import eager_tape
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError, grad, nn, ops
from dgrr.trace import OpDigests, Run, open_recorder, open_trace

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)).astype(np.float32)
LABELS = np.array([0, 1, 2, 1, 0, 2])
MODEL = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm(3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(3, 3))


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(ops.linear(inputs, p["w"]) * 2.0, labels)


def with_state(p: Any, batch: Any, ctx: Any) -> Any:
    inputs, labels = batch
    loss = ops.cross_entropy(MODEL(p, inputs, ctx), labels)
    return loss, ctx.state, {"shown": loss, "again": p["0.bias"].sum()}


def penalised(p: Any, batch: Any) -> Any:
    inputs, _ = batch
    slope = grad(lambda w: ops.tanh(ops.linear(inputs, w)).sum())(p["w"])
    return (slope * slope).sum()


def bits(tape: StepTape) -> list[tuple[TapeNode, bytes, bytes | None]]:
    grads = [None if g is None else g.tobytes() for g in tape.grads]
    return list(zip(tape.nodes, [v.tobytes() for v in tape.values], grads, strict=True))


W = {"w": RNG.standard_normal((3, 4)).astype(np.float32)}
BATCH = (X, LABELS)
STEPS: dict[str, dict[str, Any]] = {
    "plain": {"loss_fn": loss_fn, "params": W},
    "state, draws, metrics": {"loss_fn": with_state, "params": MODEL.init(0), "model_state": MODEL.init_state()},
    "a gradient inside": {"loss_fn": penalised, "params": W},
}


def made(name: str, accumulate: int) -> tuple[CapturedStep, Any]:
    kinds = {**STEPS[name]}
    batch: Any = BATCH if accumulate == 1 else tuple((X + k, LABELS) for k in range(accumulate))
    fn, params = kinds.pop("loss_fn"), kinds.pop("params")
    return capture(fn, params, Adam(0.01), batch, accumulate=accumulate, seed=3, **kinds), batch


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("name", STEPS)
def test_eager_and_captured_have_the_same_tape(name: str, accumulate: int) -> None:
    step, batch = made(name, accumulate)
    for _ in range(2):  # the second after an update, so that counts, draws and statistics have moved
        before = step.digest()
        eager, captured = bits(eager_tape(step, batch)), bits(step.tape(batch))
        assert eager == captured
        assert step.digest() == before
        step(batch)
    assert sum(node.op == "cross_entropy" for node, _, _ in eager) == (0 if "inside" in name else accumulate)


def test_the_list_of_a_step(tmp_path: Path) -> None:
    step, batch = made("plain", 2)
    one = [
        TapeNode("leaf", "float32", (6, 4)),
        TapeNode("leaf", "float32", (3, 4), name="w"),
        TapeNode("linear", "float32", (6, 3), (0, 1)),
        TapeNode("leaf", "float32", (6, 3)),
        TapeNode("mul", "float32", (6, 3), (2, 3)),
        TapeNode("leaf", "int64", (6,)),
        TapeNode("cross_entropy", "float32", (), (4, 5), "label_smoothing=0.0, ignore_index=None"),
    ]
    tape = step.tape(batch)
    found = [TapeNode(n.op, n.dtype, n.shape, n.parents, n.attrs, n.name) for n in tape.nodes]
    moved = [TapeNode(n.op, n.dtype, n.shape, tuple(p + 7 for p in n.parents), n.attrs, n.name) for n in one]
    assert found == one + moved
    assert [g is not None for g in tape.grads] == [False, True, True, False, True, False, True] * 2
    line = 'return ops.cross_entropy(ops.linear(inputs, p["w"]) * 2.0, labels)'
    assert {n.place.partition(": ")[2] for n in tape.nodes if n.op != "leaf"} == {line}
    assert {n.place.partition(":")[0].rpartition("/")[2] for n in tape.nodes if n.op != "leaf"} == {Path(__file__).name}
    np.testing.assert_array_equal(tape.values[0], X)
    np.testing.assert_array_equal(tape.values[7], X + 1)


def test_nodes_know_their_layer() -> None:
    step, batch = made("state, draws, metrics", 1)
    scopes = {node.op: node.scope for node in step.tape(batch).nodes if node.op != "leaf"}
    assert (scopes["relu"], scopes["dropout"], scopes["cross_entropy"]) == ("2", "3", "")


def test_leaves_stay_as_they_were() -> None:
    step, batch = made("plain", 1)
    for make in (step.tape, lambda batch: eager_tape(step, batch)):
        before, tape = step.params["w"].copy(), make(batch)
        step(batch)
        assert tape.values[1].tobytes() == before.tobytes() != step.params["w"].tobytes()


@pytest.mark.parametrize("mode", ["eager", "replay", "capture"])
def test_traces_of_every_mode_have_the_same_digests(mode: Any, tmp_path: Path) -> None:
    batches = [(X + k, LABELS) for k in range(3)]
    Trainer(loss_fn, W, SGD(0.1), mode=mode, trace=Keep(tmp_path / "t", ops="every")).fit(batches)
    expected = EagerStep(loss_fn, W, Recipe(SGD(0.1)))
    with open_trace(tmp_path / "t") as trace:
        for k, batch in enumerate(batches):
            digests = trace.ops(k)
            assert isinstance(digests, OpDigests)
            assert digests.grads[1] == trace[k].grad_digests["w"]
            assert digests.nodes == eager_tape(expected, batch).nodes


@pytest.mark.parametrize(
    ("asked", "steps"),
    [("first", [0]), ("every", [0, 1, 2]), ([2, 0], [0, 2]), (0, []), (1, [0]), (1150, [0, 1]), (None, [])],
)
def test_which_steps(asked: Any, steps: list[int], tmp_path: Path) -> None:
    Trainer(loss_fn, W, SGD(0.1), trace=Keep(tmp_path / "t", ops=asked)).fit([BATCH] * 3)
    with open_trace(tmp_path / "t") as trace:
        assert [k for k in range(3) if trace.ops(k) is not None] == steps


@pytest.mark.parametrize("asked", ["some", True, [-1], [0.5], -1, b"every", {"first": 1}])
def test_what_ops_cannot_be(asked: Any, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="Keep: argument 'ops': expected 'first', 'every', the numbers of steps, a "):
        Trainer(loss_fn, W, SGD(0.1), trace=Keep(tmp_path / "t", ops=asked)).fit([BATCH])
    assert not list(tmp_path.iterdir())


class Factory:
    """Makes the recorder when the run is known."""

    def __init__(self, path: Path) -> None:
        self.path, self.asked = path, list[Run]()

    def open_recorder(self, run: Run) -> Any:
        self.asked.append(run)
        return open_recorder(Keep(self.path, record="bare", ops="first"), run)


def test_a_trace_may_be_what_makes_its_recorder(tmp_path: Path) -> None:
    factory = Factory(tmp_path / "t")
    trainer = Trainer(loss_fn, W, SGD(0.1), trace=factory, seed=5, clip_value=0.5)
    assert not factory.asked
    trainer.fit([BATCH] * 2)
    (run,) = factory.asked
    assert ([group.rule for group in run.rules], run.seed, run.clip_value) == (["sgd@1"], 5, 0.5)
    with open_trace(tmp_path / "t") as trace:
        assert len(trace) == 2 and trace.ops(0) is not None


def test_a_maker_of_recorders_cannot_go_on(tmp_path: Path) -> None:
    Trainer(loss_fn, W, SGD(0.1), checkpoint=tmp_path / "c").fit([BATCH], epochs=2)
    trainer = Trainer(loss_fn, W, SGD(0.1), trace=Factory(tmp_path / "t"))
    trainer.load(tmp_path / "c")
    with pytest.raises(
        DomainError, match="fit: argument 'trace': expected a path for a run that goes on after 2 steps"
    ):
        trainer.fit([BATCH], epochs=3)


def test_a_step_by_hand_is_recorded(tmp_path: Path) -> None:
    step = capture(loss_fn, W, SGD(0.1), BATCH)
    with open_recorder(Keep(tmp_path / "a", ops="every"), step.as_run()) as recorder:
        for k in range(3):
            tape = step.tape(BATCH)
            step(BATCH)
            recorder.step(completed(step, k, BATCH, tape))
    Trainer(loss_fn, W, SGD(0.1), trace=Keep(tmp_path / "b", ops="every")).fit([BATCH] * 3)
    with open_trace(tmp_path / "a") as a, open_trace(tmp_path / "b") as b:
        assert [view.link for view in a] == [view.link for view in b]
        assert [view.ops() for view in a] == [view.ops() for view in b]
