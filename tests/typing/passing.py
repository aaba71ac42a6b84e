"""Programs that every checker accepts, with the types it must find, and that run.

In strict mode pyright speaks of unknown types where code is gradual throughout; those lines say so.
"""

from typing import Any, assert_type

import numpy as np

from dgrr.tape import AnyTensor, AnyVar, Dim, Shape, Tape, Tensor, Var, boolean, f32, f64, ops


class Batch(Dim): ...


class In(Dim, size=4): ...


class Out(Dim, size=2): ...


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def leaf_with_a_shape() -> None:
    assert_type(Tape(f32).leaf(zeros(5, 4), Shape[Batch, In]), Var[f32, Batch, In])


def leaf_without_a_shape() -> None:
    assert_type(Tape(f32).leaf(zeros(5, 4)), Var[f32, *tuple[Any, ...]])


def scalar_leaf() -> None:
    assert_type(Tape(f64).leaf(np.float64(1.0), Shape[()]), Var[f64])


def tape_of_any_dtype() -> None:
    assert_type(Tape().leaf(zeros(5)), Var[Any, *tuple[Any, ...]])


def elementwise_keeps_the_shape() -> None:
    x = Tape(f32).leaf(zeros(5, 4), Shape[Batch, In])
    assert_type(ops.relu(x), Var[f32, Batch, In])
    assert_type(ops.tanh(x + x * 0.5 - 1.0), Var[f32, Batch, In])
    assert_type(-x, Var[f32, Batch, In])
    assert_type(x > 0.0, Var[boolean, Batch, In])


def matmul_joins_the_outer_axes() -> None:
    tape = Tape(f32)
    x, u = tape.leaf(zeros(5, 4), Shape[Batch, In]), tape.leaf(zeros(4, 2), Shape[In, Out])
    assert_type(x @ u, Var[f32, Batch, Out])
    assert_type(ops.matmul(x, u), Var[f32, Batch, Out])


def linear_maps_the_last_axis() -> None:
    tape = Tape(f32)
    x, w = tape.leaf(zeros(5, 4), Shape[Batch, In]), tape.param(zeros(2, 4), Shape[Out, In])
    b = tape.param(zeros(2), Shape[Out])
    assert_type(ops.linear(x, w, b), Var[f32, Batch, Out])
    assert_type(ops.linear(x, w), Var[f32, Batch, Out])


def transpose_swaps() -> None:
    x = Tape(f32).leaf(zeros(5, 4), Shape[Batch, In])
    assert_type(ops.transpose2d(x), Var[f32, In, Batch])
    assert_type(x.T, Var[f32, In, Batch])


def losses_are_scalars() -> None:
    tape = Tape(f32)
    x, labels = tape.leaf(zeros(5, 2), Shape[Batch, Out]), tape.const([0, 1, 0, 1, 1], Shape[Batch])
    assert_type(ops.cross_entropy(x, labels), Var[f32])
    assert_type(ops.mse_loss(x, x), Var[f32])
    tape.backward_scalar(ops.mse_loss(x, x))


def reductions_are_gradual() -> None:
    x = Tape(f32).leaf(zeros(5, 4), Shape[Batch, In])
    assert_type(ops.reduce_sum(x, 0), Var[f32, *tuple[Any, ...]])


def expect_narrows() -> None:
    x = Tape(f32).leaf(zeros(5, 4))
    assert_type(x.expect(Shape[Batch, In]), Var[f32, Batch, In])


def tensors_narrow_too() -> None:
    assert_type(AnyTensor.leaf(zeros(5, 4)).expect(Shape[Batch, In]), Tensor[Any, Batch, In])


def gradual_code_fits_everywhere() -> None:
    def step(x: AnyVar, w: AnyVar) -> AnyVar:
        return ops.relu(ops.linear(x, w))  # E: - | reportUnknownArgumentType

    tape = Tape(f32)
    step(tape.leaf(zeros(5, 4)), tape.leaf(zeros(2, 4), Shape[Out, In]))


def gradients_are_tensors_or_vars() -> None:
    tape = Tape(f32)
    x = tape.leaf(zeros(5))
    y = ops.reduce_sum(x)
    assert_type(tape.backward_dense(y)[x], AnyTensor | None)
    assert_type(tape.backward_dense(y, create_graph=True)[x], AnyVar | None)
