"""Normalisation by statistics that are given: batch normalisation of a model that is no longer trained."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any, cast

import numpy as np

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import NOT_NEGATIVE
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import C, Constant, F, Operand
from ...values.spec import Spec
from ...var.var import Gradual
from ..elementwise.arithmetic import add, mul, neg, scale, sub
from ..elementwise.functions import rsqrt, shift
from ..elementwise.kernels import functions as kernels_functions
from . import reference
from .form import Form, apply, check_parameters
from .normalize import along_channels, sum_of_channels, weighted


def _infer(
    x: Spec, mean: Spec, var: Spec, weight: Spec | None, bias: Spec | None, eps: float, channel_axis: int
) -> Spec:
    given = {"mean": mean, "var": var, "weight": weight, "bias": bias}
    return check_parameters("batch_norm_inference", x, Form(eps, channel_axis, 0), **given)


def _lower(
    x: Slot, mean: Slot, var: Slot, weight: Slot | None, bias: Slot | None, eps: float, channel_axis: int
) -> Slot:
    inv = elementwise(kernels_functions.rsqrt, elementwise(kernels_functions.shift, var, attrs=(float(eps),)))
    return apply(x, mean, inv, weight, bias, channel_axis)


def _inverse(var: Any, eps: float) -> Any:
    return rsqrt(shift(var, eps))


def _normal(x: Any, mean: Any, var: Any, eps: float, channel_axis: int) -> Any:
    """``(x - mean) * inv``: the op itself, which type checkers meet before they know its type."""
    return batch_norm_inference(x, mean, var, None, None, eps, channel_axis)


def _by_x(g: Any, var: Any, weight: Any, eps: float, channel_axis: int) -> Any:
    """``(g * weight) * inv``; linear in g, and so the tangent too."""
    return weighted(weighted(g, weight, channel_axis), _inverse(var, eps), channel_axis)


def _by_mean(g: Any, var: Any, weight: Any, eps: float, channel_axis: int) -> Any:
    return neg(sum_of_channels(_by_x(g, var, weight, eps, channel_axis), channel_axis))


def _bend(var: Any, eps: float) -> Any:
    """The derivative of the logarithm of inv by the variance: ``-1/2 inv^2``."""
    inv = _inverse(var, eps)
    return scale(mul(inv, inv), -0.5)


def _by_var(g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float, channel_axis: int) -> Any:
    """``(sum of (g * weight) * x') * (-1/2 inv^2)``."""
    products = mul(weighted(g, weight, channel_axis), _normal(x, mean, var, eps, channel_axis))
    return mul(sum_of_channels(products, channel_axis), _bend(var, eps))


def _jvp(
    dx: Any, dmean: Any, dvar: Any, dweight: Any, dbias: Any,
    x: Any, mean: Any, var: Any, weight: Any, eps: float, channel_axis: int,
) -> Any:  # fmt: skip
    shape = tuple(x.shape)
    normal = _normal(x, mean, var, eps, channel_axis)
    shifted = _by_x(sub(dx, along_channels(dmean, shape, channel_axis)), var, weight, eps, channel_axis)
    bent = weighted(weighted(normal, mul(dvar, _bend(var, eps)), channel_axis), weight, channel_axis)
    tangent = add(shifted, bent)
    if dweight is not None:
        tangent = add(tangent, weighted(normal, dweight, channel_axis))
    return tangent if dbias is None else add(tangent, along_channels(dbias, shape, channel_axis))


def _samples(make: Make) -> list[Sample]:
    """Channels first and last, with any of the parameters, empty, strided, with a variance below 0."""

    def sample(
        shape: Sizes, weight: bool = True, bias: bool = True, channel_axis: int = 1, eps: float = 1e-5
    ) -> Sample:
        c, attrs = shape[channel_axis], {"channel_axis": channel_axis, "eps": eps}
        given = (make(*shape), make(c), make.positive(c), make(c) if weight else None, make(c) if bias else None)
        return Sample(given, attrs)

    negative = np.array([-1.0, 0.0, 2.0], make.dtype)
    shapes: tuple[Sizes, ...] = ((3, 2, 5), (2, 3, 3, 7), (5, 3), (2, 70), (3, 2, 1), (0, 3, 2), (2, 0), (2, 3, 0))
    some = ((True, False), (False, True), (False, False))
    return [
        *(sample(shape) for shape in shapes),
        sample((3, 2, 70), eps=0.5),
        sample((3, 2, 4), channel_axis=-1),
        *(sample(shape, *given) for shape in shapes[1:3] for given in some),
        Sample((make(4, 3, 2).T, make(6)[::2], make.positive(6)[::2], None, None)),
        Sample((make(2, 3), make(3), negative, None, None)),
    ]


@op(
    infer=_infer,
    lower=_lower,
    vjp=(
        _by_x,
        _by_mean,
        _by_var,
        lambda g, x, mean, var, eps, channel_axis: sum_of_channels(
            mul(g, _normal(x, mean, var, eps, channel_axis)), channel_axis
        ),
        lambda g, channel_axis: sum_of_channels(g, channel_axis),
    ),
    jvp=cast(Any, _jvp),
    reference=reference.inference,
    samples=_samples,
    errors=(
        bad(ShapeError, "batch_norm_inference: argument 'mean': expected shape (3,), got (2,)", (4, 3), (2,), (2,)),
        bad(
            ShapeError,
            "batch_norm_inference: argument 'channel_axis': expected an axis from -2 to 1, got 2",
            (4, 3),
            (3,),
            (3,),
            channel_axis=2,
        ),
    ),
    kinds={"eps": NOT_NEGATIVE},
    batch_axis={"x": 0},
)
def batch_norm_inference(
    x: Gradual[F] | Constant,
    mean: Operand[F, C],
    var: Operand[F, C],
    weight: Operand[F, C] | None = None,
    bias: Operand[F, C] | None = None,
    eps: float = 1e-5,
    channel_axis: int = 1,
) -> Gradual[F]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with a given mean and variance for each channel.

    What `batch_norm` is once a model is trained. NaN in channels whose ``var + eps`` is below 0.

    Source: Ioffe and Szegedy (2015), algorithm 2.
    Shapes: x (..., C, ...), mean (C,), var (C,), weight (C,) or None, bias (C,) or None -> as x; C is the size of
        ``channel_axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.batch_norm_inference(Tape().leaf([[1.0, 6.0]]), [0.0, 2.0], [1.0, 4.0], eps=0.0).numpy()
    array([[1., 2.]])
    """
    ...
