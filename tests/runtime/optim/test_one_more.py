"""What one more rule and one more schedule take: a formula and its fields. Kernel, reference, ops and traces follow."""

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer, capture
from dgrr.runtime.optim import Joined, PointRule, Schedule, WarmUp, law, rate
from dgrr.runtime.optim.state_ops import STATE_OPS
from dgrr.tape import DomainError, Tape
from dgrr.trace import replay

from . import made_up
from .made_up import Hyperbola


def lines(cls: type[Any]) -> int:
    """Lines of code of a class, without its docstring and blank lines."""
    text = inspect.getsource(cls)
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.ClassDef)
    docs = tree.body[0]
    assert docs.end_lineno is not None
    written = text.splitlines()
    return sum(bool(line.strip()) for line in written[: docs.lineno - 1] + written[docs.end_lineno :])


@pytest.mark.parametrize("cls", [made_up.HeavySign, made_up.Hyperbola])
def test_one_more_takes_one_file_and_six_lines_beside_formula_and_docs(cls: type[Any]) -> None:
    assert lines(cls) <= 6
    assert {inspect.getfile(cls)} == {str(Path(made_up.__file__))}


def test_one_more_schedule_has_the_rates_of_its_formula() -> None:
    schedule = Hyperbola(0.5, 10)
    assert [schedule(count) for count in (0, 10, 30)] == [0.5, 0.25, 0.125]
    assert [WarmUp(schedule, steps=2)(count) for count in (0, 1, 2, 12)] == [0.0, 0.25, 0.5, 0.25]
    assert [Joined([schedule, schedule], at=[10])(count) for count in (0, 9, 10)] == [0.5, 0.5 / 1.9, 0.5]
    assert schedule.rate(Tape[Any]().const(np.array(7.0))).item() == schedule(7)
    words = schedule.ints.values.tolist()
    reference = STATE_OPS["hyperbola_rate"].reference
    assert reference is not None
    ((rate, *rest),) = reference(np.arange(5.0), schedule.numbers, np.array(8), *words)
    assert (rate, rest) == (schedule(7), [1.0, 2.0, 3.0, 4.0])


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


def test_one_more_schedule_is_captured_recorded_replayed_and_verified(tmp_path: Path) -> None:
    rule, start = SGD(WarmUp(Hyperbola(0.5, 10), steps=2)), {"w": np.zeros(1)}
    for mode in ("eager", "capture", "replay"):
        trainer = Trainer(loss_fn, start, rule, mode=mode, trace=tmp_path / mode)  # type: ignore[arg-type]
        trainer.fit([np.ones(1)] * 5, progress=False)
        assert trainer.params["w"][0] == ((((0.0 - 0.0) - 0.25) - 0.5) - 0.5 / 1.1) - 0.5 / 1.2
        assert replay(tmp_path / mode).update == "proven"
    assert capture(loss_fn, start, rule, np.ones(1)).verify().ok


def test_a_formula_without_its_place_or_number_is_refused() -> None:
    with pytest.raises(
        DomainError, match=r"^law: 'few@1': few: expected \(p, g, m, \[step \| c1, c2\], lr, \*others\), got"
    ):
        law("few@1", "m")(few)
    with pytest.raises(DomainError, match=r"^law: 'few@1': few: expected at most 3 buffers, got 4; use ops_rule$"):
        law("few@1", "a", "b", "c", "d")(few)
    with pytest.raises(DomainError, match=r"^rate: alone: expected \(count, \*numbers\), got \(count\)$"):
        rate(alone)


def few(p: Any, g: Any, m: Any) -> Any: ...


def alone(count): ...  # type: ignore[no-untyped-def]


def test_fields_that_are_not_those_of_the_formula_are_refused() -> None:
    @dataclass(frozen=True)
    class Short(Schedule, formula=made_up.hyperbola):
        lr: float = 0.1

    @dataclass(frozen=True)
    class Other(PointRule, law=made_up.heavy_sign):
        lr: float = 0.1
        gamma: float = 0.9

    with pytest.raises(DomainError, match="^Short: expected a field for each number of its formula, 2 of them, got"):
        Short()
    expected = r"^Other: expected a field for each hyperparameter of its formula \(lr, beta, weight_decay\), got none"
    with pytest.raises(DomainError, match=expected):
        Other()


def test_a_cell_of_a_notebook_may_run_again_and_a_name_is_one_formulas() -> None:
    typed = """
from dgrr.runtime.optim import law
from dgrr.tape.record import constant
@law("typed@1")
def typed(p, g, lr):
    return (p - constant(p, lr) * g,)
"""
    scope: dict[str, Any] = {"__name__": "of_nobody"}
    for _ in range(2):
        exec(compile(typed, "<input>", "exec"), scope)
    elsewhere = {**scope, "__name__": "of_somebody"}
    with pytest.raises(DomainError, match="^of_somebody: expected a formula with a name of its own, got 'typed'"):
        exec(compile(typed, "<input>", "exec"), elsewhere)
