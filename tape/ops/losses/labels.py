"""What losses of integer labels share: their words for labels that do not fit, and their samples.

``ignore_index`` is the label of rows that are left out, ``label_smoothing`` the share that goes to every class.
"""

from typing import Any

import numpy as np

from ...errors import BoundsError, DTypeError, ShapeError
from ...record.samples import Bad, Make, Sample, bad
from ...values.dtypes import i64
from ...values.spec import Spec

LABEL = "{op}: argument 'labels': expected a class from 0 to {high}, got {{value}} at position {{position}}"
PLAIN: dict[str, Any] = {"label_smoothing": 0.0, "ignore_index": None}


def refusal(op_name: str, classes: int) -> str:
    """What a kernel says of a label that is no class."""
    return LABEL.format(op=op_name, high=classes - 1)


def outside(op_name: str, *arrays: Any, **attrs: Any) -> Bad:
    """A sample of such a label."""
    text = f"{op_name}: argument 'labels': expected a class from 0 to 2, got 3 at position 1"
    return bad(BoundsError, text, *arrays, **attrs)


def labels_advice(op_name: str, rows: Spec, labels: Spec) -> str:
    """What to do about rows and labels in the forms that other libraries take."""
    first, shape, given, whole = rows.shape[:1], rows.shape, labels.shape, labels.dtype == i64.dtype
    if len(shape) > 1 and given == shape:
        if not whole and op_name == "cross_entropy":
            return "give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)"
        return f"of one-hot rows take ops.argmax({'ops.cast(labels, np.float32)' if whole else 'labels'}, -1)"
    if not whole:
        return "labels are whole numbers: ops.cast(labels, np.int64)"
    flat = "ops.reshape(labels, (-1,))"
    if given == (*first, 1):
        return f"drop the axis with {flat}"
    if len(shape) > 2 and given == first + shape[2:]:
        order = (0, *range(2, len(shape)), 1)
        return f"move the classes last: ops.reshape(ops.permute(…, {order}), (-1, {shape[1]})) and {flat}"
    return ""


def misshapen(op_name: str) -> list[Bad]:
    """Labels that are no classes, and the forms that `labels_advice` knows."""
    whole, argmax = np.zeros((2, 4), np.int64), "ops.argmax(ops.cast(labels, np.float32), -1)"
    moved = "ops.reshape(ops.permute(…, (0, 2, 1)), (-1, 3)) and ops.reshape(labels, (-1,))"
    return [
        outside(op_name, (2, 3), np.array([0, 3])),
        bad(BoundsError, "got -1 at position 0", (2, 3), np.array([-1, 0]), ignore_index=-100),
        bad(ShapeError, f"{op_name}: argument 'labels': expected shape (2,), got (3,)", (2, 3), np.array([0, 1, 1])),
        bad(DTypeError, "got float32; labels are whole numbers: ops.cast(labels, np.int64)", (2, 3), (2,)),
        bad(ShapeError, f"got (2, 3); of one-hot rows take {argmax}", (2, 3), whole[:, :3]),
        bad(ShapeError, "got (2, 1); drop the axis with ops.reshape(labels, (-1,))", (2, 3), whole[:, :1]),
        bad(ShapeError, f"expected shape (B, C), got (2, 3, 4); move the classes last: {moved}", (2, 3, 4), whole),
    ]


def labelled(make: Make) -> list[Sample]:
    """Rows with labels under every choice of smoothing and ignoring; in the last no row counts."""
    holes = np.array([2, -1, 0, -1, 1])
    return [
        Sample((make(6, 10), make.indices(10, 6)), PLAIN),
        Sample((make(37, 3), make.indices(3, 37)), {**PLAIN, "label_smoothing": 0.1}),
        Sample((make(5, 40), holes), {**PLAIN, "ignore_index": -1}),
        Sample((make(3, 5).T, holes), {"label_smoothing": 0.25, "ignore_index": -1}),
        Sample((make(6, 4), make.indices(4, 6)), {"label_smoothing": 1.0, "ignore_index": 2}),
        Sample((make(0, 3), np.array([], np.int64)), PLAIN),
        Sample((make(2, 3), np.array([1, 1])), {**PLAIN, "ignore_index": 1}),
    ]


def with_holes(make: Make) -> list[Sample]:
    """Samples of functions of any leading shape: rows that are left out, smoothing, weights, each reduction."""
    several, labels, holes = make(2, 3, 4), np.array([[2, -1, 0], [1, 1, 2]]), {"ignore_index": -1}
    return [
        Sample((several, labels), holes),
        Sample((several, labels, make.positive(4)), {**holes, "label_smoothing": 0.25}),
        Sample((several, labels, None), {**holes, "label_smoothing": 0.1, "reduction": "none"}),
    ]
