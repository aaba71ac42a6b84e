"""Equations of matrices: by elimination, and by a triangular factor that is known."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError, SingularMatrixError
from ...record.composed import composed, fitted
from ...record.lowering import Singular, Slot, call, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, F, K, N, Operand
from ...values.spec import Spec
from ...var.var import Var
from ..elementwise.arithmetic import neg, sub
from ..shape.reshape import swap_last
from . import reference
from .kernels import elimination as kernels
from .matmul import matmul
from .triangular import solve_triangular

SINGULAR = "expected matrices with an inverse, got one without, matrix {position}"


def _lower_solve(a: Slot, b: Slot) -> Slot:
    *leading, n, columns = b.shape
    said = Singular(f"solve: argument 'a': {SINGULAR}")
    shape = (*leading, n, n + columns)
    found = call(kernels.solve, [a, b], shape, prod(leading), n, columns, work=prod(shape) * n, refusal=said)
    return view("getitem", found, b.shape, lambda array: array[..., n:])


def _regular(make: Make, *shape: int) -> Array:
    """Matrices whose rows are those of one with a heavy diagonal, from the last to the first."""
    n = shape[-1]
    heavy: Array = make(*shape) + np.eye(n, dtype=make.dtype) * make.dtype.type(2 * n)
    return heavy[..., ::-1, :]


def _equations(make: Make) -> list[Sample]:
    lost = np.array([[1, 2], [np.nan, 1]], make.dtype)
    mixed = np.array([[[0, 2], [4, 0]], [[1, 1], [-1, 3]]], make.dtype)
    return [
        Sample((_regular(make, 3, 3), make(3, 2))),
        Sample((_regular(make, 2, 4, 4), make(2, 4, 3))),
        Sample((_regular(make, 19, 19), make(19, 1))),
        Sample((mixed, make(2, 2, 2))),
        Sample((lost, make(2, 1))),
        Sample((make(0, 0), make(0, 2))),
    ]


def _advice(a: Spec, b: Spec) -> str:
    return "a vector is one column, b[:, None]" if b.rank == 1 else ""


@op(
    lower=_lower_solve,
    vjp=(
        lambda g, a, y: neg(matmul(solve(swap_last(a), g), swap_last(y))),
        lambda g, a: solve(swap_last(a), g),
    ),
    jvp=lambda da, db, a, y: solve(a, sub(db, matmul(da, y))),
    reference=reference.solve,
    samples=_equations,
    errors=(
        bad(
            ShapeError,
            "solve: argument 'b': expected shape (2, K), got (2,); a vector is one column, b[:, None]",
            (2, 2),
            (2,),
        ),
        bad(
            SingularMatrixError,
            "solve: argument 'a': expected matrices with an inverse, got one without, matrix 1",
            np.array([[[1, 2], [3, 4]], [[1, 2], [2, 4]]], np.float32),
            (2, 2, 1),
        ),
    ),
    batch_axis={"a": -3, "b": -3},
    advice=_advice,
)
def solve(a: Operand[F, *Bs, N, N], b: Var[F, *Bs, N, K]) -> Var[F, *Bs, N, K]:
    """The x with ``a @ x = b`` for a square matrix, or for each of several.

    Rows are eliminated from the first column on, with the largest of its elements as the pivot, the first of equal
    ones. A column of zeros is an error; a matrix that is singular but for rounding gives large numbers.

    Source: torch.linalg.solve, numpy.linalg.solve; derivatives by Giles (2008), Collected matrix derivative results
    for forward and reverse mode algorithmic differentiation.

    >>> from dgrr.tape import Tape, ops
    >>> ops.solve(Tape().leaf([[0.0, 2.0], [4.0, 4.0]]), [[2.0], [8.0]]).numpy()
    array([[1.],
           [1.]])
    """
    ...


def _unit(a: Any) -> Any:
    return np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), tuple(a.shape))


@composed(
    reference=lambda a: reference.solve(a, _unit(a)),
    samples=lambda make: [Sample(s.arrays[:1]) for s in _equations(make)],
    batch_axis={"a": -3},
)
def inverse(a: Var[F, *Bs, N, N]) -> Var[F, *Bs, N, N]:
    """The inverse of a square matrix, or of each of several: `solve` for the unit matrix.

    To multiply something by it, `solve` takes half the time and is more exact. (`inv` is ``1 / x`` of each element.) A
    matrix without one is the error that `solve` has.

    Source: torch.inverse, numpy.linalg.inv.

    >>> from dgrr.tape import Tape, ops
    >>> ops.inverse(Tape().leaf([[0.0, 2.0], [4.0, 0.0]])).numpy()
    array([[0.  , 0.25],
           [0.5 , 0.  ]])
    """
    (a,) = fitted("inverse", a)
    made: Var[F, *Bs, N, N] = solve(a, _unit(a))
    return made


def _reference_cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    half = reference.solve_triangular(factor, b, upper, upper)
    return reference.solve_triangular(factor, half, upper, not upper)


def _factored(make: Make) -> list[Sample]:
    def factor(*shape: int) -> Array:
        made: Array = make(*shape, shape[-1]) + np.eye(shape[-1], dtype=make.dtype) * make.dtype.type(2 * shape[-1])
        return made

    return [
        Sample((make(3, 2), factor(3))),
        Sample((make(2, 4, 3), factor(2, 4)), {"upper": True}),
        Sample((make(0, 2), make(0, 0))),
    ]


@composed(reference=_reference_cholesky_solve, samples=_factored, batch_axis={"b": -3, "factor": -3})
def cholesky_solve(b: Var[F, *Bs, N, K], factor: Operand[F, *Bs, N, N], upper: bool = False) -> Var[F, *Bs, N, K]:
    """The x with ``a @ x = b`` for the a of which `cholesky` gave a factor: two triangular systems.

    With ``upper`` the factor is an upper triangle u with ``u.T @ u = a``. Only its triangle is read.

    Source: torch.cholesky_solve, whose arguments these are.

    >>> from dgrr.tape import Tape, ops
    >>> factor = ops.cholesky(Tape().leaf([[4.0, 2.0], [2.0, 10.0]]))
    >>> ops.cholesky_solve([[6.0], [12.0]], factor).numpy()
    array([[1.],
           [1.]])
    """
    b, factor = fitted("cholesky_solve", b, factor)
    half = solve_triangular(factor, b, upper, upper)
    return solve_triangular(factor, half, upper, not upper)
