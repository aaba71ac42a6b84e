"""Arrays, numbers and lists beside Vars: what becomes a constant where it is given."""

from typing import Any, assert_type

import numpy as np
from given import Batch, Given, Hid, In, Out

from dgrr.base.arrays import Array
from dgrr.runtime import Batch as Arrays, Dataset
from dgrr.tape import AnyVar, Context, Tape, Var, boolean, f32, nn, ops
from dgrr.tape.values.tensor import AnyTensor
from dgrr.tape.var.var import Gradual


def array(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def numbers_are_repeated(g: Given) -> None:
    assert_type(ops.maximum(g.x, 0.0), Var[f32, Batch, In])
    assert_type(ops.where(g.x > 0.0, g.x, 0), Var[f32, Batch, In])
    assert_type(ops.where(True, 1.0, g.x), Var[f32, Batch, In])
    assert_type(ops.mul(2, g.x), Var[f32, Batch, In])
    assert_type(ops.greater(g.x, np.float32(1)), Var[boolean, Batch, In])
    assert_type(ops.mse_loss(g.x, 1.0), Var[f32])


def masks(g: Given) -> None:
    mask = np.tri(5, 4) > 0
    assert_type(ops.where(mask, g.x, 0.0), Var[f32, Batch, In])
    assert_type(ops.where(mask, g.x, array(5, 4)), Var[f32, Batch, In])
    assert_type(ops.softmax(ops.where(mask, g.x, -1e9)), Var[f32, Batch, In])


def labels(g: Given) -> None:
    assert_type(ops.cross_entropy(g.y, np.array([0, 1, 0, 1, 1])), Var[f32])
    assert_type(ops.cross_entropy(g.y, [0, 1, 0, 1, 1], weight=array(2), reduction="none"), Var[f32, Batch])
    assert_type(ops.nll_loss(ops.log_softmax(g.y), [0, 1, 0, 1, 1]), Var[f32])
    assert_type(ops.huber_loss(array(5, 4), g.x, reduction="none"), Var[f32, Batch, In])
    assert_type(ops.binary_cross_entropy_with_logits(g.x, array(5, 4), pos_weight=array(4)), Var[f32])


def products(g: Given) -> None:
    assert_type(ops.linear(g.x, g.w, array(3)), Var[f32, Batch, Hid])
    made: Var[f32, Batch, Hid] = ops.linear(array(5, 4), g.w, g.b)
    other: Var[f32, Batch, Out] = ops.linear(g.x, array(2, 4))
    assert_type(ops.matmul(array(2, 5), g.x), Gradual[f32])
    assert_type(ops.matmul(g.x, array(4, 2)), Gradual[f32])
    _ = made + g.h, other + g.y


def positions(g: Given) -> None:
    rows = np.array([0, 2, 2])
    _ = ops.embedding(g.w, rows) + ops.take(g.w, rows) + ops.take(g.w, [0, 1, 2], axis=0)
    assert_type(ops.index_add(g.w, rows, array(3, 4)), Var[f32, Hid, In])
    assert_type(ops.index_add(array(3, 4), rows, g.w), Gradual[f32])
    assert_type(ops.take_along_axis(g.w, np.array([[0], [1], [2]]), 1), Gradual[f32])
    assert_type(ops.scatter_add(g.w, rows, 3), Gradual[f32])


def planes(g: Given) -> None:
    images, kernel = g.t.leaf(array(2, 3, 5, 5)), g.t.leaf(array(4, 3, 3, 3))
    assert_type(ops.conv2d(array(2, 3, 5, 5), kernel, padding=1), Gradual[f32])
    assert_type(ops.conv2d(images, array(4, 3, 3, 3), array(4)), Gradual[f32])


def models_of_arrays() -> None:
    model, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU()), array(5, 4)
    params = model.init(0)
    assert_type(model(params, x), Array)
    assert_type(model(params, Tape().const(x)), AnyVar)
    assert_type(model(Tape().params(params), x), AnyVar)


def a_layer_of_arrays(g: Given) -> None:
    layer = nn.Linear(In, Out)
    params, x = layer.init(0), array(5, 4)
    assert_type(layer(params, x), Array)
    assert_type(layer(params, g.x), Var[f32, Batch, Out])
    assert_type(layer(g.params(layer), x), AnyVar)


def state_of_arrays() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm(3))
    x = Tape().const(array(5, 4))
    assert_type(model(model.init(0), x, Context(state=model.init_state())), AnyVar)


def masked_sequences(g: Given) -> None:
    lstm = nn.LSTM(3, 4, batch_first=True)
    _ = lstm(g.params(lstm), g.t.const(array(2, 5, 3)), mask=np.arange(5) < np.array([[5], [2]]))


def gradients(g: Given) -> None:
    w = g.t.param(array(3), name="gradients")
    found = g.t.backward_dense((w * w).sum())
    assert_type(found["gradients"], AnyTensor | Any)
    assert (found["gradients"].numpy() == found[w].numpy()).all()


def batches() -> None:
    def loss_fn(p: nn.Params, batch: Arrays) -> AnyVar:
        x, y = batch
        return ops.cross_entropy(x @ p["w"], y)

    images, labels = next(iter(Dataset(array(6, 4), [0, 1, 0, 1, 1, 0]).batches(6)))
    tape = Tape()
    tape.backward_dense(loss_fn(tape.params({"w": array(4, 2)}), (tape.const(images), tape.const(labels))))
