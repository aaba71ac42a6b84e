"""PyTorch: its fused attention."""

from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from .attention import MODELS as MODELS, Array, Attention


def make(model: Attention, params: dict[str, Array], threads: int) -> Callable[[Array], float]:
    """Gradients by query, key and value; returns the last element of the first."""
    torch.set_num_threads(threads)
    inputs = [torch.tensor(array, requires_grad=True) for array in params.values()]

    def step(seed: Array) -> float:
        out = scaled_dot_product_attention(*inputs, is_causal=model.causal)
        return torch.autograd.grad(out, inputs, torch.from_numpy(seed))[0][-1, -1, -1, -1].item()

    return step
