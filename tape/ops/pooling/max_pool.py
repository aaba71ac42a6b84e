"""Maximum pools, and what passes between a pool and the cells that win: the gradient and its adjoint."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from ...errors import ShapeError
from ...record.derivative import NO_GRAD
from ...record.lowering import Slot
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F
from ...values.dtypes import i64
from ...values.spec import Spec
from ...var.var import Gradual
from .kernels import argmax as largest, sums
from .pool_op import pool_op
from .reference import pools as reference
from .rules import Rules, axes_of, pooled, sliding_rules, through
from .samples import (
    overhanging,
    plain,
    ruled,
    ruled_overhanging,
    special,
)

WORK = 8
"""Operations for each cell of each window."""


def _maxima(x: Slot, rules: Rules) -> Slot:
    return through(sums.window_maxima, [x], pooled("max_pool", x.spec, rules).shape, axes_of(x.shape, rules), WORK)


DILATED = {"kernel_size": (2, 2), "dilation": (2, 3), "padding": (1, 2), "stride": (1, 2)}


def _odd(make: Make) -> list[Sample]:
    return [*special(make), Sample((make(2, 7, 8),), DILATED), *overhanging(make, "dilation")]


@pool_op(
    lambda x, rules: _maxima(x, rules),
    reference.max_pool,
    vjp=lambda g, x, rules: max_pool_grad(g, x, rules),
    jvp=lambda dx, x, rules: max_pool_pick(dx, x, rules),
    samples=lambda make: [*plain(make), *_odd(make)],
    errors=(
        bad(
            ShapeError, "hold a cell of every window, got shape (2, 1)", (2, 1), kernel_size=(2,), dilation=3, padding=2
        ),
    ),
    covers=("max_pool",),
)
def max_pool(
    x: Gradual[F],
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] | tuple[tuple[int, int], ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode: bool = False,
) -> Gradual[F]:
    """The largest cell of windows that slide along the last axes, as many as ``kernel_size`` has sizes.

    ``x`` is (*Bs, *spatial). The stride is the kernel's size if none is given. Padding adds cells around every plane
    that never win: so many on both sides of each axis, or (before, behind) for each. NaN wins, and -0 < +0; the
    gradient goes to the first of equal cells in row-major order. Sizes are PyTorch's:
    ``floor((size + before + behind - dilation (kernel - 1) - 1) / stride) + 1``; with ``ceil_mode`` it is ``ceil``,
    less 1 if the last window would start behind all cells. A window must hold a cell.

    Source: torch.nn.functional.max_pool1d, max_pool2d and max_pool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); as many spatial axes as ``kernel_size`` has sizes

    >>> from dgrr.tape import Tape, ops
    >>> ops.max_pool(Tape().leaf([1.0, 3.0, 2.0, 0.0]), (2,)).numpy()
    array([3., 2.])
    """
    ...


@pool_op(
    lambda x, rules: _positions("max_pool_indices", x, rules),
    reference.max_pool_indices,
    dtype=i64.dtype,
    samples=lambda make: [Sample((make(2, 3, 6, 5),), {"kernel_size": (2, 2)}), *_odd(make)],
)
def max_pool_indices(
    x: Gradual[F],
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] | tuple[tuple[int, int], ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode: bool = False,
) -> Gradual[i64]:
    """Where the elements of `max_pool` stand: the place of each window's largest cell in its plane, in row-major order.

    Of equal cells it is the first, and NaN is the largest. `max_unpool` takes these indices.

    Source: torch.nn.functional.max_pool1d, max_pool2d and max_pool3d with ``return_indices``.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); as many spatial axes as ``kernel_size`` has sizes

    >>> from dgrr.tape import Tape, ops
    >>> ops.max_pool_indices(Tape().leaf([1.0, 3.0, 2.0, 0.0]), (2,)).numpy()
    array([1, 2])
    """
    ...


@pool_op(
    lambda x, rules: _maxima(x, rules),
    reference.max_pool,
    vjp=lambda g, x, rules: max_pool_grad(g, x, rules),
    jvp=lambda dx, x, rules: max_pool_pick(dx, x, rules),
)
def adaptive_max_pool(x: Gradual[F], output_size: tuple[int, ...]) -> Gradual[F]:
    """The largest cell of windows that cover the last axes, as many as ``output_size`` says.

    Window ``o`` of ``n`` goes from ``floor(o size / n)`` to ``ceil((o + 1) size / n)``, as in PyTorch.

    Source: torch.nn.functional.adaptive_max_pool1d, adaptive_max_pool2d and adaptive_max_pool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *output_size); as many spatial axes as ``output_size`` has sizes

    >>> from dgrr.tape import Tape, ops
    >>> ops.adaptive_max_pool(Tape().leaf([1.0, 3.0, 2.0]), (2,)).numpy()
    array([3., 3.])
    """
    ...


def _positions(op_name: str, x: Slot, rules: Rules) -> Slot:
    out = pooled(op_name, x.spec, rules).shape
    return through(largest.largest_positions, [x], out, axes_of(x.shape, rules), 2 * WORK, dtype=i64.dtype)


def check_pooled(op_name: str, g: Spec, x: Spec, rules: Rules) -> None:
    """Raise ShapeError unless ``g`` has the shape of a pool of x."""
    expected = pooled(op_name, x, rules).shape
    if g.shape != expected:
        raise ShapeError(f"{op_name}: argument 'g': expected shape {expected}, got {g.shape}")


def _with_grad(make: Make, sample: Sample) -> Sample:
    (x,), rules = sample.arrays, sliding_rules("pool", **sample.attrs)
    assert x is not None
    return Sample((make(*pooled("pool", Spec(x.shape, x.dtype), rules).shape), x), {"rules": rules})


def _infer_grad(g: Spec, x: Spec, rules: Rules) -> Spec:
    check_pooled("max_pool_grad", g, x, rules)
    return x


def _lower_grad(g: Slot, x: Slot, rules: Rules) -> Slot:
    axes = axes_of(x.shape, rules)
    if all(max(axis.transposed().counts) < 2 for axis in axes):  # no two windows share a cell
        return through(largest.give_to_largest, [g, x], x.shape, axes, 2 * WORK)
    return through(
        largest.sums_where_largest, [g, _positions("max_pool_grad", x, rules)], x.shape, axes, WORK, back=True
    )


@op(
    infer=_infer_grad,
    lower=_lower_grad,
    vjp=(lambda g, x, rules: max_pool_pick(g, x, rules), NO_GRAD),
    jvp=lambda dg, x, rules: max_pool_grad(dg, x, rules),
    reference=reference.max_pool_grad,
    samples=lambda make: [
        *[Sample((make(*out), make(*shape)), {"rules": rules}) for shape, out, rules in ruled(make)],
        *[_with_grad(make, sample) for sample in special(make)],
        *[Sample((make(*out), make(*shape)), {"rules": rules}) for shape, out, rules in ruled_overhanging(make)],
    ],
    errors=(
        bad(
            ShapeError,
            "max_pool_grad: argument 'g': expected shape (2, 2), got (2, 3)",
            (2, 3),
            (2, 4),
            rules=((2, 2, 0, 1),),
        ),
    ),
    batch_axis={"g": 0, "x": 0},
    private=True,
)
def max_pool_grad(g: Gradual[F], x: Gradual[F], rules: Rules) -> Gradual[F]:
    """Each ``g`` added where the largest cell of its window of x stands first: the gradient of a maximum pool.

    A cell adds what it gets in ascending order, from +0. Rules: (kernel, stride, padding, dilation) or (outputs,).
    """
    ...


def _infer_pick(u: Spec, x: Spec, rules: Rules) -> Spec:
    if u.shape != x.shape:
        raise ShapeError(f"max_pool_pick: argument 'u': expected shape {x.shape}, got {u.shape}")
    return pooled("max_pool_pick", x, rules)


def _lower_pick(u: Slot, x: Slot, rules: Rules) -> Slot:
    out = pooled("max_pool_pick", x.spec, rules).shape
    return through(largest.cells_at, [u, _positions("max_pool_pick", x, rules)], out, axes_of(x.shape, rules))


@op(
    infer=_infer_pick,
    lower=_lower_pick,
    vjp=(lambda g, x, rules: max_pool_grad(g, x, rules), NO_GRAD),
    jvp=lambda du, x, rules: max_pool_pick(du, x, rules),
    reference=reference.max_pool_pick,
    samples=lambda make: [
        Sample((make(*s), make(*s)), {"rules": rules}) for s, _, rules in (*ruled(make), *ruled_overhanging(make))
    ],
    errors=(
        bad(
            ShapeError,
            "max_pool_pick: argument 'u': expected shape (2, 4), got (2, 3)",
            (2, 3),
            (2, 4),
            rules=((2, 2, 0, 1),),
        ),
    ),
    batch_axis={"u": 0, "x": 0},
    private=True,
)
def max_pool_pick(u: Gradual[F], x: Gradual[F], rules: Rules) -> Gradual[F]:
    """``u`` where the largest cell of each window of x stands first: the adjoint of max_pool_grad."""
    ...
