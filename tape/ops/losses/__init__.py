"""Losses, with their kernels and references; the face for authors of one more.

A loss: `loss` above a function that gives its terms, below overloads with `Total` and `Each`. Weights: `weighted` in
its body, and the kind `WeightsOf`. A mean that is an op: `MeanOp`, with `of_formula` and `of_difference`.
"""

from .loss import loss
from .mean import MeanOp, of_difference, of_formula
from .reduction import Each, Total, WeightsOf, weighted

__all__ = ["Each", "MeanOp", "Total", "WeightsOf", "loss", "of_difference", "of_formula", "weighted"]
