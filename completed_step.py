"""What a training step did: what a trainer tells a recorder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .arrays import Array, Arrays


@dataclass(slots=True, kw_only=True, eq=False)
class CompletedStep:
    """One training step, after its update.

    Args:
        step: 0, 1, 2, …
        loss: scalar, float32 or float64.
        hyper: the hyperparameters this step used, by name.
        grads: gradients as the optimizer consumed them, the mean over the micro-batches; a param that is absent was
            not updated.
        params: every param after the update.
        state: every optimizer state tensor after the update.
        model_state: what the model keeps besides its params, after the step, by the names of the beginning.
        batch: the arrays the loss was computed from: a mapping, a sequence or one array.
        clip: (threshold, scale) if the gradients were clipped by norm.
        micro_batches: how many micro-batches the gradients were accumulated over.
    """

    step: int
    loss: Array
    hyper: Mapping[str, float]
    grads: Arrays
    params: Arrays
    state: Arrays
    model_state: Arrays = field(default_factory=dict[str, Array])
    batch: Any
    clip: tuple[float, float] | None = None
    micro_batches: int = 1
