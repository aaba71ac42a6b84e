"""The language of conditions: it computes what Python and numpy do, and says of anything else where it stands."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings, strategies as st

from dgrr.trace import ConditionError
from dgrr.trace.watching.condition import Condition
from dgrr.trace.watching.functions import FUNCTIONS

ARRAYS: dict[str, Any] = {
    "a": np.array([[3.0, -60.0, 0.0], [0.5, 2.0, -0.25]]),
    "b": np.array([[1.0, np.nan, np.inf], [-np.inf, 0.0, 2.0]]),
    "0.weight": np.array([1.0, 2.0, -3.0]),
    "none": np.zeros((0, 3)),
    "loss": np.array(0.75),
    "huge": np.array([1e200, -3e200]),
}

NAMESPACE: dict[str, Any] = {
    "absmax": lambda x: np.abs(x).max() if np.size(x) else np.nan,
    "max": lambda x: np.max(x) if np.size(x) else np.nan,
    "min": lambda x: np.min(x) if np.size(x) else np.nan,
    "mean": lambda x: np.mean(x) if np.size(x) else np.nan,
    "norm": lambda x: np.hypot.reduce(np.ravel(x)) if np.size(x) else 0.0,
    "zeros": lambda x: float(np.sum(np.asarray(x) == 0)),
    **{name: getattr(np, name) for name in ("abs", "isnan", "isinf", "isfinite", "any", "all")},
    **{name: array for name, array in ARRAYS.items() if name != "0.weight"},
    "weight": ARRAYS["0.weight"],
    "yes": lambda x: bool(x),
}
"""What the functions mean, by other words; `norm` differs in the last bits, and so is compared by wide margins."""

NUMBERS = st.sampled_from(["0", "1", "2.5", "-3", "1e3", "0.75"])
NAMES = st.sampled_from([name for name in ARRAYS if name != "0.weight"] + ['"0.weight"'])
REDUCTIONS = st.sampled_from(["absmax", "max", "min", "mean", "zeros"])


def elementwise(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return NAMES | NUMBERS
    inner = elementwise(depth - 1)
    pairs = st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
    return inner | st.builds("abs({})".format, inner) | st.builds("-{}".format, inner) | pairs


def scalars(depth: int) -> st.SearchStrategy[str]:
    return st.builds("{}({})".format, REDUCTIONS, elementwise(depth)) | NUMBERS | st.just("loss")


def truths(depth: int) -> st.SearchStrategy[str]:
    op = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    compared = st.builds("{} {} {}".format, scalars(1), op, scalars(1))
    chained = st.builds("{} {} {} {} {}".format, scalars(0), op, scalars(1), op, scalars(0))
    each = st.builds("{}({})".format, st.sampled_from(["isnan", "isinf", "isfinite"]), elementwise(1))
    compared_each = st.builds("({} {} {})".format, elementwise(1), op, elementwise(1))
    plain = compared | chained | st.builds("{}({})".format, st.sampled_from(["any", "all"]), each | compared_each)
    if not depth:
        return plain
    inner = truths(depth - 1)
    joined = st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
    return plain | joined | st.builds("not {}".format, inner)


def by_python(text: str) -> Any:
    """What Python says, with these names and no others; a ValueError where shapes do not fit."""
    with np.errstate(all="ignore"):
        return eval(text.replace('"0.weight"', "weight"), {"__builtins__": {}}, NAMESPACE)


def held(condition: Condition) -> bool:
    return condition.holds({r: ARRAYS[r.name] for r in condition.references})


def said(found: Callable[[], Any]) -> bool | str:
    """What is found, or that shapes do not fit. Python leaves out what stands behind a decided ``and``."""
    try:
        return bool(found())
    except (ValueError, ConditionError) as error:
        return "shapes" if "broadcast" in str(error) or "do not fit" in str(error) else str(error)


@settings(max_examples=600, deadline=None)
@given(truths(2))
def test_it_is_what_python_says(text: str) -> None:
    try:
        expected = said(lambda: by_python(text))
    except ZeroDivisionError:  # of two numbers that are written there; numpy's are infinite then
        reject()
    found = said(lambda: held(Condition(text)))
    assert found == expected or (found == "shapes" and ("and" in text or "or" in text)), text


def test_the_norm_neither_overflows_nor_vanishes() -> None:
    assert held(Condition("norm(huge) > 3.16e200 and norm(huge) < 3.17e200"))
    assert held(Condition("norm(huge / 1e300 / 1e200) > 3.16e-300"))
    assert held(Condition("norm(none) == 0 and norm(loss) == 0.75 and norm(loss - 1) == 0.25"))
    assert held(Condition("not norm(b) < 1e300 and not norm(b) > 0"))  # NaN
    assert held(Condition('13.9999 < norm("0.weight") * norm("0.weight") < 14.0001'))


def test_every_function_has_another_account() -> None:
    assert FUNCTIONS.keys() <= NAMESPACE.keys()


def test_figures_are_the_numbers_that_are_compared() -> None:
    condition = Condition('absmax(a) > 50 and (loss + 1 < 2 or any("0.weight" > 1)) and 3 > 2')
    values = {r: ARRAYS[r.name] for r in condition.references}
    assert condition.figures(values) == {"absmax(a)": 60.0, "loss + 1": 1.75}


def test_what_a_condition_names() -> None:
    condition = Condition('norm(grad("0.weight")) > 1 or max(update(b)) > max(node("relu")) + max(grad(node("*")))')
    assert [str(r) for r in condition.references] == [
        "grad(0.weight)",
        "update(b)",
        "node('relu')",
        "grad(node('*'))",
    ]


FUNCTION = (
    "expected a function among absmax, max, min, mean, norm, zeros, abs, isnan, isinf, isfinite, any, all, grad, "
    "update, node, got "
)
PARTS = "expected names, numbers, + - * /, comparisons, and, or, not, and calls of functions, got "

ERRORS = [
    ("", "condition: expected one such as 'loss > 10', got none"),
    ("  ", "condition: expected one such as 'loss > 10', got none"),
    ("loss >", "condition: invalid syntax; at character 7 of 'loss >'"),
    ("0.weight > 3", 'invalid decimal literal; put names with dots in quotes: "0.weight"; at character 2 of'),
    (
        "fc.weight > 3",
        "condition: put names with dots in quotes: write \"fc.weight\"; at character 1 of 'fc.weight > 3'",
    ),
    ("loss > 1 and absmux(h) > 1", f"{FUNCTION}'absmux'; did you mean absmax?; at character 14 of"),
    ("é + foo(b) > 1", f"{FUNCTION}'foo'; at character 5 of"),
    ("(a\n> foo(b))", f"{FUNCTION}'foo'; at character 6 of"),
    ("__import__('os').system('ls')", f"{FUNCTION}\"__import__('os').system\"; at character 1 of"),
    ("max(a, b) > 1", "max: expected one argument, got 'max(a, b)'; at character 1 of"),
    ("max() > 1", "max: expected one argument, got 'max()'"),
    ("max(*a) > 1", "max: expected one argument, got 'max(*a)'"),
    ("max(a=b) > 1", "max: expected one argument, got 'max(a=b)'"),
    ("max(grad(3)) > 1", "grad: expected a name, such as \"0.weight\", got '3'; at character 10 of"),
    ("max(update(a + b)) > 1", "update: expected a name, such as \"0.weight\", got 'a + b'"),
    ("max(node(7)) > 1", "node: expected a pattern of names or ops, such as \"relu\", got '7'"),
    ("loss", "expected what is true or false, such as x > 1 or any(isnan(x)), got numbers; at character 1 of 'loss'"),
    ("not loss", "expected what is true or false, such as x > 1 or any(isnan(x)), got numbers; at character 5 of"),
    (
        "loss and loss > 1",
        "expected what is true or false, such as x > 1 or any(isnan(x)), got numbers; at character 1",
    ),
    (
        "any(a) > 1",
        "any: expected what is true or false, such as x > 1 or any(isnan(x)), got numbers; at character 5 of",
    ),
    ("max(isnan(a)) > 1", "max: expected numbers, got what is true or false; at character 5 of"),
    ("(loss > 1) + 1 > 1", "expected numbers, got what is true or false; at character 2 of"),
    ("loss in a", "expected a comparison among < <= > >= == !=, got 'loss in a'; at character 1 of"),
    ("loss if a else b", f"{PARTS}'loss if a else b'; at character 1 of"),
    ("loss > [1]", f"{PARTS}'[1]'; at character 8 of"),
    ("loss > True", f"{PARTS}'True'; at character 8 of"),
    ("loss > 1j", f"{PARTS}'1j'"),
    ("loss ** 2 > 1", f"{PARTS}'loss ** 2'"),
    ("lambda: 1", f"{PARTS}'lambda: 1'"),
    ("f'{loss}' > 1", PARTS),
    ("a[0] > 1", f"{PARTS}'a[0]'"),
    ("loss > " + "9" * 400, "the number is too large; at character 8 of"),
    ("loss > " + "9" * 5000, "condition: "),
    ("(" * 5000, "condition: "),
    ("-" * 100_000 + "loss > 1", "condition: it is nested too deeply to be read"),
    ("loss > 1" + " + 1" * 5000, "condition: it is nested too deeply to be read"),
    ("loss > 1\0", "null bytes"),
]


@pytest.mark.parametrize(("text", "error"), ERRORS, ids=[repr(text[:30]) for text, _ in ERRORS])
def test_what_is_no_condition(text: str, error: str) -> None:
    with pytest.raises(ConditionError) as raised:
        Condition(text)
    assert error in str(raised.value)
    assert str(raised.value).startswith("condition: ")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("loss > 0 or a > 1", "it is true or false of each of 6 elements: write any(…) or all(…); at character 13 of"),
        ("isnan(a)", "it is true or false of each of 6 elements: write any(…) or all(…); at character 1 of 'isnan(a)'"),
        ("max(a + huge) > 1", "the shapes (2, 3) and (2,) do not fit each other; at character 5 of"),
        ("loss > 1 and any(a > huge)", "the shapes (2, 3) and (2,) do not fit each other; at character 18 of"),
    ],
)
def test_what_shows_at_the_first_step(text: str, error: str) -> None:
    """Also where Python would not look, behind what is decided already."""
    with pytest.raises(ConditionError) as raised:
        held(Condition(text))
    assert error in str(raised.value)
