"""Records of composed functions: what a function must have, how it refuses, and that the properties see its faults."""

# The functions of records come in many shapes.
# mypy: disable-error-code="empty-body"
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import count
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import CaptureError
from dgrr.tape import AnyTensor, DTypeError, ShapeError, Tape, TapeError, Var, ops
from dgrr.tape.record.composed import Composed, composed, fitted
from dgrr.tape.record.op_decorator import op
from dgrr.tape.record.samples import Make, Sample, bad
from dgrr.tape.record.types import F, N, S
from dgrr.tape.var.op_table import COMPOSED, OPS

from ..ops.test_ops import PROPERTIES
from .test_half_defined import SQUARE

pytestmark = pytest.mark.quick

Fields = dict[str, Any]


def blend(a: Var[F, *S, N], weight: float, b: Var[F, *S, N], bias: Var[F, N] | None = None) -> Var[F, *S, N]:
    """``a * weight + b * b``, plus a bias.

    Source: these tests.

    >>> 1 + 1
    2
    """
    a, b, bias = fitted("blend", a, b, bias)
    total = ops.add(ops.scale(a, weight), ops.mul(b, b))
    return total if bias is None else ops.add(total, ops.broadcast_to(bias, tuple(total.shape)))


def reference(a: Any, b: Any, bias: Any = None, *, weight: float) -> Any:
    total = a * a.dtype.type(weight) + b * b
    return total if bias is None else total + bias


def samples(make: Make) -> list[Sample]:
    return [
        Sample((make(3, 2), make(3, 2)), {"weight": 0.3}),
        Sample((make(3, 2), make(3, 2), make(2)), {"weight": -2.0}),
        Sample((make(0, 2), make(0, 2), make(2)), {"weight": 1.0}),
    ]


HEALTHY: Fields = {
    "reference": reference,
    "samples": samples,
    "errors": (
        bad(ShapeError, "blend: argument 'b': expected shape (2, 3), got (3, 2)", (2, 3), (3, 2), weight=1.0),
        bad(ShapeError, "argument 'bias': expected shape (3,), got (2,)", (2, 3), (2, 3), (2,), weight=1.0),
        bad(DTypeError, "argument 'b': expected float32, got float64", (2,), np.zeros(2), weight=1.0),
        bad(DTypeError, "argument 'b': expected a Var, a tensor or an array, got NoneType", (2,), None, weight=1.0),
    ),
    "batch_axis": {"a": -2, "b": -2},
}


@pytest.fixture
def listed() -> Iterator[Callable[..., Composed]]:
    """Makes records that the table keeps for one test."""

    def make(function: Callable[..., Any] = blend, **change: Any) -> Composed:
        assert composed(**{**HEALTHY, **change})(function).__wrapped__ is function  # type: ignore[attr-defined]
        return COMPOSED[function.__name__]

    yield make
    COMPOSED.pop("blend", None)


@pytest.mark.parametrize("name", PROPERTIES)
def test_unchanged_function_has_every_property(name: str, listed: Callable[..., Composed]) -> None:
    PROPERTIES[name](listed())


def called_blend(function: Callable[..., Any]) -> Callable[..., Any]:
    """Another body under the name, the annotations and the docstring of ``blend``."""
    return wraps(blend)(function)


@called_blend
def late(a: Any, weight: float, b: Any, bias: Any = None) -> Any:
    ops.scale(a, weight)
    return blend(a, weight, b, bias)


@called_blend
def detached(a: Any, weight: float, b: Any, bias: Any = None) -> Any:
    return blend(a, weight, b.tape.const(b.value) if isinstance(b, Var) else b, bias)


@called_blend
def averaged(a: Any, weight: float, b: Any, bias: Any = None) -> Any:
    return ops.scale(blend(a, weight, b, bias), 1.0 / max(1, a.shape[0]))


@called_blend
def restless(a: Any, weight: float, b: Any, bias: Any = None) -> Any:
    return ops.scale(blend(a, weight, b, bias), float(next(CALLS)))


CALLS = count(1)

MUTANTS: list[tuple[str, Callable[..., Any], Fields, str, str]] = [
    ("another reference", blend, {"reference": lambda a, b, *bias, weight: a + b}, "reference", "elements differ"),
    ("another result at each call", restless, {}, "threads", "elements differ"),
    ("another result at each call, captured", restless, {}, "captured", "behaves differently when it is called"),
    ("an error after the first op", late, {}, "errors", "the tape has grown by 1 nodes"),
    ("an error of another text", blend, {"errors": (bad(ShapeError, "no", (2, 3), (3, 2), weight=1.0),)}, "errors",
     "expected an error that says 'no'"),
    ("an input taken for a constant", detached, {}, "gradient", "no gradient arrives at input 1"),
    ("an input taken for a constant, of several", detached, {}, "masks", "requires_grad of the result"),
    ("another gradient at each call", restless, {}, "second order", "recorded gradient of input 0"),
    ("a result that depends on the batch's size", averaged, {}, "batch", "row 0 alone"),
    ("no batch axis and no excuse", blend, {"batch_axis": {}}, "batch", "gives no reason"),
    ("a name that an op covers", blend, {"covers": ("relu",)}, "documentation", "are covered twice"),
    ("an excuse without a reason", blend, {"excused": {"batch": ""}}, "documentation", "without a reason"),
]  # fmt: skip


@pytest.mark.parametrize("mutant", [pytest.param(m, id=m[0]) for m in MUTANTS])
def test_mutant_is_caught(mutant: Any, listed: Callable[..., Composed]) -> None:
    _, function, change, name, text = mutant
    with pytest.raises((AssertionError, CaptureError), match=text):
        PROPERTIES[name](listed(function, **change))


def test_a_name_that_a_composed_function_covers_is_covered_twice(listed: Callable[..., Composed]) -> None:
    listed(covers=("relu",))
    with pytest.raises(AssertionError, match="are covered twice"):
        PROPERTIES["documentation"](OPS["relu"])


def bare(x: Var[F, *S]) -> Var[F, *S]: ...


def relu(x: Var[F, *S]) -> Var[F, *S]:
    """A name that exists."""


HALF_DEFINED: list[tuple[str, Callable[..., Any], Fields, str]] = [
    ("no docstring", bare, HEALTHY, "composed function bare: a docstring is missing"),
    ("the name of an op", relu, HEALTHY, "composed function relu: an op of this name exists already"),
    *[(f"no {field}", blend, {k: v for k, v in HEALTHY.items() if k != field},
       f"composed() missing 1 required keyword-only argument: '{field}'") for field in ("reference", "samples")],
]  # fmt: skip


@pytest.mark.parametrize("half", [pytest.param(h, id=h[0]) for h in HALF_DEFINED])
def test_half_defined_function_is_refused(half: tuple[str, Callable[..., Any], Fields, str]) -> None:
    _, function, fields, text = half
    before = dict(COMPOSED)
    with pytest.raises(TypeError) as caught:
        composed(**fields)(function)
    assert text in str(caught.value)
    assert before == COMPOSED


def test_a_name_is_free_once(listed: Callable[..., Composed]) -> None:
    listed()
    with pytest.raises(TypeError, match="composed function blend: a composed function of this name exists already"):
        listed()
    with pytest.raises(TypeError, match="op blend: a composed function of this name exists already"):
        op(**SQUARE)(called_blend(lambda x: x))


def test_vars_of_two_tapes_are_refused_before_the_first_op(listed: Callable[..., Composed], tape: Tape[Any]) -> None:
    made = listed()
    a, other = tape.leaf(np.ones((2, 3))), Tape[Any]().leaf(np.ones((2, 3)))
    with pytest.raises(TapeError):
        made(a, other, weight=1.0)
    assert len(tape) == 1


def test_arrays_beside_a_var_are_constants(listed: Callable[..., Composed], tape: Tape[Any]) -> None:
    x = np.arange(6.0).reshape(2, 3)
    out = listed()(tape.leaf(x), x.tolist(), [1.0, 2.0, 3.0], weight=2.0)
    assert np.array_equal(out.numpy(), x * 2 + x * x + [1, 2, 3])


def test_arrays_alone_are_refused(listed: Callable[..., Composed]) -> None:
    with pytest.raises(TapeError, match="blend: expected a Var among the arguments; put an array on a tape"):
        listed()(np.ones(3), np.ones(3), weight=1.0)


def test_tensors_give_a_tensor(listed: Callable[..., Composed]) -> None:
    x = AnyTensor.leaf([[1.0, 2.0]])
    out: Any = listed()(x, x, weight=2.0)
    assert isinstance(out, AnyTensor)
    assert out.array.tolist() == [[3.0, 8.0]]


def test_the_table_keeps_none_of_these() -> None:
    assert "blend" not in COMPOSED
