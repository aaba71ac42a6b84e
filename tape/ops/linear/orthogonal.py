"""Factors of a matrix: an orthogonal and an upper triangular one."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any, cast

import numpy as np

from ...errors import ShapeError, TapeError
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.spec import Spec
from ...values.tensor import AnyTensor
from ...var.var import Gradual, Var, shape_of
from ..elementwise.arithmetic import add, sub
from ..shape.joining import append
from ..shape.padding import pad
from ..shape.reshape import swap_last
from ..shape.slicing import narrow
from . import reference
from .kernels import elimination as kernels
from .matmul import matmul
from .triangles import tril, triu
from .triangular import solve_triangular


def _infer(a: Spec) -> Spec:
    if a.rank < 2:
        raise ShapeError(f"reflections: argument 'a': expected a matrix, got shape {a.shape}")
    *leading, rows, columns = a.shape
    return like(a, (*leading, rows, min(rows, columns) + columns))


def _lower(a: Slot) -> Slot:
    *leading, rows, columns = a.shape
    least = min(rows, columns)
    work = prod(leading) * rows * columns * least * 2
    return call(kernels.reflections, [a], _infer(a.spec).shape, prod(leading), rows, columns, work=work)


def _parts(both: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """The orthogonal and the triangular one, which stand side by side."""
    least = min(rows, columns)
    return narrow(both, 0, least, -1), narrow(narrow(both, least, columns, -1), 0, least, -2)


def _side_by_side(q: Any, r: Any) -> Any:
    more = shape_of(q)[-2] - shape_of(r)[-2]
    widths = ((0, 0),) * (len(shape_of(q)) - 2) + ((0, more), (0, 0))
    return append(q, pad(r, widths) if more else r, -1)


def _divided(x: Any, r: Any, *, transpose: bool) -> Any:
    """``x r⁻¹``, or ``x r⁻ᵀ``."""
    return swap_last(solve_triangular(r, swap_last(x), True, not transpose))


def _tall_vjp(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    """Of as many rows as columns, or more."""
    m = sub(matmul(r, swap_last(triu(gr))), matmul(swap_last(gq), q))
    symmetric = cast(Any, add(tril(m), swap_last(tril(m, -1))))
    return _divided(add(gq, matmul(q, symmetric)), r, transpose=True)


def _vjp(g: Any, a: Any, y: Any) -> Any:
    rows, columns = shape_of(a)[-2:]
    (gq, gr), (q, r) = _parts(g, rows, columns), _parts(y, rows, columns)
    if rows >= columns:
        return _tall_vjp(gq, gr, q, r)
    more = columns - rows
    g_square, g_rest = narrow(gr, 0, rows, -1), narrow(gr, rows, more, -1)
    gq = add(gq, matmul(narrow(a, rows, more, -1), swap_last(g_rest)))
    return append(_tall_vjp(gq, g_square, q, narrow(r, 0, rows, -1)), matmul(q, g_rest), -1)


def _tall_jvp(da: Any, q: Any, r: Any) -> tuple[Any, Any]:
    moved = _divided(da, r, transpose=False)
    c = matmul(swap_last(q), moved)
    upper = cast(Any, add(triu(c), swap_last(tril(c, -1))))
    return sub(moved, matmul(q, upper)), matmul(upper, r)


def _jvp(da: Any, y: Any) -> Any:
    rows, columns = shape_of(da)[-2:]
    q, r = _parts(y, rows, columns)
    if rows >= columns:
        return _side_by_side(*_tall_jvp(da, q, r))
    more = columns - rows
    dq, square = _tall_jvp(narrow(da, 0, rows, -1), q, narrow(r, 0, rows, -1))
    rest = matmul(swap_last(q), sub(narrow(da, rows, more, -1), matmul(dq, narrow(r, rows, more, -1))))
    return append(append(dq, square, -1), rest, -1)


def _matrices(make: Make) -> list[Sample]:
    def heavy(*shape: int) -> Any:
        return make(*shape) + np.eye(*shape[-2:], dtype=make.dtype) * make.dtype.type(3)

    return [
        Sample((heavy(3, 3),)),
        Sample((heavy(2, 4, 3),)),
        Sample((heavy(2, 5),)),
        Sample((heavy(7, 6).T,)),
        Sample((make(0, 3),)),
        Sample((make(3, 0),)),
    ]


@op(
    infer=_infer,
    lower=_lower,
    vjp=(_vjp,),
    jvp=_jvp,
    reference=reference.reflections,
    samples=_matrices,
    errors=(bad(ShapeError, "reflections: argument 'a': expected a matrix, got shape (3,)", (3,)),),
    batch_axis={"a": -3},
    private=True,
)
def reflections(a: Gradual[F]) -> Gradual[F]:
    """The two factors of `qr` side by side, the triangular one above zeros."""
    ...


def qr(a: Any) -> tuple[Gradual[Any], Gradual[Any]]:
    """``(q, r)`` with ``q @ r = a``, q orthogonal and r upper triangular, of a matrix or of each of several.

    By Householder's reflections, with the signs of LAPACK: a diagonal element of r has the other sign than what it was
    made from. Derivatives need the first columns of a, as many as it has rows, to be independent.

    Source: torch.linalg.qr and numpy.linalg.qr, both reduced; derivatives by Walter, Lehmann and Lamour (2012), and
        by Liao, Liu, Wang and Xiang (2019).
    Shapes: a (*Bs, M, N) -> (*Bs, M, K) and (*Bs, K, N), K the smaller of M and N
    Dtypes: a and the factors float32 or float64, alike.
    Raises:
        ShapeError: a has fewer than two axes.
        DTypeError: a holds no floats.
        TapeError: a is no Var or tensor.

    >>> from dgrr.tape import Tape, ops
    >>> q, r = ops.qr(Tape().leaf([[3.0, 1.0], [4.0, 2.0]]))
    >>> q.numpy().round(2), r.numpy().round(2)
    (array([[-0.6, -0.8],
           [-0.8,  0.6]]), array([[-5. , -2.2],
           [ 0. ,  0.4]]))
    """
    given: Any = a
    if not isinstance(a, Var | AnyTensor):
        raise TapeError("qr: expected a Var among the arguments; put an array on a tape with tape.leaf")
    shape = shape_of(given)
    if len(shape) < 2:
        raise ShapeError(f"qr: argument 'a': expected a matrix, got shape {shape}")
    return _parts(reflections(given), *shape[-2:])
