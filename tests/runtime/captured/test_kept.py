"""Batches of many shapes: plans are kept as memory allows, what comes seldom runs op by op, with the same bits."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, ManyShapesWarning, Trainer, capture, capture_function
from dgrr.runtime.captured.kept import AT_ONCE, MANY, OFTEN, KeptPlans
from dgrr.tape import AnyVar, DomainError

PARAMS = {"w": np.ones(2, np.float32)}
BATCHES = [np.full((n, 2), 0.5, np.float32) for n in range(1, 37)]


class Counted:
    """A loss function that notes what it is run on: values that are not there yet, where it is being recorded."""

    def __init__(self) -> None:
        self.recorded, self.eager = list[int](), list[int]()

    def __call__(self, p: Any, x: Any) -> AnyVar:
        into = self.recorded if "capture" in repr(x.tape) else self.eager
        into.append(x.shape[0])
        loss: AnyVar = (p["w"] * x).mean()
        return loss


class Plan:
    """So many bytes."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def key(n: int) -> Any:
    """A signature."""
    return (("batch", (n,), np.dtype(np.float32)),)


def test_a_fit_on_many_shapes_records_few_and_has_the_eager_bits() -> None:
    found, counted = list[Any](), Counted()
    for mode in ("eager", "replay"):
        trainer = Trainer(counted if mode == "replay" else Counted(), PARAMS, SGD(0.1), mode=mode)
        if mode == "replay":
            with pytest.warns(ManyShapesWarning, match="capture: batches of 33 shapes have come; .*data.buckets"):
                result = trainer.fit(BATCHES, epochs=3, progress=False)
        else:
            result = trainer.fit(BATCHES, epochs=3, progress=False)
        found.append((result.losses.tobytes(), trainer.params["w"].tobytes()))
    assert found[0] == found[1]
    assert set(counted.recorded) == {1, 2}
    assert len(counted.eager) == 3 * (36 - AT_ONCE)


def test_a_shape_that_comes_often_is_captured_once() -> None:
    counted = Counted()
    trainer = Trainer(counted, PARAMS, SGD(0.1))
    trainer.fit(BATCHES[:4], epochs=OFTEN + 4, progress=False)
    assert counted.eager.count(3) == counted.eager.count(4) == OFTEN
    assert 2 <= counted.recorded.count(3) <= 6  # to capture it, and looks


def test_the_first_shapes_are_captured_at_once() -> None:
    counted = Counted()
    Trainer(counted, PARAMS, SGD(0.1)).fit(BATCHES[:AT_ONCE], progress=False)
    assert (set(counted.recorded), counted.eager) == ({1, 2}, [])


def test_there_is_one_warning() -> None:
    trainer = Trainer(Counted(), PARAMS, SGD(0.1))
    with pytest.warns(ManyShapesWarning) as caught:
        trainer.fit(BATCHES, epochs=2, progress=False)
    assert [str(each.message) for each in caught] == [
        f"capture: batches of {MANY + 1} shapes have come; each is captured after {OFTEN} batches, within "
        "plan_bytes=1073741824, and runs op by op before; pad them to a few lengths with "
        "dgrr.runtime.data.buckets"
    ]


def test_plans_are_dropped_where_memory_ends() -> None:
    kept = KeptPlans[Plan]("capture", 100)
    for n in (1, 2):
        kept.put(key(n), Plan(40))
    kept.get(key(1))
    kept.put(key(3), Plan(40))
    assert [kept.get(key(n)) is not None for n in (1, 2, 3)] == [True, False, True]
    assert kept.nbytes == 80


def test_a_plan_that_is_used_is_not_pushed_out() -> None:
    kept = KeptPlans[Plan]("capture", 100)
    for n in (1, 2):
        kept.put(key(n), Plan(40))
    for _ in range(2 * OFTEN):
        for n in (1, 2):
            kept.get(key(n))
        assert not kept.is_worth(key(3))
    assert [kept.is_worth(key(3)) for _ in range(3)] == [False] * 3


def test_a_plan_that_is_used_no_more_makes_room() -> None:
    kept = KeptPlans[Plan]("capture", 100)
    for n in (1, 2):
        kept.put(key(n), Plan(40))
    assert [kept.is_worth(key(3)) for _ in range(OFTEN + 1)] == [False] * OFTEN + [True]


def test_a_step_without_memory_for_plans_keeps_the_one_at_hand() -> None:
    counted = Counted()
    step = capture(counted, PARAMS, SGD(0.1), BATCHES[0], plan_bytes=0)
    for batch in (*BATCHES[:3], BATCHES[0], BATCHES[0]):
        step(batch)
    assert len(step._known) == 1
    assert set(counted.recorded) == {1, 2, 3}


def test_a_captured_function_of_many_shapes_runs_op_by_op_at_first() -> None:
    seen = list[int]()

    def double(x: Any) -> Any:
        if "capture" in repr(x.tape):
            seen.append(x.shape[0])
        return x * 2.0

    function = capture_function(double)
    for _ in range(2):
        for batch in BATCHES[:30]:
            assert function(batch).tobytes() == (batch * 2).tobytes()
    assert set(seen) == {1, 2}


def test_a_trainer_evaluates_many_shapes_with_the_eager_figures() -> None:
    figures = list[float]()
    for mode in ("eager", "replay"):
        trainer = Trainer(Counted(), PARAMS, SGD(0.1), mode=mode)
        figures.append(trainer.evaluate(BATCHES[:20]))
    assert figures[0] == figures[1]


@pytest.mark.parametrize("wrong", [-1, 0.5, True])
def test_plan_bytes_is_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(DomainError) as caught:
        capture(Counted(), PARAMS, SGD(0.1), BATCHES[0], plan_bytes=wrong)
    assert str(caught.value) == (
        f"capture: argument 'plan_bytes': expected a whole number of at least 0, got {wrong!r}"
    )
