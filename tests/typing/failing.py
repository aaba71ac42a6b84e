"""Programs with one mistake each: ``# E: mypy code | pyright rule`` on its line.

At run time the same program raises ShapeError; ``# R:`` on the def line names another error, or none.
"""

from typing import Any

import numpy as np
from passing import Batch, In, Out, zeros

from dgrr.tape import Dim, Shape, Tape, Var, f32, f64, ops


class Twin(Dim, size=2): ...


TAPE: Tape[f32] = Tape(f32)
X = TAPE.leaf(zeros(5, 4), Shape[Batch, In])
Y = TAPE.leaf(zeros(5, 2), Shape[Batch, Out])
W = TAPE.leaf(zeros(2, 4), Shape[Out, In])
B = TAPE.leaf(zeros(2), Shape[Out])
LABELS: Var[Any, Batch] = TAPE.const([0, 1, 0, 1, 1], Shape[Batch])


def add_of_other_shapes() -> None:
    _ = X + Y  # E: operator | reportOperatorIssue


def add_as_a_function() -> None:
    ops.add(X, Y)  # E: misc | reportArgumentType


def add_of_twins() -> None:  # R: none
    twin = TAPE.leaf(zeros(5, 2), Shape[Batch, Twin])
    ops.add(Y, twin)  # E: misc | reportArgumentType


def matmul_inner() -> None:
    _ = X @ W  # E: operator | reportOperatorIssue


def matmul_as_a_function() -> None:
    ops.matmul(X, W)  # E: misc | reportCallIssue


def linear_weight() -> None:
    ops.linear(Y, W, B)  # E: misc | reportArgumentType


def linear_bias() -> None:
    ops.linear(X, W, ops.relu(X))  # E: arg-type | reportArgumentType


def transpose_of_a_vector() -> None:
    ops.transpose2d(B)  # E: arg-type | reportArgumentType


def loss_of_other_shapes() -> None:
    ops.mse_loss(X, Y)  # E: misc | reportArgumentType


def labels_of_two_axes() -> None:
    ops.cross_entropy(Y, ops.cast(Y, "int64"))  # E: arg-type | reportArgumentType


def backward_of_a_matrix() -> None:
    TAPE.backward_scalar(X)  # E: arg-type | reportArgumentType


def other_dtype() -> None:  # R: TapeError
    ops.add(X, Tape(f64).leaf(np.zeros((5, 4)), Shape[Batch, In]))  # E: misc | reportArgumentType


def shape_that_is_none() -> None:  # R: ShapeError
    X.expect([5, 4])  # E: call-overload | reportCallIssue
