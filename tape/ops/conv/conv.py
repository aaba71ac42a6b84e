"""Convolution, its adjoint by the input, which is the transposed convolution, and its adjoint by the weight.

They are each other's derivatives: with ``<conv(x, w), g>`` written as a form that is linear in x, w and g, each of
the three gives its slope by one of them. So derivatives of every order need no other op.
"""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from dataclasses import replace
from typing import Any

from ...errors import DTypeError, ShapeError
from ...numerics.sizes import Sizes
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Constant, F
from ...values.per_axis import PerAxis, PerSide
from ...var.var import Gradual
from ..elementwise.arithmetic import add
from ..reduce.reduce import reduce_sum
from ..shape.slicing import getitem
from .lowering import lower_adjoint, lower_forward, lower_weight
from .reference import conv as reference
from .reference.conv import DEFAULTS
from .sizes import (
    KINDS,
    SIZES,
    Padding,
    infer_conv,
    infer_conv_transpose,
    infer_input_grad,
    infer_weight_grad,
    transposed,
    weight_window,
    window,
)


def _spatial(shape: Sizes, weight_shape: Sizes) -> Sizes:
    return tuple(shape[2 - len(weight_shape) :])


def _at(y: Any, shape: Sizes, weight_shape: Sizes) -> Any:
    """``y`` at the first positions, as many as ``shape`` has."""
    size = _spatial(shape, weight_shape)
    return y if _spatial(y.shape, weight_shape) == size else getitem(y, (..., *(slice(0, n) for n in size)))


def _bias_grad(g: Any, weight_shape: Sizes) -> Any:
    channel = len(g.shape) + 1 - len(weight_shape)
    return reduce_sum(g, tuple(a for a in range(len(g.shape)) if a != channel))


# ------------------------------------------------------------------ convolution


def _convs(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, dict[str, Any]], ...] = (
        ((2, 3, 5, 7), (4, 3, 3, 3), {"padding": 1}),
        ((2, 2, 6), (3, 2, 2), {}),
        ((2, 4, 5, 6), (6, 2, 2, 3), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"stride": 2, "padding": 1}),
        ((2, 2, 1, 5), (3, 1, 4), {"padding": "same", "groups": 1}),
        ((0, 2, 4), (3, 2, 3), {"padding": "valid"}),
        ((2, 0, 4), (3, 0, 3), {}),
        ((2, 30, 3, 3), (2, 30, 3, 3), {"padding": "same"}),
    )
    made = [Sample((make(*x), make(*w), make(w[0])), attrs) for x, w, attrs in cases]
    uneven = {"padding": ((1, 0), (0, 2)), "stride": (1, 2)}
    return [
        *made,
        Sample((make(2, 4, 5, 3).T, make(1, 3, 5, 2).T, None)),
        Sample((make(1, 2, 4, 5), make(3, 2, 2, 3), None), uneven),
    ]


@op(
    infer=infer_conv,
    kinds=KINDS,
    lower=lambda x, weight, bias, **attrs: lower_forward(x, weight, bias, window("conv", weight.spec, **attrs)),
    vjp=(
        lambda g, weight, x_shape, stride, padding, dilation, groups: conv_input_grad(
            g, weight, _spatial(x_shape, weight.shape), stride, padding, dilation, groups
        ),
        lambda g, x, weight_shape, stride, padding, dilation, groups: conv_weight_grad(
            x, g, weight_shape[2:], stride, padding, dilation, groups
        ),
        _bias_grad,
    ),
    jvp=lambda dx, dweight, dbias, x, weight, stride, padding, dilation, groups: add(
        conv(dx, weight, None, stride, padding, dilation, groups),
        conv(x, dweight, dbias, stride, padding, dilation, groups),
    ),
    reference=reference.conv,
    samples=_convs,
    errors=(
        bad(ShapeError, "conv: argument 'weight': expected two axes of channels", (1, 3), (2, 3)),
        bad(ShapeError, "one or more of a kernel, of at least 1, got shape (2, 3, 0)", (1, 3, 4), (2, 3, 0)),
        bad(ShapeError, "argument 'x': expected shape (*Bs, 3, S1) to fit weight and groups", (1, 2, 4), (2, 3, 1)),
        bad(ShapeError, "argument 'x': expected shape (*Bs, 3, S1, S2)", (3, 4), (2, 3, 1, 1)),
        bad(ShapeError, "argument 'bias': expected shape (2,), got (3,)", (1, 3, 4), (2, 3, 1), (3,)),
        bad(ShapeError, "'weight': expected a number of channels that 2 groups", (1, 4, 4), (3, 2, 1), groups=2),
        bad(ShapeError, "expected 'same', 'valid' or numbers, got 'full'", (1, 3, 4), (2, 3, 1), padding="full"),
        bad(ShapeError, "expected numbers where the stride", (1, 3, 4), (2, 3, 1), padding="same", stride=2),
        bad(ShapeError, "'x': expected spatial sizes that leave a result of at least 1", (1, 3, 4), (2, 3, 5)),
    ),
    covers=("conv",),
    batch_axis={"x": 0},
)
def conv(
    x: Gradual[F] | Constant,
    weight: Gradual[F] | Constant,
    bias: Gradual[F] | Constant | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Gradual[F]:
    """The cross-correlation of x (*Bs, C, *spatial) with a weight (O, C/groups, *kernel), plus bias (O,), as PyTorch's.

    The weight says how many axes are spatial. Numbers are for all of them, or one for each; "same" padding keeps
    the sizes and has an odd cell at the end; pairs give each axis its padding (before, behind).

    Source: torch.nn.functional.conv1d, conv2d and conv3d; Dumoulin and Visin (2016) for the sizes.
    Shapes: x (*Bs, C, *spatial), weight (O, C / groups, *kernel), bias (O,) or None -> (*Bs, O, *windows); on each axis
        ``floor((size + before + behind - dilation (kernel - 1) - 1) / stride) + 1`` windows

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 2.0, 4.0]])
    >>> ops.conv(x, [[[1.0, -1.0]]]).numpy()
    array([[-1., -2.]])
    """
    ...


# ------------------------------------------------------------------ its adjoints


def _input_grads(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, dict[str, Any]], ...] = (
        ((2, 3, 4, 5), (3, 4, 3, 3), {"size": (4, 5), "padding": 1}),
        ((2, 4, 3, 3), (4, 3, 2, 3), {"size": (6, 7), "stride": (2, 3), "padding": (0, 2), "groups": 2}),
        ((2, 3, 6), (3, 1, 4), {"size": (6,), "padding": "same"}),
        ((2, 2, 3), (2, 2, 3), {"size": (9,), "stride": 2, "dilation": 2, "padding": 1}),
        ((2, 2, 4), (2, 2, 3), {"size": (4,), "padding": ((2, 0),)}),
    )
    return [Sample((make(*g), make(*w)), {**DEFAULTS, **attrs}) for g, w, attrs in cases]


@op(
    infer=infer_input_grad,
    kinds=KINDS | {"size": replace(SIZES, alone=False)},
    lower=lambda cotangent, weight, size, **attrs: lower_adjoint(
        cotangent, weight, None, window("conv_input_grad", weight.spec, **attrs), size
    ),
    vjp=(
        lambda g, weight, cotangent_shape, stride, padding, dilation, groups: _at(
            conv(g, weight, None, stride, padding, dilation, groups), cotangent_shape, weight.shape
        ),
        lambda g, cotangent, weight_shape, stride, padding, dilation, groups: conv_weight_grad(
            g, cotangent, weight_shape[2:], stride, padding, dilation, groups
        ),
    ),
    jvp=lambda dcotangent, dweight, cotangent, weight, size, stride, padding, dilation, groups: add(
        conv_input_grad(dcotangent, weight, size, stride, padding, dilation, groups),
        conv_input_grad(cotangent, dweight, size, stride, padding, dilation, groups),
    ),
    reference=reference.conv_input_grad,
    samples=_input_grads,
    errors=(
        bad(
            ShapeError,
            "conv_input_grad: argument 'cotangent': expected at most (2,) positions for a size of (4,), got (3,)",
            (1, 2, 3), (2, 3, 3), size=(4,), **DEFAULTS,
        ),
    ),
    batch_axis={"cotangent": 0},
    private=True,
)  # fmt: skip
def conv_input_grad(
    cotangent: Gradual[F],
    weight: Gradual[F],
    size: Sizes,
    stride: PerAxis,
    padding: Padding,
    dilation: PerAxis,
    groups: int,
) -> Gradual[F]:
    """The gradient of `conv` by an input whose spatial sizes are ``size``."""
    ...


def _weight_grads(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, dict[str, Any]], ...] = (
        ((2, 3, 5, 7), (2, 4, 5, 7), {"kernel": (3, 3), "padding": 1}),
        ((3, 4, 12, 14), (3, 2, 12, 14), {"kernel": (2, 2), "padding": "same", "groups": 2}),
        ((2, 2, 9), (2, 3, 3), {"kernel": (3,), "stride": 2, "dilation": 2, "padding": 1}),
        ((0, 2, 4), (0, 3, 2), {"kernel": (3,)}),
    )
    return [Sample((make(*x), make(*g)), {**DEFAULTS, **attrs}) for x, g, attrs in cases]


@op(
    infer=infer_weight_grad,
    kinds=KINDS,
    lower=lambda x, cotangent, kernel, **attrs: lower_weight(
        x, cotangent, weight_window(x.spec, cotangent.spec, kernel, **attrs)
    ),
    vjp=(
        lambda g, cotangent, x_shape, stride, padding, dilation, groups: conv_input_grad(
            cotangent, g, _spatial(x_shape, g.shape), stride, padding, dilation, groups
        ),
        lambda g, x, cotangent_shape, stride, padding, dilation, groups: _at(
            conv(x, g, None, stride, padding, dilation, groups), cotangent_shape, g.shape
        ),
    ),
    jvp=lambda dx, dcotangent, x, cotangent, kernel, stride, padding, dilation, groups: add(
        conv_weight_grad(dx, cotangent, kernel, stride, padding, dilation, groups),
        conv_weight_grad(x, dcotangent, kernel, stride, padding, dilation, groups),
    ),
    reference=reference.conv_weight_grad,
    samples=_weight_grads,
    errors=(
        bad(
            ShapeError,
            "conv_weight_grad: argument 'cotangent': expected at most (2,) positions for x of (4,), got (3,)",
            (1, 2, 4), (1, 3, 3), kernel=(3,), **DEFAULTS,
        ),
        bad(ShapeError, "'x': expected leading axes (2,) and", (1, 2, 4), (2, 3, 2), kernel=(3,), **DEFAULTS),
        bad(ShapeError, "'kernel': expected fewer axes than x (1,)", (1,), (2, 3, 2), kernel=(3,), **DEFAULTS),
    ),
    excused={"batch": "the gradients of all samples are added"},
    private=True,
)  # fmt: skip
def conv_weight_grad(
    x: Gradual[F],
    cotangent: Gradual[F],
    kernel: Sizes,
    stride: PerAxis,
    padding: Padding,
    dilation: PerAxis,
    groups: int,
) -> Gradual[F]:
    """The gradient of `conv` by its weight, whose spatial sizes are ``kernel``."""
    ...


# ------------------------------------------------------------------ transposed convolution


def _conv_transposes(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, int, dict[str, Any]], ...] = (
        ((2, 3, 4, 3), (3, 2, 3, 3), 2, {"padding": 1}),
        ((2, 4, 3, 2), (4, 3, 2, 3), 6, {"stride": (2, 3), "padding": (0, 1), "output_padding": (1, 2), "groups": 2}),
        ((2, 2, 4), (2, 3, 3), 3, {"dilation": 3, "output_padding": 2, "stride": 2}),
        ((0, 2, 4), (2, 3, 3), 3, {}),
        ((1, 0, 3), (0, 2, 2), 2, {}),
        ((1, 2, 2, 2, 2), (2, 1, 2, 1, 3), 1, {"stride": 2}),
    )
    made = [Sample((make(*x), make(*w), make(n)), attrs) for x, w, n, attrs in cases]
    return [
        *made,
        Sample((make(3, 2, 4).T, make(2, 3, 2).T, None)),
        Sample((make(1, 2, 4), make(2, 3, 3), None), {"padding": ((2, 1),)}),
    ]


@op(
    infer=infer_conv_transpose,
    kinds=KINDS | {"output_padding": SIZES},
    lower=lambda x, weight, bias, **attrs: lower_adjoint(x, weight, bias, *transposed(x.spec, weight.spec, **attrs)),
    vjp=(
        lambda g, weight, x_shape, stride, padding, dilation, groups: _at(
            conv(g, weight, None, stride, padding, dilation, groups), x_shape, weight.shape
        ),
        lambda g, x, weight_shape, stride, padding, dilation, groups: conv_weight_grad(
            g, x, weight_shape[2:], stride, padding, dilation, groups
        ),
        _bias_grad,
    ),
    jvp=lambda dx, dweight, dbias, x, weight, stride, padding, output_padding, groups, dilation: add(
        conv_transpose(dx, weight, None, stride, padding, output_padding, groups, dilation),
        conv_transpose(x, dweight, dbias, stride, padding, output_padding, groups, dilation),
    ),
    reference=reference.conv_transpose,
    samples=_conv_transposes,
    errors=(
        bad(ShapeError, "'x': expected shape (*Bs, 3, S1) to fit weight and groups", (1, 2, 4), (3, 2, 1)),
        bad(ShapeError, "conv_transpose: argument 'bias': expected shape (2,), got (3,)", (1, 3, 4), (3, 2, 1), (3,)),
        bad(ShapeError, "'output_padding': expected less than the", (1, 3, 4), (3, 2, 1), output_padding=1),
        bad(DTypeError, "'padding': expected a whole number, a tuple", (1, 3, 4), (3, 2, 1), padding="same"),
        bad(ShapeError, "expected spatial sizes that leave a result of at", (1, 3, 1), (3, 2, 1), padding=1),
        bad(ShapeError, "'weight': expected two axes of channels", (1, 3), (3, 2)),
    ),
    covers=("conv_transpose",),
    batch_axis={"x": 0},
)
def conv_transpose(
    x: Gradual[F] | Constant,
    weight: Gradual[F] | Constant,
    bias: Gradual[F] | Constant | None = None,
    stride: PerAxis = 1,
    padding: PerSide = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Gradual[F]:
    """The transposed convolution of x (*Bs, C, *spatial) with a weight (C, O/groups, *kernel), plus bias, as PyTorch's.

    It is the gradient of `conv` by its input. ``output_padding`` says how many cells more the result has at the end.

    Source: torch.nn.functional.conv_transpose1d, conv_transpose2d and conv_transpose3d; Dumoulin and Visin (2016).
    Shapes: x (*Bs, C, *spatial), weight (C, O / groups, *kernel), bias (O,) or None -> (*Bs, O, *sizes); on each axis
        ``(size - 1) stride - before - behind + dilation (kernel - 1) + output_padding + 1``

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 2.0, 4.0]])
    >>> ops.conv_transpose(x, [[[1.0, -1.0]]]).numpy()
    array([[ 1.,  1.,  2., -4.]])
    """
    ...
