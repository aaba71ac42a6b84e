"""Singular values and vectors of a matrix."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError, TapeError
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.spec import Spec
from ...values.tensor import AnyTensor
from ...var.var import Gradual, Var, shape_of
from ..elementwise.arithmetic import add, div, mul, sub
from ..elementwise.select import equal, where
from ..reduce.reduce import broadcast_to
from ..shape.joining import append
from ..shape.reshape import reshape, swap_last
from ..shape.slicing import narrow
from . import reference
from .kernels import rotations as kernels
from .matmul import matmul
from .triangles import diagonal


def _infer(a: Spec) -> Spec:
    if a.rank < 2:
        raise ShapeError(f"rotations: argument 'a': expected a matrix, got shape {a.shape}")
    *leading, rows, columns = a.shape
    return like(a, (*leading, min(rows, columns), rows + columns + 1))


def _lower(a: Slot) -> Slot:
    *leading, rows, columns = a.shape
    least = min(rows, columns)
    work = prod(leading) * least * least * (rows + columns) * 8
    return call(kernels.rotations, [a], _infer(a.spec).shape, prod(leading), rows, columns, work=work)


def _parts(both: Any, rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Left vectors, values as one column, right vectors: a row for each."""
    return (
        narrow(both, 0, rows, -1),
        narrow(both, rows + columns, 1, -1),
        narrow(both, rows, columns, -1),
    )


def _joined(u: Any, s: Any, v: Any) -> Any:
    return append(append(u, v, -1), s, -1)


def _inverse(x: Any) -> Any:
    """``1 / x`` of each element, 0 of 0: what has no derivative is taken as still."""
    zero: Any = 0
    one: Any = 1
    lost = equal(x, zero)
    return where(lost, zero, div(one, where(lost, one, x)))


def _gaps(s: Any) -> Any:
    """``1 / (s_i² - s_j²)`` of each pair of values, 0 of equal ones."""
    *leading, n, _ = shape_of(s)
    down = broadcast_to(s, (*leading, n, n))
    across = swap_last(down)
    return _inverse(mul(sub(down, across), add(down, across)))


def _across(x: Any, s: Any) -> Any:
    """Each row of x by its value."""
    return mul(x, broadcast_to(s, shape_of(x)))


def _rest(x: Any, vectors: Any) -> Any:
    """Rows of x less what lies along the vectors."""
    return sub(x, matmul(matmul(x, swap_last(vectors)), vectors))


def _inner(g: Any, vectors: Any, gaps: Any) -> Any:
    """How a cotangent of vectors turns them against each other."""
    turned = matmul(g, swap_last(vectors))
    return mul(sub(turned, swap_last(turned)), gaps)


def _on_diagonal(s: Any) -> Any:
    """A column of values as a diagonal matrix."""
    *leading, n, _ = shape_of(s)
    zero: Any = 0
    return where(np.broadcast_to(np.eye(n, dtype=bool), (*leading, n, n)), broadcast_to(s, (*leading, n, n)), zero)


def _vjp(g: Any, a: Any, y: Any) -> Any:
    rows, columns = shape_of(a)[-2:]
    (gu, gs, gv), (u, s, v) = _parts(g, rows, columns), _parts(y, rows, columns)
    gaps, inverse = _gaps(s), _inverse(s)
    left = swap_last(_across(swap_last(_inner(gu, u, gaps)), s))
    middle = add(add(left, _across(_inner(gv, v, gaps), s)), _on_diagonal(gs))
    found = matmul(matmul(swap_last(u), middle), v)
    if rows > columns:
        found = add(found, matmul(swap_last(_across(_rest(gu, u), inverse)), v))
    if columns > rows:
        found = add(found, matmul(swap_last(u), _across(_rest(gv, v), inverse)))
    return found


def _jvp(da: Any, y: Any) -> Any:
    rows, columns = shape_of(da)[-2:]
    u, s, v = _parts(y, rows, columns)
    p = matmul(matmul(u, da), swap_last(v))
    gaps, inverse = _gaps(s), _inverse(s)
    by_column = swap_last(_across(swap_last(p), s))
    by_row = _across(p, s)
    du = matmul(mul(add(by_column, swap_last(by_column)), gaps), u)
    dv = matmul(mul(add(by_row, swap_last(by_row)), gaps), v)
    if rows > columns:
        du = add(du, _across(_rest(swap_last(matmul(da, swap_last(v))), u), inverse))
    if columns > rows:
        dv = add(dv, _across(_rest(matmul(u, da), v), inverse))
    ds = reshape(diagonal(p, 0, -2, -1), shape_of(s))
    return _joined(du, ds, dv)


def _matrices(make: Make) -> list[Sample]:
    def apart(*shape: int) -> Any:
        """Matrices with singular values that are apart."""
        least = min(shape[-2:])
        heavy = np.zeros(shape[-2:], make.dtype)
        heavy[range(least), range(least)] = 4 * np.arange(1, least + 1)
        return make(*shape) + heavy

    return [
        Sample((apart(3, 3),)),
        Sample((apart(2, 4, 3),)),
        Sample((apart(2, 4),)),
        Sample((apart(6, 5).T,)),
        Sample((make(1, 3),)),
        Sample((make(0, 3),)),
        Sample((make(3, 0),)),
    ]


@op(
    infer=_infer,
    lower=_lower,
    vjp=(_vjp,),
    jvp=_jvp,
    reference=reference.rotations,
    samples=_matrices,
    errors=(bad(ShapeError, "rotations: argument 'a': expected a matrix, got shape (3,)", (3,)),),
    batch_axis={"a": -3},
    private=True,
)
def rotations(a: Gradual[F]) -> Gradual[F]:
    """Of each singular value of `svd`, the largest first, its left vector, its right one, and itself, in a row."""
    ...


def svd(a: Any) -> tuple[Gradual[Any], Gradual[Any], Gradual[Any]]:
    """``(u, s, vh)`` with ``(u * s) @ vh = a``: singular values, which descend, and vectors of a matrix or of several.

    The columns of u and the rows of vh are at right angles and of length 1, also where a value is 0. By one-sided
    rotations of pairs in a fixed order, until none is needed: no LAPACK, the same bits everywhere. Of a pair of vectors
    the sign is that which the rotations give. A value below 2⁻³⁰ (float32) or 2⁻¹⁰⁰ (float64) of all together is 0.

    The gradient of s is always there. Vectors have derivatives where their values differ: of equal values, and where a
    value of 0 would divide, they are taken as still.

    Source: torch.linalg.svd and numpy.linalg.svd, both with ``full_matrices=False``; rotations by Hestenes (1958);
        derivatives by Townsend (2016), Differentiating the singular value decomposition.
    Shapes: a (*Bs, M, N) -> (*Bs, M, K), (*Bs, K) and (*Bs, K, N), K the smaller of M and N
    Dtypes: a and the factors float32 or float64, alike.
    Raises:
        ShapeError: a has fewer than two axes.
        DTypeError: a holds no floats.
        TapeError: a is no Var or tensor.

    >>> from dgrr.tape import Tape, ops
    >>> u, s, vh = ops.svd(Tape().leaf([[3.0, 0.0], [4.0, 5.0]]))
    >>> s.numpy().round(3), (u * s @ vh).numpy().round(3)
    (array([6.708, 2.236]), array([[3., 0.],
           [4., 5.]]))
    """
    given: Any = a
    if not isinstance(a, Var | AnyTensor):
        raise TapeError("svd: expected a Var among the arguments; put an array on a tape with tape.leaf")
    shape = shape_of(given)
    if len(shape) < 2:
        raise ShapeError(f"svd: argument 'a': expected a matrix, got shape {shape}")
    u, s, v = _parts(rotations(given), *shape[-2:])
    return swap_last(u), reshape(s, shape_of(s)[:-1]), v
