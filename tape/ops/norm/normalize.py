"""Normalisation of any `Form`, its gradients by the array and by the weight, and the gradients of those.

The public norms are this op in other words, and their derivatives are these gradients. With ``x'`` the normalised
array, ``h`` the cotangent times the weight and means over what is normalised together, the gradient by the array is
``D(h) = inv * (h - mean(h) - x' * mean(h * x'))`` (Ioffe and Szegedy, 2015), a symmetric linear map of ``h``.
"""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

from ...errors import DomainError
from ...numerics.sizes import Sizes
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import C, F
from ...values.spec import Spec
from ...var.var import Gradual, Var
from ..elementwise.arithmetic import add, mul, neg, sub
from ..elementwise.functions import rsqrt, shift
from ..reduce.reduce import broadcast_to, reduce_mean, reduce_sum
from ..shape.reshape import reshape
from . import reference
from .form import Form, check, check_parameters, lower, lower_grad, lower_weight_grad

Plain = tuple[float, int, int, bool]
"""A `Form` as an attribute."""
EXCUSE = {"batch": "with 0 groups the batch is normalised"}


def along_channels(parameter: Any, shape: Sizes, channel_axis: int) -> Any:
    """Of ops: one number for each channel, repeated to a shape."""
    axis = channel_axis % len(shape)
    return broadcast_to(reshape(parameter, (shape[axis], *(1,) * (len(shape) - 1 - axis))), shape)


def sum_of_channels(x: Any, channel_axis: int) -> Any:
    """Of ops: the sum over all axes but the channels', the adjoint of `along_channels`."""
    return reduce_sum(x, Form(0.0, channel_axis).others(tuple(x.shape)))


def weighted(x: Any, weight: Any, channel_axis: int) -> Any:
    """Of ops: ``x * weight``, or ``x`` without one."""
    return x if weight is None else mul(x, along_channels(weight, tuple(x.shape), channel_axis))


def _mean(x: Any, form: Form) -> Any:
    """Of ops: at each element the mean of those that it is normalised with."""
    shape: Sizes = tuple(x.shape)
    if not form.groups:
        return broadcast_to(reduce_mean(x, form.others(shape), True), shape)
    rows = form.rows(shape)
    return reshape(broadcast_to(reduce_mean(reshape(x, rows), 1, True), rows), shape)


def _inverse_deviation(x: Any, form: Form) -> Any:
    """Of ops: what each element is multiplied by."""
    deviation: Any = x
    if form.centred:
        deviation = sub(x, _mean(x, form))
    return rsqrt(shift(_mean(mul(deviation, deviation), form), form.eps))


def _slope(h: Any, x: Any, form: Plain) -> Any:
    """``D(h)``; the op itself, which type checkers meet before they know its type."""
    return normalize_grad(h, x, None, form)


def _curvature(u: Any, h: Any, x: Any, form: Plain) -> Any:
    """The gradient of ``<u, D(h)>`` by x: ``-inv * (x' mean(u D(h)) + D(u) mean(h x') + D(h) mean(u x'))``.

    It is symmetric in u and h, and so also the tangent of ``D(h)`` along ``u``.
    """
    own, normal, slope = Form(*form), normalize(x, None, None, form), _slope(h, x, form)
    first = mul(normal, _mean(mul(u, slope), own))
    second = mul(_slope(u, x, form), _mean(mul(h, normal), own))
    third = mul(slope, _mean(mul(u, normal), own))
    return neg(mul(_inverse_deviation(x, own), add(add(first, second), third)))


def normalize_jvp(dx: Any, dweight: Any, dbias: Any, x: Any, weight: Any, form: Plain) -> Any:
    """The tangent of `normalize`; parameters that are not given have none."""
    axis, shape = form[1], tuple(x.shape)
    tangent = weighted(_slope(dx, x, form), weight, axis)
    if dweight is not None:
        tangent = add(tangent, normalize(x, dweight, None, form))
    return tangent if dbias is None else add(tangent, along_channels(dbias, shape, axis))


FORMS: tuple[tuple[Sizes, Form], ...] = (
    ((3, 7), Form(1e-5)),
    ((2, 3, 21), Form(0.25, centred=False)),
    ((2, 6, 5), Form(1e-5, 1, 3)),
    ((3, 6), Form(1e-5, 1, 2)),
    ((3, 2, 5), Form(1e-5, 1, 0)),
    ((2, 3, 2), Form(0.25, 0, 0)),
    ((5, 3), Form(1e-5, -1, 0)),
    ((20, 3, 1), Form(1e-5, 1, 1)),
    ((4,), Form(1e-5)),
    ((4,), Form(0.25, 0, 2)),
)
"""Positions of a layer, groups of channels, channels over a batch and of one sample, and channels last."""


def _samples(make: Make, arrays: int, parameters: int) -> list[Sample]:
    """So many arrays of one shape and so many parameters, all given and then none, of each form."""
    made: list[Sample] = []
    for shape, form in FORMS:
        attrs = {"form": tuple(form)}
        given = tuple(make(*shape) for _ in range(arrays))
        channels = shape[form.channel_axis]
        made.append(Sample((*given, *(make(channels) for _ in range(parameters))), attrs))
    return [*made, *(Sample((*s.arrays[:arrays], *(None,) * parameters), s.attrs) for s in made if parameters)]


@op(
    infer=lambda x, weight, bias, form: check_parameters("normalize", x, Form(*form), weight=weight, bias=bias),
    lower=lambda x, weight, bias, form: lower(x, weight, bias, Form(*form)),
    vjp=(
        lambda g, x, weight, form: normalize_grad(g, x, weight, form),
        lambda g, x, form: normalize_weight_grad(g, x, form),
        lambda g, form: sum_of_channels(g, form[1]),
    ),
    jvp=normalize_jvp,
    reference=reference.normalize,
    samples=lambda make: _samples(make, 1, 2),
    errors=(
        bad(
            DomainError,
            "normalize: argument 'form': expected groups where the mean is not taken away, got 0",
            *((2, 3), None, None),
            form=(1e-5, 1, 0, False),
        ),
    ),
    excused=EXCUSE,
    private=True,
)
def normalize(x: Gradual[F], weight: Var[F, C] | None, bias: Var[F, C] | None, form: Plain) -> Gradual[F]:
    """``x' * weight + bias``, with one weight and one bias for each channel: every norm in other words."""
    ...


def _grad_jvp(ddy: Any, dx: Any, dweight: Any, dy: Any, x: Any, weight: Any, form: Plain) -> Any:
    axis = form[1]
    tangent = add(normalize_grad(ddy, x, weight, form), _curvature(dx, weighted(dy, weight, axis), x, form))
    return tangent if dweight is None else add(tangent, _slope(weighted(dy, dweight, axis), x, form))


@op(
    infer=lambda dy, x, weight, form: check_parameters("normalize_grad", x, Form(*form), weight=weight),
    lower=lambda dy, x, weight, form: lower_grad(dy, x, weight, Form(*form)),
    vjp=(
        lambda g, x, weight, form: weighted(_slope(g, x, form), weight, form[1]),
        lambda g, dy, x, weight, form: _curvature(g, weighted(dy, weight, form[1]), x, form),
        lambda g, dy, x, form: sum_of_channels(mul(dy, _slope(g, x, form)), form[1]),
    ),
    jvp=_grad_jvp,
    reference=reference.normalize_grad,
    samples=lambda make: _samples(make, 2, 1),
    excused=EXCUSE,
    private=True,
)
def normalize_grad(dy: Gradual[F], x: Gradual[F], weight: Var[F, C] | None, form: Plain) -> Gradual[F]:
    """``D(dy * weight)``: the gradient of `normalize` by x."""
    ...


@op(
    infer=lambda dy, x, form: Spec((check("normalize_weight_grad", x, Form(*form)).shape[form[1]],), x.dtype),
    lower=lambda dy, x, form: lower_weight_grad(dy, x, Form(*form)),
    vjp=(
        lambda g, x, form: normalize(x, g, None, form),
        lambda g, dy, x, form: normalize_grad(dy, x, g, form),
    ),
    jvp=lambda ddy, dx, dy, x, form: add(
        normalize_weight_grad(ddy, x, form), sum_of_channels(mul(dy, _slope(dx, x, form)), form[1])
    ),
    reference=reference.normalize_weight_grad,
    samples=lambda make: _samples(make, 2, 0),
    excused=EXCUSE,
    private=True,
)
def normalize_weight_grad(dy: Gradual[F], x: Gradual[F], form: Plain) -> Gradual[F]:
    """The sum of ``dy * x'`` over all axes but the channels': the gradient of `normalize` by the weight."""
    ...
