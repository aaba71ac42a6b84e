"""dgrr: the gradients of a captured step."""

from collections.abc import Callable
from typing import Any

from dgrr.runtime import SGD, capture
from dgrr.tape import AnyVar, ops, set_threads

from .attention import MODELS as MODELS, Array, Attention


def make(model: Attention, params: dict[str, Array], threads: int) -> Callable[[Array], float]:
    """Gradients by query, key and value; returns the last element of the first."""
    set_threads(threads)

    def loss_fn(p: Any, seed: Any) -> AnyVar:
        return ops.reduce_sum(ops.mul(ops.scaled_dot_product_attention(**p, is_causal=model.causal), seed))

    step = capture(loss_fn, params, SGD(0.0), model.batches()[0])
    return lambda seed: float(step.gradients(seed)["query"][-1, -1, -1, -1])
