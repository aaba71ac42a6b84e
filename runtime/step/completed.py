"""A completed step, as recorders get it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ...base.arrays import Array
from ...base.runs.completed_step import CompletedStep, StepNumbers, StepTape
from .training_step import TrainingStep


class LaunchRows(Protocol):
    """Rows of the machine that record a step, to be run behind each of several steps in one launch."""

    @property
    def rows(self) -> Array:
        """The rows."""
        ...

    @property
    def steps(self) -> int:
        """How many steps they can record."""
        ...


@runtime_checkable
class LaunchRecorder(Protocol):
    """A recorder that can record several steps in the launch that does them."""

    def room(self, first: int) -> int:
        """How many steps from one on may be in one launch, at most."""
        ...

    def rows(
        self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], numbers: StepNumbers
    ) -> LaunchRows | None:
        """What records steps, of which the first will be like ``first``, and each has hyperparameters of its own.

        All have the arrays of the first, and the numbers, where they lie. None, where they are to be recorded one by
        one.
        """
        ...

    def recorded(self, last: CompletedStep, rows: Any) -> None:
        """The launch has ended behind this step, which is recorded now if a row of the recorder has ended it."""


def completed(step: TrainingStep, number: int, batch: Any, tape: StepTape | None = None) -> CompletedStep:
    """What a recorder gets about the step just done: views that are valid until the next one.

    ``number`` counts steps from 0; ``tape`` is what ``step.tape(batch)`` gave before, if the recorder wants it. The
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
