"""Elements in order and where they stand, positions as rows, and elements in other places."""

from typing import Any, assert_type

import numpy as np
from given import Batch, Given, In

from dgrr.tape import Shape, Var, f32, i64, ops


def sort_keeps_the_shape(g: Given) -> None:
    assert_type(ops.sort(g.x, axis=0), Var[f32, Batch, In])
    assert_type(ops.sort(g.labels), Var[i64, Batch])


def argsort_gives_positions(g: Given) -> None:
    assert_type(ops.argsort(g.x, descending=True), Var[i64, Batch, In])


def elements_are_taken_in_order(g: Given) -> None:
    assert_type(ops.take_along_axis(g.x, ops.argsort(g.x)), Var[f32, Batch, In])


def topk_gives_values_and_positions(g: Given) -> None:
    values, indices = ops.topk(g.x, 2)
    assert_type(indices, Var[i64, *tuple[Any, ...]])
    assert_type(values.expect(Shape[Batch, Any]), Var[Any, Batch, Any])


def scatter_add_along_axis_is_gradual(g: Given) -> None:
    assert_type(ops.scatter_add_along_axis(g.x, ops.argsort(g.x), 4), Var[f32, *tuple[Any, ...]])


def one_hot_is_gradual(g: Given) -> None:
    assert_type(ops.one_hot(g.labels, 2), Var[Any, *tuple[Any, ...]])


def roll_and_flip_keep_the_shape(g: Given) -> None:
    assert_type(ops.roll(g.x, (1, 2), (0, 1)), Var[f32, Batch, In])
    assert_type(ops.flip(g.x, 1), Var[f32, Batch, In])


def repetition_is_gradual(g: Given) -> None:
    assert_type(ops.repeat(g.x, 2), Var[f32, *tuple[Any, ...]])
    assert_type(ops.tile(g.x, (2, 1)), Var[f32, *tuple[Any, ...]])


def windows_are_gradual(g: Given) -> None:
    columns = ops.unfold(g.im, (2, 2))
    assert_type(columns, Var[f32, *tuple[Any, ...]])
    assert_type(ops.fold(columns, (8, 9), (2, 2)), Var[f32, *tuple[Any, ...]])


def arrays_are_indices(g: Given) -> None:
    assert_type(g.x[[0, 1], [1, -1]], Var[f32, *tuple[Any, ...]])
    assert_type(g.x[g.labels], Var[f32, *tuple[Any, ...]])
    assert_type(ops.index(g.x, np.ones((5, 4), bool)), Var[f32, *tuple[Any, ...]])
