"""A half-defined op fails when it is made, which is at import, and says what is missing."""

# The functions of ops have no body.
# mypy: disable-error-code="empty-body"
from collections.abc import Callable
from typing import Any

import pytest

from dgrr.tape import Var, ops
from dgrr.tape.ops.elementwise.kernels import basic as kernels
from dgrr.tape.record.derivative import NO_GRAD
from dgrr.tape.record.lowering import elementwise
from dgrr.tape.record.op_decorator import op
from dgrr.tape.record.samples import unary
from dgrr.tape.record.types import F, S
from dgrr.tape.var.op_table import OPS

pytestmark = pytest.mark.quick

Fields = dict[str, Any]

SQUARE: Fields = {
    "lower": lambda x: elementwise(kernels.mul, x, x),
    "vjp": (lambda g, x: ops.scale(ops.mul(g, x), 2.0),),
    "jvp": lambda dx, x: ops.scale(ops.mul(dx, x), 2.0),
    "reference": lambda x: x * x,
    "samples": unary(),
}


def half_square(x: Var[F, *S]) -> Var[F, *S]:
    """``x * x``."""


def half_product(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``a * b``."""


def half_bare(x: Var[F, *S]) -> Var[F, *S]: ...


def half_undecided(x: Var[F, *S]) -> Var[F, *tuple[Any, ...]]:
    """Its annotations do not say which shape results."""


def half_ordered(number: float, x: Var[F, *S]) -> Var[F, *S]:
    """An attribute before an input."""


def relu(x: Var[F, *S]) -> Var[F, *S]:
    """A name that exists."""


HALF_DEFINED: list[tuple[str, Callable[..., Any], Fields, str]] = [
    ("no docstring", half_bare, SQUARE, "op half_bare: a docstring is missing"),
    ("too few VJPs", half_product, {**SQUARE, "vjp": (lambda g: g,)},
     "op half_product: 2 inputs need as many VJPs, got 1; NO_GRAD says none"),
    ("too many VJPs", half_square, {**SQUARE, "vjp": (NO_GRAD, NO_GRAD)},
     "op half_square: 1 inputs need as many VJPs, got 2"),
    ("an unknown name in a VJP", half_square, {**SQUARE, "vjp": (lambda g, z: g,)},
     "op half_square: a derivative takes 'z'; it may take y, x, x_shape, g"),
    ("an unknown name in the JVP", half_square, {**SQUARE, "jvp": lambda g: g},
     "op half_square: a derivative takes 'g'; it may take y, x, x_shape, dx"),
    ("a shape that nothing decides", half_undecided, SQUARE,
     "op half_undecided: the annotations do not decide the result's shape; give infer="),
    ("an attribute before an input", half_ordered, SQUARE,
     "op half_ordered: inputs must come before attributes, got number, x"),
    ("a name that exists", relu, SQUARE, "op relu: an op of this name exists already"),
    *[(f"no {field}", half_square, {k: v for k, v in SQUARE.items() if k != field},
       f"op() missing 1 required keyword-only argument: '{field}'")
      for field in ("lower", "reference", "samples")],
    *[(f"no {field}", half_square, {k: v for k, v in SQUARE.items() if k != field},
       "op half_square: expected along=, or vjp= and jvp=")
      for field in ("vjp", "jvp")],
]  # fmt: skip


@pytest.mark.parametrize("half", [pytest.param(h, id=h[0]) for h in HALF_DEFINED])
def test_half_defined_op_is_refused(half: tuple[str, Callable[..., Any], Fields, str]) -> None:
    _, function, fields, text = half
    before = dict(OPS)
    with pytest.raises(TypeError) as caught:
        op(**fields)(function)
    assert text in str(caught.value)
    assert before == OPS


def test_the_whole_record_is_accepted() -> None:
    op(**SQUARE)(half_square)
    assert OPS.pop("half_square").doc == "``x * x``."
