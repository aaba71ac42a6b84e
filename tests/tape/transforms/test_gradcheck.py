"""The gradient checker must find what is wrong, and must not find what is right."""

# An op's function has no body.
# mypy: disable-error-code="empty-body"
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

from dgrr.tape import GradientError, Var, gradcheck, ops
from dgrr.tape.ops.elementwise.kernels import basic as kernels
from dgrr.tape.record.derivative import NO_GRAD, NoGradient
from dgrr.tape.record.lowering import elementwise
from dgrr.tape.record.op import Op
from dgrr.tape.record.op_decorator import op
from dgrr.tape.record.samples import binary
from dgrr.tape.record.types import F, S
from dgrr.tape.var.op_table import OPS

POINTS = np.array([[0.5, -1.25, 2.0], [3.0, -0.75, 1.5]])
FACTORS = np.array([[1.5, 0.25, -2.0], [0.5, 4.0, -1.0]])


def checked_product(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``a * b``."""


Rule: TypeAlias = Callable[..., Any] | NoGradient


@pytest.fixture
def product_with() -> Iterator[Callable[[Rule, Rule], Op]]:
    """The product of two arrays with VJPs of one's choice; the op stays in the table for one test."""

    def make(for_a: Rule, for_b: Rule) -> Op:
        op(
            lower=lambda a, b: elementwise(kernels.mul, a, b),
            vjp=(for_a, for_b),
            jvp=lambda da, db, a, b: ops.add(ops.mul(da, b), ops.mul(a, db)),
            reference=lambda a, b: a * b,
            samples=binary,
        )(checked_product)
        return OPS[checked_product.__name__]

    yield make
    OPS.pop(checked_product.__name__, None)


def right_a(g: Any, b: Any) -> Any:
    return ops.mul(g, b)


def right_b(g: Any, a: Any) -> Any:
    return ops.mul(g, a)


def test_right_gradients_pass(product_with: Any) -> None:
    report = gradcheck(product_with(right_a, right_b), POINTS, FACTORS)
    assert report.ok
    assert bool(report)
    assert report.failures == []
    assert str(report) == "gradcheck: 12 derivatives, 0 wrong, 0 at kinks"
    assert [(e.input, e.index) for e in report.elements] == [(i, index) for i in (0, 1) for index in np.ndindex(2, 3)]


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e6])
def test_right_gradients_pass_at_every_scale(product_with: Any, size: float) -> None:
    report = gradcheck(product_with(right_a, right_b), POINTS * size, FACTORS)
    assert report.ok, str(report)


WRONG: list[tuple[str, Rule, Rule, set[int]]] = [
    ("off by one part in 10**5", lambda g, b: ops.scale(ops.mul(g, b), 1.00001), right_b, {0}),
    ("the sign", right_a, lambda g, a: ops.neg(ops.mul(g, a)), {1}),
    ("swapped inputs", lambda g, a: ops.mul(g, a), lambda g, b: ops.mul(g, b), {0, 1}),
    ("the cotangent is forgotten", lambda b: b, right_b, {0}),
    ("no gradient where there is one", right_a, NO_GRAD, {1}),
    ("not a number", lambda g, b: ops.scale(ops.mul(g, b), float("nan")), right_b, {0}),
]


@pytest.mark.parametrize(("for_a", "for_b", "inputs"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_gradients_are_found(product_with: Any, for_a: Rule, for_b: Rule, inputs: set[int]) -> None:
    report = gradcheck(product_with(for_a, for_b), POINTS, FACTORS)
    assert not report.ok
    assert not report
    assert {e.input for e in report.failures} == inputs
    assert all(not e.kink for e in report.elements)


def test_one_wrong_element_is_named(product_with: Any) -> None:
    spoiled: Any = np.zeros((2, 3))
    spoiled[1, 2] = 0.25
    product = product_with(right_a, lambda g, a: ops.add(ops.mul(g, a), spoiled))
    report = gradcheck(product, POINTS, FACTORS)
    (failure,) = report.failures
    assert (failure.input, failure.index) == (1, (1, 2))
    assert failure.analytic - failure.numeric == pytest.approx(0.25, rel=1e-6)
    (row,) = report.table()
    assert row == {
        "op": "checked_product", "input": 1, "index": (1, 2), "analytic": failure.analytic,
        "numeric": failure.numeric, "bound": failure.bound, "kink": False,
    }  # fmt: skip
    head, *rest = str(report).splitlines()
    assert head == "gradcheck: 12 derivatives, 1 wrong, 0 at kinks"
    assert any("(1, 2)" in line for line in rest)


def test_the_worst_comes_first(product_with: Any) -> None:
    product = product_with(lambda g, b: ops.scale(ops.mul(g, b), 2.0), right_b)
    report = gradcheck(product, POINTS, FACTORS)
    errors = [abs(e.analytic - e.numeric) / e.bound for e in report.failures]
    assert len(errors) == 6
    assert errors == sorted(errors, reverse=True)


def test_gradients_that_cancel_in_a_sum_are_found(product_with: Any) -> None:
    """The contraction has different weights, so a permuted gradient is not the same in sum."""

    def backwards(g: Any, b: Any) -> Any:
        return ops.getitem(ops.mul(g, b), (slice(None), slice(None, None, -1)))

    assert not gradcheck(product_with(backwards, right_b), POINTS, np.ones((2, 3))).ok


# What is no fault.


@pytest.mark.parametrize("kink", [0.0, -0.0])
def test_a_kink_is_counted_and_not_wrong(kink: float) -> None:
    report = gradcheck(lambda x: ops.relu(x), np.array([1.0, kink, -1.0]))
    assert [e.kink for e in report.elements] == [False, True, False]
    assert str(report) == "gradcheck: 3 derivatives, 0 wrong, 1 at kinks"


def test_a_zero_slope_is_no_kink() -> None:
    report = gradcheck(lambda x: x * x, np.array([0.0]))
    assert [(e.analytic, e.kink) for e in report.elements] == [(0.0, False)]


def test_float32_finds_gross_faults_only(product_with: Any) -> None:
    a, b = POINTS.astype(np.float32), FACTORS.astype(np.float32)
    gross = product_with(lambda g, b: ops.scale(ops.mul(g, b), 1.1), right_b)
    assert not gradcheck(gross, a, b).ok
    report = gradcheck(lambda a, b: a * b + ops.tanh(a), a, b)
    assert report.ok, str(report)
    assert len(report.elements) == 12


def test_integer_and_bool_inputs_are_held_fixed() -> None:
    mask = np.array([True, False, True])
    report = gradcheck(
        lambda x, rows, m: ops.where(m, ops.take(x, rows, axis=1), ops.take(x, rows, axis=1) * 3.0).sum(axis=0),
        POINTS,
        np.array([2, 0, 2]),
        np.array([mask, ~mask]),
    )
    assert report.ok, str(report)
    assert {e.input for e in report.elements} == {0}
    assert [e.analytic == 0 for e in report.elements] == [False, True, False] * 2


def test_numbers_and_scalars() -> None:
    report = gradcheck(lambda x, y: x * y, 3.0, np.array(0.5))
    assert [(e.index, e.analytic) for e in report.elements] == [((), 0.5), ((), 3.0)]
    assert report.ok


def test_an_input_that_the_function_ignores_has_a_zero_gradient() -> None:
    report = gradcheck(lambda x, unused: x * 2.0, POINTS[0], POINTS[1])
    assert report.ok
    assert [e.analytic for e in report.elements if e.input == 1] == [0.0] * 3


def test_the_inputs_are_not_changed() -> None:
    points = POINTS.copy()
    gradcheck(lambda x: ops.exp(x), points)
    assert np.array_equal(points, POINTS)


@pytest.mark.parametrize("away", [0.0, 0.01, 0.5, 0.9, 0.999, 1.0, 1.5])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("slope", [1.0, 1e-4])
def test_no_fault_is_reported_near_a_kink(away: float, side: float, slope: float) -> None:
    """The kink is up to one and a half steps away; a small slope is what the mean of many elements has."""
    x = np.array([1.0, side * away * 2.0**-20, -1.0])
    report = gradcheck(lambda x: ops.scale(ops.relu(x), slope), x)
    assert report.ok, str(report)
    assert [e.kink for e in report.elements] == [False, away < 1 / 64, False]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("gradient", "right"), [(0.0, True), (0.5, True), (-1.0, True), (1.5, False), (-1.5, False)])
def test_a_gradient_at_a_kink_must_lie_between_both_sides(
    product_with: Any, dtype: Any, gradient: float, right: bool
) -> None:
    """|x| has slopes -1 and 1 at 0: a gradient of 0.5 there is right, one of 1.5 is not."""
    slopes: Any = np.array([1.0, gradient, -1.0], dtype)
    product = product_with(lambda g: ops.mul(g, slopes), right_b)

    def absolute(x: Any) -> Any:
        return product(x, np.where(x.numpy() < 0, -1, 1).astype(dtype))

    report = gradcheck(absolute, np.array([2.0, 0.0, -2.0], dtype))
    assert [e.kink for e in report.elements] == [False, True, False]
    assert report.ok == right
    assert len(report.kinks) == 1
    assert [e.index for e in report.failures] == ([] if right else [(1,)])


def test_a_curve_is_no_kink() -> None:
    """The second derivative is 1e6: the one-sided differences disagree by one at the first step."""
    report = gradcheck(lambda x: ops.scale(x * x, 5e5), np.array([1e-3, 0.0]))
    assert [e.kink for e in report.elements] == [False, False]
    assert report.ok, str(report)


def test_elements_say_which_op() -> None:
    assert {e.op for e in gradcheck(ops.tanh, POINTS).elements} == {"tanh"}
    assert {e.op for e in gradcheck(OPS["tanh"], POINTS).elements} == {"tanh"}
    assert {e.op for e in gradcheck(lambda x: x * x, POINTS).elements} == {"<lambda>"}
    assert {e.op for e in gradcheck(partial(ops.scale, c=2.0), POINTS).elements} == {"partial"}


# What cannot be checked.


@pytest.mark.parametrize(("result", "name"), [(3.0, "float"), (None, "NoneType"), (POINTS, "ndarray")])
def test_the_function_must_return_a_var(result: object, name: str) -> None:
    with pytest.raises(GradientError) as caught:
        gradcheck(lambda x: result, POINTS)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == f"gradcheck: argument 'function': expected it to return a Var, got {name}"


def test_integers_alone_have_no_gradient() -> None:
    with pytest.raises(GradientError, match="expected float values, got int64: no gradient exists"):
        gradcheck(lambda x: x, np.arange(3))
