"""The weights of attention: the products with their values are `matmul`."""

from math import sqrt

import numpy as np

from .graph import OpCall, exports


@exports("attention_weights")
def _attention_weights(c: OpCall) -> str:
    """The softmax of scaled products; where a mask is false it is 0, in a row of falses everywhere."""
    rank, features = len(c.shape), c.shape[-1]
    given = c.attrs["scale"]
    factor = 1 / sqrt(features or 1) if given is None else given
    turned = c("Transpose", c.input(1), perm=[*range(rank - 2), rank - 1, rank - 2])
    return _masked(c, c("Mul", c("MatMul", c.x, turned), c.number(factor)), c.inputs[2])


@exports("masked_softmax")
def _masked_softmax(c: OpCall) -> str:
    return _masked(c, c.x, c.inputs[1])


def _masked(c: OpCall, scores: str, mask: str | None) -> str:
    """The softmax over what a mask keeps."""
    if c.attrs["is_causal"]:
        past = c.graph.constant(np.tri(*c.out.shape[-2:], dtype=bool))
        mask = past if mask is None else c("And", mask, past)
    if mask is None:
        return c("Softmax", scores, axis=-1)
    kept = c("Softmax", c("Where", mask, scores, c.number(np.finfo(c.out.dtype).min)), axis=-1)
    return c("Where", mask, kept, c.number(0.0))
