"""The networks in PyTorch's functions; each ends with its loss."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as f

from .larger import Net
from .models import Cnn, Mlp, Model, Transformer

Tensors = dict[str, torch.Tensor]


def mlp_loss(model: Mlp, p: Tensors, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    for layer in model.layers[:-1]:
        x = f.relu(linear(p, layer, x))
    out = linear(p, model.layers[-1], x)
    return f.mse_loss(out, targets) if model.loss == "mse" else f.cross_entropy(out, targets)


def cnn_loss(model: Cnn, p: Tensors, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    for layer in model.layers:
        x = f.relu(f.conv2d(x, p[f"{layer}.weight"], p[f"{layer}.bias"], padding=1))
        if model.pooling == "max":
            x = f.max_pool2d(x, 2)
    seen = x.flatten(1) if model.pooling == "max" else x.mean((2, 3))
    return f.cross_entropy(linear(p, "linear", seen), labels)


def transformer_loss(model: Transformer, p: Tensors, read: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    x = f.embedding(read, p["embedding"]) + p["positions"]
    for block in model.layers:
        x = x + attention(model, p, block, norm(p, f"{block}.norm1", x))
        inner = f.gelu(linear(p, f"{block}.linear1", norm(p, f"{block}.norm2", x)))
        x = x + linear(p, f"{block}.linear2", inner)
    logits = linear(p, "linear", norm(p, "norm", x))
    return f.cross_entropy(logits.flatten(0, 1), expected.flatten())


def attention(model: Transformer, p: Tensors, block: str, x: torch.Tensor) -> torch.Tensor:
    heads = linear(p, f"{block}.qkv", x).unflatten(-1, (3, model.heads, -1)).permute(2, 0, 3, 1, 4)
    q, k, v = heads.unbind()
    mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True)
    return linear(p, f"{block}.out", mixed.transpose(1, 2).flatten(2))


def linear(p: Tensors, layer: str, x: torch.Tensor) -> torch.Tensor:
    return f.linear(x, p[f"{layer}.weight"], p[f"{layer}.bias"])


def norm(p: Tensors, layer: str, x: torch.Tensor) -> torch.Tensor:
    weight = p[f"{layer}.weight"]
    return f.layer_norm(x, weight.shape, weight, p[f"{layer}.bias"])


LOSSES: dict[type[Model], Callable[..., torch.Tensor]] = {
    Mlp: mlp_loss,
    Cnn: cnn_loss,
    Transformer: transformer_loss,
}


class Functions:
    """`Functions` of larger networks."""

    relu, linear, cross_entropy, mse = (staticmethod(g) for g in (f.relu, f.linear, f.cross_entropy, f.mse_loss))

    def conv(self, x: Any, weight: Any, stride: int = 1, groups: int = 1) -> Any:
        return f.conv2d(x, weight, None, stride, weight.shape[-1] // 2, groups=groups)

    def batch_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return f.batch_norm(x, None, None, weight, bias, training=True)

    def max_pool(self, x: Any) -> Any:
        return f.max_pool2d(x, 2)

    def enlarged(self, x: Any) -> Any:
        return f.interpolate(x, scale_factor=2, mode="nearest")

    def joined(self, x: Any, y: Any) -> Any:
        return torch.cat((x, y), 1)

    def pixel_mean(self, x: Any) -> Any:
        return x.mean((2, 3))

    def lstm(self, x: Any, p: Any) -> Any:
        flat = [p[f"{kind}_{of}_l0"] for kind in ("weight", "bias") for of in ("ih", "hh")]
        zeros = x.new_zeros(1, x.shape[0], flat[1].shape[1])
        return torch.lstm(x, (zeros, zeros), flat, True, 1, 0.0, True, False, True)[0]


def loss_of(model: Model) -> Callable[..., torch.Tensor]:
    """``loss(p, x, targets)`` of a model."""
    return partial(model.loss, Functions()) if isinstance(model, Net) else partial(LOSSES[type(model)], model)
