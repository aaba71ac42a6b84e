"""Leaves, tapes, tensors and what opens them."""

from typing import Any, Literal, assert_type

import numpy as np
from given import Batch, Given, Hid, In, Out, ones

from dgrr.tape import AnyTensor, AnyVar, Shape, SomeVar, Tape, Tensor, Var, f32, f64


def leaf_with_a_shape(g: Given) -> None:
    assert_type(g.t.leaf(ones(5, 4), Shape[Batch, In]), Var[f32, Batch, In])


def leaf_without_a_shape(g: Given) -> None:
    assert_type(g.t.leaf(ones(5, 9)), Var[f32, *tuple[Any, ...]])


def leaf_of_a_scalar(g: Given) -> None:
    assert_type(g.t.leaf(np.float32(1.0), Shape[()]), Var[f32])


def leaf_of_literal_sizes(g: Given) -> None:
    assert_type(g.t.leaf(ones(2, 3), Shape[Literal[2], Literal[3]]), Var[f32, Literal[2], Literal[3]])


def leaf_half_gradual(g: Given) -> None:
    assert_type(g.t.leaf(ones(5, 9), Shape[Batch, Any]), Var[f32, Batch, Any])


def leaf_that_is_not_trained(g: Given) -> None:
    assert_type(g.t.leaf(ones(5, 4), Shape[Batch, In], name="x", requires_grad=False), Var[f32, Batch, In])


def param_with_a_shape(g: Given) -> None:
    assert_type(g.t.param(ones(2, 4), Shape[Out, In], name="w"), Var[f32, Out, In])


def const_of_any_type(g: Given) -> None:
    assert_type(g.t.const([1, 2, 3, 4, 5], Shape[Batch]), Var[Any, Batch])


def params_by_name(g: Given) -> None:
    assert_type(g.t.params({"w": ones(2, 4)}), dict[str, AnyVar])


def tape_of_float32() -> None:
    assert_type(Tape(f32), Tape[f32])


def tape_of_float64() -> None:
    assert_type(Tape(f64).leaf(np.ones((5, 4)), Shape[Batch, In]), Var[f64, Batch, In])


def tape_of_any_type() -> None:
    assert_type(Tape().leaf(ones(5)), Var[Any, *tuple[Any, ...]])


def var_by_id_or_name(g: Given) -> None:
    assert_type(g.t.var(0), SomeVar[f32])


def var_opened(g: Given) -> None:
    assert_type(g.t.var(g.x.id).expect(Shape[Batch, In]), Var[f32, Batch, In])


def var_looked_at(g: Given) -> None:
    found = g.t.var(g.x.id)
    assert (found.id, tuple(found.shape), found.name) == (g.x.id, (5, 4), None)
    assert_type(found.numpy().sum() + found.value.size, Any)


def var_trusted(g: Given) -> None:
    assert_type(g.t.var(g.x.id).gradual, Var[f32, *tuple[Any, ...]])
    _ = g.t.var(g.x.id).gradual + g.x


def every_var_is_some_var(g: Given) -> None:
    def rank(found: SomeVar[Any]) -> int:
        return found.shape.rank

    assert rank(g.x) + rank(g.s) + rank(g.g) == 4


def expect_names_what_is_gradual(g: Given) -> None:
    assert_type(g.g.expect(Shape[In, In]), Var[f32, In, In])


def expect_by_sizes(g: Given) -> None:
    assert_type(g.g.expect((4, 4)), Var[f32, *tuple[Any, ...]])


def expect_a_new_name(g: Given) -> None:
    class Rows(In, size=4): ...

    assert_type(g.g.expect(Shape[Rows, Any]), Var[f32, Rows, Any])


def tensors_are_opened_too() -> None:
    assert_type(AnyTensor.leaf(ones(5, 4)).expect(Shape[Batch, In]), Tensor[Any, Batch, In])


def gradients_are_tensors_or_vars(g: Given) -> None:
    assert_type(g.t.backward_scalar(g.x.sum())[g.x], AnyTensor | Any)
    assert_type(g.t.backward_scalar(g.x.sum(), create_graph=True)[g.x], AnyVar | Any)


def functions_of_vars_carry_shapes(g: Given) -> None:
    def scaled(x: Var[f32, Batch, Hid], gain: Var[f32, Hid, Hid]) -> Var[f32, Batch, Hid]:
        return x @ gain

    gain = g.t.param(ones(3, 3), Shape[Hid, Hid])
    assert_type(scaled(g.h, gain), Var[f32, Batch, Hid])
