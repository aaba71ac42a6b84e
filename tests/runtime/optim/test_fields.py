"""What rules and schedules are made with: a kind's wrong values are refused in its words, and docstrings name them."""

import inspect
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import clip_by_global_norm, clip_by_value, optim
from dgrr.runtime.optim import (
    LBFGS,
    SGD,
    Adafactor,
    Adam,
    Constant,
    Cosine,
    FunctionSchedule,
    Joined,
    Lion,
    MultiStep,
    Muon,
    OneCycle,
    OpsRule,
    PointRule,
    RAdam,
    RMSprop,
    Rule,
    Schedule,
    StepDecay,
    Table,
    WarmUp,
)
from dgrr.runtime.optim.kinds import LARGEST_COUNT
from dgrr.tape import DomainError, GradientError, Tape
from dgrr.tape.record.described import types_of

from ...described import called_wrong, require_refused, without_kind
from .made import MADE
from .made_up import HeavySign, Hyperbola
from .user_rules import RMSprop as OfOps

EVERY: list[Any] = [*MADE, HeavySign(), OfOps(0.1), Hyperbola(0.1, 3)]
"""Of users too: one of a formula, one of ops."""


NUMBERS = [(made, name) for made in EVERY for name, kind in types_of(type(made)).items() if kind.floats]


def test_there_is_one_of_each() -> None:
    public = {
        c for c in map(optim.__dict__.get, optim.__all__) if inspect.isclass(c) and issubclass(c, Rule | Schedule)
    }
    assert {type(made) for made in MADE} == public - {Rule, Schedule, PointRule, OpsRule} | {LBFGS}
    assert sum(len(called_wrong(made)) for made in EVERY) > 300


@pytest.mark.parametrize("made", EVERY, ids=lambda made: type(made).__name__)
def test_every_number_has_a_kind(made: Any) -> None:
    assert without_kind(made) == ({"lr", "half"} if isinstance(made, Hyperbola) else set())


@pytest.mark.parametrize("made", EVERY, ids=lambda made: type(made).__name__)
def test_what_a_kind_calls_wrong_is_refused_in_its_words(made: Any) -> None:
    require_refused(made)


@pytest.mark.parametrize("made", EVERY, ids=lambda made: type(made).__name__)
def test_values_of_another_type_are_refused(made: Any) -> None:
    for name, kind in types_of(type(made)).items():
        for value in kind.misfits():
            with pytest.raises(DomainError) as caught:
                replace(made, **{name: value})
            assert str(caught.value).startswith(f"{type(made).__name__}: argument {name!r}: expected {kind.expected}, ")


@pytest.mark.parametrize(("made", "name"), NUMBERS, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_number_is_a_float_and_no_var(made: Any, name: str) -> None:
    value = getattr(made, name)
    if isinstance(value, float):
        rounded = replace(made, **{name: np.float32(value)})
        assert type(getattr(rounded, name)) is float and getattr(rounded, name) == np.float32(value)
        with pytest.raises(GradientError, match=f"^{type(made).__name__}: argument '{name}': expected a number"):
            replace(made, **{name: Tape[Any]().leaf(0.5)})
    else:
        assert isinstance(value, Schedule) or {type(number) for number in value} == {float}


@pytest.mark.parametrize("made", MADE, ids=lambda made: type(made).__name__)
def test_a_docstring_names_the_fields_that_are_refused(made: Any) -> None:
    doc = type(made).__doc__ or ""
    entry = doc.partition("Raises:\n    DomainError: ")[2].partition("\n\n")[0]
    assert all(field in entry for field in made.kinds) and entry
    assert doc.count("DomainError") == 1
    said = doc.partition("\nArgs:\n")[2].partition("\n\n")[0]
    kinds = {name: kind.example().expected for name, kind in made.kinds.items()}
    for name, kind in types_of(type(made)).items():
        (entry,) = re.findall(rf"^    (?:\w, )*{name}(?:, \w)*: ((?:.*\n?)(?: {{8}}.*\n?)*)", said, re.MULTILINE)
        assert " ".join(entry.split()).endswith(f"; {kinds[name]}." if name in kinds else "."), (name, kind)


def test_whole_numbers_lists_and_arrays_are_taken() -> None:
    assert repr(SGD(1, np.int64(0))).startswith("SGD(lr=1.0, momentum=0.0,")  # type: ignore[arg-type]
    assert Adam(betas=[0, np.float64(0.5)]).betas == (0.0, 0.5)  # type: ignore[arg-type]
    assert Table(np.array([1, 2])).rates == Table(range(1, 3)).rates == (1.0, 2.0)  # type: ignore[arg-type]
    assert MultiStep(1, np.array([2, 3]), 0).at == (2, 3)  # type: ignore[arg-type]
    assert StepDecay(1, np.uint8(3), 0) == StepDecay(1.0, 3, 0.0)  # type: ignore[arg-type]
    assert Table([-0.0]).rates[0].hex() == "-0x0.0p+0"


def test_flags_and_whole_numbers_come_back_from_floats() -> None:
    """As traces have them."""
    assert Muon.from_hyperparameters({**Muon(ns_steps=3).hyperparameters(), "nesterov": 0.0}) == Muon(
        ns_steps=3, nesterov=False
    )
    with pytest.raises(DomainError, match="^Muon: argument 'ns_steps': expected a whole number, got 2.5$"):
        Muon.from_hyperparameters({"ns_steps": 2.5})
    with pytest.raises(DomainError, match="^Muon: argument 'nesterov': expected True or False, got 0.5$"):
        Muon.from_hyperparameters({"nesterov": 0.5})


LOW, COUNT = "expected a finite number of at least 0, got", "expected a whole number from 1 to 2**53, got"
TEXTS: list[tuple[Any, str]] = [
    (lambda: SGD(-1), "SGD: argument 'lr': expected a finite number of at least 0, or a schedule, got -1"),
    (lambda: SGD("fast"), "SGD: argument 'lr': expected a number or a schedule, got 'fast'"),
    (lambda: SGD(0.1, maximize=3), "SGD: argument 'maximize': expected True or False, got 3"),
    (
        lambda: SGD(0.1, 0.9, 0.5, nesterov=True),
        "SGD: argument 'nesterov': expected False where momentum is 0 or dampening is not, got True",
    ),
    (lambda: SGD(0.1, dampening=1.5), "SGD: argument 'dampening': expected a number in [0, 1], got 1.5"),
    (lambda: Adam(betas=0.9), "Adam: argument 'betas': expected a tuple of numbers, got 0.9"),
    (lambda: Lion(betas=(0.9, 1.0)), "Lion: argument 'betas': expected two finite numbers in [0, 1), got (0.9, 1.0)"),
    (
        lambda: RAdam(betas=(0.9, 0.5)),
        "RAdam: argument 'betas': expected two finite numbers, in [0, 1) and (0.6, 1), got (0.9, 0.5)",
    ),
    (lambda: RMSprop(alpha=1.0), "RMSprop: argument 'alpha': expected a finite number in [0, 1), got 1.0"),
    (
        lambda: Adafactor(beta2_decay=1.0),
        "Adafactor: argument 'beta2_decay': expected a finite number of at most 0, got 1.0",
    ),
    (lambda: Adafactor(d=0.5), "Adafactor: argument 'd': expected a finite number of at least 1, got 0.5"),
    (lambda: Muon(ns_steps=0), f"Muon: argument 'ns_steps': {COUNT} 0"),
    (lambda: LBFGS(max_eval=0), "LBFGS: argument 'max_eval': expected a whole number from 1 to 2**53 or None, got 0"),
    (lambda: LBFGS(line_search="no"), "LBFGS: argument 'line_search': expected one of strong_wolfe or None, got 'no'"),
    (lambda: OfOps(0.1, alpha=float("nan")), "RMSprop: argument 'alpha': expected a finite number, got nan"),
    (lambda: Cosine(1, LARGEST_COUNT + 1), f"Cosine: argument 'steps': {COUNT} 9007199254740993"),
    (lambda: OneCycle(1, 5, div=0), "OneCycle: argument 'div': expected a finite number of at least 1, got 0"),
    (lambda: MultiStep(1, [3, 3], 1), "MultiStep: argument 'at': expected rising counts from 1 to 2**53, got (3, 3)"),
    (lambda: Table([]), "Table: argument 'rates': expected finite numbers of at least 0, one or more, got ()"),
    (lambda: Table("0.1"), "Table: argument 'rates': expected a list of numbers, got '0.1'"),
    (
        lambda: Joined([Constant(1)], []),
        "Joined: argument 'at': expected rising counts, one for every schedule but the first, got ()",
    ),
    (lambda: Joined([1.0], [2]), "Joined: argument 'schedules': expected a list of schedules, got [1.0]"),
    (
        lambda: WarmUp(Table([0.1]), steps=2),
        "WarmUp: argument 'schedule': expected a schedule of a formula (others stand behind a Linear in Joined), got "
        "Table(rates=(0.1,))",
    ),
    (lambda: FunctionSchedule(0.1), "FunctionSchedule: argument 'function': expected a function, got 0.1"),
    (lambda: Constant(1)(-1), "Constant: argument 'count': expected a whole number from 0 to 2**53, got -1"),
    (lambda: Cosine(1, 5)(0.5), "Cosine: argument 'count': expected a whole number, got 0.5"),
    (lambda: Adam().hyper_at(0), f"Adam.hyper_at: argument 'step': {COUNT} 0"),
    (lambda: SGD(0.5).hyperparameters(0), f"SGD.hyperparameters: argument 'step': {COUNT} 0"),
    (
        lambda: Adam(Constant(1)).hyperparameters(),
        "Adam.hyperparameters: argument 'step': expected the number of an update, from 1, as lr follows a schedule, "
        "got None",
    ),
    (lambda: clip_by_value({}, -1.0), "clip_by_value: argument 'limit': expected a number of at least 0, got -1.0"),
    (
        lambda: clip_by_global_norm({}, float("nan")),
        "clip_by_global_norm: argument 'max_norm': expected a number of at least 0, got nan",
    ),
    (lambda: clip_by_value({}, "1"), "clip_by_value: argument 'limit': expected a number, got '1'"),
]
"""One of each kind, in full."""


@pytest.mark.parametrize(("make", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_texts(make: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value) == text
