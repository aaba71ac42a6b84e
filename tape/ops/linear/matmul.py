"""Matrix products."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any, overload

import numpy as np

from ....arrays import Array
from ...errors import DTypeError, ShapeError
from ...numerics.math import reference_sums
from ...record.lowering import Slot, permuted, reshaped
from ...record.op import op
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, F, K, M, N
from ...values.spec import Spec
from ...var.var import AnyVar, Var
from ..elementwise.arithmetic import add
from ..reduce.reduce import reduce_sum
from ..shape.reshape import reshape, swap_last, transpose2d
from .lowering import gemm


def rows(x: Any) -> Any:
    """All axes but the last joined into one."""
    return x if len(x.shape) == 2 else reshape(x, (-1 if x.shape[-1] else int(np.prod(x.shape[:-1])), x.shape[-1]))


def _matmul_vjp_b(g: Any, a: Any, b_shape: tuple[int, ...]) -> Any:
    """Contracts over the rows of a: all its leading axes flattened where they share one b."""
    return matmul(transpose2d(rows(a)), rows(g)) if len(b_shape) == 2 else matmul(swap_last(a), g)


def _matrices(make: Make) -> list[Sample]:
    shapes = [
        ((2, 3), (3, 4)), ((1, 1), (1, 1)), ((5, 300), (300, 3)), ((3, 7), (7, 70)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 2, 3, 4), (2, 2, 4, 2)),
    ]  # fmt: skip
    plain = [Sample((make(*a), make(*b))) for a, b in shapes]
    return [
        *plain,
        Sample((make(4, 3).T, make(5, 4).T)),
        Sample((make(4, 3, 2).T, make(2, 5, 4).swapaxes(1, 2))),
    ]


@overload
def matmul(a: Var[F, *Bs, M, K], b: Var[F, K, N]) -> Var[F, *Bs, M, N]: ...
@overload
def matmul(a: Var[F, *Bs, M, K], b: Var[F, *Bs, K, N]) -> Var[F, *Bs, M, N]: ...
@op(
    lower=gemm,
    vjp=(lambda g, b: matmul(g, swap_last(b)), _matmul_vjp_b),
    jvp=lambda da, db, a, b: add(matmul(da, b), matmul(a, db)),
    reference=reference_sums.matmul,
    samples=_matrices,
    errors=(
        bad(ShapeError, "matmul: argument 'b': expected shape (3, N), got (4, 5)", (2, 3), (4, 5)),
        bad(ShapeError, "matmul: argument 'a': expected shape (*Bs, M, K), got (3,)", (3,), (3, 2)),
        bad(DTypeError, "matmul: argument 'b': expected float32, got float64", (2, 3), np.zeros((3, 2))),
    ),
    covers=("matmul", "bmm"),
    batch_axis={"a": 0},
)
def matmul(a: AnyVar, b: AnyVar) -> AnyVar:
    """The matrix product of the last two axes; ``b`` is one matrix, or one for each of a's leading indices.

    Source: numpy.matmul, without broadcasting of leading axes.

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
        bad(ShapeError, "linear: argument 'w': expected shape (N, 3), got (4, 2)", (5, 3), (4, 2), (4,)),
        bad(ShapeError, "got (4, 2); the last axis of x is 3, and w takes 2", (5, 3), (4, 2), (4,)),
        bad(ShapeError, "linear: argument 'b': expected shape (4,), got (3,)", (5, 3), (4, 3), (3,)),
        bad(DTypeError, "got int64; convert with ops.cast, images", np.zeros((5, 2), np.int64), (4, 3), (4,)),
    ),
    covers=("linear",),
    batch_axis={"x": -2},
    advice=_linear_advice,
)
def linear(x: Var[F, *Bs, K], w: Var[F, N, K], b: Var[F, N] | None = None) -> Var[F, *Bs, N]:
    """``x @ w.T + b``: w is (out, in); the bias is optional.

    Source: torch.nn.functional.linear.

    >>> from dgrr.tape import Tape, ops
    >>> ops.linear(Tape().leaf([1.0, 2.0]), [[3.0, 4.0]], [0.5]).numpy()
    array([11.5])
    """
    ...
