"""The tests of the tests: ops that are wrong in one way each, and the property that must notice.

Each mutant is a healthy op with one field of its record changed. None stays in the table of ops or kernels.
"""

# numba's kernels carry no types, and the functions of ops have no body.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,call-arg,var-annotated,empty-body"
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dgrr.tape import AnyTensor, DTypeError, GradientError, ShapeError, Var, ops
from dgrr.tape.numerics.basic import arithmetic
from dgrr.tape.numerics.engine.intrinsics import real, word
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel, kernel, share, vector
from dgrr.tape.numerics.math.reference import sums as reference_sums
from dgrr.tape.numerics.simd import sums
from dgrr.tape.ops.elementwise.kernels import basic as kernels
from dgrr.tape.record.derivative import NO_GRAD, Derivative
from dgrr.tape.record.lowering import Slot, call, elementwise, view
from dgrr.tape.record.op import Op
from dgrr.tape.record.op_decorator import op
from dgrr.tape.record.samples import Sample, bad, binary, unary
from dgrr.tape.record.types import F, S
from dgrr.tape.values.spec import Spec
from dgrr.tape.var.op_table import OPS

from .properties.captured import CAPTURED
from .properties.forward import FORWARD
from .properties.gradients import GRADIENTS
from .properties.masks import MASKS
from .properties.record import RECORD
from .properties.third_order import THIRD_ORDER

PROPERTIES = {**FORWARD, **GRADIENTS, **MASKS, **THIRD_ORDER, **RECORD, **CAPTURED}
Fields = dict[str, Any]


def unlisted_kernel(body: Any) -> Kernel:
    """A kernel that the table does not keep."""
    made = kernel(body)
    del KERNELS[made.name]
    return made


def unlisted(function: Callable[..., Any], fields: Fields) -> Op:
    """An op that the table does not keep."""
    op(**fields)(function)
    return OPS.pop(function.__name__)


@unlisted_kernel
def mutant_all_but_last(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    for i in range(n - 1):
        out[i] = x[i] * x[i]
    return 0


@unlisted_kernel
def mutant_clears_first(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    out[:] = real(table, 0.0)
    for i in range(n):
        out[i] = x[i] * x[i]
    return 0


@unlisted_kernel
def mutant_overwrites_input(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    for i in range(n):
        square = x[i] * x[i]
        x[i] = real(table, 0.0)
        out[i] = square
    return 0


@unlisted_kernel
def mutant_sees_its_share(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    for i in range(n):
        out[i] = x[i] * x[i] + real(table, start)
    return 0


@unlisted_kernel
def mutant_left_to_right(table, ints, part, parts):
    _, mine = share(1, part, parts)
    n, total = word(ints, 1), real(table, 0.0)
    if mine:
        x = vector(table, 1, 0, n)
        for i in range(n):
            total += x[i]
        vector(table, 0, 0, 1)[0] = total
    return 0


def mutant_square(x: Var[F, *S]) -> Var[F, *S]:
    """``x * x``.

    Source: these tests.

    >>> 1 + 1
    2
    """


def mutant_product(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``a * b``.

    Source: these tests.

    >>> 1 + 1
    2
    """


def mutant_total(x: Var[F, *tuple[Any, ...]]) -> Var[F, *tuple[Any, ...]]:
    """The sum of all elements.

    Source: these tests.
    Shapes: x (...) -> ()

    >>> 1 + 1
    2
    """


def slope_of_square(g: Any, x: Any) -> Any:
    return ops.scale(ops.mul(g, x), 2.0)


def squared(made: Kernel) -> Callable[[Slot], Slot]:
    return lambda x: elementwise(made, x)


def total(made: Kernel, shape: tuple[int, ...] = ()) -> Callable[[Slot], Slot]:
    return lambda x: call(made, [x], shape, 1, x.spec.size)


SQUARE: Fields = {
    "lower": lambda x: elementwise(kernels.mul, x, x),
    "vjp": (slope_of_square,),
    "jvp": lambda dx, x: slope_of_square(dx, x),
    "reference": lambda x: x * x,
    "samples": unary((0.0, -0.0, np.inf, np.nan, 1e-40)),
    "errors": (bad(DTypeError, "argument 'x': expected float32 or float64, got int64", np.arange(3)),),
    "batch_axis": {"x": 0},
}
PRODUCT: Fields = {
    "lower": lambda a, b: elementwise(kernels.mul, a, b),
    "vjp": (lambda g, b: ops.mul(g, b), lambda g, a: ops.mul(g, a)),
    "jvp": lambda da, db, a, b: ops.add(ops.mul(da, b), ops.mul(a, db)),
    "reference": lambda a, b: a * b,
    "samples": binary,
    "errors": (bad(ShapeError, "argument 'b': expected shape (2,), got (3,)", (2,), (3,)),),
    "batch_axis": {"a": 0, "b": 0},
}
TOTAL: Fields = {
    "infer": lambda x: Spec((), x.dtype),
    "lower": total(sums.sum_rows),
    "vjp": (lambda g, x_shape: ops.broadcast_to(g, x_shape),),
    "jvp": lambda dx: ops.reduce_sum(dx),
    "reference": reference_sums.reduce_sum,
    "samples": lambda make: [Sample((make(37),)), Sample((make(3, 50),))],
    "errors": (bad(DTypeError, "argument 'x': expected float32 or float64, got int64", np.arange(3)),),
    "excused": {"batch": "the batch is summed"},
}
HEALTHY: dict[Callable[..., Any], Fields] = {
    mutant_square: SQUARE,
    mutant_product: PRODUCT,
    mutant_total: TOTAL,
}


@pytest.mark.parametrize("function", HEALTHY)
@pytest.mark.parametrize("name", PROPERTIES)
def test_unchanged_op_has_every_property(name: str, function: Callable[..., Any]) -> None:
    PROPERTIES[name](unlisted(function, HEALTHY[function]))


def frozen(x: Any) -> Any:
    """A copy of a Var that differentiates as a constant."""
    return x.tape.const(x.value) if isinstance(x, Var) else x


def memory_order(x: Slot) -> Slot:
    """Elements taken in the order of memory instead of row-major order."""
    return view("flat", x, x.shape, lambda a: a.ravel("K").reshape(a.shape))


def add_number(x: Any, number: float) -> Any:
    return AnyTensor(np.asarray(x.array + x.dtype.type(number))) if isinstance(x, AnyTensor) else x + number


MUTANTS: list[tuple[str, Callable[..., Any], Fields, str, type[Exception], str]] = [
    ("a factor of 1.0005 in the VJP", mutant_square,
     {"vjp": (lambda g, x: ops.scale(ops.mul(g, x), 2.001),)},
     "gradient", AssertionError, "slope along input 0: analytic"),
    ("a constant added in the VJP", mutant_square,
     {"vjp": (lambda g, x: add_number(slope_of_square(g, x), 1e-4),)},
     "gradient", AssertionError, "slope along input 0: analytic"),
    ("swapped VJPs", mutant_product,
     {"vjp": (lambda g, a: ops.mul(g, a), lambda g, b: ops.mul(g, b))},
     "gradient", AssertionError, "slope along input 0: analytic"),
    ("the second VJP is wrong", mutant_product,
     {"vjp": (lambda g, b: ops.mul(g, b), lambda g, a: ops.scale(ops.mul(g, a), -1.0))},
     "gradient", AssertionError, "slope along input 1: analytic"),
    ("NO_GRAD for an input that matters", mutant_product,
     {"vjp": (lambda g, b: ops.mul(g, b), NO_GRAD)},
     "gradient", AssertionError, "slope along input 1: analytic 0.0"),
    ("NO_GRAD for a differentiable op", mutant_square, {"vjp": NO_GRAD, "jvp": NO_GRAD},
     "gradient", AssertionError, "slope along input 0: analytic 0.0"),
    ("a VJP without a JVP", mutant_square, {"jvp": NO_GRAD},
     "adjoint", AssertionError, "VJPs and JVP must exist together"),
    ("the wrong JVP", mutant_square, {"jvp": lambda dx, x: ops.mul(dx, x)}, "adjoint", AssertionError, "<Jv, u> = "),
    ("a JVP that is off by one part in 10**9", mutant_square,
     {"jvp": lambda dx, x: ops.scale(ops.mul(dx, x), 2.0 + 2e-9)}, "adjoint", AssertionError, "<Jv, u> = "),
    ("a VJP of the wrong shape", mutant_square, {"vjp": (lambda g, x: ops.reduce_sum(slope_of_square(g, x)),)},
     "gradient", GradientError, "its VJP for parent 0 must return float64 of shape"),
    ("a VJP of the wrong dtype", mutant_square,
     {"vjp": (lambda g, x: ops.cast(slope_of_square(g, x), np.float64),)},
     "masks", GradientError, "must return float32 of shape"),
    ("a VJP that takes its input for a constant", mutant_square,
     {"vjp": (lambda g, x: slope_of_square(g, frozen(x)),)}, "second order", AssertionError, "second order: analytic"),
    ("a VJP that takes its cotangent for a constant", mutant_square,
     {"vjp": (lambda g, x: slope_of_square(frozen(g), x),)}, "second order", AssertionError, "second order: analytic"),
    ("a recorded VJP of other bits", mutant_square,
     {"vjp": (lambda g, x: slope_of_square(g, x) if isinstance(x, AnyTensor) else g * (x + x) * (1 + 2**-52),)},
     "second order", AssertionError, "recorded gradient of input 0: "),
    ("a VJP that is wrong from the third derivative on", mutant_square,
     {"vjp": (lambda g, x: ops.add(slope_of_square(g, x), ops.mul(g, ops.square(ops.sub(x, frozen(x))))),)},
     "third order", AssertionError, "third order: analytic"),
    ("the last element is not written", mutant_square, {"lower": squared(mutant_all_but_last)},
     "junk", AssertionError, "elements differ"),
    ("an alias that is none", mutant_square, {"lower": squared(mutant_clears_first)},
     "aliases", AssertionError, "in the buffer of input 0: "),
    ("an input that is overwritten", mutant_square, {"lower": squared(mutant_overwrites_input)},
     "aliases", AssertionError, "input 0 was overwritten"),
    ("a result that depends on the share", mutant_square, {"lower": squared(mutant_sees_its_share)},
     "threads", AssertionError, "on 2 threads: "),
    ("a sum in another order", mutant_total, {"lower": total(mutant_left_to_right)},
     "reference", AssertionError, "elements differ"),
    ("elements in the order of memory", mutant_square,
     {"lower": lambda x: elementwise(kernels.mul, memory_order(x), x)},
     "strides", AssertionError, "inputs transposed: "),
    ("a result that depends on the batch's size", mutant_square,
     {"lower": lambda x: elementwise(kernels.scale, x, attrs=(float(x.spec.size),))},
     "batch", AssertionError, "row 0 alone: "),
    ("no batch axis and no excuse", mutant_square, {"batch_axis": {}},
     "batch", AssertionError, "gives no reason"),
    ("a batch axis that no sample has", mutant_square, {"samples": lambda make: [Sample((make(),))]},
     "batch", AssertionError, "no sample has a batch"),
    ("the wrong shape rule", mutant_total,
     {"infer": lambda x: Spec((1,), x.dtype), "lower": total(sums.sum_rows, (1,))},
     "reference", AssertionError, r"shape \(1,\), expected \(\)"),
    ("a shape rule that the lowering does not follow", mutant_total, {"infer": lambda x: Spec((1,), x.dtype)},
     "reference", ShapeError, "op mutant_total: its lowering gives"),
    ("the wrong dtype", mutant_total,
     {"infer": lambda x: Spec((), np.dtype(np.float64)),
      "lower": lambda x: elementwise(arithmetic.to_float64, total(sums.sum_rows)(x), dtype=np.dtype(np.float64))},
     "reference", AssertionError, "dtype float64, expected float32"),
    ("the wrong error text", mutant_square,
     {"errors": (bad(DTypeError, "argument 'x': expected float64", np.arange(3)),)},
     "errors", AssertionError, "expected an error that says"),
    ("the wrong kind of error", mutant_square,
     {"errors": (bad(ShapeError, "argument 'x'", np.arange(3)),)}, "errors", AssertionError, "expected ShapeError"),
    ("an error that does not come", mutant_square,
     {"errors": (bad(ShapeError, "argument 'x'", (3,)),)}, "errors", AssertionError, "accepted what must fail"),
    ("a name that another op covers", mutant_square, {"covers": ("relu",)},
     "documentation", AssertionError, "are covered twice"),
    ("other bits where it is recorded", mutant_square,
     {"vjp": (lambda g, x: slope_of_square(g, x) if isinstance(x, AnyTensor) else g * (x + x) * (1 + 2**-20),)},
     "captured", AssertionError, "first run: gradient of 0: "),
    ("another input overwritten in place", mutant_square, {"lower": squared(mutant_overwrites_input)},
     "captured", AssertionError, "elements differ"),
    ("a shape rule that the lowering does not follow, captured", mutant_total, {"infer": lambda x: Spec((1,), x.dtype)},
     "captured", ShapeError, "op mutant_total: its lowering gives"),
]  # fmt: skip


@pytest.mark.parametrize("mutant", [pytest.param(m, id=m[0]) for m in MUTANTS])
def test_mutant_is_caught(mutant: tuple[str, Callable[..., Any], Fields, str, type[Exception], str]) -> None:
    _, function, change, name, error, text = mutant
    record = unlisted(function, {**HEALTHY[function], **change})
    with pytest.raises(error, match=text):
        PROPERTIES[name](record)


def test_a_vjp_that_is_run_in_vain_is_caught() -> None:
    def all_rules(op: Op, g: Any, inputs: Any, output: Any, attrs: Any, needs: Any) -> Any:
        pulled = [rule(g, inputs, output, attrs) for rule in op.vjp if isinstance(rule, Derivative)]
        return [(i, contribution) for i, contribution in enumerate(pulled) if needs[i]]

    with (
        patch.object(Op, "pull", all_rules),
        pytest.raises(AssertionError, match=r"trainable \(False, True\): the VJPs of inputs \[0, 1\] were run"),
    ):
        PROPERTIES["masks"](unlisted(mutant_product, PRODUCT))


def test_every_property_catches_a_mutant() -> None:
    assert {mutant[3] for mutant in MUTANTS} == set(PROPERTIES)


def test_kernel_names_are_unique() -> None:
    with pytest.raises(ValueError, match="kernel 'relu' is defined twice"):
        kernel(KERNELS["relu"].body)
    assert isinstance(KERNELS["relu"], Kernel)


def test_mutants_leave_the_tables_alone() -> None:
    assert not [name for name in (*OPS, *KERNELS) if name.startswith("mutant_")]
