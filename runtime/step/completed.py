"""A step that was done, as recorders are told of it."""

from typing import Any

from ...base.completed_step import CompletedStep, StepTape
from .training_step import TrainingStep


def completed(step: TrainingStep, number: int, batch: Any, tape: StepTape | None = None) -> CompletedStep:
    """What a recorder is told of the step just done: views that are valid until the next one.

    ``number`` counts steps from 0; ``tape`` is what ``step.tape(batch)`` gave before, where the recorder wants it. The
    batch of an accumulated step is recorded as all its arrays in their order. All ranks of a step call it, and rank 0
    gets the whole.

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, capture
    >>> batch = np.array([3.0, 4.0])
    >>> step = capture(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), batch)
    >>> tape = step.tape(batch)
    >>> loss = step(batch)
    >>> done = completed(step, 0, batch, tape)
    >>> done.params["w"], [node.op for node in tape.nodes]
    (array([-0.5, -1. ]), ['leaf', 'leaf', 'mul', 'reduce_sum'])
    """
    recipe, scale = step.recipe, None if step.recipe.clip_norm is None else step.scale
    whole = step.whole_arrays()
    return CompletedStep(
        step=number,
        loss=step.loss,
        hyper=step.groups.hyperparameters(number + 1),
        grads=step.collected_gradients(),
        params=whole["params"],
        state=whole["state"],
        model_state=whole["model_state"],
        batch=batch if recipe.accumulate == 1 else step.collected_batch(batch),
        clip=None if scale is None or recipe.clip_norm is None else (recipe.clip_norm, scale),
        micro_batches=recipe.accumulate,
        order=recipe.order,
        metrics=step.metrics,
        tape=tape,
    )
