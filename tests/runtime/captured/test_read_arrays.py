"""Arrays that a captured function reads from Python: taken as they are now, as eager does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Dataset, Trainer, capture_function
from dgrr.tape import AnyVar, Tape, nn, ops

from .test_reads import BATCH, PARAMS, Case, Scaled, loss_of


def eager(function: Callable[[AnyVar], AnyVar], x: Any) -> Any:
    """What the function gives op by op."""
    return function(Tape().const(x)).numpy()


def arrays_of_a_dict() -> Case:
    """Arrays in a dict, changed in place."""
    d = {"a": np.ones(3)}
    return lambda x: x * d["a"], lambda: d["a"].fill(7.0)


def another_array_in_a_dict() -> Case:
    """Another array in a dict."""
    d = {"a": np.ones(3)}
    return lambda x: x * d["a"], lambda: d.update(a=np.full(3, 7.0))


def array_of_an_attribute() -> Case:
    """The array of an attribute, another one."""
    s = Scaled()
    return lambda x: x * s.array, lambda: setattr(s, "array", np.full(3, 7.0))


def strided_array() -> Case:
    """A view that kernels cannot read as it lies."""
    a = np.ones(6)
    return lambda x: x * a[::2], lambda: a.fill(7.0)


def integers() -> Case:
    """Integers of a width that the tape converts."""
    a = np.zeros(3, np.int32)
    return lambda x: ops.take(x, a, 0) if hasattr(ops, "take") else x[a], lambda: a.fill(2)


def large_array() -> Case:
    """A large array."""
    a = np.ones((5000, 3))
    return lambda x: x * a, lambda: a.fill(7.0)


def scalar_array() -> Case:
    """An array of one number."""
    a = np.array(1.0)
    return lambda x: x * ops.broadcast_to(x.tape.const(a), (3,)), lambda: a.fill(7.0)


def equal_arrays() -> Case:
    """One of two arrays that were equal."""
    a, b = np.ones(3), np.ones(3)
    return lambda x: x * a + x * b, lambda: b.fill(7.0)


def numbers_from_an_array() -> Case:
    """An array that numpy makes of another."""
    a = np.ones(3)
    return lambda x: x * (a * 2), lambda: a.fill(7.0)


def a_dataset() -> Case:
    """The arrays of a data set."""
    rows = np.ones((4, 3))
    data = Dataset(rows)
    return lambda x: x + ops.reduce_sum(x.tape.const(data.arrays[0]), 0), lambda: rows.fill(7.0)


def another_trainer() -> Case:
    """Parameters of a trainer that trains on."""
    other = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(3)}, SGD(0.5))
    return lambda x: x * other.params["w"], lambda: other.fit([BATCH] * 3, progress=False)


ARRAYS: dict[str, Callable[[], Case]] = {
    str(made.__doc__): made
    for made in (
        arrays_of_a_dict,
        another_array_in_a_dict,
        array_of_an_attribute,
        strided_array,
        integers,
        large_array,
        scalar_array,
        equal_arrays,
        numbers_from_an_array,
        a_dataset,
        another_trainer,
    )
}


@pytest.mark.parametrize("made", ARRAYS.values(), ids=ARRAYS)
def test_a_captured_function_takes_arrays_as_they_are_now(made: Callable[[], Case]) -> None:
    function, change = made()
    captured = capture_function(lambda x: function(x), BATCH)
    for _ in range(3):
        assert captured(BATCH).tobytes() == eager(function, BATCH).tobytes()
    before = captured(BATCH).tobytes()
    change()
    for _ in range(6):
        assert captured(BATCH).tobytes() == eager(function, BATCH).tobytes() != before


@pytest.mark.parametrize("made", ARRAYS.values(), ids=ARRAYS)
def test_a_captured_step_takes_arrays_as_they_are_now(made: Callable[[], Case]) -> None:
    losses = list[Any]()
    for mode in ("eager", "replay"):
        function, change = made()
        trainer = Trainer(loss_of(function), PARAMS, SGD(0.125), mode=mode)
        trainer.fit([BATCH] * 3, progress=False)
        change()
        losses.append(trainer.fit([BATCH] * 7, progress=False).losses.tolist())
        losses.append(trainer.params["w"].tolist())
    assert losses[:2] == losses[2:]


def test_a_step_may_read_the_parameters_that_it_trains() -> None:
    found, held = list[Any](), {"w": np.ones(3)}
    for mode in ("eager", "replay"):
        trainer = Trainer(lambda p, x: (p["w"] * x * held["w"]).sum(), PARAMS, SGD(0.125), mode=mode)
        held["w"] = trainer.params["w"]
        found.append(trainer.fit([BATCH] * 6, progress=False).losses.tolist())
    assert found[0] == found[1]


def test_a_model_over_the_parameters_of_a_trainer_follows_its_training() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    trainer = Trainer(lambda p, x: (model(p, x) ** 2).mean(), model.init(seed=0), SGD(0.125))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    over, given = capture_function(lambda x: model(trainer.params, x)), capture_function(model)
    for _ in range(12):
        now = model(trainer.params, x).tobytes()
        assert over(x).tobytes() == given(trainer.params, x).tobytes() == now
        assert trainer.predict(x, model=model).tobytes() == now
        trainer.fit([x], progress=False)
