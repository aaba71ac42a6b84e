"""Axes of another size: nearest cells, weighted sums of cells by several rules, and the adjoint."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from fractions import Fraction
from math import isfinite
from typing import Any

from ...errors import DomainError, ShapeError
from ...numerics.math.exact import product
from ...numerics.sizes import Sizes
from ...record.lowering import Slot
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.spec import Spec
from ...var.var import Gradual
from .kernels import sums, weights
from .kernels.weighted import WeightedAxis
from .kernels.windows import WindowAxis
from .reference import interpolate as reference
from .rules import sizes_for, through, weighted

Scales = tuple[float, ...]
AXES: dict[str, tuple[int, ...]] = {
    "nearest": (),
    "nearest-exact": (),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
    "area": (1, 2, 3),
}
"""The modes, and how many axes each takes; the nearest cells any number."""
FILTERED = ("bilinear", "bicubic")
BETWEEN = ("linear", "bilinear", "trilinear", "bicubic")


def _target(x: Spec, size: Any, scale_factor: Any, mode: str, align_corners: bool, antialias: bool) -> Sizes:
    """The spatial sizes of the result. Raises ShapeError or DomainError."""
    name = "interpolate"
    if mode not in AXES:
        raise DomainError(f"{name}: argument 'mode': expected one of {', '.join(AXES)}, got {mode!r}")
    for argument, wanted, modes in (("align_corners", align_corners, BETWEEN), ("antialias", antialias, FILTERED)):
        if wanted and mode not in modes:
            raise DomainError(f"{name}: argument {argument!r}: expected False with mode {mode!r}, got True")
    if (size is None) == (scale_factor is None):
        raise DomainError(
            f"{name}: argument 'scale_factor': expected either it or size, got {scale_factor!r} and {size!r}"
        )
    argument, given = ("scale_factor", scale_factor) if size is None else ("size", size)
    if not given or (AXES[mode] and len(given) not in AXES[mode]):
        count = " or ".join(map(str, AXES[mode])) or "some"
        raise ShapeError(f"{name}: argument {argument!r}: expected {count} of them with mode {mode!r}, got {given!r}")
    leading = x.rank - len(given)
    if leading < 0 or 0 in x.shape[leading:]:
        raise ShapeError(
            f"{name}: argument 'x': expected {len(given)} spatial axes at the end, none of them empty, "
            f"got shape {x.shape}"
        )
    if size is None and not all(isfinite(scale) and scale > 0 for scale in given):
        raise DomainError(f"{name}: argument 'scale_factor': expected finite numbers above 0, got {given!r}")
    return sizes_for(name, "size", given if scale_factor is None else _scaled(x.shape[leading:], given))


def _scaled(sizes: Sizes, scales: Scales) -> Sizes:
    """``floor(size * scale)``, with the product as float64."""
    return tuple([int(product(n, scale)) for n, scale in zip(sizes, scales, strict=True)])


def _resized(x: Spec, **attrs: Any) -> Spec:
    size = _target(x, **attrs)
    return like(x, (*x.shape[: x.rank - len(size)], *size))


def _steps(scale_factor: Scales | None, rank: int) -> list[Fraction | None]:
    """Cells for an output, where a scale says how many."""
    return [None] * rank if scale_factor is None else [1 / Fraction(scale) for scale in scale_factor]


def _nearest(source: Sizes, target: Sizes, scale_factor: Scales | None, mode: str) -> list[WindowAxis]:
    axes = zip(source, target, _steps(scale_factor, len(source)), strict=True)
    return [weights.nearest_cells(n, m, step, exact=mode == "nearest-exact") for n, m, step in axes]


def _between(
    source: Sizes, target: Sizes, scale_factor: Scales | None, mode: str, align_corners: bool, antialias: bool
) -> list[WeightedAxis]:
    axes = list(zip(source, target, strict=True))
    if mode == "area":
        return [weights.means(n, m) for n, m in axes]
    given = [
        (n, m, {"align_corners": align_corners, "step": step})
        for (n, m), step in zip(axes, _steps(scale_factor, len(axes)), strict=True)
    ]
    if antialias:
        return [weights.antialiased(n, m, **kwargs, is_cubic=mode == "bicubic") for n, m, kwargs in given]  # type: ignore[arg-type]
    build = weights.cubic if mode == "bicubic" else weights.linear
    return [build(n, m, **kwargs) for n, m, kwargs in given]  # type: ignore[arg-type]


def _read(
    x: Slot,
    source: Sizes,
    target: Sizes,
    scale_factor: Any,
    mode: str,
    align_corners: bool,
    antialias: bool,
    back: bool,
) -> Slot:
    """What the outputs read of the cells, or ``back`` what the cells get of the outputs."""
    leading = x.shape[: x.spec.rank - len(source)]
    out = (*leading, *(source if back else target))
    if AXES[mode]:
        axes = _between(source, target, scale_factor, mode, align_corners, antialias)
        return weighted(x, out, axes, back=back)
    kernel = sums.window_sums if back else sums.window_cells
    return through(kernel, [x], out, _nearest(source, target, scale_factor, mode), back=back)


def _lower(x: Slot, size: Any, scale_factor: Any, mode: str, align_corners: bool, antialias: bool) -> Slot:
    target = _target(x.spec, size, scale_factor, mode, align_corners, antialias)
    source = _spatial(x.shape, len(target))
    return _read(x, source, target, scale_factor, mode, align_corners, antialias, False)


def _spatial(shape: Sizes, rank: int) -> Sizes:
    return tuple(shape[len(shape) - rank :])


def _grad(g: Any, x_shape: Sizes, size: Any, scale_factor: Any, mode: str, align_corners: bool, antialias: bool) -> Any:
    sizes = _spatial(x_shape, len(size or scale_factor))
    return interpolate_grad(g, sizes, scale_factor, mode, align_corners, antialias)


CASES: tuple[tuple[Sizes, dict[str, Any]], ...] = (
    ((2, 5), {"scale_factor": (1.7,)}),
    ((2, 3, 4), {"size": (5, 3), "mode": "nearest-exact"}),
    ((2, 3), {"size": (7,), "mode": "linear"}),
    ((2, 3, 4), {"scale_factor": (2.5, 0.6), "mode": "bilinear"}),
    ((1, 5, 7), {"size": (2, 3), "mode": "bilinear", "antialias": True}),
    ((2, 2, 3, 2), {"size": (3, 2, 4), "mode": "trilinear", "align_corners": True}),
    ((2, 3, 4), {"size": (5, 6), "mode": "bicubic"}),
    ((1, 4, 5), {"scale_factor": (0.5, 1.5), "mode": "bicubic", "align_corners": True}),
    ((1, 9, 5), {"size": (3, 7), "mode": "bicubic", "antialias": True}),
    ((2, 7, 4), {"size": (3, 5), "mode": "area"}),
    ((0, 4), {"size": (3,), "mode": "linear"}),
)
"""Every mode, larger and smaller, by size and by scale."""


def _samples(make: Make) -> list[Sample]:
    zeros = Sample((-make(1, 3) * 0,), {"size": (5,), "mode": "nearest-exact"})
    return [*[Sample((make(*shape),), attrs) for shape, attrs in CASES], zeros]


@op(
    infer=_resized,
    lower=_lower,
    vjp=(_grad,),
    jvp=lambda dx, size, scale_factor, mode, align_corners, antialias: interpolate(
        dx, size, scale_factor, mode, align_corners, antialias
    ),
    reference=reference.interpolate,
    samples=_samples,
    errors=(
        bad(DomainError, "interpolate: argument 'mode': expected one of nearest, nearest-exact, linear, bilinear, "
            "trilinear, bicubic, area, got 'cubic'", (2, 3), size=(4,), mode="cubic"),
        bad(DomainError, "argument 'align_corners': expected False with mode 'nearest', got True", (2, 3), size=(4,),
            align_corners=True),
        bad(DomainError, "argument 'antialias': expected False with mode 'linear', got True", (2, 3), size=(4,),
            mode="linear", antialias=True),
        bad(DomainError, "argument 'scale_factor': expected either it or size, got None and None", (2, 3)),
        bad(DomainError, "expected either it or size, got (2.0,) and (4,)", (2, 3), size=(4,), scale_factor=(2.0,)),
        bad(ShapeError, "interpolate: argument 'size': expected 2 of them with mode 'bilinear', got (4,)", (2, 3, 3),
            size=(4,), mode="bilinear"),
        bad(ShapeError, "argument 'size': expected 1 or 2 or 3 of them with mode 'area'", (2,) * 5, size=(2,) * 4,
            mode="area"),
        bad(ShapeError, "argument 'scale_factor': expected some of them with mode 'nearest', got ()", (2,),
            scale_factor=()),
        bad(ShapeError, "interpolate: argument 'x': expected 2 spatial axes at the end, none of them empty, got shape "
            "(3,)", (3,), size=(2, 2)),
        bad(ShapeError, "none of them empty, got shape (2, 0)", (2, 0), size=(2,)),
        bad(DomainError, "interpolate: argument 'scale_factor': expected finite numbers above 0, got (0.0,)", (2, 3),
            scale_factor=(0.0,)),
        bad(ShapeError, "argument 'size': expected a size of at least 1 for each spatial axis, got (0,)", (2, 3),
            scale_factor=(0.1,)),
    ),
    batch_axis={"x": 0},
)  # fmt: skip
def interpolate(
    x: Gradual[F],
    size: tuple[int, ...] | None = None,
    scale_factor: tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
) -> Gradual[F]:
    """The last axes with other sizes, by the modes of PyTorch; ``size`` or ``scale_factor`` has a number for each axis.

    "nearest" and "nearest-exact" take the cell at ``floor(o step)`` and ``floor((o + 1/2) step)``; "linear",
    "bilinear" and "trilinear" weigh the two cells beside a position on one, two or three axes, "bicubic" four on two,
    by Keys' cubics with A = -3/4; "area" takes the means of an adaptive pool. ``step`` is ``in / out``, or
    ``1 / scale_factor`` where that is given, and the size ``floor(in scale_factor)``. With ``antialias`` "bilinear" and
    "bicubic" weigh all cells under a filter that is as wide as an output, cubic with A = -1/2. Weights are exact until
    they are rounded, and a cell of weight 0 has no influence.

    Source: torch.nn.functional.interpolate.
    Shapes: x (*Bs, *spatial) -> (*Bs, *sizes); ``size``, or each spatial size times its ``scale_factor``, rounded down

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([0.0, 4.0])
    >>> ops.interpolate(x, (4,), mode="linear").numpy()
    array([0., 1., 3., 4.])
    >>> ops.interpolate(x, scale_factor=(1.5,), mode="linear", align_corners=True).numpy()
    array([0., 2., 4.])
    """
    ...


def _infer_grad(g: Spec, sizes: Sizes, scale_factor: Any, mode: str, align_corners: bool, antialias: bool) -> Spec:
    x = like(g, (*g.shape[: g.rank - len(sizes)], *sizes))
    size = _spatial(g.shape, len(sizes)) if scale_factor is None else None
    expected = _resized(
        x, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners, antialias=antialias
    )
    if g.shape != expected.shape:
        raise ShapeError(f"interpolate_grad: argument 'g': expected shape {expected.shape}, got {g.shape}")
    return x


def _lower_grad(g: Slot, sizes: Sizes, scale_factor: Any, mode: str, align_corners: bool, antialias: bool) -> Slot:
    target = _spatial(g.shape, len(sizes))
    return _read(g, sizes, target, scale_factor, mode, align_corners, antialias, True)


def _grad_vjp(
    g: Any, g_shape: Sizes, sizes: Sizes, scale_factor: Any, mode: str, align_corners: bool, antialias: bool
) -> Any:
    size = _spatial(g_shape, len(sizes)) if scale_factor is None else None
    return interpolate(g, size, scale_factor, mode, align_corners, antialias)


def _grad_jvp(dg: Any, sizes: Sizes, scale_factor: Any, mode: str, align_corners: bool, antialias: bool) -> Any:
    return interpolate_grad(dg, sizes, scale_factor, mode, align_corners, antialias)


def _grads(make: Make) -> list[Sample]:
    found: list[Sample] = []
    for shape, given in CASES:
        attrs = {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": False, "antialias": False}
        attrs |= given
        out = _resized(Spec(shape, make.dtype), **attrs).shape
        sizes = _spatial(shape, len(attrs.pop("size") or attrs["scale_factor"]))  # type: ignore[arg-type]
        found.append(Sample((make(*out),), {"sizes": sizes, **attrs}))
    return found


@op(
    infer=_infer_grad,
    lower=_lower_grad,
    vjp=(_grad_vjp,),
    jvp=_grad_jvp,
    reference=reference.interpolate_grad,
    samples=_grads,
    errors=(
        bad(ShapeError, "interpolate_grad: argument 'g': expected shape (2, 6), got (2, 5)", (2, 5), sizes=(3,),
            scale_factor=(2.0,), mode="linear", align_corners=False, antialias=False),
    ),
    batch_axis={"g": 0},
    private=True,
)  # fmt: skip
def interpolate_grad(
    g: Gradual[F], sizes: Sizes, scale_factor: Scales | None, mode: str, align_corners: bool, antialias: bool
) -> Gradual[F]:
    """Each element of ``g`` added to the cells it was read from, by their weights, in planes of ``sizes``.

    A cell adds what it gets in ascending order, from +0.
    """
    ...
