"""Layers: functions of the last axis, which compose where their axes meet."""

from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple, assert_type

from given import Batch, Given, Hid, Img, In, Out

from dgrr.tape import AnyVar, Float, Var, f32, nn, ops
from dgrr.tape.nn import Layer, Linear, ReLU, SameShape, Sequential, Tanh
from dgrr.tape.nn.context import Context
from dgrr.tape.nn.scope import Params

F = TypeVar("F", bound=Float)
S = TypeVarTuple("S")


def linear_of_dims(g: Given) -> None:
    layer = Linear(In, Hid)
    assert_type(layer, Linear[In, Hid])
    assert_type(layer(g.params(layer), g.x), Var[f32, Batch, Hid])
    assert_type(layer(g.params(layer), g.x3), Var[f32, Img, Batch, Hid])


def linear_of_numbers(g: Given) -> None:
    layer = Linear(4, 3, bias=False)
    assert_type(layer, Linear[Any, Any])
    assert_type(layer(g.params(layer), g.x), Var[f32, Batch, Any])


def linear_of_a_dim_and_a_number(g: Given) -> None:
    assert_type(Linear(In, 3), Linear[In, Any])
    assert_type(Linear(4, Hid), Linear[Any, Hid])


def activations_keep_the_shape(g: Given) -> None:
    assert_type(ReLU()({}, g.x), Var[f32, Batch, In])
    assert_type(nn.ELU(0.5)({}, g.s), Var[f32])


def activations_are_values(g: Given) -> None:
    act = nn.GELU()
    assert_type(act, nn.GELU[Any])
    assert_type(act({}, g.x3), Var[f32, Img, Batch, In])


def chain_of_two(g: Given) -> None:
    model = Linear(In, Hid) >> Linear(Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def chain_through_activations(g: Given) -> None:
    model = Linear(In, Hid) >> ReLU() >> Tanh() >> Linear(Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x3), Var[f32, Img, Batch, Out])


def chain_of_ten(g: Given) -> None:
    body = Linear(In, In) >> ReLU() >> Linear(In, In) >> ReLU() >> Linear(In, In) >> ReLU() >> Linear(In, In) >> ReLU()
    model = body >> Linear(In, Hid) >> Linear(Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def chain_is_one_sequential() -> None:
    assert (Linear(In, Hid) >> ReLU() >> Linear(Hid, Out)) == Sequential(Linear(4, 3), ReLU(), Linear(3, 2))


def sequential_of_one(g: Given) -> None:
    assert_type(Sequential(Linear(In, Hid)), Sequential[In, Hid])


def sequential_of_three(g: Given) -> None:
    model = Sequential(Linear(In, Hid), ReLU(), Linear(Hid, Out))
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def sequential_of_four() -> None:
    assert_type(Sequential(Linear(In, Hid), ReLU(), Tanh(), Linear(Hid, Out)), Sequential[In, Out])


def sequential_of_five() -> None:
    model = Sequential(Linear(In, Hid), ReLU(), Linear(Hid, Hid), ReLU(), Linear(Hid, Out))
    assert_type(model, Sequential[In, Out])


def sequential_of_six() -> None:
    model = Sequential(ReLU[In](), Linear(In, Hid), ReLU(), Linear(Hid, Hid), ReLU(), Linear(Hid, Out))
    assert_type(model, Sequential[In, Out])


def sequential_of_seven() -> None:
    model = Sequential(Linear(In, Hid), ReLU(), Linear(Hid, Hid), ReLU(), Linear(Hid, In), ReLU(), Linear(In, Out))
    assert_type(model, Sequential[In, Out])


def sequential_of_eight() -> None:
    model = Sequential(
        Linear(In, Hid), ReLU(), Linear(Hid, Hid), ReLU(), Linear(Hid, In), ReLU(), Linear(In, Out), ReLU[Out]()
    )
    assert_type(model, Sequential[In, Out])


def sequential_of_nine_is_gradual() -> None:
    a, b = Linear(In, In), ReLU[In]()
    assert_type(Sequential(a, b, a, b, a, b, a, b, a), Sequential[Any, Any])


def sequential_of_a_list_is_gradual(g: Given) -> None:
    layers: list[Layer] = [Linear(In, Hid), ReLU(), Linear(Hid, Out)]
    model = Sequential(*layers)
    assert_type(model(g.params(model), g.x), AnyVar)


def sequential_of_sequentials(g: Given) -> None:
    inner = Sequential(Linear(Hid, Hid), ReLU())
    model = Sequential(Linear(In, Hid), inner, Linear(Hid, Out))
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def gradual_input_of_a_typed_model(g: Given) -> None:
    model = Linear(In, Hid) >> ReLU() >> Linear(Hid, Out)
    out: Var[f32, In, Out] = model(g.params(model), g.g)
    assert out.shape == (4, 2)


def layer_of_any_axes_is_gradual(g: Given) -> None:
    @dataclass(frozen=True)
    class Rows(Layer):
        def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
            return x.flatten(1)

    assert_type(Rows()({}, g.im), AnyVar)
    model = Sequential(Rows(), Linear(216, Out))
    assert_type(model, Sequential[Any, Out])
    assert_type(model(g.params(model), g.im), AnyVar)
    chain = Rows() >> ReLU() >> Linear(216, Out)
    assert_type(chain, Sequential[Any, Out])
    assert_type(chain(g.params(chain), g.im), AnyVar)


def layer_of_ones_own(g: Given) -> None:
    @dataclass(frozen=True)
    class Doubled(SameShape[In]):
        def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
            return x * 2.0

    assert_type(Doubled()({}, g.x), Var[f32, Batch, In])
    assert_type(Linear(Hid, In) >> Doubled() >> Linear(In, Out), Sequential[Hid, Out])


def mapping_layer_of_ones_own(g: Given) -> None:
    @dataclass(frozen=True)
    class Gated(Layer[In, Hid]):
        def __call__(self, p: Params, x: Var[F, *S, In], ctx: Context | None = None) -> Var[F, *S, Hid]:
            linear = Linear(In, Hid)
            return linear(p, x) * ops.sigmoid(linear(p, x))

    model = Gated() >> Linear(Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(Gated()(g.params(Linear(In, Hid)), g.x), Var[f32, Batch, Hid])
