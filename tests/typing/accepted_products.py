"""Products whose leading axes are broadcast, and of vectors; triangles and equations."""

from typing import Any, assert_type

from given import Batch, Given, Hid, Img, In

from dgrr.tape import Var, f32, ops


def matmul_of_one_matrix_by_a_batch(g: Given) -> None:
    assert_type(g.x @ g.u3, Var[f32, Img, Batch, Hid])
    assert_type(ops.matmul(g.x, g.u3), Var[f32, Img, Batch, Hid])


def matmul_of_two_vectors(g: Given) -> None:
    assert_type(g.b @ g.b, Var[f32])
    assert_type(ops.matmul(g.b, g.b), Var[f32])


def matmul_by_a_vector(g: Given) -> None:
    assert_type(g.h @ g.b, Var[f32, Batch])
    assert_type(ops.matmul(g.x3 @ g.u, g.b), Var[f32, Img, Batch])


def matmul_of_a_vector(g: Given) -> None:
    assert_type(g.b @ g.w, Var[f32, In])
    assert_type(ops.matmul(g.h[0], g.w), Var[f32, In])


def matmul_by_a_gradual_matrix_is_gradual(g: Given) -> None:
    ops.add(g.x @ g.g, g.x)
    ops.add(ops.matmul(g.g, g.u), g.u)


def triangles_keep_the_shape(g: Given) -> None:
    assert_type(ops.tril(g.x3), Var[f32, Img, Batch, In])
    assert_type(ops.triu(g.x, 1), Var[f32, Batch, In])


def diagonals_are_gradual(g: Given) -> None:
    assert_type(ops.diagonal(g.sq), Var[f32, *tuple[Any, ...]])
    assert_type(ops.trace(g.sq), Var[f32, *tuple[Any, ...]])


def outer_has_both_axes(g: Given) -> None:
    assert_type(ops.outer(g.b, g.x[0]), Var[f32, Hid, In])


def cholesky_keeps_the_shape(g: Given) -> None:
    assert_type(ops.cholesky(g.sq), Var[f32, In, In])


def solutions_have_the_shape_of_the_right_side(g: Given) -> None:
    assert_type(ops.solve_triangular(g.sq, g.u, upper=True), Var[f32, In, Hid])
