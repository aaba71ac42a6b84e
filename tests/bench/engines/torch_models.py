"""The networks in PyTorch's functions; each ends with its loss."""

from collections.abc import Callable

import torch
import torch.nn.functional as f

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
