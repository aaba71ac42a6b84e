"""Products of matrices and what is built of them."""

from typing import assert_type

from given import Batch, Given, Hid, Img, In, ones

from dgrr.tape import Shape, Var, f32, ops


def matmul_joins_the_outer_axes(g: Given) -> None:
    assert_type(g.x @ g.u, Var[f32, Batch, Hid])


def matmul_as_a_function(g: Given) -> None:
    assert_type(ops.matmul(g.x, g.u), Var[f32, Batch, Hid])


def matmul_of_a_batch_by_one_matrix(g: Given) -> None:
    assert_type(g.x3 @ g.u, Var[f32, Img, Batch, Hid])
    assert_type(ops.matmul(g.x3, g.u), Var[f32, Img, Batch, Hid])


def matmul_of_two_batches(g: Given) -> None:
    assert_type(g.x3 @ g.u3, Var[f32, Img, Batch, Hid])
    assert_type(ops.matmul(g.x3, g.u3), Var[f32, Img, Batch, Hid])


def matmul_of_a_chain(g: Given) -> None:
    assert_type(g.x @ g.sq @ g.u, Var[f32, Batch, Hid])


def linear_maps_the_last_axis(g: Given) -> None:
    assert_type(ops.linear(g.x, g.w, g.b), Var[f32, Batch, Hid])


def linear_without_a_bias(g: Given) -> None:
    assert_type(ops.linear(g.x, g.w), Var[f32, Batch, Hid])
    assert_type(ops.linear(g.x, g.w, None), Var[f32, Batch, Hid])


def linear_of_a_batch(g: Given) -> None:
    assert_type(ops.linear(g.x3, g.w, g.b), Var[f32, Img, Batch, Hid])


def linear_of_a_vector(g: Given) -> None:
    assert_type(ops.linear(g.t.leaf(ones(4), Shape[In]), g.w, g.b), Var[f32, Hid])


def transpose_swaps(g: Given) -> None:
    assert_type(ops.transpose2d(g.w), Var[f32, In, Hid])
    assert_type(g.w.T, Var[f32, In, Hid])


def transpose_and_matmul(g: Given) -> None:
    assert_type(g.x @ g.w.T + g.h, Var[f32, Batch, Hid])


def attention_by_hand(g: Given) -> None:
    weights = ops.softmax(g.x @ g.x.T * 0.5)
    assert_type(weights, Var[f32, Batch, Batch])
    assert_type(weights @ g.x, Var[f32, Batch, In])
