"""The terms of every loss with every one of their operations changed: each change is found.

Mutants are those of `tests/mutants.py`. What finds them is the reference of a loss that reads the formula, in numpy, on
its samples and on more; formulas that are kernels are held to numpy by another text.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape
from dgrr.tape.ops.losses import binary, cross_entropy, distances, kernels, likelihoods, margins, nll, regression
from dgrr.tape.ops.losses.reduction import reduced
from dgrr.tape.record.samples import Make, Sample
from dgrr.tape.var.op_table import COMPOSED

from ....mutants import Formulas

ALL = Formulas(
    (kernels, regression, binary, likelihoods, margins, distances, nll, cross_entropy),
    ("loss", "composed", "pointwise", "formula"),
)
Made = dict[str, Callable[..., Any]]

EQUAL = {
    # The last axis of a matrix is its second.
    "multi_margin_loss: terms: Any = divide(reduce_sum(over, 1), max(classes, 1))",
}
"""Mutants that nothing finds, and why."""

MORE: dict[str, Callable[[Make], list[Sample]]] = {
    "poisson_nll_loss": lambda make: [Sample((make(9), make.unit(9)), {"full": True})],
}
"""What is looked at beside the samples of the records."""

# ------------------------------------------------------------------ formulas of kernels


def huber(a: Any, b: Any, delta: Any) -> Any:
    size: Any = abs(b - a)
    terms: Any = np.where(size > delta, delta * size - delta**2 / 2, size**2 / 2)
    return terms


def product(x: Any, t: Any) -> Any:
    return np.where((t == 0) | ((x == np.inf) & (t < 1)), 0.0, x * t)


def logits(x: Any, t: Any) -> Any:
    return np.maximum(x, 0.0) - product(x, t) + np.logaddexp(0.0, -abs(x))


TRUTHS = {"huber_terms": huber, "product_of_logit": product, "logit_terms": logits}


def is_true(made: Made, name: str) -> bool:
    """Whether the formula of a kernel is what numpy makes of another text."""
    rng = np.random.default_rng(0)
    a, b = np.append(rng.normal(0, 2, 300), [np.inf, np.inf, np.inf, -2.0, 0.0]), rng.uniform(0, 1, 305)
    b[295:305] = -0.5, -1.0, -2.0, -0.1, -3.0, 0.0, 1.0, 0.5, 0.0, -0.0
    given = (a, b, np.float64(0.75)) if name == "huber_terms" else (a, b)
    with np.errstate(all="ignore"):
        return np.allclose(made[name](*given), TRUTHS[name](*given), 1e-12, 1e-14, equal_nan=True)


# ------------------------------------------------------------------ losses


@cache
def cases(name: str) -> list[tuple[dict[str, Any], Any]]:
    """Arguments of a loss by name, its reduction among them if it has any, and what numpy makes of them."""
    record: Any = COMPOSED[name]
    make, found = Make(np.float64), list[tuple[dict[str, Any], Any]]()
    signature = record.signature
    for sample in [*record.samples(make), *MORE.get(name, lambda make: [])(make)]:
        defaults = dict(zip(signature.names, signature.tail, strict=True))
        given: dict[str, Any] = {**defaults, **dict(zip(signature.inputs, sample.arrays, strict=False)), **sample.attrs}
        for reduction in reductions(given):
            case = {**given, **reduction}
            attrs = {each: case[each] for each in signature.attributes}
            found.append((case, record.reference(*[case[each] for each in signature.inputs], **attrs)))
    return found


def reductions(given: dict[str, Any]) -> list[dict[str, str]]:
    """Those under which terms are looked at. The mean that is an op of its own, without weights, has no terms."""
    if "reduction" not in given:
        return [{}]
    own = given["reduction"] if given.get("weight") is not None or given["reduction"] == "batchmean" else "none"
    return [{"reduction": name} for name in sorted({"none", "sum", own})]


def is_a_loss(made: Made, name: str) -> bool:
    """Whether the terms of a loss, reduced, are those of its reference."""
    function = made[name]
    takes = function.__code__.co_varnames[: function.__code__.co_argcount]
    for given, expected in cases(name):
        tape = Tape[Any]()
        case: dict[str, Any] = {each: tape.const(x) if hasattr(x, "shape") else x for each, x in given.items()}
        whole = "reduction" not in case or "reduction" in takes
        found = function(**case) if whole else reduced(function(**{n: case[n] for n in takes}), case["reduction"])
        if found.shape != expected.shape or not np.allclose(found.numpy(), expected, 1e-11, 1e-13, equal_nan=True):
            return False
    return True


def checks(readers: set[str]) -> Iterator[Callable[[Made], bool]]:
    """What holds those of some formulas to another text that have one."""
    yield from (partial(is_true, name=name) for name in sorted(readers & TRUTHS.keys()))
    yield from (partial(is_a_loss, name=name) for name in sorted(readers & COMPOSED.keys()))


@pytest.mark.long
@pytest.mark.parametrize("name", ALL.texts)
def test_every_change_is_found(name: str) -> None:
    held = list(checks(ALL.readers(name)))
    assert held, "nothing holds it"
    ALL.require_found(name, lambda made: all(check(made) for check in held), EQUAL)
