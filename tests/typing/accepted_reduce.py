"""Reductions: exact for all axes, the last and the first, else gradual."""

from typing import Any, assert_type

from given import Batch, Ch, Given, High, Img, In, Wide

from dgrr.tape import Var, f32, i64, ops


def sum_of_all(g: Given) -> None:
    assert_type(ops.reduce_sum(g.x3), Var[f32])


def sum_along_the_last(g: Given) -> None:
    assert_type(ops.reduce_sum(g.x3, -1), Var[f32, Img, Batch])


def sum_along_the_first(g: Given) -> None:
    assert_type(ops.reduce_sum(g.x3, 0), Var[f32, Batch, In])


def sum_of_a_vector(g: Given) -> None:
    assert_type(ops.reduce_sum(g.b, axis=0), Var[f32])
    assert_type(ops.reduce_sum(g.b, axis=-1), Var[f32])


def sum_of_four_axes(g: Given) -> None:
    assert_type(ops.reduce_sum(g.im, 0), Var[f32, Ch, High, Wide])
    assert_type(ops.reduce_sum(g.im, -1), Var[f32, Img, Ch, High])


def sum_of_a_scalar(g: Given) -> None:
    assert_type(ops.reduce_sum(g.s), Var[f32])


def sum_along_another(g: Given) -> None:
    assert_type(ops.reduce_sum(g.x3, 1), Var[f32, *tuple[Any, ...]])


def sum_along_several(g: Given) -> None:
    assert_type(ops.reduce_sum(g.x3, (0, 1)), Var[f32, *tuple[Any, ...]])


def sum_that_keeps_the_axes(g: Given) -> None:
    assert_type(ops.reduce_sum(g.x, 0, keepdims=True), Var[f32, *tuple[Any, ...]])


def sum_as_a_method(g: Given) -> None:
    assert_type(g.x3.sum(), Var[f32])
    assert_type(g.x3.sum(-1), Var[f32, Img, Batch])
    assert_type(g.x3.sum(0), Var[f32, Batch, In])
    assert_type(g.x3.sum(1), Var[f32, *tuple[Any, ...]])


def sum_of_sums(g: Given) -> None:
    assert_type(g.im.sum(0).sum(-1).sum(0).sum(0), Var[f32])


def mean_of_all(g: Given) -> None:
    assert_type(ops.reduce_mean(g.x), Var[f32])
    assert_type(g.x.mean(), Var[f32])


def mean_along_the_last(g: Given) -> None:
    assert_type(g.x.mean(-1), Var[f32, Batch])


def largest_and_smallest(g: Given) -> None:
    assert_type(g.x.max(-1), Var[f32, Batch])
    assert_type(ops.reduce_min(g.x, 0), Var[f32, In])


def positions_are_integers(g: Given) -> None:
    assert_type(g.x.argmax(-1), Var[i64, Batch])
    assert_type(ops.argmin(g.x, 0), Var[i64, In])
    assert_type(ops.argmax(g.x), Var[i64])


def moments(g: Given) -> None:
    assert_type(g.x.var(-1, correction=1), Var[f32, Batch])
    assert_type(ops.var(g.x), Var[f32])
    assert_type(ops.var(g.x, 0), Var[f32, In])


def log_sums_and_products(g: Given) -> None:
    assert_type(ops.logsumexp(g.x, -1), Var[f32, Batch])
    assert_type(g.x.prod(0), Var[f32, In])


def an_axis_that_is_computed(g: Given) -> None:
    axis = int("1")
    assert_type(g.x.sum(axis), Var[f32, *tuple[Any, ...]])


def reductions_of_gradual_vars(g: Given) -> None:
    assert_type(g.g.sum(), Var[f32])
    assert_type(g.g.sum(0), Var[f32, *tuple[Any, ...]])
    assert_type(ops.reduce_sum(g.g, -1), Var[f32, *tuple[Any, ...]])
    assert_type(g.g.argmax(-1), Var[i64, *tuple[Any, ...]])


def loss_by_hand(g: Given) -> None:
    g.t.backward_scalar((g.x - g.x).square().sum(-1).mean())
