"""The built-in rules of ops: captured as eager to the bit, recorded, replayed, rebuilt from what traces record."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, EagerStep, Trainer, capture, make_rule
from dgrr.runtime.optim import (
    Adafactor,
    Muon,
    RMSprop,
    Rule,
    ops_rule,
)
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError, ShapeError
from dgrr.trace import open_trace, replay

from .made import RULES

every_rule = pytest.mark.parametrize("rule", RULES, ids=str)
STEPS = 7
"""Enough for RAdam to divide."""


def loss_fn(p: Any, x: Any) -> Any:
    return ((x @ p["w"]).tanh() @ p["v"]).square().mean()


def params() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((3, 4)).astype(np.float32), "v": rng.standard_normal((4, 1)).astype(np.float32)}


def batches() -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((5, 3)).astype(np.float32) for _ in range(STEPS)]


@every_rule
def test_captured_steps_have_the_bits_of_eager_ones(rule: Rule) -> None:
    eager, captured = EagerStep(loss_fn, params(), Recipe(rule)), capture(loss_fn, params(), rule, batches()[0])
    for batch in batches():
        eager(batch)
        captured(batch)
        assert eager.digest() == captured.digest()
    assert all(np.isfinite(array).all() for array in captured.params.values())
    for name, start in params().items():
        assert (captured.params[name] != start).any()


@every_rule
def test_a_trace_is_replayed_by_the_name_of_the_rule(rule: Rule, tmp_path: Path) -> None:
    Trainer(loss_fn, params(), rule, mode="eager", trace=tmp_path / "t").fit(batches(), progress=False)
    assert replay(tmp_path / "t").update == "proven"
    with open_trace(tmp_path / "t") as trace:
        assert trace.schema.groups[0].rule == rule.rule
        assert make_rule(rule.rule, trace[2].hyper).hyperparameters(3) == rule.hyperparameters(3)


@every_rule
def test_the_result_does_not_depend_on_the_rate_of_another_type(rule: Rule) -> None:
    """Nothing is computed in float64 but scalars: a float32 parameter stays one."""
    step = EagerStep(loss_fn, params(), Recipe(rule))
    step(batches()[0])
    assert {array.dtype for array in step.params.values()} == {np.dtype(np.float32)}


def test_flags_of_the_first_rules_are_another_version() -> None:
    assert (SGD(0.1).rule, SGD(0.1, maximize=True).rule) == ("sgd@1", "sgd@2")
    assert (Adam().rule, Adam(amsgrad=True).rule, Adam(maximize=True).rule) == ("adam@1", "adam@2", "adam@2")
    assert (AdamW().rule, AdamW(amsgrad=True).rule) == ("adamw@1", "adamw@2")
    assert list(Adam().hyperparameters()) == ["lr", "beta1", "beta2", "eps", "weight_decay"]
    assert Adam(amsgrad=True).hyperparameters()["amsgrad"] == 1.0


def test_the_texts_by_which_older_checkpoints_know_the_first_rules() -> None:
    sgd = "SGD(lr=0.1, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.0"
    assert (repr(SGD(0.1)), repr(SGD(0.1, maximize=True))) == (f"{sgd})", f"{sgd}, maximize=True)")
    adam = "lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay="
    assert (repr(Adam()), repr(AdamW())) == (f"Adam({adam}0.0)", f"AdamW({adam}0.01)")
    assert repr(AdamW(amsgrad=True)) == f"AdamW({adam}0.01, amsgrad=True)"
    assert Recipe(SGD(0.1)).law == {
        "rule": f"{sgd})", "accumulate": 1, "clip_norm": None, "clip_value": None, "frozen": None, "ema": None,
        "on_nonfinite": None, "order": None,
    }  # fmt: skip


def test_climbing_is_descending_on_the_negated_loss() -> None:
    def negated(p: Any, x: Any) -> Any:
        return -loss_fn(p, x)

    for up, down in ((SGD(0.1, 0.9, maximize=True), SGD(0.1, 0.9)), (RMSprop(maximize=True), RMSprop())):
        one, other = EagerStep(negated, params(), Recipe(up)), EagerStep(loss_fn, params(), Recipe(down))
        for batch in batches():
            one(batch)
            other(batch)
        for name, array in one.params.items():
            np.testing.assert_array_equal(array, other.params[name])


def test_the_memory_of_adafactor_is_a_row_and_a_column() -> None:
    state = Adafactor().init({"w": np.zeros((6, 3, 4)), "b": np.zeros(5)})
    assert {name: array.shape for name, array in state.items()} == {
        "step": (), "row/w": (6, 3, 1), "row/b": (5,), "column/w": (6, 1, 4), "column/b": (0,),
    }  # fmt: skip


def test_empty_parameters_and_numbers() -> None:
    for rule in RULES[:-1]:
        kept = {"none": np.zeros((0, 2)), "one": np.ones(())}
        rule.step(kept, {"none": np.zeros((0, 2)), "one": np.ones(())}, rule.init(kept))
        assert np.isfinite(kept["one"])
        assert kept["one"] != 1.0


def test_muon_is_for_matrices() -> None:
    with pytest.raises(ShapeError) as caught:
        Trainer(loss_fn, {**params(), "b": np.zeros(3, np.float32)}, Muon())
    assert str(caught.value) == (
        "Muon.init: parameter 'b': expected two axes, got shape (3,); give it another rule: "
        '{"*.weight": Muon(), "*": AdamW()}'
    )


REFUSED: list[tuple[Any, str]] = [
    (lambda: ops_rule("lamb@7"), "ops_rule: 'lamb@7': expected a name that is not built in, got 'lamb@7'"),
    (lambda: ops_rule("frozen@2"), "ops_rule: 'frozen@2': expected a name that is not built in, got 'frozen@2'"),
    (lambda: make_rule("adam@2", Adam().hyperparameters()), "make_rule: adam@2: expected lr, beta1, beta2, eps, wei"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_what_no_rule_is_made_of(make: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value).startswith(text)
