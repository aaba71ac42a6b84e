"""The networks in dgrr's ops."""

from collections.abc import Callable, Mapping
from typing import Any

from dgrr.tape import AnyVar, nn, ops

from .larger import Net
from .models import Array, Cnn, Mlp, Model, Params, Transformer

Vars = Mapping[str, AnyVar]


def mlp_loss(model: Mlp, p: Vars, x: Any, targets: Any) -> AnyVar:
    for layer in model.layers[:-1]:
        x = ops.relu(linear(p, layer, x))
    out = linear(p, model.layers[-1], x)
    return ops.mse_loss(out, targets) if model.loss == "mse" else ops.cross_entropy(out, targets)


def cnn_loss(model: Cnn, p: Vars, x: Any, labels: Any) -> AnyVar:
    for layer in model.layers:
        x = ops.relu(ops.conv(x, p[f"{layer}.weight"], p[f"{layer}.bias"], padding=1))
        if model.pooling == "max":
            x = ops.max_pool(x, (2, 2))
    seen = ops.flatten(x, 1) if model.pooling == "max" else ops.reduce_mean(x, (2, 3))
    return ops.cross_entropy(linear(p, "linear", seen), labels)


def transformer_loss(model: Transformer, p: Vars, read: Any, expected: Any) -> AnyVar:
    x = ops.embedding(p["embedding"], read) + p["positions"]
    for block in model.layers:
        x = x + attention(model, p, block, norm(p, f"{block}.norm1", x))
        inner = ops.gelu(linear(p, f"{block}.linear1", norm(p, f"{block}.norm2", x)))
        x = x + linear(p, f"{block}.linear2", inner)
    logits = linear(p, "linear", norm(p, "norm", x))
    return ops.cross_entropy(logits.reshape((-1, model.symbols)), expected.reshape((-1,)))


def attention(model: Transformer, p: Vars, block: str, x: AnyVar) -> AnyVar:
    wq, wk, wv, wo = (p[f"{block}.w{name}"] for name in "qkvo")
    bq, bk, bv, bo = (p[f"{block}.b{name}"] for name in "qkvo")
    return ops.multi_head_attention(x, wq, wk, wv, wo, model.heads, is_causal=True, bq=bq, bk=bk, bv=bv, bo=bo)


def linear(p: Vars, layer: str, x: Any) -> AnyVar:
    return ops.linear(x, p[f"{layer}.weight"], p[f"{layer}.bias"])


def norm(p: Vars, layer: str, x: AnyVar) -> AnyVar:
    return ops.layer_norm(x, p[f"{layer}.weight"], p[f"{layer}.bias"])


class Ops:
    """`Functions` of larger networks."""

    relu, linear, cross_entropy, mse = (
        staticmethod(f) for f in (ops.relu, ops.linear, ops.cross_entropy, ops.mse_loss)
    )

    def conv(self, x: Any, weight: Any, stride: int = 1, groups: int = 1) -> Any:
        return ops.conv(x, weight, None, stride, weight.shape[-1] // 2, groups=groups)

    def batch_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return ops.batch_norm(x, weight, bias)

    def max_pool(self, x: Any) -> Any:
        return ops.max_pool(x, (2, 2))

    def enlarged(self, x: Any) -> Any:
        return ops.interpolate(x, scale_factor=(2, 2), mode="nearest")

    def joined(self, x: Any, y: Any) -> Any:
        return ops.append(x, y, 1)

    def pixel_mean(self, x: Any) -> Any:
        return ops.reduce_mean(x, (2, 3))

    def lstm(self, x: Any, p: Any) -> Any:
        hidden = p["weight_hh_l0"].shape[1]
        return nn.LSTM(p["weight_ih_l0"].shape[1], hidden, batch_first=True)(p, x)


LOSSES: dict[type[Model], Callable[..., AnyVar]] = {
    Mlp: mlp_loss,
    Cnn: cnn_loss,
    Transformer: transformer_loss,
}


def loss_fn_of(model: Model) -> Callable[[Vars, Any], AnyVar]:
    """``loss_fn(p, batch)`` of a model."""
    if isinstance(model, Net):
        return lambda p, batch: model.loss(Ops(), p, *batch)
    loss = LOSSES[type(model)]
    return lambda p, batch: loss(model, p, *batch)


def renamed(params: Params) -> Params:
    """Start values by the names of `LOSSES`: of attention, a weight (in, out) for each projection."""
    named: Params = {}
    for name, array in params.items():
        layer, _, kind = name.rpartition(".")
        if layer.endswith((".qkv", ".out")):
            named |= _projections(layer, kind, array)
        else:
            named[name] = array
    return named


def _projections(layer: str, kind: str, array: Array) -> Params:
    block, _, which = layer.rpartition(".")
    names = "qkv" if which == "qkv" else "o"
    parts = array.reshape(len(names), -1, *array.shape[1:])
    return {f"{block}.{kind[0]}{name}": part.T.copy() for name, part in zip(names, parts, strict=True)}
