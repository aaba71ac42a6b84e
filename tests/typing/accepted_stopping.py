"""A value without a gradient has the type of the value."""

from typing import assert_type

from given import Batch, Given, In

from dgrr.tape import Var, f32, ops


def stopped(g: Given) -> None:
    assert_type(ops.stop_gradient(g.x), Var[f32, Batch, In])
    assert_type(g.x.detach(), Var[f32, Batch, In])
