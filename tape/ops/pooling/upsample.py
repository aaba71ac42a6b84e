"""Upsampling to nearest cells and between them, and the adjoints, which add what each cell was read for."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

from ...errors import DomainError, ShapeError
from ...numerics.sizes import Sizes
from ...record.lowering import Slot
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.spec import Spec
from ...var.var import Gradual
from .kernels import sums as pooling_kernels
from .kernels.weights import linear
from .kernels.windows import WindowAxis, nearest
from .reference import upsample as reference
from .rules import SIZES, through, weighted
from .samples import x_errors


def _resized(op_name: str, x: Spec, size: Sizes) -> Spec:
    """``x`` with its last axes of other sizes. Raises ShapeError unless it has cells to read."""
    leading = x.rank - len(size)
    if leading < 0 or 0 in x.shape[leading:]:
        raise ShapeError(
            f"{op_name}: argument 'x': expected {len(size)} spatial axes at the end, none of them empty, "
            f"got shape {x.shape}"
        )
    return like(x, (*x.shape[:leading], *size))


def _spatial(shape: Sizes, rank: int) -> Sizes:
    return shape[len(shape) - rank :]


def _axes(source: Sizes, target: Sizes) -> list[WindowAxis]:
    return [nearest(n, m) for n, m in zip(source, target, strict=True)]


def _infer_nearest(x: Spec, scale_factor: Any, size: Any) -> Spec:
    name = "upsample_nearest"
    if (scale_factor is None) == (size is None):
        raise DomainError(
            f"{name}: argument 'scale_factor': expected either it or size, got {scale_factor!r} and {size!r}"
        )
    if scale_factor is None:
        return _resized(name, x, size)
    factors: Sizes = scale_factor
    leading = len(_resized(name, x, factors).shape) - len(factors)
    return like(x, (*x.shape[:leading], *[n * f for n, f in zip(x.shape[leading:], factors, strict=True)]))


def _lower_nearest(x: Slot, scale_factor: Any, size: Any) -> Slot:
    out = _infer_nearest(x.spec, scale_factor, size).shape
    rank = len(scale_factor or size)
    return through(pooling_kernels.window_cells, [x], out, _axes(_spatial(x.shape, rank), _spatial(out, rank)))


def _nearest_vjp(g: Any, x_shape: Sizes, scale_factor: Any, size: Any) -> Any:
    return upsample_nearest_grad(g, _spatial(x_shape, len(scale_factor or size)))


def _reference_nearest(x: Any, scale_factor: Any = None, size: Any = None) -> Any:
    target = size or tuple(n * f for n, f in zip(x.shape[-len(scale_factor) :], scale_factor, strict=True))
    return reference.upsample_nearest(x, target)


def _scales(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, dict[str, Any]], ...] = (
        ((2, 5), {"scale_factor": (2,)}),
        ((2, 3, 4, 20), {"scale_factor": (1, 2)}),
        ((2, 3, 2), {"scale_factor": (3, 1)}),
        ((2, 3, 5), {"size": (7, 3)}),
        ((1, 2, 3, 2), {"size": (3, 2, 5)}),
        ((0, 3), {"size": (4,)}),
    )
    zeros = Sample((-make(1, 3) * 0,), {"size": (5,)})
    return [*[Sample((make(*shape),), attrs) for shape, attrs in cases], zeros]


@op(
    infer=_infer_nearest,
    lower=_lower_nearest,
    vjp=(_nearest_vjp,),
    jvp=lambda dx, scale_factor, size: upsample_nearest(dx, scale_factor, size),
    reference=_reference_nearest,
    samples=_scales,
    errors=(
        *x_errors("upsample_nearest", "size"),
        *x_errors("upsample_nearest", "scale_factor"),
        bad(DomainError, "argument 'scale_factor': expected either it or size, got None and None", (2, 3)),
        bad(DomainError, "it or size, got (2,) and (4,)", (2, 3), scale_factor=(2,), size=(4,)),
    ),
    batch_axis={"x": 0},
    kinds={"scale_factor": SIZES, "size": SIZES},
)
def upsample_nearest(
    x: Gradual[F], scale_factor: tuple[int, ...] | None = None, size: tuple[int, ...] | None = None
) -> Gradual[F]:
    """The last axes with other sizes: each output is the cell at ``floor(i in / out)`` on every axis.

    ``x`` is (*Bs, *spatial). Either ``scale_factor`` or ``size`` has a number for each spatial axis. It shrinks as
    well. These are PyTorch's indices of mode "nearest", computed in whole numbers.

    Source: torch.nn.functional.interpolate with mode "nearest".
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``size``, or each spatial size times its ``scale_factor``

    >>> from dgrr.tape import Tape, ops
    >>> ops.upsample_nearest(Tape().leaf([1.0, 2.0]), scale_factor=(2,)).numpy()
    array([1., 1., 2., 2.])
    """
    ...


def _infer_nearest_grad(g: Spec, sizes: Sizes) -> Spec:
    return _resized("upsample_nearest_grad", g, sizes)


def _lower_nearest_grad(g: Slot, sizes: Sizes) -> Slot:
    axes = _axes(sizes, _spatial(g.shape, len(sizes)))
    return through(pooling_kernels.window_sums, [g], _infer_nearest_grad(g.spec, sizes).shape, axes, back=True)


def _nearest_grad_jvp(dg: Any, sizes: Sizes) -> Any:
    return upsample_nearest_grad(dg, sizes)


@op(
    infer=_infer_nearest_grad,
    lower=_lower_nearest_grad,
    vjp=(lambda g, g_shape, sizes: upsample_nearest(g, None, _spatial(g_shape, len(sizes))),),
    jvp=_nearest_grad_jvp,
    reference=reference.upsample_nearest_grad,
    samples=lambda make: [
        Sample((make(2, 10),), {"sizes": (5,)}),
        Sample((make(2, 3, 4, 40),), {"sizes": (2, 20)}),
        Sample((make(2, 7, 3),), {"sizes": (3, 5)}),
        Sample((make(0, 4),), {"sizes": (3,)}),
    ],
    batch_axis={"g": 0},
    private=True,
)
def upsample_nearest_grad(g: Gradual[F], sizes: Sizes) -> Gradual[F]:
    """Each element of ``g`` added where it was read, in planes of ``sizes``: the gradient of upsample_nearest.

    A cell adds what it gets in ascending order, from +0.
    """
    ...


def _infer_bilinear(x: Spec, size: Any, align_corners: bool) -> Spec:
    sizes: Sizes = size
    if len(sizes) != 2:
        raise ShapeError(f"upsample_bilinear: argument 'size': expected sizes of the last 2 axes, got {sizes}")
    return _resized("upsample_bilinear", x, sizes)


def _between(x: Slot, out: Sizes, source: Sizes, target: Sizes, *, align_corners: bool, back: bool) -> Slot:
    """Weighted sums of the cells beside each output, or back."""
    axes = [linear(n, m, align_corners=align_corners) for n, m in zip(source, target, strict=True)]
    return weighted(x, out, axes, back=back)


def _lower_bilinear(x: Slot, size: Sizes, align_corners: bool) -> Slot:
    out = _infer_bilinear(x.spec, size, align_corners).shape
    return _between(x, out, x.shape[-2:], size, align_corners=align_corners, back=False)


@op(
    infer=_infer_bilinear,
    lower=_lower_bilinear,
    vjp=(lambda g, x_shape, align_corners: upsample_bilinear_grad(g, x_shape[-2:], align_corners),),
    jvp=lambda dx, size, align_corners: upsample_bilinear(dx, size, align_corners),
    reference=lambda x, size, align_corners=False: reference.upsample_bilinear(x, size, align_corners),
    samples=lambda make: [
        *[
            Sample((make(2, 3, 4),), {"size": size, "align_corners": align})
            for size in ((6, 8), (2, 5), (1, 1))
            for align in (False, True)
        ],
        Sample((make(2, 2, 1, 3),), {"size": (2, 18)}),
        Sample((make(0, 2, 2),), {"size": (3, 3)}),
    ],
    errors=(
        *x_errors("upsample_bilinear", "size"),
        bad(ShapeError, "upsample_bilinear: argument 'size': expected sizes of the last 2 axes", (2, 3, 3), size=(4,)),
    ),
    batch_axis={"x": 0},
    kinds={"size": SIZES},
)
def upsample_bilinear(x: Gradual[F], size: tuple[int, ...], align_corners: bool = False) -> Gradual[F]:
    """The last two axes with other sizes: each output lies between up to four cells, which it weighs by nearness.

    ``x`` is (*Bs, height, width). Output i stands at ``(i + 1/2) in / out - 1/2``, cut to the axis, or with
    ``align_corners`` at ``i (in - 1) / (out - 1)``: PyTorch's mode "bilinear". Positions are exact, and weights are
    rounded once. A cell of weight 0 has no influence.

    Source: torch.nn.functional.interpolate with mode "bilinear".
    Shapes: x (*Bs, H, W) -> (*Bs, *size)

    >>> from dgrr.tape import Tape, ops
    >>> ops.upsample_bilinear(Tape().leaf([[0.0, 2.0]]), (1, 4)).numpy()
    array([[0. , 0.5, 1.5, 2. ]])
    """
    ...


def _lower_bilinear_grad(g: Slot, sizes: Sizes, align_corners: bool) -> Slot:
    out = _resized("upsample_bilinear_grad", g.spec, sizes).shape
    return _between(g, out, sizes, g.shape[-2:], align_corners=align_corners, back=True)


@op(
    infer=lambda g, sizes, align_corners: _resized("upsample_bilinear_grad", g, sizes),
    lower=_lower_bilinear_grad,
    vjp=(lambda g, g_shape, align_corners: upsample_bilinear(g, g_shape[-2:], align_corners),),
    jvp=lambda dg, sizes, align_corners: upsample_bilinear_grad(dg, sizes, align_corners),
    reference=reference.upsample_bilinear_grad,
    samples=lambda make: [
        Sample((make(2, 6, 8),), {"sizes": (3, 4), "align_corners": False}),
        Sample((make(2, 6, 8),), {"sizes": (3, 4), "align_corners": True}),
        Sample((make(1, 2, 2, 3),), {"sizes": (4, 7), "align_corners": False}),
        Sample((make(0, 2, 2),), {"sizes": (1, 1), "align_corners": False}),
    ],
    batch_axis={"g": 0},
    private=True,
)
def upsample_bilinear_grad(g: Gradual[F], sizes: Sizes, align_corners: bool) -> Gradual[F]:
    """Each element of ``g`` added to the cells it lies between, by their weights: the gradient of upsample_bilinear.

    A cell adds what it gets in ascending order, from +0.
    """
    ...
