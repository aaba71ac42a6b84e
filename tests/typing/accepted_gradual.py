# pyright: standard
"""Programs without shape annotations, or with some: no checker may complain, and they run.

Under pyright's strict mode such code shows ``reportUnknown*``, so that this file is checked in its standard mode.
"""

from typing import Any

import numpy as np
from given import Batch, Given, Hid, In, Out, ones

from dgrr.tape import AnyVar, Tape, Var, f32, nn, ops


def arithmetic(g: Given) -> None:
    a, b = g.t.leaf(ones(2, 3)), g.t.leaf(ones(2, 3))
    c = a + b * 2.0 - a / b
    g.t.backward_scalar(ops.mse_loss(c, a))


def broadcasting(g: Given) -> None:
    a, row = g.t.leaf(ones(2, 3)), g.t.leaf(ones(3))
    _ = a + row
    assert (row + a).shape == (2, 3)


def products(g: Given) -> None:
    a, b = g.t.leaf(ones(2, 3)), g.t.leaf(ones(3, 3))
    c = a @ b @ b
    g.t.backward_scalar(ops.reduce_sum(ops.matmul(c, b) + a))


def batches(g: Given) -> None:
    a, b = g.t.leaf(ones(7, 2, 3)), g.t.leaf(ones(7, 3, 2))
    _ = ops.softmax(a @ b) @ a


def mlp(g: Given) -> None:
    w, b = g.t.param(ones(3, 4)), g.t.param(ones(3))
    h = ops.relu(ops.linear(g.t.leaf(ones(5, 4)), w, b))
    g.t.backward_scalar(ops.mse_loss(h, h))


def reductions(g: Given) -> None:
    a = ops.linear(g.g, g.g, g.t.leaf(ones(4)))
    g.t.backward_scalar(ops.reduce_sum(a.sum(0) + a.mean(-1)))
    g.t.backward_scalar(a.max(-1).sum(0))


def reduced_and_multiplied(g: Given) -> None:
    a = g.t.leaf(ones(2, 4, 4)) @ g.t.leaf(ones(2, 4, 4))
    _ = a @ a.sum(0) @ ops.reduce_mean(a, 0)


def rows_of_a_batch(g: Given) -> None:
    images = g.t.leaf(ones(2, 4, 4))
    _ = images[0] @ images[1]
    _ = ops.take(images, g.t.const([1, 0])) + images


def shapes_by_numbers(g: Given) -> None:
    x = g.t.leaf(ones(2, 3, 4)).reshape(6, -1).T.flatten()
    _ = x.broadcast_to((2, 24)) + x


def layers(g: Given) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    chain = nn.Linear(4, 3) >> nn.ReLU() >> nn.Linear(3, 2)
    logits = model(g.params(model), g.g) + chain(g.params(chain), g.g)
    g.t.backward_scalar(ops.cross_entropy(logits, g.t.const([0, 1, 0, 1])))


def layers_in_a_list(g: Given) -> None:
    layers = [nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU()]
    model = nn.Sequential(*layers)
    g.t.backward_scalar(model(g.params(model), g.g).sum())


def loss_function_of_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))

    def loss_fn(p: nn.scope.Params, batch: tuple[AnyVar, AnyVar]) -> AnyVar:
        images, labels = batch
        return ops.cross_entropy(model(p, images), labels)

    tape = Tape()
    loss = loss_fn(tape.params(model.init(seed=0)), (tape.const(ones(5, 4)), tape.const([0, 1, 0, 1, 1])))
    tape.backward_dense(loss)


def mixed(g: Given) -> None:
    h = g.x @ g.g
    _ = g.x + h + ops.linear(h, g.g, g.t.leaf(ones(4)))
    _ = g.g @ g.g + g.g
    _ = ops.transpose2d(g.g @ g.u) @ g.g


def forgotten(g: Given) -> None:
    x = g.x.gradual
    _ = x @ g.u + g.h
    _ = ops.linear(x, g.w, g.b)


def typed_again(g: Given) -> None:
    h: Var[f32, Batch, Hid] = ops.linear(g.x.gradual, g.w.gradual, g.b.gradual)
    model = nn.Linear(In, Hid) >> nn.Linear(Hid, Out)
    out: Var[f32, Batch, Out] = model(g.params(model), g.x.gradual)
    _ = h + g.h, out + g.y


def variables_that_change(g: Given) -> None:
    x = g.x.gradual
    for w in [g.t.param(ones(4, 4)) for _ in range(3)]:
        x = ops.relu(x @ w)
    g.t.backward_scalar(ops.reduce_sum(x))


def unannotated(tape, a, b):  # type: ignore[no-untyped-def]
    x = tape.leaf(a)
    return ops.reduce_sum(ops.softmax(ops.relu(x @ tape.leaf(b)) + 1.0), -1)


def unannotated_code(g: Given) -> None:
    unannotated(g.t, ones(2, 3), ones(3, 4))  # type: ignore[no-untyped-call]


def arrays_of_all_kinds() -> None:
    tape = Tape()
    _ = tape.leaf([1.0, 2.0]) + tape.leaf(np.ones(2, np.float64)) * tape.leaf(np.array([1.0, 2.0]))
    _ = tape.const([1, 2]) == tape.const(np.array([1, 2]))


def what_is_any(g: Given) -> None:
    x: Any = g.x
    _ = ops.linear(x, g.w, g.b) + g.h
    _ = x.sum(-1) + g.x.sum(-1)
