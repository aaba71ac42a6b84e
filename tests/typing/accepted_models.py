"""Models as they are written: made by functions, grown in loops, chosen by conditions, kept in lists and dicts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple, assert_type

import numpy as np
from given import Batch, Given, Hid, In, Out

from dgrr.tape import AnyVar, Context, Dim, Float, Random, Var, f32, nn, ops
from dgrr.tape.nn import GELU, Layer, Linear, ReLU, SameShape, Sequential

F = TypeVar("F", bound=Float)
S = TypeVarTuple("S")
A = TypeVar("A", bound=Dim)
B = TypeVar("B", bound=Dim)
C = TypeVar("C", bound=Dim)


def perceptron(inputs: type[A], hidden: type[B], outputs: type[C]) -> Sequential[A, C]:
    return Linear(inputs, hidden) >> ReLU() >> Linear(hidden, outputs)


def a_function_makes_a_model(g: Given) -> None:
    model = perceptron(In, Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def a_loop_grows_a_model(g: Given) -> None:
    body = Linear(In, Hid) >> ReLU()
    for _ in range(2):
        body = body >> Linear(Hid, Hid) >> ReLU()
    model = body >> Linear(Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def a_list_of_blocks_is_one_block(g: Given) -> None:
    blocks = [Linear(Hid, Hid) >> ReLU() for _ in range(2)]
    model = Sequential(Linear(In, Hid), Sequential(*blocks), Linear(Hid, Out))
    out: Var[f32, Batch, Out] = model(g.params(model), g.x)
    assert out.shape == (5, 2)


def functions_stand_among_layers(g: Given) -> None:
    model = Sequential(Linear(In, Hid), ops.relu, Linear(Hid, Out))
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])
    joined = Linear(In, Hid) >> ops.relu >> swish >> Linear(Hid, Out)
    out: Var[f32, Batch, Out] = joined(g.params(joined), g.x)
    last = Sequential(Linear(In, Hid), nn.Residual(ops.tanh), ops.relu)
    assert (out.shape, last(g.params(last), g.x).shape) == ((5, 2), (5, 3))
    first = ops.relu >> Linear(In, Hid)
    assert first(g.params(first), g.x).shape == (5, 3)
    block = nn.TransformerBlock(4, 2, 8, activation=ops.relu)
    assert_type(block(g.params(block), g.x), AnyVar)


def a_list_holds_the_layers(g: Given) -> None:
    model = Sequential([Linear(In, Hid), ops.relu, Linear(Hid, Out)])
    out: Var[f32, Batch, Out] = model(g.params(model), g.x)
    assert out.shape == (5, 2)


def a_condition_chooses_an_activation(g: Given) -> None:
    smooth = len(g.x.shape) > 1
    activation = GELU[Hid]() if smooth else ReLU[Hid]()
    model = Linear(In, Hid) >> activation >> Linear(Hid, Out)
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def a_table_of_activations(g: Given) -> None:
    table: dict[str, Callable[[], SameShape]] = {"relu": ReLU, "gelu": GELU}
    model = Linear(In, Hid) >> table["relu"]() >> Linear(Hid, Out)
    out: Var[f32, Batch, Out] = model(g.params(model), g.x)
    assert out.shape == (5, 2)


def a_dict_of_layers_names_its_type(g: Given) -> None:
    layers: dict[str, Layer] = {"encoder": Linear(In, Hid), "decoder": Linear(Hid, Out)}
    out: AnyVar = g.x
    for layer in layers.values():
        out = layer(g.params(layer), out)
    assert out.shape == (5, 2)


@dataclass(frozen=True)
class Wrapped(Layer[A, B]):
    """Another layer, under a name."""

    inner: Layer[A, B]

    def children(self) -> Mapping[str, Layer]:
        return {"inner": self.inner}

    def __call__(self, p: Any, x: Any, ctx: Context | None = None) -> Any:
        return self.part("inner", p, x, ctx)


def a_layer_of_ones_own_has_the_axes_of_its_part(g: Given) -> None:
    model = Wrapped(Linear(In, Hid)) >> ReLU() >> Linear(Hid, Out)
    assert_type(Wrapped(Linear(In, Hid)), Wrapped[In, Hid])
    assert_type(model, Sequential[In, Out])
    assert_type(model(g.params(model), g.x), Var[f32, Batch, Out])


def swish(x: Var[F, *S]) -> Var[F, *S]:
    return x * ops.sigmoid(x)


def twice(function: Callable[[Var[F, *S]], Var[F, *S]], x: Var[F, *S]) -> Var[F, *S]:
    return function(function(x))


def functions_of_any_shape(g: Given) -> None:
    assert_type(twice(swish, g.x), Var[f32, Batch, In])
    assert_type(twice(ops.relu, g.x), Var[f32, Batch, In])
    assert_type(twice(ops.relu, g.g), Var[f32, *tuple[Any, ...]])


def one_of_two_shapes_has_a_wider_name(g: Given) -> None:
    hidden: AnyVar = g.h if len(g.x.shape) > 1 else g.x
    assert ops.relu(hidden).shape == (5, 3)
    assert ops.relu((g.h if len(g.x.shape) > 1 else g.x).gradual).shape == (5, 3)


def a_loss_with_a_step_and_draws(g: Given) -> None:
    ctx = Context(training=True, random=Random(g.t.const(0)), step=g.t.const(3))
    noisy = g.x + ctx.random.normal((5, 4))
    kept = ops.where(ctx.random.bernoulli(0.5, (5, 4)), noisy, g.x)
    share = ops.clamp(ops.cast(ctx.step, np.float32) / 100, 0, 1)
    loss = ops.mse_loss(kept, g.x) + ops.cast(ctx.step, np.float32) * 1e-3
    assert_type(loss, Var[f32])
    g.t.backward_scalar(loss + share * (g.w * g.w).mean())
    assert ops.take(g.x, ctx.random.permutation(5), 0).shape == (5, 4)
    assert ops.take(g.x, ctx.random.integers(0, 5, (7,)), 0).shape == (7, 4)


def the_parts_of_a_model_take_what_they_take_by_name(g: Given) -> None:
    @dataclass(frozen=True)
    class Masked(nn.Layer):
        attention: nn.MultiHeadAttention

        def children(self) -> Mapping[str, Layer]:
            return {"attention": self.attention}

        def __call__(self, p: Any, x: AnyVar, ctx: Context | None = None) -> AnyVar:
            return self.part("attention", p, x, ctx, mask=x.tape.const(np.ones((5, 5), bool)))

    model = Masked(nn.MultiHeadAttention(4, 2))
    assert_type(model(g.params(model), g.x), AnyVar)
