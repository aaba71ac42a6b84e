"""Losses: they never broadcast."""

from typing import Any

from given import Batch, Given, Img, Out, ones

from dgrr.tape import Shape, Var, f32, ops


def mse_of_other_shapes(g: Given) -> None:
    ops.mse_loss(g.x, g.y)  # E: misc | reportArgumentType
    # T: mse_loss: argument 'b': expected shape (5, 4), got (5, 2)


def mse_of_a_column(g: Given) -> None:
    ops.mse_loss(g.x.sum(-1), g.x)  # E: misc | reportArgumentType
    # T: mse_loss: argument 'b': expected shape (5,), got (5, 4)


def huber_of_other_shapes(g: Given) -> None:
    ops.huber_loss(g.x, g.h)  # E: misc | reportArgumentType
    # T: huber_loss: argument 'b': expected shape (5, 4), got (5, 3)


def cross_entropy_of_another_batch(g: Given) -> None:
    logits = g.t.leaf(ones(6, 2), Shape[Img, Out])
    ops.cross_entropy(logits, g.labels)  # E: misc | reportArgumentType
    # T: cross_entropy: argument 'labels': expected shape (6,), got (5,)


def cross_entropy_of_float_labels(g: Given) -> None:  # R: DTypeError
    ops.cross_entropy(g.y, g.y.sum(-1))  # E: arg-type | reportArgumentType
    # T: cross_entropy: argument 'labels': expected int64, got float32


def cross_entropy_of_two_axes_of_labels(g: Given) -> None:
    labels = g.t.const([[0], [1], [0], [1], [1]], Shape[Batch, Any])
    ops.cross_entropy(g.y, labels)  # E: misc | reportArgumentType
    # T: cross_entropy: argument 'labels': expected shape (5,), got (5, 1)


def cross_entropy_in_another_order(g: Given) -> None:  # R: DTypeError
    ops.cross_entropy(g.labels, g.t.const(0, Shape[()]))  # E: type-var | reportArgumentType
    # T: cross_entropy: argument 'logits': expected float32 or float64, got int64


def soft_cross_entropy_of_other_classes(g: Given) -> None:
    ops.soft_cross_entropy(g.y, g.h)  # E: misc | reportArgumentType
    # T: soft_cross_entropy: argument 'targets': expected shape (5, 2), got (5, 3)


def nll_of_integers(g: Given) -> None:  # R: DTypeError
    ops.nll_loss(ops.log_softmax(g.y), g.y.sum(-1))  # E: arg-type | reportArgumentType
    # T: nll_loss: argument 'labels': expected int64, got float32


def binary_cross_entropy_of_other_shapes(g: Given) -> None:
    ops.binary_cross_entropy_with_logits(g.y, g.h)  # E: misc | reportArgumentType
    # T: binary_cross_entropy_with_logits: argument 'targets': expected shape (5, 2), got (5, 3)


def loss_is_a_scalar(g: Given) -> None:
    ops.add(ops.mse_loss(g.x, g.x), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (), got (5, 4)


def loss_function_of_another_batch(g: Given) -> None:
    def loss_fn(x: Var[f32, Batch, Out], targets: Var[f32, Batch, Out]) -> Var[f32]:
        return ops.mse_loss(x, targets)

    loss_fn(g.y, g.h)  # E: arg-type | reportArgumentType
    # T: mse_loss: argument 'b': expected shape (5, 2), got (5, 3)


def loss_function_that_returns_rows(g: Given) -> None:
    def loss_fn(x: Var[f32, Batch, Out]) -> Var[f32]:
        rows = ops.softmax(x).sum(-1)
        return rows if len(x) else rows.sum()  # E: return-value | reportReturnType

    g.t.backward_scalar(loss_fn(g.y))
    # T: backward_scalar: argument 'out': expected shape (), got (5,)
