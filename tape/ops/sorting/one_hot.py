"""Positions as rows of zeros with a one."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, DTypeError
from ...record.derivative import NO_GRAD
from ...record.kinds.values import at_least
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import S
from ...values.dtypes import FLOATS, DType, i64
from ...values.spec import Spec
from ...var.var import Gradual, Var
from ..elementwise.select import element_type
from . import kernels


def _infer(indices: Spec, num_classes: int, dtype: Any) -> Spec:
    try:
        made: Any = element_type(dtype)
    except DTypeError:
        made = repr(dtype)
    if made not in FLOATS:
        raise DTypeError(f"one_hot: argument 'dtype': expected float32 or float64, got {made}")
    return Spec((*indices.shape, num_classes), made)


def _lower(indices: Slot, num_classes: int, dtype: Any) -> Slot:
    out = _infer(indices.spec, num_classes, dtype)
    said = f"one_hot: argument 'indices': expected 0 to {num_classes - 1}, got {{value}} at position {{position}}"
    ints = (indices.spec.size, num_classes)
    return call(kernels.one_hot, [indices], out.shape, *ints, dtype=out.dtype, element=out.dtype, refusal=said)


def _reference(indices: Array, num_classes: int, dtype: Any = "float32") -> Array:
    return np.equal(indices[..., None], np.arange(num_classes)).astype(element_type(dtype))


def _samples(make: Make) -> list[Sample]:
    attrs = {"dtype": make.dtype.name}
    return [
        Sample((np.array([[2, 0], [1, 2]]),), {"num_classes": 3, **attrs}),
        Sample((np.array(0),), {"num_classes": 1, **attrs}),
        Sample((np.zeros((0, 2), np.int64),), {"num_classes": 0, **attrs}),
    ]


@op(
    infer=_infer,
    lower=_lower,
    along=NO_GRAD,
    reference=_reference,
    samples=_samples,
    errors=(
        bad(
            BoundsError,
            "one_hot: argument 'indices': expected 0 to 2, got 3 at position 1",
            np.array([0, 3, -1]),
            num_classes=3,
        ),
        bad(BoundsError, "expected 0 to 2, got -1 at position 0", np.array([-1]), num_classes=3),
        bad(
            DTypeError,
            "one_hot: argument 'dtype': expected float32 or float64, got int64",
            np.array([0]),
            num_classes=1,
            dtype="int64",
        ),
    ),
    kinds={"num_classes": at_least(0)},
    batch_axis={"indices": 0},
)
def one_hot(indices: Var[i64, *S], num_classes: int, dtype: str | type[DType] = "float32") -> Gradual[Any]:
    """For each index a row of ``num_classes`` zeros with a 1 at it; an index from the end is refused, as a label is.

    Source: torch.nn.functional.one_hot, but of floats; jax.nn.one_hot, but that it refuses what lies outside.
    Shapes: indices (*S) -> (*S, num_classes)
    Dtypes: indices int64; the result float32 or float64, as ``dtype`` says.

    >>> from dgrr.tape import Tape, ops
    >>> ops.one_hot(Tape().leaf([1, 0]), 3).numpy()
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    ...
