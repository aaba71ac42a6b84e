"""Docstrings of public functions, layers, rules and schedules: each is whole, and its example runs."""

import doctest
import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, overload

import numpy as np
import pytest

from dgrr.runtime import optim
from dgrr.tape import DomainError, DTypeError, ShapeError, Var, nn, ops
from dgrr.tape.record.description import describe, described
from dgrr.tape.record.samples import bad
from dgrr.tape.record.signature import Signature
from dgrr.tape.record.types import Bs, D, F, K, M, N, S
from dgrr.tape.values.dtypes import boolean, i64
from dgrr.tape.var.op_table import COMPOSED, OPS
from dgrr.tape.var.var import AnyVar, Gradual

from ..tape.ops.properties.documentation import check_docstring, lacking

BASES = (nn.Layer, nn.SameShape, optim.OpsRule, optim.PointRule, optim.Rule, optim.Schedule)
"""What others are made from: they have no formula."""

FUNCTIONS = [getattr(ops, name) for name in ops.__all__]
LAYERS = [c for c in map(nn.__dict__.get, nn.__all__) if inspect.isclass(c) and issubclass(c, nn.Layer)]
RULES = [c for c in map(optim.__dict__.get, optim.__all__) if inspect.isclass(c) and issubclass(c, BASES)]
CLIPPING = [optim.clip_by_global_norm, optim.clip_by_value]
PUBLIC = {
    f"{x.__module__}.{x.__name__}": x
    for x in (*FUNCTIONS, *LAYERS, *RULES, *CLIPPING, optim.ops_rule)
    if x not in BASES
}


@cache
def examples(module: str) -> dict[str, doctest.DocTest]:
    """The examples that doctest finds in a module, by the name of what they stand under."""
    return {test.name: test for test in doctest.DocTestFinder().find(importlib.import_module(module))}


def test_there_are_many() -> None:
    assert len(FUNCTIONS) > 100 and len(LAYERS) > 40 and len(RULES) >= 10 and len(PUBLIC) > 150


def test_docstrings_are_whole() -> None:
    found = {name: lacking(inspect.cleandoc(x.__doc__)) for name, x in PUBLIC.items()}
    assert {name: parts for name, parts in found.items() if parts} == {}


def test_examples_are_collected() -> None:
    names = [*PUBLIC, *(f"{x.__module__}.{x.__name__}" for x in (nn.Layer, nn.Parameter))]
    found = {name: examples(name.rpartition(".")[0])[name].examples for name in names}
    assert [name for name, of_it in found.items() if not any(each.want for each in of_it)] == [], "no result is shown"


@pytest.mark.parametrize("name", ["add", "conv2d", "concat"])
def test_a_wrong_example_is_found(name: str) -> None:
    function: Any = getattr(ops, name)
    found = examples(function.__module__)[f"{function.__module__}.{name}"]
    last = found.examples[-1]
    changed = [*found.examples[:-1], doctest.Example(last.source, "another\n")]
    for shown, failures in ((found.examples, 0), (changed, 1)):
        test = doctest.DocTest(shown, {**found.globs, "np": np}, name, None, None, None)
        assert doctest.DocTestRunner(verbose=False).run(test, out=lambda text: None).failed == failures


# ------------------------------------------------------------------ what is lacking

WHOLE = """``x``.

Source: a book.
Shapes: x (*S) -> (*S)
Dtypes: any.
Raises: nothing of its own.

>>> 1 + 1
2"""


def test_a_whole_docstring_lacks_nothing() -> None:
    assert lacking(WHOLE) == []


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("``x``.", "``x``", "a first sentence"),
        ("Source: a book.\n", "", "Source:"),
        ("Source: a book.", "Source:", "Source:"),
        ("Shapes: x (*S) -> (*S)\n", "", "Shapes:"),
        ("Dtypes: any.\n", "", "Dtypes:"),
        ("Raises: nothing of its own.\n", "", "Raises:"),
        ("\n\n>>> 1 + 1\n2", "", "an example with a result"),
        (">>> 1 + 1\n2", ">>> x = 2", "an example with a result"),
    ],
)
def test_each_part_is_missed(old: str, new: str, missing: str) -> None:
    assert old in WHOLE
    assert lacking(WHOLE.replace(old, new)) == [missing]


def changed_copy(name: str, **change: Any) -> Any:
    record: Any = (OPS | COMPOSED)[name]
    return replace(record, **change)


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("add", {"doc": "``a + b``.\n\n>>> 1\n1"}, "the docstring lacks Source:"),
        ("add", {"doc": f"{OPS['add'].doc[:40]}.\n\nSource: a book."}, "lacks an example with a result"),
        ("add", {"doc": WHOLE}, "only where annotations do not say them: ['Shapes', 'Dtypes']"),
        (
            "take",
            {"doc": "``x``.\n\nSource: a book.\n\n>>> 1\n1"},
            "only where annotations do not say them: ['Shapes']",
        ),
        ("relu", {"errors": (bad(DomainError, "no"),)}, "the texts of errors must name the argument"),
    ],
)
def test_a_record_that_says_too_little_or_too_much_is_refused(name: str, change: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_docstring(changed_copy(name, **change))
    assert text in str(caught.value)


# ------------------------------------------------------------------ the description of a record


@overload
def product(a: Var[F, *Bs, M, K], b: Var[F, K, N]) -> Var[F, *Bs, M, N]: ...
@overload
def product(a: Var[F, *Bs, M, K], b: Var[F, *Bs, K, N]) -> Var[F, *Bs, M, N]: ...
def product(a: AnyVar, b: AnyVar) -> AnyVar:
    raise NotImplementedError


def pick(x: Var[D, N], labels: Var[i64, *S], keep: Var[boolean, *S] | None = None, axis: int = 0) -> Gradual[D]:
    """Elements.

    The longer text.

    Source: a book
        of two lines.
    Shapes: x (N,), labels (*S) -> (...)

    >>> 1 + 1
    2
    """
    raise NotImplementedError


def test_overloads_stand_below_each_other() -> None:
    errors = (
        bad(ShapeError, "product: argument 'b': expected shape (3, N), got (4, 5)", (2, 3), (4, 5)),
        bad(ShapeError, "product: argument 'a': expected shape (*Bs, M, K), got (3,)", (3,), (3, 2)),
    )
    made = describe("The product.\n\nSource: a book.", Signature(product, exact=True), errors)
    assert str(made) == (
        "The product.\n"
        "\n"
        "Source: a book.\n"
        "Shapes:\n"
        "    a (*Bs, M, K), b (K, N) -> (*Bs, M, N)\n"
        "    a (*Bs, M, K), b (*Bs, K, N) -> (*Bs, M, N)\n"
        "Dtypes: a, b and the result float32 or float64, all alike.\n"
        "Raises:\n"
        "    ShapeError: a or b does not fit, as in \"argument 'b': expected shape (3, N), got (4, 5)\".\n"
        "    DTypeError: a or b has another dtype."
    )


def test_what_was_written_comes_before_what_is_derived() -> None:
    long = f"expected {'a word ' * 8}and its end; do something else, got 2"
    errors = (
        bad(DomainError, f"pick: argument 'axis': {long}", (2,), axis=2),
        bad(DTypeError, "argument 'labels': expected int64, got float32; convert with ops.cast", (2,), (2,)),
    )
    assert str(describe(inspect.cleandoc(pick.__doc__ or ""), Signature(pick, exact=False), errors)) == (
        "Elements.\n"
        "\n"
        "The longer text.\n"
        "\n"
        "Source: a book of two lines.\n"
        "Shapes: x (N,), labels (*S) -> (...)\n"
        "Dtypes: x and the result float32, float64, int64 or bool, alike; labels int64; keep bool.\n"
        "Raises:\n"
        "    ShapeError: x or keep does not fit.\n"
        "    DTypeError: labels or keep has another dtype, as in \"argument 'labels': expected int64, got float32\".\n"
        "    DomainError: axis does not fit, as in\n"
        f"        \"argument 'axis': expected {'a word ' * 8}and its end, got 2\".\n"
        "\n"
        ">>> 1 + 1\n"
        "2"
    )


def test_an_optional_input_may_be_none() -> None:
    facts = describe("Elements.", Signature(pick, exact=False), ()).facts
    assert facts["Shapes"] == ["x (N,), labels (*S), keep (*S) or None -> (...)"]


def test_the_parts_of_a_written_docstring() -> None:
    doc = "One.\n\nSource: a book.\nRaises:\n    ShapeError: no\n        room.\n    DTypeError: no floats.\n\n>>> 1\n1"
    parts = described(doc)
    assert (parts.text, parts.example) == ("One.", ">>> 1\n1")
    assert parts.facts == {"Source": ["a book."], "Raises": ["ShapeError: no room.", "DTypeError: no floats."]}


@pytest.mark.parametrize("name", ["matmul", "conv2d"])
def test_help_shows_the_description(name: str) -> None:
    record: Any = (OPS | COMPOSED)[name]
    function: Callable[..., Any] = getattr(ops, name)
    assert function.__doc__ == str(record.description)
    assert "Raises:" not in record.doc
