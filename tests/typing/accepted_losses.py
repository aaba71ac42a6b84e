"""Losses: scalars, which can be differentiated."""

from typing import assert_type

from given import Batch, Given, Out

from dgrr.tape import Var, f32, ops


def mse_loss(g: Given) -> None:
    assert_type(ops.mse_loss(g.x, g.x), Var[f32])


def huber_loss(g: Given) -> None:
    assert_type(ops.huber_loss(g.x, g.x, delta=0.5), Var[f32])


def cross_entropy(g: Given) -> None:
    assert_type(ops.cross_entropy(g.y, g.labels), Var[f32])


def cross_entropy_with_options(g: Given) -> None:
    assert_type(ops.cross_entropy(g.y, g.labels, label_smoothing=0.1, ignore_index=-1), Var[f32])


def soft_cross_entropy(g: Given) -> None:
    assert_type(ops.soft_cross_entropy(g.y, ops.softmax(g.y)), Var[f32])


def nll_loss(g: Given) -> None:
    assert_type(ops.nll_loss(ops.log_softmax(g.y), g.labels), Var[f32])


def binary_cross_entropy(g: Given) -> None:
    assert_type(ops.binary_cross_entropy_with_logits(g.y, ops.sigmoid(g.y)), Var[f32])


def gradient_of_mse(g: Given) -> None:
    assert_type(ops.mse_grad(g.y, g.y), Var[f32, Batch, Out])


def losses_add_up(g: Given) -> None:
    loss = ops.mse_loss(g.x, g.x) + 0.1 * ops.cross_entropy(g.y, g.labels)
    assert_type(loss, Var[f32])
    g.t.backward_scalar(loss)


def loss_function(g: Given) -> None:
    def loss_fn(x: Var[f32, Batch, Out], labels: Var[f32, Batch]) -> Var[f32]:
        return ops.mse_loss(x.sum(-1), labels)

    g.t.backward_scalar(loss_fn(g.y, g.x.sum(-1)))
