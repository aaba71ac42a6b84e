"""Losses of labels, whose classes are the second axis."""

from typing import Any

from ....tape import AnyVar, ops
from .operator import Operator, imports


def _classes_last(x: AnyVar) -> AnyVar:
    rank = len(x.shape)
    return ops.permute(x, (0, *range(2, rank), 1))


def _nll(n: Operator, logarithms: AnyVar) -> Any:
    loss: Any = ops.nll_loss
    return loss(logarithms, n.var(1), 0.0, n.get("ignore_index", None), n.optional(2), n.get("reduction", "mean"))


@imports("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(n: Operator) -> Any:
    return _nll(n, _classes_last(n.var(0)))


@imports("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(n: Operator) -> Any:
    """The loss, and the logarithms of the probabilities."""
    logarithms = ops.log_softmax(n.var(0), 1)
    return _nll(n, _classes_last(logarithms)), logarithms
