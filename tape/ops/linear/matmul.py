"""Matrix products."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...errors import DTypeError, ShapeError
from ...numerics.math.reference import sums as reference_sums
from ...numerics.sizes import Sizes
from ...record.lowering import Slot, permuted, reshaped, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, Constant, F, K, N, Operand, like
from ...values.spec import Spec
from ...var.method_types import typed_as
from ...var.var import Gradual, Var, product
from ..elementwise.arithmetic import add
from ..reduce.reduce import reduce_sum, sum_to
from ..shape.reshape import reshape, swap_last, transpose2d
from .lowering import gemm


def rows(x: Any) -> Any:
    """All axes but the last joined into one."""
    return x if len(x.shape) == 2 else reshape(x, (-1 if x.shape[-1] else int(np.prod(x.shape[:-1])), x.shape[-1]))


def _matrix(shape: Sizes, axis: int) -> Sizes:
    """The sizes of a vector as a matrix, which has an axis of 1 more there."""
    return shape if len(shape) > 1 else (1, *shape) if axis == 0 else (*shape, 1)


def _leading(a: Sizes, b: Sizes) -> Sizes:
    """The leading axes of a product. Raises ShapeError if they do not broadcast."""
    try:
        return np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ShapeError(
            f"matmul: argument 'b': expected leading axes that broadcast with {a[:-2]}, got shape {b}; "
            "sizes must be equal or 1, counted from the last"
        ) from None


def _infer(a: Spec, b: Spec) -> Spec:
    for name, x in (("a", a), ("b", b)):
        if not x.rank:
            raise ShapeError(f"matmul: argument {name!r}: expected a vector, a matrix or several, got shape ()")
    k = a.shape[-1]
    if b.shape[-2:][0] != k:
        wanted = f"({k},)" if b.rank == 1 else f"({'*Bs, ' if b.rank > 2 else ''}{k}, N)"
        raise ShapeError(f"matmul: argument 'b': expected shape {wanted}, got {b.shape}")
    return like(a, (*_leading(a.shape, b.shape), *a.shape[-2:-1], *(b.shape[-1:] if b.rank > 1 else ())))


def _lower(a: Slot, b: Slot) -> Slot:
    """Vectors as matrices, and leading axes repeated without being copied, unless one matrix is multiplied by all."""
    shape = _infer(a.spec, b.spec).shape
    left, right = _shaped(a, _matrix(a.shape, 0)), _shaped(b, _matrix(b.shape, 1))
    if right.spec.rank > 2:
        leading = _leading(left.shape, right.shape)
        left, right = _repeated(left, leading), _repeated(right, leading)
    return _shaped(gemm(left, right), shape)


def _shaped(x: Slot, shape: Sizes) -> Slot:
    """What has the shape is left where it lies: a view of it might be copied."""
    return x if x.shape == shape else reshaped(x, shape)


def _repeated(x: Slot, leading: Sizes) -> Slot:
    shape = (*leading, *x.shape[-2:])
    return x if x.shape == shape else view("broadcast_to", x, shape, lambda a: np.broadcast_to(a, shape))


def _as(x: Any, shape: Sizes) -> Any:
    return x if tuple(x.shape) == shape else reshape(x, shape)


def _matrices_of(g: Any, a: Sizes, b: Sizes) -> Any:
    """The cotangent of a product of these shapes as that of the product of matrices."""
    a, b = _matrix(a, 0), _matrix(b, 1)
    return _as(g, (*_leading(a, b), a[-2], b[-1]))


def _summed(g: Any, matrices: Sizes) -> Any:
    """The sum over the leading axes along which matrices of this shape were repeated."""
    return g if tuple(g.shape) == matrices else sum_to(g, matrices)


def _matmul_vjp_a(g: Any, b: Any, a_shape: Sizes, b_shape: Sizes) -> Any:
    if len(a_shape) == len(b_shape) == 2:
        return matmul(g, swap_last(b))
    right = _as(b, _matrix(b_shape, 1))
    product = matmul(_matrices_of(g, a_shape, b_shape), swap_last(right))
    return _as(_summed(product, _matrix(a_shape, 0)), a_shape)


def _matmul_vjp_b(g: Any, a: Any, a_shape: Sizes, b_shape: Sizes) -> Any:
    """Contracts over the rows of a: all its leading axes flattened where they share one b."""
    if len(a_shape) == len(b_shape) == 2:
        return matmul(transpose2d(a), g)
    left, given, matrices = _as(a, _matrix(a_shape, 0)), _matrices_of(g, a_shape, b_shape), _matrix(b_shape, 1)
    if len(matrices) == 2:
        return _as(matmul(transpose2d(rows(left)), rows(given)), b_shape)
    return _as(_summed(matmul(swap_last(left), given), matrices), b_shape)


def _reference(a: Array, b: Array) -> Array:
    left, right = a.reshape(_matrix(a.shape, 0)), b.reshape(_matrix(b.shape, 1))
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if right.ndim > 2:
        left, right = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (left, right))
    out = reference_sums.matmul(left, right)
    return out.reshape((*leading, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())))


def _matrices(make: Make) -> list[Sample]:
    shapes = [
        ((2, 3), (3, 4)), ((1, 1), (1, 1)), ((5, 300), (300, 3)), ((3, 7), (7, 70)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 2, 3, 4), (2, 2, 4, 2)),
    ]  # fmt: skip
    plain = [Sample((make(*a), make(*b))) for a, b in shapes]
    turned = [Sample((make(4, 3).T, make(5, 4).T)), Sample((make(4, 3, 2).T, make(2, 5, 4).swapaxes(1, 2)))]
    broadcast = [
        ((2, 3), (4, 3, 2)), ((2, 1, 3, 2), (1, 3, 2, 2)), ((3, 1, 2), (2, 3)), ((4,), (4,)), ((3, 2), (2,)),
        ((3,), (2, 3, 2)), ((0,), (0, 2)),
    ]  # fmt: skip
    return [*plain, *turned, *(Sample((make(*a), make(*b))) for a, b in broadcast)]


@typed_as(product)
@op(
    infer=_infer,
    lower=_lower,
    vjp=(_matmul_vjp_a, _matmul_vjp_b),
    jvp=lambda da, db, a, b: add(matmul(da, b), matmul(a, db)),
    reference=_reference,
    samples=_matrices,
    errors=(
        bad(ShapeError, "matmul: argument 'b': expected shape (3, N), got (4, 5)", (2, 3), (4, 5)),
        bad(ShapeError, "matmul: argument 'b': expected shape (*Bs, 3, N), got (2, 4, 5)", (2, 3), (2, 4, 5)),
        bad(ShapeError, "matmul: argument 'b': expected shape (3,), got (2,)", (3,), (2,)),
        bad(
            ShapeError,
            "matmul: argument 'b': expected leading axes that broadcast with (2,), got shape (3, 3, 4); "
            "sizes must be equal or 1, counted from the last",
            (2, 2, 3),
            (3, 3, 4),
        ),
        bad(ShapeError, "matmul: argument 'a': expected a vector, a matrix or several, got shape ()", (), (3, 2)),
    ),
    covers=("matmul", "bmm"),
    batch_axis={"a": -2},
)
def matmul(a: Gradual[F] | Constant, b: Gradual[F] | Constant) -> Gradual[F]:
    """The matrix product of the last two axes, for each index of the leading axes, which are broadcast.

    A vector on the left is a row and on the right a column, whose axis of 1 the result does not have. The gradient
    of what was repeated is the sum over its copies.

    Source: numpy.matmul.
    Shapes: a (*As, M, K) or (K,), b (*Bs, K, N) or (K,) -> (*Cs, M, N), Cs being As and Bs broadcast, without the
        M or N of a vector

    >>> from dgrr.tape import Tape, ops
    >>> ops.matmul(Tape().leaf([[1.0, 2.0]]), [[3.0], [4.0]]).numpy()
    array([[11.]])
    """
    ...


def _reference_linear(x: Array, w: Array, b: Array | None = None) -> Array:
    y = reference_sums.matmul(np.atleast_2d(x), w.T).reshape((*x.shape[:-1], len(w)))
    return y if b is None else y + b


def _linear_vjp_x(g: Any, w: Any) -> Any:
    return matmul(g, w) if len(g.shape) > 1 else reshape(matmul(rows(g), w), tuple(w.shape)[1:])


def _lower_linear(x: Slot, w: Slot, b: Slot | None) -> Slot:
    if x.spec.rank > 1:
        return gemm(x, permuted(w, (1, 0)), b)
    return reshaped(gemm(reshaped(x, (1, *x.shape)), permuted(w, (1, 0)), b), w.shape[:1])


def _linear_advice(x: Spec, w: Spec, b: Spec | None) -> str:
    """It is mostly x that does not fit its layer, where the names of the axes make it w."""
    if not x.shape or len(w.shape) != 2 or x.shape[-1] == w.shape[1] or x.dtype != w.dtype:
        return ""
    return f"the last axis of x is {x.shape[-1]}, and w takes {w.shape[1]}"


@overload
def linear(x: Var[F, *Bs, K], w: Var[F, N, K], b: Operand[F, N] | None = None) -> Var[F, *Bs, N]: ...
@overload
def linear(x: Constant, w: Gradual[F], b: Gradual[F] | Constant | None = None) -> Gradual[F]: ...
@overload
def linear(x: Gradual[F], w: Constant, b: Gradual[F] | Constant | None = None) -> Gradual[F]: ...
@op(
    lower=_lower_linear,
    vjp=(
        _linear_vjp_x,
        lambda g, x: matmul(transpose2d(rows(g)), rows(x)),
        lambda g: reduce_sum(rows(g), 0),
    ),
    jvp=lambda dx, dw, db, x, w: add(linear(dx, w), linear(x, dw, db)),
    reference=_reference_linear,
    samples=lambda make: [
        Sample((make(5, 3), make(4, 3), make(4))),
        Sample((make(5, 3), make(4, 3), None)),
        Sample((make(2, 5, 3), make(4, 3), make(4))),
        Sample((make(2, 300), make(70, 300), make(70))),
        Sample((make(0, 3), make(4, 3), make(4))),
        Sample((make(3, 5).T, make(3, 4).T, make(4))),
        Sample((make(3), make(4, 3), make(4))),
        Sample((make(0), make(4, 0), None)),
    ],
    errors=(
        bad(ShapeError, "got (4, 2); the last axis of x is 3, and w takes 2", (5, 3), (4, 2), (4,)),
        bad(DTypeError, "got int64; convert with ops.cast, images", np.zeros((5, 2), np.int64), (4, 3), (4,)),
    ),
    covers=("linear",),
    batch_axis={"x": -2},
    advice=_linear_advice,
)
def linear(x: Operand[F, *Bs, K], w: Operand[F, N, K], b: Operand[F, N] | None = None) -> Var[F, *Bs, N]:
    """``x @ w.T + b``: w is (out, in); the bias is optional.

    Source: torch.nn.functional.linear.

    >>> from dgrr.tape import Tape, ops
    >>> ops.linear(Tape().leaf([1.0, 2.0]), [[3.0, 4.0]], [0.5]).numpy()
    array([11.5])
    """
    ...
