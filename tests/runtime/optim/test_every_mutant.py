"""Every formula of rules, schedules, averages and clipping with every one of its operations changed: each is found.

Mutants are those of `tests/mutants.py`. What finds them is a second text of what reads the formula: rules as ops one
after the other (`ops_texts`), schedules as numpy's scalars or Python's floats, averages and clipping as numpy.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from dgrr.runtime.optim import Exponential, Linear, Polynomial, Schedule, kernels
from dgrr.runtime.optim.laws import averages, formulas
from dgrr.runtime.optim.laws.ops_law import OpsLaw
from dgrr.runtime.optim.laws.pointwise import CONSTANTS
from dgrr.runtime.optim.methods import adadelta, adagrad, adam, adamax, lion, radam, rmsprop, sgd
from dgrr.runtime.optim.rates import decays, formulas as of_rates, rated

from ...mutants import Formulas
from .ops_texts import TEXTS
from .test_more_schedules import FORMULAS, LAST
from .test_pointwise import RULES, STEPS, begun, bits_of, drawn
from .test_schedules import COUNTS, SCHEDULES, reference

METHODS = (adadelta, adagrad, adam, adamax, lion, radam, rmsprop, sgd)
ALL = Formulas(
    (formulas, averages, *METHODS, of_rates, decays, rated, kernels), ("formula", "law", "rate"), ("scaled", "clamped")
)
TYPES = (np.float32, np.float64)
Made = dict[str, Callable[..., Any]]

EQUAL = {
    # While nothing is known of the variance, what is made of rho is multiplied by 0.
    "certainty: rho = known * rho - (1.0 - known) * 5.0",
    "certainty: rho = known * rho + (1.0 - known) / 5.0",
}
"""Mutants that nothing finds, and why."""

# ------------------------------------------------------------------ rules


@cache
def steps_of(number: int, dtype: Any) -> list[tuple[Any, list[bytes]]]:
    """What the law of a rule is given in its first steps, and the bits of what it must give."""
    rule, rng = RULES[number], np.random.default_rng(0)
    own = rule.law
    texts = OpsLaw("", partial(TEXTS[type(rule)], rule), own.buffers, ("lr",), counts=True, precise=True)
    found = list[tuple[Any, list[bytes]]]()
    for t in range(1, STEPS + 1):
        p, g = drawn(rng, dtype), drawn(rng, dtype)
        kept = [abs(drawn(rng, dtype)) if name == "v" else drawn(rng, dtype) for name in own.buffers]
        scalars = begun(rule, t)
        rule.step({}, {}, scalars)
        behind = [{**scalars, CONSTANTS: rule.hyper}[name] for name in own.scalars]
        rates = rule.hyper_at(t)
        expected = texts.computed(p, g, kept, rates, np.array(t))
        found.append(((p, *kept, g, *behind, rates), bits_of(expected)))
    return found


def is_a_rule(made: Made, number: int) -> bool:
    """Whether the law of a rule has the bits of its second text."""
    law = RULES[number].chosen
    read = law._replace(formula=made[law.formula.__name__]).reference
    return all(bits_of(read(*given)) == expected for dtype in TYPES for given, expected in steps_of(number, dtype))


# ------------------------------------------------------------------ schedules

COUNTED = [*range(LAST), *COUNTS]


def rate_of(made: Made, schedule: Schedule, count: int) -> float:
    """The rate within its warm-ups, as the kernel computes it."""
    inner, warm_ups = schedule.within
    formula, begins = inner.formula, [0, *accumulate(warm_up.steps for warm_up in warm_ups)]
    assert formula is not None
    lr = made[formula.formula.__name__](np.float64(max(count - begins[-1], 0)), *schedule.numbers[: formula.takes])
    for begin, warm_up in reversed([*zip(begins, warm_ups, strict=False)]):
        lr = made["warmed"](lr, np.float64(max(count - begin, 0)), np.float64(warm_up.steps), warm_up.start)
    return float(lr)


def is_a_schedule(made: Made, schedule: Schedule, expected: Callable[[int], float], rtol: float) -> bool:
    with np.errstate(all="ignore"):
        found = [rate_of(made, schedule, count) for count in COUNTED]
    return bool(np.allclose(found, [expected(count) for count in COUNTED], rtol, 0.0, equal_nan=True))


RATES: list[tuple[Schedule, Callable[[int], float], float]] = [
    *((schedule, partial(reference, schedule), 0.0) for schedule in SCHEDULES),
    *((s, formula, 1e-12) for s, formula in FORMULAS if type(s) in (Exponential, Polynomial, Linear)),
]

# ------------------------------------------------------------------ all of them


def is_an_average(made: Made) -> bool:
    rng = np.random.default_rng(0)
    for dtype in TYPES:
        old, new, kept, rest = drawn(rng, dtype), drawn(rng, dtype), dtype(0.9), dtype(1.0 - 0.9)
        with np.errstate(all="ignore"):
            if bits_of(made["ema"](old, new, 0.9)) != bits_of([kept * old + rest * new]):
                return False
    return True


def is_clipping(made: Made) -> bool:
    x = drawn(np.random.default_rng(0), np.float32)
    with np.errstate(all="ignore"):
        found = [made["clamped"](x, 0.3), made["scaled"](x, 0.3)]
        return bits_of(found) == bits_of([np.clip(x, np.float32(-0.3), np.float32(0.3)), x * np.float32(0.3)])


def checks(readers: set[str]) -> Iterator[Callable[[Made], bool]]:
    """What holds those of some formulas to a second text that have one."""
    for number, rule in enumerate(RULES):
        if rule.chosen.formula.__name__ in readers:
            yield partial(is_a_rule, number=number)
    for schedule, expected, rtol in RATES:
        formula = schedule.within[0].formula
        assert formula is not None
        if {formula.formula.__name__, *(["warmed"] if schedule.within[1] else [])} & readers:
            yield partial(is_a_schedule, schedule=schedule, expected=expected, rtol=rtol)
    if "ema" in readers:
        yield is_an_average
    if readers & {"scaled", "clamped"}:
        yield is_clipping


@pytest.mark.long
@pytest.mark.parametrize("name", ALL.texts)
def test_every_change_is_found(name: str) -> None:
    held = list(checks(ALL.readers(name)))
    assert held, "nothing holds it"
    ALL.require_found(name, lambda made: all(check(made) for check in held), EQUAL)
