"""Operators, functions of each element, comparisons, selection and conversion."""

from typing import Any, assert_type

import numpy as np
from given import Batch, Given, Img, In

from dgrr.tape import Var, boolean, f32, f64, i64, ops


def operators_keep_the_shape(g: Given) -> None:
    assert_type(2.0 * g.x + g.x - g.x * 0.5 + 1, Var[f32, Batch, In])


def quotients_keep_the_shape(g: Given) -> None:
    assert_type(1.0 / g.x / g.x, Var[f32, Batch, In])


def signs_and_powers_keep_the_shape(g: Given) -> None:
    assert_type(abs(-g.x) ** 2, Var[f32, Batch, In])


def arrays_are_operands(g: Given) -> None:
    assert_type(g.x + np.ones(4, np.float32), Var[f32, Batch, In])


def numpy_numbers_are_operands(g: Given) -> None:
    assert_type(np.float32(2.0) * g.x, Var[f32, Batch, In])


def operators_as_functions(g: Given) -> None:
    assert_type(ops.add(g.x, ops.mul(g.x, ops.div(g.x, ops.sub(g.x, g.x)))), Var[f32, Batch, In])


def functions_of_one_argument(g: Given) -> None:
    assert_type(ops.relu(ops.tanh(ops.exp(g.x3))), Var[f32, Img, Batch, In])


def functions_with_attributes(g: Given) -> None:
    assert_type(ops.clamp(ops.leaky_relu(ops.elu(g.x, 0.5), 0.1), 0.0, 1.0), Var[f32, Batch, In])


def methods_keep_the_shape(g: Given) -> None:
    assert_type(g.x.relu().exp().log().tanh().sigmoid().abs().square().sqrt(), Var[f32, Batch, In])


def methods_of_scalars(g: Given) -> None:
    assert_type(g.s.exp(), Var[f32])


def the_larger_of_two(g: Given) -> None:
    assert_type(ops.maximum(g.x, ops.minimum(g.x, g.x)), Var[f32, Batch, In])


def softmax_keeps_the_shape(g: Given) -> None:
    assert_type(ops.softmax(g.x3), Var[f32, Img, Batch, In])
    assert_type(g.x.log_softmax(axis=0), Var[f32, Batch, In])


def running_sums_keep_the_shape(g: Given) -> None:
    assert_type(ops.cumsum(g.x, 0), Var[f32, Batch, In])


def comparisons_are_boolean(g: Given) -> None:
    assert_type(g.x > 0.0, Var[boolean, Batch, In])
    assert_type(ops.less_equal(g.x, g.x), Var[boolean, Batch, In])


def equality_is_boolean(g: Given) -> None:
    assert_type(g.x == g.x, Var[boolean, Batch, In])


def where_takes_one_shape(g: Given) -> None:
    assert_type(ops.where(g.mask, g.x, g.x * 2.0), Var[f32, Batch, In])


def cast_by_a_marker(g: Given) -> None:
    assert_type(ops.cast(g.x, f64), Var[f64, Batch, In])
    assert_type(ops.cast(g.mask, i64), Var[i64, Batch, In])


def cast_by_a_name(g: Given) -> None:
    assert_type(ops.cast(g.x, "float64"), Var[Any, Batch, In])


def dropout_keeps_the_shape(g: Given) -> None:
    assert_type(ops.dropout(g.x, g.t.const(0)), Var[f32, Batch, In])
