"""A fault of one unit in the last place, of one value of one op at one step: what a trace tells of it, and what not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.trace import Cause, Comparison, Verdict, bisect_with_model, compare, diff_with_model

from ...keeping import kept

STEPS, FAULTY = 6, 3
ABSORBED, KEPT = 2.0**20, 0.0
"""What the faulty value is added to: beside the first, its last bits are rounded away."""

BATCHES = [(np.array(float(i)), np.linspace(0.1, 0.9, 4) + i) for i in range(STEPS)]


def model(beside: float, faulty: int | None = None, struck: tuple[int, ...] = (0, 1)) -> Callable[..., Any]:
    """``sum(((w * x + beside) * 2^-20)^2)``; at a faulty step, one element of ``w * x`` is off by one unit.

    `struck`: in which computations of that step: where its ops are digested the first is for them, and the second
    trains.
    """
    computed: list[int] = []

    def loss_fn(p: Any, batch: Any) -> Any:
        step, x = batch
        product = p["w"] * x
        if step.value.item() == faulty:
            if len(computed) in struck:
                product.value.array.flags.writeable = True
                product.value.array[2] = np.nextafter(product.value.array[2], np.inf)
            computed.append(1)
        return (((product + beside) * 2.0**-20) ** 2).sum()

    return loss_fn


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    def record(beside: float, faulty: int | None = None, struck: tuple[int, ...] = (0, 1), **options: Any) -> Path:
        path = tmp_path / f"{beside}-{faulty}-{len(options)}"
        options = kept(path, {"mode": "eager", "record": "digest", **options})
        trainer = Trainer(model(beside, faulty, struck), {"w": np.full(4, 0.3)}, SGD(0.01), **options)
        trainer.fit(BATCHES, steps=STEPS, progress=False)
        return path

    return record


Run = Callable[..., Path]


def is_the_fault(found: Comparison) -> None:
    assert (found.verdict, found.cause, found.step) == (Verdict.DIVERGED, Cause.GRADIENT, FAULTY), found
    assert found.op is not None
    assert (found.op.what, found.op.node.op, found.op.node.shape) == ("value", "mul", (4,))
    assert "test_transient.py:" in found.op.node.place


def test_a_fault_that_reaches_a_gradient_is_in_the_state_chain(run: Run) -> None:
    ops_of = {"ops": "every"}
    is_the_fault(compare(run(KEPT, **ops_of), run(KEPT, FAULTY, **ops_of)))
    found = compare(run(KEPT), run(KEPT, FAULTY))
    assert (found.cause, found.step, found.op) == (Cause.GRADIENT, FAULTY, None)
    assert [tensor.title for tensor in found.tensors] == ["gradient of 'w'"]  # the sum of the loss absorbs it


def test_a_fault_that_rounding_absorbs_leaves_no_trace_without_digests_of_ops(run: Run) -> None:
    found = compare(run(ABSORBED), run(ABSORBED, FAULTY), proven=True)
    assert found.same
    assert found.sentence == f"equal to the bit: {STEPS} steps"


def test_a_fault_that_rounding_absorbs_is_found_in_digests_of_ops(run: Run) -> None:
    a, b = run(ABSORBED, ops="every"), run(ABSORBED, FAULTY, ops="every")
    assert compare(a, b).same  # by the links alone, which do not hold what the ops made on the way
    found = compare(a, b, proven=True)
    is_the_fault(found)
    assert f"step {FAULTY} is the first that differs: its results are equal, but not" in found.sentence


def later(run: Callable[..., Any], batch: int) -> Callable[..., Any]:
    """The run, whose results at the step of this batch are others too."""

    def loss_fn(p: Any, given: Any) -> Any:
        loss = run(p, given)
        return loss * 2.0 if given[0].value.item() == batch else loss

    return loss_fn


def later_value(run: Callable[..., Any], batch: int) -> Callable[..., Any]:
    """The run, by the same ops, whose value at the step of this batch is doubled."""

    def loss_fn(p: Any, given: Any) -> Any:
        loss = run(p, given)
        if given[0].value.item() == batch:
            loss.value.array.flags.writeable = True
            loss.value.array[...] *= 2
        return loss

    return loss_fn


@pytest.mark.parametrize("recorded", ["every", [FAULTY]])
def test_the_first_step_is_named_although_results_differ_at_a_later_one(tmp_path: Path, recorded: Any) -> None:
    """What rounding absorbs at step 3 comes before what shows at step 5, whatever finds them."""
    paths = tmp_path / "a", tmp_path / "b"
    for path, loss_fn in zip(paths, (model(ABSORBED), later(model(ABSORBED, FAULTY), FAULTY + 2)), strict=True):
        options = kept(path, {"mode": "eager", "record": "digest", "ops": recorded})
        Trainer(loss_fn, {"w": np.full(4, 0.3)}, SGD(0.01), **options).fit(BATCHES, steps=STEPS, progress=False)
    assert compare(*paths).step == FAULTY + 2
    found = compare(*paths, proven=True)
    is_the_fault(found)
    assert [note for note in found.notes if note.startswith(f"of the results, step {FAULTY + 2} is the first ")]


@pytest.mark.parametrize("end", [STEPS - 1, STEPS])
def test_the_first_step_is_named_although_one_run_is_longer(tmp_path: Path, end: int) -> None:
    paths = tmp_path / "a", tmp_path / "b"
    for path, faulty, steps in zip(paths, (None, FAULTY), (STEPS, end), strict=True):
        options = kept(path, {"mode": "eager", "ops": "every"})
        trainer = Trainer(model(ABSORBED, faulty), {"w": np.full(4, 0.3)}, SGD(0.01), **options)
        trainer.fit(BATCHES, steps=steps, progress=False)
    is_the_fault(compare(*paths, proven=True))


def test_digests_of_two_kinds_name_no_op(tmp_path: Path) -> None:
    """Those of equal values differ too: where a loss shows the difference, nothing is said of the op."""
    paths = tmp_path / "a", tmp_path / "b"
    runs: Any = (model(KEPT), {}), (later_value(model(KEPT), FAULTY), {"digest": "sha256"})
    for path, (loss_fn, digest) in zip(paths, runs, strict=True):
        options = kept(path, {"mode": "eager", "ops": "every", **digest})
        Trainer(loss_fn, {"w": np.full(4, 0.3)}, SGD(0.01), **options).fit(BATCHES, steps=STEPS, progress=False)
    for proven in (False, True):
        found = compare(*paths, proven=proven)
        assert (found.step, found.cause, found.op) == (FAULTY, Cause.GRADIENT, None)


@pytest.mark.parametrize(("recorded", "found"), [([FAULTY], True), ([FAULTY - 1], False)])
def test_it_is_found_at_steps_whose_ops_are_recorded(run: Run, recorded: list[int], found: bool) -> None:
    a, b = run(ABSORBED, ops=recorded), run(ABSORBED, FAULTY, ops=recorded)
    assert compare(a, b, proven=True).same is not found


@pytest.mark.parametrize(("struck", "found"), [((0,), True), ((1,), False)])
def test_digests_of_ops_tell_of_the_computation_that_made_them(run: Run, struck: tuple[int, ...], found: bool) -> None:
    """A fault in the training computation alone, which rounding absorbs there, is in no digest."""
    a, b = run(ABSORBED, ops="every"), run(ABSORBED, FAULTY, struck, ops="every")
    assert compare(a, b, proven=True).same is not found


def test_the_model_as_it_is_now_is_held_by_the_results_of_each_step(run: Run) -> None:
    """So what is absorbed is not among them; what is not, is found, and its op too."""
    absorbed = run(ABSORBED, FAULTY, ops="every")
    assert diff_with_model(absorbed, model(ABSORBED), BATCHES).same
    assert bisect_with_model(absorbed, model(ABSORBED), BATCHES).same
    is_the_fault(bisect_with_model(run(KEPT, FAULTY, ops="every"), model(KEPT), BATCHES))
