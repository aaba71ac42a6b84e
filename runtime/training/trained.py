"""What a trainer trains: parameters and states, by which rules and at which rates."""

from math import isfinite

import numpy as np

from ...base.arrays import Array
from ...screen.panels import Described
from ...screen.showing import counted
from ..captured.ranked_step import AnyStep, RankedStep
from ..optim.averages import averaged
from ..optim.clip import global_norm
from ..optim.groups import Optimizer
from .evaluator import Evaluator
from .modes import StepRunner


class TrainedArrays(Evaluator, Described):
    """The arrays of a `Trainer`, and what updates them."""

    _run: StepRunner

    steps: int
    """Steps done since the beginning of the run."""

    def _title(self) -> str:
        parameters = counted(sum(array.size for array in self.params.values()), "parameter")
        return f"{type(self).__name__}: {parameters}, {counted(self.steps, 'step')} done"

    def about(self) -> dict[str, object]:
        """What is to be said of it to people: parameters, optimizer, mode, how far it has come."""
        return {**self._step.about(), "mode": self._run.mode, "steps done": f"{self.steps:,}"}

    @property
    def optimizer(self) -> Optimizer:
        """The rule that updates the parameters, or the rules by patterns of names."""
        return self._step.recipe.rule

    @property
    def lr(self) -> float | dict[str, float]:
        """The learning rate of the next update; where several rules were given, that of each by its pattern."""
        rates = self._step.groups.rates(self.steps + 1)
        return rates if isinstance(self.optimizer, dict) else next(iter(rates.values()))

    @property
    def params(self) -> dict[str, Array]:
        """The trained values by name: the same arrays all the time."""
        return self._step.params

    @property
    def averaged(self) -> dict[str, Array]:
        """The running averages of the parameters by name, and what is frozen: the same arrays all the time.

        With ``ranks`` they are copies, for which all ranks ask.

        They begin as the parameters; after each step ``average = ema * average + (1 - ema) * parameter``.

        Raises DomainError for a trainer without ``ema``.
        """
        step = self._step
        return step.averages() if isinstance(step, RankedStep) else averaged(step.params, step.state)

    @property
    def state(self) -> dict[str, Array]:
        """The optimizer's state by name: the same arrays all the time. With ``ranks`` this rank's share of it."""
        return self._step.state

    @property
    def model_state(self) -> dict[str, Array]:
        """What the model keeps from step to step, by name: the same arrays all the time."""
        return self._step.model_state

    @property
    def _step(self) -> AnyStep:
        return self._run.step

    def _norm(self, step: AnyStep) -> float | None:
        """The norm of the last step's gradients, which clipping has measured, or else is measured now."""
        if isinstance(step, RankedStep):
            return step.gradient_norm()
        return global_norm(step.consumed) if step.recipe.clip_norm is None else step.norm

    def _is_finite(self, loss: float, step: AnyStep) -> bool:
        """Whether the last step's loss and gradients are finite, which all are that a step does not stop for."""
        if isinstance(step, RankedStep):
            return step.is_finite
        stops = step.recipe.on_nonfinite == "stop"
        return stops or (isfinite(loss) and all(np.isfinite(grad).all() for grad in step.consumed.values()))
