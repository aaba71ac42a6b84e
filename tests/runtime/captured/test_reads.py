"""What a captured function reads from Python: seen before the next run, with eager's meaning or an error, or late."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CaptureError, Dataset, Trainer, capture, capture_function
from dgrr.runtime.captured.reads import Reads
from dgrr.tape import AnyVar, Tape, nn, ops

PARAMS = {"w": np.ones(3)}
BATCH = np.array([1.0, 2.0, 3.0])

factor = 1.0
weights = np.ones(3)
"""Globals that functions below read."""


class Scaled:
    """A user's object: read as an attribute, by a method, a property and a call."""

    shared = 1.0

    def __init__(self) -> None:
        self.c, self.parts, self.inner = 1.0, [1.0, 2.0], SimpleNamespace(c=1.0)
        self.array = np.ones(3)

    def __call__(self, x: AnyVar) -> AnyVar:
        return x * self.c

    def scaled(self, x: AnyVar) -> AnyVar:
        """By way of another method."""
        return self._scaled(x)

    def _scaled(self, x: AnyVar) -> AnyVar:
        return x * self.c

    @property
    def doubled(self) -> float:
        """Twice the attribute."""
        return 2 * self.c


class Slotted:
    """An object without a dict."""

    __slots__ = ("c",)

    def __init__(self) -> None:
        self.c = 1.0


def _global_factor(x: AnyVar) -> AnyVar:
    return x * factor


def _calls_another(x: AnyVar) -> AnyVar:
    return _global_factor(x)


def _set_factor(value: float) -> None:
    global factor
    factor = value


Case = tuple[Callable[[AnyVar], AnyVar], Callable[[], object]]


def cell() -> Case:
    """A closure's own number."""
    c = 1.0

    def change() -> None:
        nonlocal c
        c = 100.0

    return lambda x: x * c, change


def cell_of_a_cell() -> Case:
    """A number in the closure of a function in a closure."""
    inner, change = cell()
    return lambda x: inner(x) + x, change


def attribute() -> Case:
    """An attribute."""
    s = Scaled()
    return lambda x: x * s.c, lambda: setattr(s, "c", 100.0)


def attribute_of_attribute() -> Case:
    """An attribute of an attribute."""
    s = Scaled()
    return lambda x: x * s.inner.c, lambda: setattr(s.inner, "c", 100.0)


def slot() -> Case:
    """A slot."""
    s = Slotted()
    return lambda x: x * s.c, lambda: setattr(s, "c", 100.0)


def class_attribute() -> Case:
    """An attribute of the class, which the object hides from then on."""
    s = Scaled()
    return lambda x: x * s.shared, lambda: setattr(s, "shared", 100.0)


def method() -> Case:
    """A bound method, through another."""
    s = Scaled()
    return s.scaled, lambda: setattr(s, "c", 100.0)


def a_property() -> Case:
    """A property of a user's class."""
    s = Scaled()
    return lambda x: x * s.doubled, lambda: setattr(s, "c", 100.0)


def callable_object() -> Case:
    """An object that is called."""
    s = Scaled()
    return s, lambda: setattr(s, "c", 100.0)


def in_a_list() -> Case:
    """An item of a list."""
    s = Scaled()
    return lambda x: x * s.parts[1], lambda: s.parts.__setitem__(1, 100.0)


def more_in_a_list() -> Case:
    """A list that grows."""
    parts = [1.0]
    return lambda x: sum((x * part for part in parts), x), lambda: parts.append(100.0)


def in_a_dict() -> Case:
    """An item of a dict."""
    d = {"c": 1.0}
    return lambda x: x * d["c"], lambda: d.update(c=100.0)


def partial_keyword() -> Case:
    """What `functools.partial` was given by name."""
    scaled = partial(lambda x, c: x * c, c=1.0)
    return scaled, lambda: scaled.keywords.update(c=100.0)


def default_argument() -> Case:
    """A default argument."""

    def scaled(x: AnyVar, c: float = 1.0) -> AnyVar:
        return x * c

    return lambda x: scaled(x), lambda: setattr(scaled, "__defaults__", (100.0,))


def array_computed_with() -> Case:
    """A small array of which numpy makes a number."""
    a = np.ones(3)
    return lambda x: x * float(a.sum()), lambda: a.fill(100.0)


NUMBERS: dict[str, Callable[[], Case]] = {
    str(made.__doc__): made
    for made in (
        cell,
        cell_of_a_cell,
        attribute,
        attribute_of_attribute,
        slot,
        class_attribute,
        method,
        a_property,
        callable_object,
        in_a_list,
        more_in_a_list,
        in_a_dict,
        partial_keyword,
        default_argument,
        array_computed_with,
    )
}


def loss_of(function: Callable[[AnyVar], AnyVar]) -> Callable[[Any, Any], AnyVar]:
    """A loss function around a function of one Var."""
    return lambda p, batch: function(p["w"] * batch).sum()


@pytest.mark.parametrize("made", NUMBERS.values(), ids=NUMBERS)
def test_a_number_that_changes_is_found_before_the_next_step(made: Callable[[], Case]) -> None:
    function, change = made()
    step = capture(loss_of(function), PARAMS, SGD(0.125), BATCH)
    for _ in range(4):
        step(BATCH)
    before = step.params["w"].tobytes()
    change()
    for _ in range(2):
        with pytest.raises(CaptureError, match="at run [56] of what was captured, after a change of "):
            step(BATCH)
    assert step.params["w"].tobytes() == before


@pytest.mark.parametrize("made", NUMBERS.values(), ids=NUMBERS)
def test_a_captured_function_says_no_to_the_same(made: Callable[[], Case]) -> None:
    function, change = made()
    captured = capture_function(lambda x: function(x), BATCH)
    captured(BATCH)
    change()
    with pytest.raises(CaptureError, match="after a change of "):
        captured(BATCH)


def test_a_coefficient_that_is_another_one_for_two_steps_is_refused_in_the_first() -> None:
    s = Scaled()
    seen = list[float]()

    def of_step(trainer: Trainer, step: int, loss: float) -> None:
        seen.append(loss)
        s.c = 100.0 if step in (3, 4) else 1.0

    trainer = Trainer(loss_of(lambda x: x * s.c), PARAMS, SGD(0.0), callbacks=[_OnStep(of_step)])
    with pytest.raises(CaptureError, match=r" 1\.0\), but .*, after a change of s\.c, as .* 100\.0\)"):
        trainer.fit([BATCH] * 12, progress=False)
    assert (trainer.steps, seen) == (4, [6.0] * 4)


class _OnStep:
    def __init__(self, tell: Callable[[Trainer, int, float], None]) -> None:
        self.on_step = tell


def test_a_global_and_what_a_function_in_it_reads_are_seen() -> None:
    step = capture(loss_of(_calls_another), PARAMS, SGD(0.0), BATCH)
    step(BATCH)
    try:
        _set_factor(100.0)
        with pytest.raises(CaptureError, match="after a change of factor, as"):
            step.replay(3)
        with pytest.raises(CaptureError, match="after a change of factor, as"):
            step.steps([BATCH, BATCH])
    finally:
        _set_factor(1.0)
    assert step(BATCH) == 6.0


def test_another_object_with_the_same_meaning_changes_nothing() -> None:
    s, calls = Scaled(), [0]

    def function(x: AnyVar) -> AnyVar:
        calls[0] += 1
        return s.inner.c * x * s.c

    step = capture(loss_of(function), PARAMS, SGD(0.0), BATCH)
    s.c = float("1.0")
    assert (step(BATCH), calls[0]) == (6.0, 2)
    s.inner = SimpleNamespace(c=1.0)
    assert (step(BATCH), calls[0]) == (6.0, 3)
    s.inner.c = 2.0
    with pytest.raises(CaptureError, match="s.inner.c"):
        step(BATCH)


def test_what_changes_at_every_step_and_changes_no_op_costs_eight_recordings() -> None:
    s, calls = Scaled(), [0]

    def function(x: AnyVar) -> AnyVar:
        calls[0] += 1
        assert s.c >= 0
        return x

    step = capture(loss_of(function), PARAMS, SGD(0.0), BATCH)
    for k in range(64):
        s.c = float(k + 2)
        step(BATCH)
    assert calls[0] <= 2 + 8 + 6


def test_a_property_of_a_library_and_a_file_are_found_late() -> None:
    hidden = {"c": 1.0}
    read = vars(SimpleNamespace(read=hidden.get))["read"]  # compiled code, which nothing is known of
    step = capture(loss_of(lambda x: x * read("c")), PARAMS, SGD(0.0), BATCH)
    for _ in range(4):
        step(BATCH)
    hidden["c"] = 2.0
    for _ in range(3):
        assert step(BATCH) == 6.0
    with pytest.raises(CaptureError, match="but at run 8 of what was captured as"):
        step(BATCH)


# ------------------------------------------------------------------ arrays


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


def test_captured_evaluation_says_no_at_once() -> None:
    s = Scaled()
    trainer = Trainer(loss_of(s), PARAMS, SGD(0.0))
    assert trainer.evaluate([BATCH]) == 6.0
    s.c = 2.0
    with pytest.raises(CaptureError, match="after a change of loss_fn.c, as|.c, as"):
        trainer.evaluate([BATCH])


def test_what_several_functions_name_is_compared_once() -> None:
    reads = Reads(lambda x: _calls_another(x) * _global_factor(x))
    names = [label for _, label in zip(reads._held, reads._labels[0], strict=True)]
    assert sorted(names) == ["_calls_another", "_global_factor", "factor"]
    _set_factor(2.0)
    assert reads.differ()
    assert reads.changed() == ["factor"]
    _set_factor(1.0)
