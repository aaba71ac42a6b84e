"""Where the scalars of a STEP come from: what a recorder gets of a step, by name."""

from collections.abc import Sequence
from math import nan
from typing import NamedTuple, Self

from ....base.arrays import Array
from ....base.runs.completed_step import CompletedStep, of_group
from ..format.constants import StepFlag
from ..format.schema import Schema
from ..format.step import StepScalars
from .tensors import CORRECTIONS


class ScalarNames(NamedTuple):
    """The names of the scalars in their order, and the bound of clipping by value, which stands before them, if any."""

    bound: tuple[float, ...]
    hyperparameters: Sequence[str]
    corrections: Sequence[str]

    @classmethod
    def of(cls, schema: Schema, clip_value: float | None) -> Self:
        """Those of a schema."""
        groups = list(enumerate(schema.rules))
        return cls(
            () if clip_value is None else (float(clip_value),),
            [of_group(name, i) for i, group in groups for name in group.hyperparameters],
            [of_group(CORRECTIONS, i) for i, group in groups if group.corrections],
        )

    def of_step(self, done: CompletedStep, loss: Array) -> StepScalars:
        """The scalars of a step, its loss in canonical form."""
        hyper = [*self.bound, *map(done.hyper.__getitem__, self.hyperparameters)]
        for name in self.corrections:
            hyper += done.state[name].tolist()
        flags = step_flags(clipped=done.clip is not None, order=done.order, micro_batches=done.micro_batches)
        clip = None if done.clip is None else _canonical(*done.clip)
        return StepScalars(loss, flags, done.micro_batches, clip, hyper)


def step_flags(*, clipped: bool, order: str, micro_batches: int) -> StepFlag:
    """What is said of a step that was clipped or not, and whose gradients were added in a tree or not."""
    tree = order == "tree" and micro_batches > 1
    return (StepFlag.CLIPPED if clipped else StepFlag(0)) | (StepFlag.TREE if tree else StepFlag(0))


def _canonical(threshold: float, scale: float) -> tuple[float, float]:
    """Threshold and scale of clipping, of which the scale may be NaN."""
    return threshold, scale if scale == scale else nan
