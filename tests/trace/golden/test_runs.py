"""Golden traces of a step, of a function of arrays, and of a captured step."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.keep import Ops
from dgrr.runtime import Adam, Trainer, capture
from dgrr.tape import AnyTensor, DTypeError, NonFiniteError, Tape, nn, ops
from dgrr.tape.record.op import Op
from dgrr.trace import Trace, compare, open_trace
from dgrr.trace.comparing.policy import Policy
from dgrr.trace.golden.marker import Marker
from dgrr.trace.golden.traces import GoldenTest, GoldenTraces

from . import toy

MODEL = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
X = np.random.default_rng(1).standard_normal((3, 8, 4)).astype(np.float32)
BATCHES = [(x, (x.sum(1) > 0).astype(np.int64)) for x in X]

Make = Callable[..., GoldenTraces]


def loss_fn(p: Any, batch: Any) -> Any:
    return ops.cross_entropy(MODEL(p, batch[0]), batch[1])


@pytest.fixture
def traces(tmp_path: Path) -> Make:
    """A maker of `GoldenTraces`, each as if in a run of its own."""
    made = iter("abcdef")

    def make(policy: str = "bitwise", ops: Ops = "every") -> GoldenTraces:
        folder = tmp_path / next(made)
        test = GoldenTest("test_x.py::test_y", "test_x", "test_y", folder / "present", folder / "claims")
        return GoldenTraces(test, Marker(Policy.parse(policy), ops))

    return make


def only(traces: GoldenTraces) -> Path:
    (recording,) = traces
    recording.require_sealed()
    return recording.path


def opened(traces: GoldenTraces) -> Trace:
    return open_trace(only(traces))


def same(a: GoldenTraces, b: GoldenTraces) -> bool:
    return compare(only(a), only(b), proven=True).same


# ------------------------------------------------------------------ a step


def test_a_step_has_every_value_and_gradient_and_no_update(traces: Make) -> None:
    golden, params = traces(), MODEL.init(0)
    before = {name: array.copy() for name, array in params.items()}
    golden.check_step(loss_fn, params, BATCHES[0])
    assert all((params[name] == before[name]).all() for name in params)
    with opened(golden) as trace:
        digests = trace.ops(0)
        assert digests is not None
        assert [node.op for node in digests.nodes if node.op != "leaf"] == ["linear", "tanh", "linear", "cross_entropy"]
        assert all(grad is not None for node, grad in zip(digests.nodes, digests.grads, strict=True) if node.name)
        assert len(trace) == 1
        assert trace.tensor("0.weight", step=0, what="grad").shape == (4, 4)
        assert trace[0].state_digests == trace.keyframe_digests(0)


def test_a_step_takes_a_state_and_a_seed(traces: Make) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm(4), nn.Dropout(0.5), nn.Linear(4, 2))

    def loss(p: Any, batch: Any, ctx: Any) -> Any:
        return ops.cross_entropy(model(p, batch[0], ctx), batch[1]), ctx.state

    made = [traces() for _ in range(3)]
    for golden, seed in zip(made, (0, 0, 1), strict=True):
        golden.check_step(loss, model.init(0), BATCHES[0], model_state=model.init_state(), seed=seed)
    assert same(made[0], made[1])
    assert not same(made[0], made[2])


def test_a_value_that_the_next_op_rounds_away_is_found(traces: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(p: Any, batch: Any) -> Any:
        return (ops.add(p["w"] * 3.0, 2.0**30) - 2.0**30).sum()

    golden, present, compute = traces(), traces(), Op.compute

    def off(record: Op, values: Any, attrs: Any) -> AnyTensor:
        made = compute(record, values, attrs)
        return AnyTensor(np.nextafter(made.array, np.float32(9)), made.spec) if record.name == "mul" else made

    golden.check_step(rounded, {"w": np.array([0.5], np.float32)}, ())
    monkeypatch.setattr(Tape, "_result", staticmethod(off))
    present.check_step(rounded, {"w": np.array([0.5], np.float32)}, ())
    found = compare(only(golden), only(present), proven=True)
    assert found.op is not None
    assert (found.cause and found.cause.value, found.step, found.op.node.op) == ("gradient", 0, "mul")
    assert "its results are equal, but not what they are made of; first mul" in found.sentence
    assert compare(only(golden), only(present)).same


def test_a_step_that_is_not_finite_is_refused(traces: Make) -> None:
    with pytest.raises(NonFiniteError):
        traces().check_step(lambda p, x: ops.log(p["w"]).sum(), {"w": np.zeros(2, np.float32)}, ())


# ------------------------------------------------------------------ a function of arrays


def test_a_function_is_recorded_by_the_names_of_its_arguments(traces: Make) -> None:
    golden = traces()
    a, b = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)

    def product(left: Any, right: Any) -> Any:
        return left @ right.T

    golden.check(product, a, b)
    with opened(golden) as trace:
        assert [spec.name for spec in trace.schema.tensors] == ["left", "right"]
        assert trace.loss.item() == 24.0
        assert (trace.tensor("left", step=0, what="grad") == 4.0).all()
    other = traces()
    other.check(product, a, np.nextafter(b, np.float32(2)))
    assert not same(golden, other)


def test_outputs_may_be_nested_and_of_several_dtypes(traces: Make) -> None:
    golden = traces()

    def several(*xs: Any) -> Any:
        wide, narrow, index = xs
        return {"sum": wide.sum(), "rows": [ops.take(narrow, index), ops.argmax(narrow, axis=-1)]}

    golden.check(several, np.ones(2), np.array([[1, 2], [4, 3]], np.float32), np.array([1, 1]))
    with opened(golden) as trace:
        assert [spec.name for spec in trace.schema.tensors] == ["0", "1"]
        assert trace.loss.item() == 2 + 14 + 1
        assert trace.tensor("1", step=0, what="grad").tolist() == [[0.0, 0.0], [2.0, 2.0]]


def test_an_output_that_is_no_var_is_refused(traces: Make) -> None:
    with pytest.raises(DTypeError, match=r"golden_trace.check: output 0 of 'fn': expected a Var, got float"):
        traces().check(lambda x: 1.0, np.ones(2))


# ------------------------------------------------------------------ captured steps


def test_a_captured_step_is_recorded_as_a_trainer_does_it(traces: Make) -> None:
    by_hand, by_trainer = traces(), traces()
    step = capture(loss_fn, MODEL.init(0), Adam(0.01), BATCHES[0])
    losses = by_hand.steps(step, BATCHES)
    result = Trainer(loss_fn, MODEL.init(0), Adam(0.01), trace=by_trainer(), mode="eager").fit(BATCHES, progress=False)
    assert losses.tolist() == result.losses.tolist()
    assert same(by_trainer, by_hand)
    with opened(by_hand) as a, opened(by_trainer) as b:
        assert [a.ops(k) for k in range(3)] == [b.ops(k) for k in range(3)]


@pytest.mark.parametrize(("asked", "recorded"), [("every", [0, 1, 2]), ([0, 2], [0, 2]), (None, [])])
def test_ops_are_recorded_at_the_steps_that_are_asked(traces: Make, asked: Ops, recorded: list[int]) -> None:
    golden = traces(ops=asked)
    golden.steps(capture(loss_fn, MODEL.init(0), Adam(0.01), BATCHES[0]), BATCHES)
    with opened(golden) as trace:
        assert [k for k in range(3) if trace.ops(k) is not None] == recorded


def test_a_run_of_other_arithmetic_has_a_policy_of_its_own_unless_the_test_has(tmp_path: Path) -> None:
    for asked, policy in ((None, "rtol=0.001"), (Policy.parse("ulp=4"), "ulp=4")):
        test = GoldenTest("test_x.py::test_y", "test_x", "test_y", tmp_path / policy, tmp_path / policy / "claims")
        golden = GoldenTraces(test, Marker(asked, None))
        recording = golden()
        recording.default_policy = "rtol=0.001"  # as recorders of other frameworks do
        assert str(recording.policy) == policy
        toy.train(recording)
        with opened(golden) as trace:
            assert trace.tensor("w", step=1, what="after").shape == (2,)


def test_a_policy_of_values_records_them(traces: Make) -> None:
    near = traces("ulp=4")
    near.steps(capture(loss_fn, MODEL.init(0), Adam(0.01), BATCHES[0]), BATCHES)
    with opened(near) as trace:
        assert trace.tensor("0.weight", step=1, what="grad").shape == (4, 4)
        assert trace.tensor("0.weight", step=1, what="after").shape == (4, 4)
