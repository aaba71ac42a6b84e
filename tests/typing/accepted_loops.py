"""Loops: the carry has the types that it begins with, and what is stacked has the axis of the rows in front."""

from typing import assert_type

import numpy as np
from given import Batch, Given, In

from dgrr.tape import Shape, Var, checkpoint, f32, ops


def rows_are_stacked_along_their_axis(g: Given) -> None:
    def body(h: Var[f32, In], x: Var[f32, In]) -> tuple[Var[f32, In], Var[f32]]:
        return ops.tanh(ops.add(h, x)), ops.reduce_sum(x)

    last, ys = ops.scan(body, g.t.param(np.ones(4, np.float32), Shape[In]), g.x, reverse=True)
    assert_type(last, Var[f32, In])
    assert_type(ys, Var[f32, Batch])


def a_carry_may_be_nested_and_a_step_give_nothing(g: Given) -> None:
    def body(carry: dict[str, Var[f32, In]], x: Var[f32, In]) -> tuple[dict[str, Var[f32, In]], None]:
        return {"h": ops.add(carry["h"], x)}, None

    last, nothing = ops.scan(body, {"h": g.t.param(np.ones(4, np.float32), Shape[In])}, g.x)
    assert_type(last, dict[str, Var[f32, In]])
    assert_type(nothing, None)


def rows_may_be_nested_or_none(g: Given) -> None:
    def of_two(h: Var[f32, In], rows: tuple[Var[f32, In], Var[f32, In]]) -> tuple[Var[f32, In], Var[f32, In]]:
        return ops.add(h, ops.mul(rows[0], rows[1])), h

    def of_none(h: Var[f32], _: None) -> tuple[Var[f32], Var[f32]]:
        return ops.square(h), h

    start = g.t.param(np.ones(4, np.float32), Shape[In])
    assert_type(ops.scan(of_two, start, (g.x, g.x))[0], Var[f32, In])
    assert_type(ops.scan(of_none, g.s, length=3)[0], Var[f32])


def sides_and_bodies_keep_the_types_of_what_they_give(g: Given) -> None:
    def on_true(x: Var[f32, Batch, In]) -> Var[f32]:
        return ops.reduce_sum(x)

    def on_false(x: Var[f32, Batch, In]) -> Var[f32]:
        return ops.reduce_mean(x)

    assert_type(ops.cond(ops.greater(g.s, g.s), on_true, on_false, g.x), Var[f32])
    assert_type(ops.while_loop(lambda y: ops.greater(g.s, y), ops.square, g.s), Var[f32])
    assert_type(checkpoint(on_true)(g.x), Var[f32])
