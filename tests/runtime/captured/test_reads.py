"""Numbers that a captured function reads from Python: a change is an error before the next run, or found late."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CaptureError, Trainer, capture, capture_function
from dgrr.runtime.captured.reads import Reads
from dgrr.tape import AnyVar

PARAMS = {"w": np.ones(3)}
BATCH = np.array([1.0, 2.0, 3.0])

factor = 1.0
"""A global that functions below read."""


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
