"""Rules by patterns of names, and frozen parameters: who is updated by what, and what is refused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, capture
from dgrr.runtime.optim import Cosine
from dgrr.runtime.optim.groups import grouped
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError

NAMES = ("embed.weight", "0.weight", "0.bias", "1.weight", "1.bias")
RULES = {"*.bias": SGD(0.1, momentum=0.5), "*": AdamW(0.01)}


def test_the_first_pattern_that_matches_counts() -> None:
    groups = grouped(RULES, ["embed.*"], NAMES)
    assert [group.names for group in groups.groups] == [("0.bias", "1.bias"), ("0.weight", "1.weight")]
    assert groups.frozen == ("embed.weight",)


@pytest.mark.parametrize("rate", [0.1, Cosine(0.1, 5)])
def test_hyperparameters_are_a_dict_of_the_callers_own(rate: Any) -> None:
    groups = grouped({"*.bias": SGD(rate), "*": AdamW(0.01)}, [], NAMES)
    first = groups.hyperparameters(1)
    told = json.loads(json.dumps(first))
    assert told["lr#1"] == 0.01
    first.clear()
    assert groups.hyperparameters(1) == told


def arrays(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(3).astype(np.float32) for name in NAMES}


def test_each_group_is_updated_as_by_its_rule_alone() -> None:
    groups = grouped(RULES, ["embed.*"], NAMES)
    params, alone = arrays(0), arrays(0)
    state = groups.init(params)
    assert list(state) == [
        "step", "momentum/0.bias", "momentum/1.bias", "step#1", "corrections#1", "m/0.weight", "m/1.weight",
        "v/0.weight", "v/1.weight",
    ]  # fmt: skip
    kept = {pattern: rule.init(alone) for pattern, rule in RULES.items()}
    for step in range(3):
        grads = {name: g for name, g in arrays(1 + step).items() if name != "embed.weight"}
        groups.step(params, grads, state)
        for group in groups.groups:
            own = {name: grads[name] for name in group.names}
            group.rule.step(alone, own, kept[group.pattern])
    for name in NAMES:
        assert params[name].tobytes() == alone[name].tobytes(), name
    assert params["embed.weight"].tobytes() == arrays(0)["embed.weight"].tobytes()
    assert state["step"] == state["step#1"] == 3
    assert groups.hyperparameters(1)["lr"] == 0.1
    assert groups.hyperparameters(1)["lr#1"] == 0.01
    assert groups.rates(1) == {"*.bias": 0.1, "*": 0.01}


def test_a_gradient_of_a_frozen_parameter_is_refused() -> None:
    groups = grouped(SGD(0.1), ["embed.*"], NAMES)
    params = arrays(0)
    with pytest.raises(DomainError) as caught:
        groups.step(params, arrays(1), groups.init(params))
    assert str(caught.value) == "step: parameter 'embed.weight': expected no gradient, as it is frozen, got one"


NO_FIT: list[tuple[Any, Any, str]] = [
    ({"*.bias": SGD(0.1)}, (),
     "optimizer: parameter 'embed.weight': expected a pattern that matches it, got '*.bias'; add '*' as the last"),
    ({"*.norm": SGD(0.1), "*": SGD(0.1)}, (),
     "optimizer: '*.norm': expected a pattern that matches a parameter ('embed.weight', '0.weight', '0.bias', "
     "'1.weight', '1.bias') which is not frozen and which no pattern before it matches; leave it out, or put it first"),
    ({"*": SGD(0.1), "*.bias": SGD(0.1)}, (), "optimizer: '*.bias': expected a pattern that matches a parameter"),
    ({"embed.*": SGD(0.1), "*": SGD(0.1)}, ("embed.*",), "optimizer: 'embed.*': expected a pattern that matches"),
    (SGD(0.1), ("embde.*",),
     "frozen: 'embde.*': expected a pattern that matches a parameter ('embed.weight', '0.weight', '0.bias', "
     "'1.weight', '1.bias')"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "frozen", "text"), NO_FIT)
def test_patterns_that_do_not_fit_the_parameters(rules: Any, frozen: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        Recipe(rules, frozen=frozen).groups(NAMES)
    assert str(caught.value).startswith(text)


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Recipe({}), "optimizer: expected a rule, or rules by patterns of names, got an empty dict"),
    (lambda: Recipe({1: SGD(0.1)}),
     "optimizer: expected patterns of names such as '*.bias', or predicates, got 1"),
    (lambda: Recipe({"*": 0.1}), "optimizer: expected a rule, such as Adam(1e-3), got 0.1"),  # type: ignore[dict-item]
    (lambda: Recipe(SGD(0.1), frozen="embed.*"),
     "frozen: expected a list of patterns of names, got 'embed.*'; write frozen=[…]"),
    (lambda: Recipe(SGD(0.1), frozen=[0]), "frozen: expected patterns of names such as '*.bias', or predicates, got 0"),  # type: ignore[list-item]
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), MISTAKES)
def test_what_is_no_pattern_or_no_rule(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert str(caught.value) == text


def loss_fn(p: Any, x: Any) -> Any:
    hidden = (x * p["embed.weight"] * p["0.weight"] + p["0.bias"]).tanh()
    return ((hidden * p["1.weight"] + p["1.bias"]) ** 2.0).sum()


def test_a_captured_step_with_groups_is_verified() -> None:
    """Also that no gradient of what is frozen is computed: its nodes are those of a constant."""
    step = capture(loss_fn, arrays(0), {"*.bias": Adam(0.1), "*": SGD(0.1)}, np.ones(3, np.float32), frozen=["embed.*"])
    report = step.verify(3)
    assert report.ok, report
    assert len(step.gradients(np.ones(3, np.float32))) == 4
