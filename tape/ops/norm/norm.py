"""Normalisations by the statistics of what is normalised: of layers, batches, groups and instances."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import AXIS, NOT_NEGATIVE
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, C, F, N, Operand
from ...var.var import Gradual, Var
from . import reference
from .form import Form, check, check_parameters, lower
from .normalize import normalize_grad, normalize_jvp, normalize_weight_grad, sum_of_channels

EPS = "expected a finite number of at least 0, got"


def parameterised(make: Make, *shapes: Sizes, axis: int = -1, count: int = 2, **attrs: Any) -> list[Sample]:
    """Arrays of these shapes with a parameter for each channel."""
    return [Sample((make(*s), *(make(s[axis]) for _ in range(count))), attrs) for s in shapes]


def _rows(make: Make, count: int) -> list[Sample]:
    """Rows of a layer: odd, long, none, empty, strided, constant, not finite, without parameters, another eps."""
    special = np.array([[1, np.inf, 2], [np.nan, 1, 2], [1e30, -1e30, 0], [-0.0, 0, -0.0]], make.dtype)
    none = (None,) * count
    return [
        *parameterised(make, (4, 10), (2, 3, 33), (0, 3), (3, 0), (3, 1), (2, 70), count=count),
        *parameterised(make, (2, 4100), count=count, eps=0.5),
        Sample((make(3, 5), *none)),
        Sample((make(3, 5), make(5), *none[1:])),
        Sample((make(5, 3).T, make(10)[::2], *none[1:])),
        Sample((make(2, 6) + make.dtype.type(100), *none)),
        Sample((special, *none)),
    ]


@op(
    infer=lambda x, weight, bias, eps: check("layer_norm", x, Form(eps)),
    lower=lambda x, weight, bias, eps: lower(x, weight, bias, Form(eps)),
    vjp=(
        lambda g, x, weight, eps: normalize_grad(g, x, weight, Form(eps)),
        lambda g, x, eps: normalize_weight_grad(g, x, Form(eps)),
        lambda g: sum_of_channels(g, -1),
    ),
    jvp=lambda dx, dweight, dbias, x, weight, eps: normalize_jvp(dx, dweight, dbias, x, weight, Form(eps)),
    reference=lambda x, weight, bias, eps=1e-5: reference.normalize(x, weight, bias, Form(eps)),
    samples=lambda make: _rows(make, 2),
    kinds={"eps": NOT_NEGATIVE},
    covers=("layer_norm",),
    batch_axis={"x": 0},
)
def layer_norm(
    x: Var[F, *Bs, N], weight: Operand[F, N] | None = None, bias: Operand[F, N] | None = None, eps: float = 1e-5
) -> Var[F, *Bs, N]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` along the last axis, with the biased variance, in two passes.

    Source: Ba, Kiros and Hinton (2016); torch.nn.functional.layer_norm.

    >>> from dgrr.tape import Tape, ops
    >>> ops.layer_norm(Tape().leaf([1.0, 3.0]), eps=0.0).numpy()
    array([-1.,  1.])
    """
    ...


@op(
    infer=lambda x, weight, eps: check("rms_norm", x, Form(eps)),
    lower=lambda x, weight, eps: lower(x, weight, None, Form(eps, centred=False)),
    vjp=(
        lambda g, x, weight, eps: normalize_grad(g, x, weight, Form(eps, centred=False)),
        lambda g, x, eps: normalize_weight_grad(g, x, Form(eps, centred=False)),
    ),
    jvp=lambda dx, dweight, x, weight, eps: normalize_jvp(dx, dweight, None, x, weight, Form(eps, centred=False)),
    reference=lambda x, weight, eps=1e-5: reference.normalize(x, weight, None, Form(eps, centred=False)),
    samples=lambda make: _rows(make, 1),
    kinds={"eps": NOT_NEGATIVE},
    batch_axis={"x": 0},
)
def rms_norm(x: Var[F, *Bs, N], weight: Operand[F, N] | None = None, eps: float = 1e-5) -> Var[F, *Bs, N]:
    """``x / sqrt(mean(x * x) + eps) * weight`` along the last axis.

    Source: Zhang and Sennrich (2019).

    >>> from dgrr.tape import Tape, ops
    >>> ops.rms_norm(Tape().leaf([1.0, 7.0]), eps=0.0).numpy()
    array([0.2, 1.4])
    """
    ...


def _batches(make: Make) -> list[Sample]:
    """Channels over a batch, with and without positions, of one sample, last; runs that end inside vectors."""
    empty = [Sample((make(*s), make(3), make(3))) for s in ((0, 3, 2), (2, 3, 0), (0, 3))]
    return [
        *parameterised(make, (4, 3, 5), (2, 3, 3, 7), (1, 3, 4), (5, 1, 3), (3, 2, 1), axis=1),
        *parameterised(make, (5, 3), (300, 2), (3, 70), (2, 0, 3), axis=1),
        *parameterised(make, (90, 2, 49), axis=1, eps=0.5),
        *parameterised(make, (3, 4, 5), (6,), axis=0, channel_axis=0),
        *parameterised(make, (3, 4, 5), channel_axis=-1),
        Sample((make(3, 2, 4), make(2), None)),
        Sample((make(3, 2, 4), None, make(2))),
        Sample((make(4, 3), None, make(3))),
        Sample((make(4, 3).T, None, None)),
        Sample((make(4, 3, 2).T, make(6)[::2], None)),
        *empty,
    ]


@op(
    infer=lambda x, weight, bias, eps, channel_axis: check_parameters(
        "batch_norm", x, Form(eps, channel_axis, 0), weight=weight, bias=bias
    ),
    lower=lambda x, weight, bias, eps, channel_axis: lower(x, weight, bias, Form(eps, channel_axis, 0)),
    vjp=(
        lambda g, x, weight, eps, channel_axis: normalize_grad(g, x, weight, Form(eps, channel_axis, 0)),
        lambda g, x, eps, channel_axis: normalize_weight_grad(g, x, Form(eps, channel_axis, 0)),
        lambda g, channel_axis: sum_of_channels(g, channel_axis),
    ),
    jvp=lambda dx, dweight, dbias, x, weight, eps, channel_axis: normalize_jvp(
        dx, dweight, dbias, x, weight, Form(eps, channel_axis, 0)
    ),
    reference=lambda x, weight, bias, eps=1e-5, channel_axis=1: reference.normalize(
        x, weight, bias, Form(eps, channel_axis, 0)
    ),
    samples=_batches,
    errors=(
        bad(ShapeError, "batch_norm: argument 'weight': expected shape (3,), got (4,)", (2, 3, 4), (4,)),
        bad(
            ShapeError, "batch_norm: argument 'bias': expected shape (4,), got (3,)", (4, 3), None, (3,), channel_axis=0
        ),
    ),
    kinds={"eps": NOT_NEGATIVE, "channel_axis": AXIS},
    covers=("batch_norm_channel_first",),
    excused={"batch": "its statistics are the batch's"},
)
def batch_norm(
    x: Gradual[F],
    weight: Var[F, C] | None = None,
    bias: Var[F, C] | None = None,
    eps: float = 1e-5,
    channel_axis: int = 1,
) -> Gradual[F]:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with each channel's mean and biased variance over all else.

    The statistics are this batch's; `batch_norm_inference` takes them as given. With ``channel_axis`` 0 the batch is
    one sample, (C, H, W).

    Source: Ioffe and Szegedy (2015), algorithm 1.
    Shapes: x (..., C, ...), weight (C,) or None, bias (C,) or None -> as x; C is the size of ``channel_axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.batch_norm(Tape().leaf([[1.0, 6.0], [3.0, 2.0]]), eps=0.0).numpy()
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    ...
