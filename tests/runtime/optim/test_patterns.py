"""Groups by predicates of name and value: asked once, of the start; known by names wherever the run is known."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, AdamW
from dgrr.runtime.optim.groups import Groups
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError

PARAMS: dict[str, Any] = {name: np.ones(shape) for name, shape in
                          {"wq": (2, 2), "bq": 2, "norm.weight": 2, "out.weight": (2, 2)}.items()}  # fmt: skip
FLAT = ("bq", "norm.weight")


def flat(name: str, value: Any) -> bool:
    return bool(value.ndim < 2)


def settled(rules: Any, frozen: Any = ()) -> tuple[Recipe, Groups]:
    recipe = Recipe(rules, frozen=frozen).settled(PARAMS)
    return recipe, recipe.groups(PARAMS)


def test_a_predicate_chooses_what_no_pattern_before_it_matches() -> None:
    _, groups = settled({"bq": SGD(0.3), flat: SGD(0.1), "*": AdamW(0.01)})
    assert [group.names for group in groups.groups] == [("bq",), ("norm.weight",), ("wq", "out.weight")]
    assert groups.rates(1) == {"bq": 0.3, "flat": 0.1, "*": 0.01}


def test_it_is_asked_once_of_each_parameter_that_is_left() -> None:
    asked = list[str]()

    def every(name: str, value: Any) -> bool:
        asked.append(name)
        return True

    recipe, _ = settled({"*.weight": SGD(0.1), every: SGD(0.2)}, frozen=["bq"])
    assert recipe.settled(PARAMS) == recipe
    assert asked == ["wq"]


def test_what_a_predicate_freezes() -> None:
    recipe, groups = settled(SGD(0.1), frozen=[flat])
    assert groups.frozen == recipe.frozen_of(PARAMS) == FLAT
    assert groups.groups[0].names == ("wq", "out.weight")


def test_the_law_has_names_and_no_addresses() -> None:
    """So a checkpoint of one process is the same run in another, and a predicate of another text too."""
    first, _ = settled({lambda name, value: value.ndim < 2: SGD(0.1), "*": SGD(0.2)}, frozen=[lambda n, v: n == "wq"])
    again, _ = settled({flat: SGD(0.1), "*": SGD(0.2)}, frozen=[lambda name, value: name == "wq"])
    assert first.law == again.law
    assert "0x" not in str(first.law)
    assert "lambda" not in str(first.law)
    other, _ = settled({lambda name, value: name == "bq": SGD(0.1), "*": SGD(0.2)}, frozen=[lambda n, v: n == "wq"])
    assert other.law != first.law


def test_labels_of_several_lambdas_differ() -> None:
    _, groups = settled({lambda n, v: n == "wq": SGD(0.1), lambda n, v: n == "bq": SGD(0.2), "*": SGD(0.3)})
    assert groups.rates(1) == {"lambda": 0.1, "lambda 2": 0.2, "*": 0.3}


WRONG: list[tuple[Any, Any, str]] = [
    ({lambda n, v: False: SGD(0.1), "*": SGD(0.1)}, (),
     "optimizer: lambda: expected a pattern that matches a parameter ('wq', 'bq', 'norm.weight', 'out.weight') which"),
    ({flat: SGD(0.1), lambda n, v: v.ndim < 2: SGD(0.2), "*": SGD(0.1)}, (),
     "optimizer: lambda: expected a pattern that matches a parameter"),
    ({flat: SGD(0.1)}, (), "optimizer: parameter 'wq': expected a pattern that matches it, got flat; add '*' as the"),
    (SGD(0.1), [lambda n, v: False], "frozen: lambda: expected a pattern that matches a parameter ('wq'"),
    ({lambda n, v: n: SGD(0.1)}, (),
     "optimizer: lambda: expected True or False for parameter 'wq', got 'wq'"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "frozen", "text"), WRONG)
def test_predicates_that_do_not_fit(rules: Any, frozen: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        settled(rules, frozen)
    assert str(caught.value).startswith(text)
