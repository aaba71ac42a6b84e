"""Average pools: a sum of each window and a division, and the adjoint, a division and sums of what reads each cell."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from math import prod
from typing import Any

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.spec import Spec
from ...var.var import Gradual
from ..elementwise.kernels import basic as elementwise_kernels
from .kernels import sums as kernels_sums
from .kernels.windows import WindowAxis
from .pool_op import pool_op
from .reference import pools as reference
from .rules import Rules, axes_of, counted_axes, pooled, through
from .samples import overhanging, plain, ruled, ruled_overhanging


def _shares(g: Slot, axes: Sequence[WindowAxis]) -> Slot:
    """``g`` divided by the cells of its windows, which are as many in every window or not."""
    counts = [set(axis.counts) for axis in axes]
    if all(len(of_axis) == 1 for of_axis in counts):
        return elementwise(elementwise_kernels.divide, g, attrs=(prod(n for (n,) in counts),))
    return through(kernels_sums.window_shares, [g], g.shape, axes)


def _lower_mean(x: Slot, rules: Rules, whole: bool) -> Slot:
    out = pooled("window_mean", x.spec, rules).shape
    sums = through(kernels_sums.window_sums, [x], out, axes_of(x.shape, rules))
    return _shares(sums, counted_axes(x.shape, rules, whole))


def _spatial(shape: Sizes, rules: Rules) -> Sizes:
    return shape[len(shape) - len(rules) :]


def _spread(g: Any, x_shape: Sizes, rules: Rules, whole: bool) -> Any:
    """The gradient by a pool's input."""
    return avg_pool_grad(g, _spatial(x_shape, rules), rules, whole)


def _padded(make: Make) -> list[Sample]:
    attrs = {"kernel_size": (3, 2), "stride": 2, "padding": 1, "count_include_pad": False}
    return [Sample((make(2, 5, 6),), attrs), Sample((make(1, 4, 37),), {**attrs, "stride": (2, 1)})]


def _dilated(make: Make) -> list[Sample]:
    """Windows with gaps: lines of them, planes with borders that count and that do not, and one that hangs over."""
    attrs = {"kernel_size": (2, 3), "dilation": (2, 3), "padding": (1, 2), "stride": (1, 2)}
    return [
        Sample((make(2, 40),), {"kernel_size": (3,), "dilation": 2, "stride": 1}),
        Sample((make(2, 5, 9),), attrs),
        Sample((make(2, 5, 9),), {**attrs, "count_include_pad": False, "ceil_mode": True}),
    ]


@pool_op(
    lambda x, rules, count_include_pad: _lower_mean(x, rules, count_include_pad),
    lambda x, rules, count_include_pad: reference.avg_pool(x, rules, count_include_pad),
    vjp=lambda g, x_shape, rules, count_include_pad: _spread(g, x_shape, rules, count_include_pad),
    samples=lambda make: [*plain(make), *_padded(make), *overhanging(make, "count_include_pad"), *_dilated(make)],
    covers=("avg_pool",),
)
def avg_pool(
    x: Gradual[F],
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] | tuple[tuple[int, int], ...] = 0,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dilation: int | tuple[int, ...] = 1,
) -> Gradual[F]:
    """The mean of windows that slide along the last axes, as many as ``kernel_size`` has sizes.

    ``x`` is (*Bs, *spatial). The stride is the kernel's size if none is given. Padding adds zeros around every plane,
    which are counted as cells unless ``count_include_pad`` is false; what a window of ``ceil_mode`` has beyond them
    never counts. The cells of a window are ``dilation`` apart. Sizes are those of `max_pool`.

    Source: torch.nn.functional.avg_pool1d, avg_pool2d and avg_pool3d; ONNX's AveragePool has the dilation.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); as many spatial axes as ``kernel_size`` has sizes

    >>> from dgrr.tape import Tape, ops
    >>> ops.avg_pool(Tape().leaf([1.0, 3.0, 2.0, 0.0]), (2,)).numpy()
    array([2., 1.])
    """
    ...


@pool_op(
    lambda x, rules: _lower_mean(x, rules, False),
    lambda x, rules: reference.avg_pool(x, rules, False),
    vjp=lambda g, x_shape, rules: _spread(g, x_shape, rules, False),
)
def adaptive_avg_pool(x: Gradual[F], output_size: tuple[int, ...]) -> Gradual[F]:
    """The mean of windows that cover the last axes, as many as ``output_size`` says.

    Window ``o`` of ``n`` goes from ``floor(o size / n)`` to ``ceil((o + 1) size / n)``, as in PyTorch.

    Source: torch.nn.functional.adaptive_avg_pool1d, adaptive_avg_pool2d and adaptive_avg_pool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *output_size); as many spatial axes as ``output_size`` has sizes

    >>> from dgrr.tape import Tape, ops
    >>> ops.adaptive_avg_pool(Tape().leaf([1.0, 3.0, 2.0]), (2,)).numpy()
    array([2. , 2.5])
    """
    ...


def _infer_grad(g: Spec, sizes: Sizes, rules: Rules, whole: bool) -> Spec:
    x = like(g, (*g.shape[: g.rank - len(rules)], *sizes))
    expected = pooled("avg_pool_grad", x, rules).shape
    if g.shape != expected:
        raise ShapeError(f"avg_pool_grad: argument 'g': expected shape {expected}, got {g.shape}")
    return x


def _lower_grad(g: Slot, sizes: Sizes, rules: Rules, whole: bool) -> Slot:
    x = _infer_grad(g.spec, sizes, rules, whole)
    axes = axes_of(x.shape, rules)
    shares = _shares(g, counted_axes(x.shape, rules, whole))
    return through(kernels_sums.window_sums, [shares], x.shape, axes, back=True)


def _grad_jvp(dg: Any, sizes: Sizes, rules: Rules, whole: bool) -> Any:
    return avg_pool_grad(dg, sizes, rules, whole)


@op(
    infer=_infer_grad,
    lower=_lower_grad,
    vjp=(lambda g, rules, whole: window_mean(g, rules, whole),),
    jvp=_grad_jvp,
    reference=reference.avg_pool_grad,
    samples=lambda make: [
        Sample((make(*out),), {"sizes": _spatial(shape, rules), "rules": rules, "whole": len(rules[0]) > 1})
        for shape, out, rules in (*ruled(make), *ruled_overhanging(make))
    ],
    errors=(
        bad(
            ShapeError,
            "avg_pool_grad: argument 'g': expected shape (2, 2), got (2, 3)",
            (2, 3),
            sizes=(4,),
            rules=((2, 2, 0, 1),),
            whole=True,
        ),
    ),
    batch_axis={"g": 0},
    private=True,
)
def avg_pool_grad(g: Gradual[F], sizes: Sizes, rules: Rules, whole: bool) -> Gradual[F]:
    """``g`` divided and added at every cell of its window, in planes of ``sizes``: the gradient of an average pool.

    A cell adds what it gets in ascending order, from +0. ``rules`` are those of `rules`; ``whole``: the cells
    of borders are counted with the real ones.
    """
    ...


@op(
    infer=lambda x, rules, whole: pooled("window_mean", x, rules),
    lower=_lower_mean,
    vjp=(lambda g, x_shape, rules, whole: _spread(g, x_shape, rules, whole),),
    jvp=lambda dx, rules, whole: window_mean(dx, rules, whole),
    reference=reference.avg_pool,
    samples=lambda make: [
        Sample((make(*shape),), {"rules": rules, "whole": len(rules[0]) > 1})
        for shape, _, rules in (*ruled(make), *ruled_overhanging(make))
    ],
    batch_axis={"x": 0},
    private=True,
)
def window_mean(x: Gradual[F], rules: Rules, whole: bool) -> Gradual[F]:
    """An average pool by the rules of its axes: the adjoint of avg_pool_grad."""
    ...
