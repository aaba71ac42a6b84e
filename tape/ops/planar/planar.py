"""Convolutions and pools of planes: the 2-D forms of those along any number of axes, with types that name the axes.

Type checkers see the channels. They cannot compute sizes, so that the two spatial axes of a result may be any, but
for ``padding="same"``, which keeps them, and ``out=Shape[Height, Width]``, which names them: the sizes are held to it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from ...errors import DomainError, ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.op import OPS
from ...record.samples import Bad, Make, Sample, bad
from ...record.types import Bs, C, F, K, N, Operand
from ...values.shape import Pattern, Shape
from ...values.spec import Spec
from ...var.method_types import typed_as
from ...var.var import AnyVar, Var, shape_of
from .types import Borders, H, Kh, Kw, Pair, W, convolution, largest_pool, mean_pool, smooth_pool, transposed

OUT = {"out": Shape[Any, Literal[3]]}
"""What no sample's result has: three columns."""


def _apply(name: str, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], out: Any) -> AnyVar:
    """The result of an op, once ``out`` is held against the sizes it will have. Errors speak of ``name``."""
    try:
        if out is not None:
            specs = [None if x is None else Spec(shape_of(x), x.dtype) for x in inputs]
            _name_planes(f"{name}: argument 'out'", inputs[0], out, OPS[op].infer_spec(specs, attrs).shape[-2:])
        result: AnyVar = OPS[op](*inputs, **attrs)
    except (ShapeError, DomainError) as error:
        raise type(error)(f"{name}{str(error).removeprefix(name).removeprefix(op)}") from None
    return result


def _name_planes(where: str, x: Any, out: Any, sizes: Sizes) -> None:
    pattern = Pattern.named(where, out)
    if isinstance(x, Var):
        x.tape.bind(where, pattern, sizes)
    else:
        pattern.require(where, sizes, {})


def _pair(name: str, kernel_size: int | Sizes) -> Sizes:
    """A kernel's two sizes, from one for both or two. Raises ShapeError for another number of them."""
    given: Sizes = (kernel_size,) * 2 if isinstance(kernel_size, int) else kernel_size
    if len(given) != 2:
        raise ShapeError(f"{name}: argument 'kernel_size': expected a number or two of them, got {kernel_size}")
    return given


# ------------------------------------------------------------------ convolutions


def _convs(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, dict[str, Any]], ...] = (
        ((2, 3, 5, 7), (4, 3, 3, 3), {"padding": 1}),
        ((2, 4, 5, 6), (6, 2, 2, 3), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
        ((2, 2, 1, 5), (3, 2, 1, 4), {"padding": "same", "out": Shape[Literal[1], Literal[5]]}),
    )
    return [Sample((make(*x), make(*w), make(w[0])), attrs) for x, w, attrs in cases]


def _reference(op: str, *inputs: Any, out: Any = None, **attrs: Any) -> Any:
    """The op's own, for planes."""
    if "kernel_size" in attrs:
        attrs["kernel_size"] = _pair(op, attrs["kernel_size"])
    return OPS[op].reference(*inputs, **attrs)


@typed_as(convolution)
@composed(
    reference=partial(_reference, "conv"),
    samples=_convs,
    errors=(
        bad(ShapeError, "expected shape (*Bs, 3, S1, S2) to fit weight", (1, 2, 4, 4), (2, 3, 1, 1)),
        bad(ShapeError, "'out': expected shape (_, 3), got (4, 4)", (1, 3, 4, 4), (2, 3, 1, 1), **OUT),
    ),
    covers=("conv2d",),
    batch_axis={"x": 0},
)
def conv2d(
    x: Var[F, *Bs, C, H, W],
    weight: Var[F, K, N, Kh, Kw],
    bias: Operand[F, K] | None = None,
    stride: Pair = 1,
    padding: Pair | Borders | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
    out: type[Shape[*Bs]] | None = None,
) -> AnyVar:
    """The convolution of images x (*Bs, C, H, W) with a weight (K, C/groups, kernel), plus bias: `conv` of planes.

    Source: torch.nn.functional.conv2d.
    Shapes: x (*Bs, C, H, W), weight (K, C / groups, Kh, Kw), bias (K,) or None -> (*Bs, K, Ho, Wo); sizes as in `conv`
    Dtypes: x, weight, bias and the result float32 or float64, all alike.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[[1.0, 2.0, 4.0]]])
    >>> ops.conv2d(x, [[[[1.0, 1.0]]]]).numpy()
    array([[[3., 6.]]])
    """
    x, weight, bias = fitted("conv2d", x, weight, bias)
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _apply("conv2d", "conv", (x, weight, bias), attrs, out)


def _conv_transposes(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, int, dict[str, Any]], ...] = (
        ((2, 3, 4, 3), (3, 2, 3, 3), 2, {"padding": 1, "out": Shape[Literal[4], Literal[3]]}),
        ((2, 4, 3, 2), (4, 3, 2, 3), 6, {"stride": (2, 3), "padding": (0, 1), "output_padding": (1, 2), "groups": 2}),
    )
    return [Sample((make(*x), make(*w), make(n)), attrs) for x, w, n, attrs in cases]


@typed_as(transposed)
@composed(
    reference=partial(_reference, "conv_transpose"),
    samples=_conv_transposes,
    errors=(
        bad(ShapeError, "'bias': expected shape (2,), got (3,)", (1, 3, 4, 4), (3, 2, 1, 1), (3,)),
        bad(ShapeError, "'out': expected shape (_, 3), got (4, 4)", (1, 3, 4, 4), (3, 2, 1, 1), **OUT),
    ),
    covers=("conv_transpose2d",),
    batch_axis={"x": 0},
)
def conv_transpose2d(
    x: Var[F, *Bs, C, H, W],
    weight: Var[F, C, N, Kh, Kw],
    bias: Var[F, K] | None = None,
    stride: Pair = 1,
    padding: Pair | Borders = 0,
    output_padding: Pair = 0,
    groups: int = 1,
    dilation: Pair = 1,
    out: type[Shape[*Bs]] | None = None,
) -> AnyVar:
    """The transposed convolution of images x (*Bs, C, H, W) with a weight (C, K/groups, kernel): that of planes.

    Source: torch.nn.functional.conv_transpose2d.
    Shapes: x (*Bs, C, H, W), weight (C, K / groups, Kh, Kw), bias (K,) or None -> (*Bs, K, Ho, Wo); sizes as in
        `conv_transpose`
    Dtypes: x, weight, bias and the result float32 or float64, all alike.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[[1.0, 2.0, 4.0]]])
    >>> ops.conv_transpose2d(x, [[[[1.0, 1.0]]]]).numpy()
    array([[[1., 3., 6., 4.]]])
    """
    x, weight, bias = fitted("conv_transpose2d", x, weight, bias)
    attrs = {"stride": stride, "padding": padding, "output_padding": output_padding, "groups": groups}
    return _apply("conv_transpose2d", "conv_transpose", (x, weight, bias), {**attrs, "dilation": dilation}, out)


# ------------------------------------------------------------------ pools


def _planes(make: Make) -> list[Sample]:
    return [
        Sample((make(2, 3, 6, 5),), {"kernel_size": 2}),
        Sample((make(3, 7, 8),), {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0)}),
        Sample((make(4, 4),), {"kernel_size": 2, "stride": 1, "padding": 1, "out": Shape[Literal[5], Any]}),
    ]


def _errors(name: str) -> tuple[Bad, ...]:
    return (
        bad(ShapeError, "'kernel_size': expected a number or two of them, got (2,)", (4, 4), kernel_size=(2,)),
        bad(ShapeError, "'out': expected shape (_, 3), got (2, 2)", (1, 4, 4), kernel_size=2, **OUT),
    )


def _pool(name: str, op: str, x: Any, kernel_size: Any, attrs: Mapping[str, Any], out: Any) -> AnyVar:
    (x,) = fitted(name, x)
    return _apply(name, op, (x,), {"kernel_size": _pair(name, kernel_size), **attrs}, out)


@typed_as(largest_pool)
@composed(
    reference=partial(_reference, "max_pool"),
    samples=lambda make: [*_planes(make), Sample((make(2, 7, 8),), {"kernel_size": 3, "dilation": 2})],
    errors=_errors("max_pool2d"),
    covers=("max_pool2d", "max_pool2d_pad"),
    batch_axis={"x": -3},
)
def max_pool2d(
    x: Var[F, *Bs, H, W],
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair | Borders = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
    out: type[Shape[*Bs]] | None = None,
) -> AnyVar:
    """The largest cell of windows that slide over planes x (*Bs, H, W): `max_pool` along two axes.

    Source: torch.nn.functional.max_pool2d.
    Shapes: x (*Bs, H, W) -> (*Bs, Ho, Wo); sizes as in `max_pool`
    Dtypes: x and the result float32 or float64, alike.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    >>> ops.max_pool2d(x, 2).numpy()
    array([[6., 8.]])
    """
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
    return _pool("max_pool2d", "max_pool", x, kernel_size, attrs, out)


@typed_as(mean_pool)
@composed(
    reference=partial(_reference, "avg_pool"),
    samples=lambda make: [
        *_planes(make),
        Sample((make(2, 4, 4),), {"kernel_size": 2, "padding": 1, "count_include_pad": False}),
        Sample((make(2, 5, 4),), {"kernel_size": 2, "stride": 1, "dilation": (2, 1)}),
        Sample((make(2, 4, 4),), {"kernel_size": 3, "stride": 2, "padding": ((1, 0), (0, 0)), "ceil_mode": True}),
    ],
    errors=_errors("avg_pool2d"),
    covers=("avg_pool2d", "avg_pool2d_pad"),
    batch_axis={"x": -3},
)
def avg_pool2d(
    x: Var[F, *Bs, H, W],
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair | Borders = 0,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dilation: Pair = 1,
    out: type[Shape[*Bs]] | None = None,
) -> AnyVar:
    """The mean of windows that slide over planes x (*Bs, H, W): `avg_pool` along two axes.

    Source: torch.nn.functional.avg_pool2d.
    Shapes: x (*Bs, H, W) -> (*Bs, Ho, Wo); sizes as in `max_pool`
    Dtypes: x and the result float32 or float64, alike.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    >>> ops.avg_pool2d(x, 2).numpy()
    array([[3.5, 5.5]])
    """
    attrs = {
        "stride": stride,
        "padding": padding,
        "count_include_pad": count_include_pad,
        "ceil_mode": ceil_mode,
        "dilation": dilation,
    }
    return _pool("avg_pool2d", "avg_pool", x, kernel_size, attrs, out)


@typed_as(smooth_pool)
@composed(
    reference=partial(_reference, "smooth_max_pool"),
    samples=lambda make: [*_planes(make), Sample((make(2, 4, 4),), {"kernel_size": 2, "beta": -3.0})],
    errors=_errors("smooth_max_pool2d"),
    covers=("smooth_max_pool2d",),
    batch_axis={"x": -3},
    instead={"beta": "ops.smooth_max_pool2d(x * beta, kernel_size, stride, padding) / beta"},
)
def smooth_max_pool2d(
    x: Var[F, *Bs, H, W],
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair | Borders = 0,
    beta: float = 1.0,
    out: type[Shape[*Bs]] | None = None,
) -> AnyVar:
    """A smooth maximum of windows that slide over planes x (*Bs, H, W): `smooth_max_pool` along two axes.

    Source: the log-sum-exp of each window: Boyd and Vandenberghe (2004), Convex Optimization, section 3.1.5.
    Shapes: x (*Bs, H, W) -> (*Bs, Ho, Wo); sizes as in `max_pool`
    Dtypes: x and the result float32 or float64, alike.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    >>> ops.smooth_max_pool2d(x, 2, beta=100.0).numpy()
    array([[6., 8.]])
    """
    attrs = {"stride": stride, "padding": padding, "beta": beta}
    return _pool("smooth_max_pool2d", "smooth_max_pool", x, kernel_size, attrs, out)
