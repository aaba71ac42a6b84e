"""Normalisations of the channels of each sample, in groups or one by one."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import NOT_NEGATIVE
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import B, C, F, Operand, S
from ...values.spec import Spec
from ...var.var import Var
from . import reference
from .form import Form, check, lower
from .norm import parameterised
from .normalize import normalize_grad, normalize_jvp, normalize_weight_grad, sum_of_channels


def _infer_groups(x: Spec, weight: Spec | None, bias: Spec | None, num_groups: int, eps: float) -> Spec:
    if num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(
            f"grouped_norm: argument 'num_groups': expected a divisor of the {x.shape[1]} channels of {x.shape}, "
            f"got {num_groups}"
        )
    return check("grouped_norm", x, Form(eps, 1, num_groups))


def _channels(make: Make, **attrs: Any) -> list[Sample]:
    shapes: tuple[Sizes, ...] = ((3, 4, 5), (2, 4, 3, 7), (2, 4), (2, 4, 70), (0, 4, 2), (2, 4, 0), (2, 4, 1))
    return [
        *parameterised(make, *shapes, axis=1, **attrs),
        Sample((make(2, 4, 5), None, None), attrs),
        Sample((make(2, 4, 5), make(4), None), attrs),
        Sample((make(5, 4, 2).T, None, make(8)[::2]), attrs),
    ]


@op(
    infer=_infer_groups,
    lower=lambda x, weight, bias, num_groups, eps: lower(x, weight, bias, Form(eps, 1, num_groups)),
    vjp=(
        lambda g, x, weight, num_groups, eps: normalize_grad(g, x, weight, Form(eps, 1, num_groups)),
        lambda g, x, num_groups, eps: normalize_weight_grad(g, x, Form(eps, 1, num_groups)),
        lambda g: sum_of_channels(g, 1),
    ),
    jvp=lambda dx, dweight, dbias, x, weight, num_groups, eps: normalize_jvp(
        dx, dweight, dbias, x, weight, Form(eps, 1, num_groups)
    ),
    reference=lambda x, weight, bias, num_groups, eps=1e-5: reference.normalize(
        x, weight, bias, Form(eps, 1, num_groups)
    ),
    samples=lambda make: [
        *_channels(make, num_groups=2),
        *parameterised(make, (2, 4, 3), (3, 4), axis=1, num_groups=1),
        *parameterised(make, (2, 3, 1500), axis=1, num_groups=1, eps=0.5),
        *parameterised(make, (2, 4), axis=1, num_groups=4),
        *parameterised(make, (2, 0, 3), axis=1, num_groups=3),
    ],
    errors=(
        bad(
            ShapeError,
            "grouped_norm: argument 'num_groups': expected a divisor of the 3 channels of (2, 3, 5), got 2",
            (2, 3, 5),
            num_groups=2,
        ),
        bad(ShapeError, "channels of (2, 3), got 0", (2, 3), num_groups=0),
        bad(ShapeError, "channels of (2, 3), got -3", (2, 3), num_groups=-3),
    ),
    kinds={"eps": NOT_NEGATIVE},
    batch_axis={"x": 0},
)
def grouped_norm(
    x: Var[F, B, C, *S],
    weight: Operand[F, C] | None = None,
    bias: Operand[F, C] | None = None,
    num_groups: int = 1,
    eps: float = 1e-5,
) -> Var[F, B, C, *S]:
    """`group_norm` as an op, whose arrays come before its attributes.

    Source: Wu and He (2018).

    >>> from dgrr.tape import Tape, ops
    >>> ops.OPS["grouped_norm"](Tape().leaf([[1.0, 3.0, 6.0, 2.0]]), None, None, 2, 0.0).numpy()
    array([[-1.,  1.,  1., -1.]])
    """
    ...


def group_norm(
    x: Var[F, B, C, *S],
    num_groups: int,
    weight: Operand[F, C] | None = None,
    bias: Operand[F, C] | None = None,
    eps: float = 1e-5,
) -> Var[F, B, C, *S]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the channels of a group and all positions of a sample.

    The groups are of neighbouring channels. One node, `grouped_norm`.

    Source: Wu and He (2018); torch.nn.functional.group_norm.
    Shapes: x (B, C, *S), weight (C,) or None, bias (C,) or None -> (B, C, *S)
    Dtypes: x, weight, bias and the result float32 or float64, all alike.
    Raises:
        ShapeError: x has fewer than two axes, ``num_groups`` does not divide C, or weight or bias does not fit.
        DTypeError: x, weight or bias has another dtype.
        DomainError: ``eps`` is no finite number of at least 0.

    >>> from dgrr.tape import Tape, ops
    >>> ops.group_norm(Tape().leaf([[1.0, 3.0, 6.0, 2.0]]), 2, eps=0.0).numpy()
    array([[-1.,  1.,  1., -1.]])
    """
    return grouped_norm(x, weight, bias, num_groups, eps)


@op(
    infer=lambda x, weight, bias, eps: check("instance_norm", x, _own(x.shape, eps)),
    lower=lambda x, weight, bias, eps: lower(x, weight, bias, _own(x.shape, eps)),
    vjp=(
        lambda g, x, weight, x_shape, eps: normalize_grad(g, x, weight, _own(x_shape, eps)),
        lambda g, x, x_shape, eps: normalize_weight_grad(g, x, _own(x_shape, eps)),
        lambda g: sum_of_channels(g, 1),
    ),
    jvp=lambda dx, dweight, dbias, x, weight, x_shape, eps: normalize_jvp(
        dx, dweight, dbias, x, weight, _own(x_shape, eps)
    ),
    reference=lambda x, weight, bias, eps=1e-5: reference.normalize(x, weight, bias, _own(x.shape, eps)),
    samples=_channels,
    kinds={"eps": NOT_NEGATIVE},
    batch_axis={"x": 0},
)
def instance_norm(
    x: Var[F, B, C, *S], weight: Operand[F, C] | None = None, bias: Operand[F, C] | None = None, eps: float = 1e-5
) -> Var[F, B, C, *S]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the positions of each channel of each sample.

    Source: Ulyanov, Vedaldi and Lempitsky (2016); torch.nn.functional.instance_norm.

    >>> from dgrr.tape import Tape, ops
    >>> ops.instance_norm(Tape().leaf([[[1.0, 3.0], [6.0, 2.0]]]), eps=0.0).numpy()
    array([[[-1.,  1.],
            [ 1., -1.]]])
    """
    ...


def _own(shape: Sizes, eps: float) -> Form:
    """Each channel is a group of its own."""
    return Form(eps, 1, max(shape[1], 1))
