"""What one more loss takes: its terms in ops and in numpy below its overloads, and one whose mean is an op."""

import inspect
import math
from typing import Any, overload

import numpy as np
import pytest

from dgrr.tape import DomainError, DTypeError, ShapeError, Tape, Var, ops
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.math import elementary
from dgrr.tape.ops import absolute, add, mul, neg, relu, scale, softplus, square, sub, tanh
from dgrr.tape.ops.elementwise.functions import shift
from dgrr.tape.ops.losses import Each, MeanOp, Total, loss, of_difference, of_formula
from dgrr.tape.ops.losses.reduction import formula
from dgrr.tape.record import POSITIVE, F, Number, S, binary, constant, pointwise
from dgrr.tape.record.composed import Composed
from dgrr.tape.var.op_table import COMPOSED, OPS

from ..test_ops import PROPERTIES

LOG_TWO = math.log(2)


@overload
def squared_hinge_loss(x: Var[F, *S], t: Var[F, *S], margin: float = 1.0, reduction: Total = "mean") -> Var[F]: ...
@overload
def squared_hinge_loss(x: Var[F, *S], t: Var[F, *S], margin: float = 1.0, *, reduction: Each) -> Var[F, *S]: ...
@loss(
    lambda x, t, margin: np.where(x * t < margin, x.dtype.type(margin) - x * t, x.dtype.type(0)) ** 2,
    kinds={"margin": POSITIVE},
    settings=({"margin": 0.5},),
)
def squared_hinge_loss(x: Any, t: Any, margin: float) -> Any:
    """The mean of ``max(margin - t x, 0) ** 2``.

    Source: these tests.

    >>> squared_hinge_loss(Tape().leaf([0.0, 2.0]), [1.0, -1.0]).item()
    5.0
    """
    return square(relu(shift(neg(mul(x, t)), margin)))


@pointwise
def log_cosh(a: Number, b: Number) -> Number:
    """``ln(cosh(a - b))``."""
    size = abs(a - b)
    return (size + elementary.softplus(constant(size, -2.0) * size)) - constant(size, LOG_TWO)


@overload
def log_cosh_loss(a: Var[F, *S], b: Var[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def log_cosh_loss(a: Var[F, *S], b: Var[F, *S], reduction: Each) -> Var[F, *S]: ...
@loss(
    lambda a, b: (abs(a - b) + formula("softplus")(abs(a - b) * a.dtype.type(-2))) - a.dtype.type(LOG_TWO),
    mean=MeanOp(samples=binary, **of_formula(log_cosh), **of_difference(lambda a, b: tanh(sub(a, b)))),
)
def log_cosh_loss(a: Any, b: Any) -> Any:
    """The mean of ``ln(cosh(a - b))``.

    Source: these tests.

    >>> log_cosh_loss(Tape().leaf([0.0]), [0.0]).item()
    0.0
    """
    size: Any = absolute(sub(a, b))
    return shift(add(size, softplus(scale(size, -2.0))), -LOG_TWO)


MADE: dict[str, Composed] = {name: COMPOSED.pop(name) for name in ("squared_hinge_loss", "log_cosh_loss")}
MEAN = OPS.pop("log_cosh_loss")
del KERNELS["log_cosh"]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables with the losses of this file."""
    for name, record in MADE.items():
        monkeypatch.setitem(COMPOSED, name, record)
    monkeypatch.setitem(OPS, "log_cosh_loss", MEAN)


@pytest.mark.parametrize("record", [*MADE.values(), MEAN], ids=["terms", "terms beside an op", "mean"])
@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.usefixtures("listed")
def test_it_has_every_property(name: str, record: Any) -> None:
    PROPERTIES[name](record)


@pytest.mark.parametrize("name", MADE)
def test_it_takes_few_lines_beside_formula_and_docs(name: str) -> None:
    text = inspect.getsource(inspect.getmodule(log_cosh.body) or inspect)
    record = text[text.index(f"@overload\ndef {name}") :].partition("\n\n\n")[0]
    before, _, behind = record.split('"""')
    assert len([*before.rstrip().splitlines(), *behind.strip().splitlines()]) <= 12


@pytest.mark.usefixtures("listed")
def test_each_reduction_is_that_of_the_terms() -> None:
    a, b = np.array([0.0, 2.0, -3.0]), np.array([0.0, 0.5, 1.0])
    terms = [math.log(math.cosh(x - y)) for x, y in zip(a, b, strict=True)]
    x = Tape().leaf(a)
    assert log_cosh_loss(x, b, reduction="none").numpy() == pytest.approx(terms, abs=1e-15)
    assert log_cosh_loss(x, b, reduction="sum").item() == pytest.approx(sum(terms))
    assert log_cosh_loss(x, b).item() == pytest.approx(sum(terms) / 3)


@pytest.mark.usefixtures("listed")
def test_a_mean_that_is_an_op_is_one_node() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf([1.0, -1.0])
    made = log_cosh_loss(x, [0.0, 0.0])
    assert tape.node(made).op_name == "log_cosh_loss" and len(tape) == 3
    assert np.asarray(tape.backward_scalar(made)[x]) == pytest.approx([math.tanh(1) / 2, -math.tanh(1) / 2])


@pytest.mark.usefixtures("listed")
def test_what_it_refuses_follows() -> None:
    x = Tape().leaf([1.0, 2.0])
    with pytest.raises(DomainError, match="squared_hinge_loss: argument 'margin': expected a positive finite number"):
        squared_hinge_loss(x, x, -1.0)
    with pytest.raises(DomainError, match="'reduction': expected 'mean', 'sum' or 'none', got 'max'"):
        squared_hinge_loss(x, x, reduction="max")  # type: ignore[call-overload]
    with pytest.raises(ShapeError, match=r"squared_hinge_loss: argument 't': expected shape \(2,\), got \(3,\)"):
        squared_hinge_loss(x, np.zeros(3))  # type: ignore[call-overload]
    assert len(x.tape) == 1


@pytest.mark.parametrize(
    ("args", "named", "error", "text"),
    [
        (2, {"a": 0}, DTypeError, "mse_loss: multiple values for argument 'a'"),
        (1, {}, DTypeError, "mse_loss: missing a required argument: 'b'"),
        (4, {}, DTypeError, "mse_loss: "),
        (2, {"mean": 1}, DTypeError, "mse_loss: got an unexpected keyword argument 'mean'"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(args: int, named: Any, error: type[Exception], text: str) -> None:
    function: Any = ops.mse_loss
    x = Tape().leaf([1.0, 2.0])
    with pytest.raises(error, match=text):
        function(*[x] * args, **named)


def test_an_attribute_is_refused_in_its_place_as_by_its_name() -> None:
    function: Any = ops.huber_loss
    x = Tape().leaf([1.0, 2.0])
    with pytest.raises(DomainError, match="huber_loss: argument 'delta'"):
        function(x, x, -1.0)
    with pytest.raises(DomainError, match="huber_loss: argument 'reduction'"):
        function(x, x, 1.0, "max")


def test_its_docstring_says_what_its_author_did_not() -> None:
    text = " ".join((squared_hinge_loss.__doc__ or "").split())
    for part in (
        '``reduction="sum"`` adds the terms up, ``"none"`` gives them.',
        "Shapes: x (*S), t (*S) -> () x (*S), t (*S) -> (*S)",
        "margin or reduction does not fit, as in",
    ):
        assert part in text


def test_overloads_that_differ_in_the_result_alone_refuse_what_does_not_fit_an_input() -> None:
    refused = [bad.text for bad in MADE["squared_hinge_loss"].refused]
    for argument, expected in (("t", "expected shape"), ("t", "expected "), ("x", "expected "), ("margin", "expected")):
        assert any(f"argument {argument!r}: {expected}" in text for text in refused)


def entropy(x: float, t: float) -> float:
    """The cross-entropy of a logit, with logarithms of the standard library."""
    p = 1 / (1 + math.exp(-x))
    return -t * math.log(p) - (1 - t) * math.log(1 - p)


def huber(a: float, b: float) -> float:
    """Of delta 0.5."""
    return (a - b) ** 2 / 2 if abs(a - b) <= 0.5 else 0.5 * (abs(a - b) - 0.25)


@pytest.mark.parametrize(
    ("function", "attrs", "term"),
    [(ops.huber_loss, {"delta": 0.5}, huber), (ops.binary_cross_entropy_with_logits, {}, entropy)],
    ids=["huber", "logits"],
)
def test_formulas_of_means_have_a_truth_that_is_another_text(function: Any, attrs: Any, term: Any) -> None:
    a, b = np.linspace(-4, 4, 33), np.tile([0.0, 0.25, 1.0], 11)
    want = np.mean([term(x, y) for x, y in zip(a, b, strict=True)])
    assert function(Tape().leaf(a), b, **attrs).item() == pytest.approx(want, rel=1e-12)


LABELS = np.array([1, 0, 2])


@pytest.mark.parametrize(
    ("function", "beside"),
    [
        (ops.mse_loss, np.ones((3, 3))),
        (ops.huber_loss, np.ones((3, 3))),
        (ops.binary_cross_entropy_with_logits, np.full((3, 3), 0.25)),
        (ops.soft_cross_entropy, np.full((3, 3), 0.25)),
        (ops.cross_entropy, LABELS),
        (ops.nll_loss, LABELS),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_an_op_of_the_mean_gives_that_of_the_terms(function: Any, beside: Any) -> None:
    x = Tape().leaf(np.linspace(-2, 1.5, 9).reshape(3, 3))
    terms = function(x, beside, reduction="none").numpy()
    assert function(x, beside).item() == pytest.approx(terms.mean(), rel=1e-12)
