"""Random numbers as ops: functions of a seed, a step that is a value, a micro-batch and the number of the draw.

Here the uniform numbers and dropout, which compares with them; other distributions stand in `draws`.
"""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.math.exact import difference, quotient
from ...numerics.sizes import Sizes
from ...record.derivative import NO_GRAD
from ...record.kinds.values import PROBABILITY
from ...record.lowering import Slot
from ...record.op_decorator import op
from ...record.samples import Make, Sample
from ...record.types import F, S
from ...values.dtypes import DType, f64, i64
from ...values.spec import Spec
from ...var.var import Gradual, Var
from ..elementwise.select import element_type
from . import kernels, reference
from .stream import (
    LAST,
    PLACE,
    call_drawing,
    drawn,
    refused,
    refused_floats,
    require_coordinates,
    require_float,
    samples_of_floats,
)


def _infer_uniform(step: Spec, shape: Sizes, dtype: Any, **key: int) -> Spec:
    require_float("uniform", dtype)
    return drawn("uniform", shape, dtype, 2, **key)


def _lower_uniform(step: Slot, shape: Sizes, dtype: Any, **key: int) -> Slot:
    out = Spec(shape, element_type(dtype))
    return call_drawing(kernels.uniform, "uniform", [step], out, 2 if out.dtype == f64.dtype else 1, **key)


@op(
    infer=_infer_uniform,
    lower=_lower_uniform,
    along=NO_GRAD,
    reference=reference.uniform,
    samples=samples_of_floats(
        (0, (), {}), (3, (2, 3, 50), LAST), (2**32 - 2, (129,), {"seed": 1 << 33}), (1, (0, 4), {})
    ),
    errors=refused_floats("uniform", 2),
    excused=PLACE,
)
def uniform(
    step: Var[i64],
    shape: tuple[int, ...],
    dtype: str | type[DType] = "float32",
    seed: int = 0,
    micro_batch: int = 0,
    ordinal: int = 0,
) -> Gradual[Any]:
    """Independent numbers from [0, 1): those of ``dgrr.tape.numerics.math.random.uniform`` for these coordinates.

    Source: Philox 4x32-10 of Salmon, Moraes, Dror and Shaw (2011), Parallel random numbers: as easy as 1, 2, 3.
    Shapes: step () -> shape
    Dtypes: step int64; the result float32 or float64, as ``dtype`` says.

    >>> from dgrr.tape import Tape, ops
    >>> ops.uniform(Tape().leaf(0), (3,), seed=7).numpy().round(4)
    array([0.9546, 0.7502, 0.1142], dtype=float32)
    """
    ...


def _infer_dropout(x: Spec, step: Spec, p: float, seed: int, micro_batch: int, ordinal: int) -> Spec:
    if step.shape:
        raise ShapeError(f"dropout: argument 'step': expected shape (), got {step.shape}")
    require_coordinates("dropout", seed=seed, micro_batch=micro_batch, ordinal=ordinal)
    return x


def _factor(p: float) -> float:
    """``1 / (1 - p)``, rounded once; nothing is kept for p of 1."""
    return 0.0 if p == 1 else quotient(1.0, difference(1.0, p))


def _lower_dropout(x: Slot, step: Slot, p: float, **key: int) -> Slot:
    return call_drawing(kernels.dropout, "dropout", [x, step], x.spec, 1, float(p), _factor(p), **key)


def _reference_dropout(x: Any, step: Any, p: float = 0.5, **key: int) -> Any:
    numbers = reference.uniform(step, x.shape, np.float32, **key)
    factor = x.dtype.type(0 if p == 1 else 1 / (1 - p))
    return np.where(numbers.astype(np.float64) >= p, np.asarray(x * factor), np.zeros((), x.dtype))


def _dropouts(make: Make) -> list[Sample]:
    special = np.array([np.inf, -np.inf, np.nan, -0.0] * 20, make.dtype)
    key = {"seed": 7 << 40, "micro_batch": 3, "ordinal": 2}
    some = [Sample((make(3, 70), np.array(9)), {"p": p, **key}) for p in (0.0, 0.1, 0.75, 1.0)]
    return [
        *some,
        Sample((special, np.array(0)), {"p": 0.5}),
        Sample((make(4, 33).T, np.array(2))),
        Sample((make(0, 3), np.array(1))),
    ]


@op(
    infer=_infer_dropout,
    lower=_lower_dropout,
    vjp=(lambda g, step, p, seed, micro_batch, ordinal: dropout(g, step, p, seed, micro_batch, ordinal), NO_GRAD),
    jvp=lambda dx, step, p, seed, micro_batch, ordinal: dropout(dx, step, p, seed, micro_batch, ordinal),
    reference=_reference_dropout,
    samples=_dropouts,
    errors=(*refused("dropout", (3,), np.array(0)),),
    kinds={"p": PROBABILITY},
    excused=PLACE,
)
def dropout(
    x: Var[F, *S], step: Var[i64], p: float = 0.5, seed: int = 0, micro_batch: int = 0, ordinal: int = 0
) -> Var[F, *S]:
    """``x / (1 - p)`` where `uniform` in float32 draws at least ``p``, else +0, even for infinities and NaN.

    Both element types keep the same elements. The factor is rounded once.

    Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov (2014), scaled while training as
        torch.nn.functional.dropout.

    >>> from dgrr.tape import Tape, ops
    >>> ops.dropout(Tape().leaf(np.ones(4)), 0, p=0.5, seed=7).numpy()
    array([2., 2., 0., 0.])
    """
    ...
