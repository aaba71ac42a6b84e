"""Triangular factors of matrices, and equations with triangular matrices."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...record.lowering import Slot, call, permuted
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, F, K, N, Operand
from ...values.spec import Spec
from ...var.var import Var
from ..elementwise.arithmetic import add, mul, neg, sub
from ..shape.reshape import swap_last
from . import reference
from .kernels import triangular as kernels
from .matmul import matmul
from .triangles import tril, triu


def _turned(x: Slot) -> Slot:
    """``x`` with its matrices transposed."""
    rank = x.spec.rank
    return permuted(x, (*range(rank - 2), rank - 1, rank - 2))


def _lower_cholesky(a: Slot) -> Slot:
    """The transpose of the upper factor of the transpose, whose rows the kernel makes one after the other."""
    turned, n = _turned(a), a.shape[-1]
    work = a.spec.size * n // 3
    return _turned(call(kernels.cholesky, [turned], turned.shape, prod(a.shape[:-2]), n, work=work))


def _half(x: Any) -> Any:
    """The lower triangle with half of the diagonal."""
    n = x.shape[-1]
    weights: Any = np.broadcast_to(np.ones(n, x.dtype) - np.eye(n, dtype=x.dtype) / 2, tuple(x.shape))
    return tril(mul(x, weights))


def _solved_twice(y: Any, x: Any, transpose: bool) -> Any:
    """``y⁻¹ (y⁻¹ x)ᵀ`` for a lower triangular y, or the same with yᵀ."""
    return solve_triangular(y, swap_last(solve_triangular(y, x, False, transpose)), False, transpose)


def _cholesky_vjp(g: Any, y: Any) -> Any:
    inner = _half(matmul(swap_last(y), tril(g)))
    return _half(_solved_twice(y, add(inner, swap_last(inner)), True))


def _cholesky_jvp(da: Any, y: Any) -> Any:
    symmetric = add(tril(da), swap_last(tril(da, -1)))
    return matmul(y, _half(_solved_twice(y, symmetric, False)))


def _definite(make: Make, *shape: int) -> Any:
    """Matrices whose diagonal outweighs the rest of each row; what stands above it is not read."""
    n = make.dtype.type(shape[-1])
    return make(*shape) + np.eye(shape[-1], dtype=make.dtype) * (n * make.dtype.type(2))


@op(
    lower=_lower_cholesky,
    vjp=(_cholesky_vjp,),
    jvp=_cholesky_jvp,
    reference=reference.cholesky,
    samples=lambda make: [
        Sample((_definite(make, 4, 4),)),
        Sample((_definite(make, 2, 3, 3),)),
        Sample((_definite(make, 19, 19).T,)),
        Sample((np.array([[[4, 9], [2, 1]], [[-1, 0], [1, 1]], [[4, 0], [np.nan, 1]], [[0, 0], [0, 0]]], make.dtype),)),
        Sample((make(0, 0),)),
    ],
    batch_axis={"a": -3},
)
def cholesky(a: Var[F, *Bs, N, N]) -> Var[F, *Bs, N, N]:
    """The lower triangular ``y`` with ``y @ y.T = a`` for a symmetric positive definite matrix, or for each of several.

    Only the lower triangle of ``a`` is read, and so the gradient is a lower triangle: of an element below the diagonal
    it is that of both places it stands for. (PyTorch gives half of it to each.) A matrix that is not positive definite
    gives NaN from the first pivot on that is not above 0, which is where the first NaN of the diagonal stands.

    Source: numpy.linalg.cholesky; derivatives by Murray (2016), Differentiation of the Cholesky decomposition.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cholesky(Tape().leaf([[4.0, 2.0], [2.0, 10.0]])).numpy()
    array([[2., 0.],
           [1., 3.]])
    """
    ...


def _lower_solve(a: Slot, b: Slot, upper: bool, transpose: bool, unitriangular: bool) -> Slot:
    *leading, n, columns = b.shape
    ints = (prod(leading), n, columns, int(upper != transpose), int(unitriangular))
    t = _turned(a) if transpose else a
    return call(kernels.solve_triangular, [t, b], b.shape, *ints, work=b.spec.size * n)


def _triangle(x: Any, upper: bool, unitriangular: bool) -> Any:
    """What is read of a matrix."""
    return triu(x, int(unitriangular)) if upper else tril(x, -int(unitriangular))


def _solve_vjp_a(g: Any, a: Any, y: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    h = solve_triangular(a, g, upper, not transpose, unitriangular)
    product = matmul(y, swap_last(h)) if transpose else matmul(h, swap_last(y))
    return neg(_triangle(product, upper, unitriangular))


def _solve_jvp(da: Any, db: Any, a: Any, y: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    part = _triangle(da, upper, unitriangular)
    moved = matmul(swap_last(part) if transpose else part, y)
    return solve_triangular(a, sub(db, moved), upper, transpose, unitriangular)


def _advice(a: Spec, b: Spec) -> str:
    return "a vector is one column, b[:, None]" if b.rank == 1 else ""


def _systems(make: Make) -> list[Sample]:
    def given(*shape: int) -> Any:
        return _definite(make, *shape, shape[-1])

    special = np.array([[2, np.nan], [1, 4]], make.dtype)
    return [
        Sample((given(3), make(3, 2)), {"upper": False}),
        Sample((given(2, 4), make(2, 4, 3)), {"upper": True}),
        Sample((given(19), make(19, 1)), {"upper": True, "transpose": True}),
        Sample((make(2, 3, 3), make(2, 3, 2)), {"upper": False, "transpose": True, "unitriangular": True}),
        Sample((special, make(2, 2)), {"upper": False}),
        Sample((make(0, 0), make(0, 2)), {"upper": False}),
    ]


@op(
    lower=_lower_solve,
    vjp=(
        _solve_vjp_a,
        lambda g, a, upper, transpose, unitriangular: solve_triangular(a, g, upper, not transpose, unitriangular),
    ),
    jvp=_solve_jvp,
    reference=reference.solve_triangular,
    samples=_systems,
    errors=(
        bad(
            ShapeError,
            "solve_triangular: argument 'b': expected shape (2, K), got (2,); a vector is one column, b[:, None]",
            (2, 2),
            (2,),
            upper=False,
        ),
    ),
    batch_axis={"a": -3, "b": -3},
    advice=_advice,
)
def solve_triangular(
    a: Operand[F, *Bs, N, N], b: Var[F, *Bs, N, K], upper: bool, transpose: bool = False, unitriangular: bool = False
) -> Var[F, *Bs, N, K]:
    """The x with ``a @ x = b`` for an upper or a lower triangular matrix, or for each of several.

    With ``transpose`` it is ``a.T @ x = b``, and ``upper`` says what a is, not a.T. Only that triangle of a is read;
    with ``unitriangular`` not its diagonal either, which is then 1. A zero on the diagonal divides. Positive definite
    equations are `cholesky` and `cholesky_solve`, others `solve`.

    Source: torch.linalg.solve_triangular, with the transpose of scipy.linalg.solve_triangular; derivatives by Giles
    (2008), Collected matrix derivative results for forward and reverse mode algorithmic differentiation.

    >>> from dgrr.tape import Tape, ops
    >>> ops.solve_triangular(Tape().leaf([[2.0, 0.0], [1.0, 4.0]]), [[2.0], [9.0]], upper=False).numpy()
    array([[1.],
           [2.]])
    """
    ...
