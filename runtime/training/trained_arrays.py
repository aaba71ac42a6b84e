"""What a trainer trains: parameters and states, by which rules and at which rates."""

from ...base.arrays import Array
from ...screen.panels import ShownAsPanel
from ...screen.showing import counted
from ..optim.groups import Optimizer
from ..step.training_step import TrainingStep
from .evaluating.evaluator import Evaluator
from .saving.saved_run import SavedRun


class TrainedArrays(Evaluator, ShownAsPanel):
    """The arrays of a `Trainer`, and what updates them."""

    _run: SavedRun

    @property
    def steps(self) -> int:
        """Steps done since the beginning of the run."""
        return self._run.steps

    def _title(self) -> str:
        parameters = counted(sum(array.size for array in self.params.values()), "parameter")
        return f"{type(self).__name__}: {parameters}, {counted(self.steps, 'step')} done"

    def about(self) -> dict[str, object]:
        """A summary for people: parameters, optimizer, mode, how far it has come."""
        return {**self._step.about(), "mode": self._run.runner.mode, "steps done": f"{self.steps:,}"}

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
    def witnessed(self) -> list[int]:
        """The numbers of the steps of a GPU that the CPU has recomputed, with the same bits, in this process."""
        witness = self._run.runner.witness
        return [] if witness is None else [*witness.steps]

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
        return self._step.averages()

    @property
    def state(self) -> dict[str, Array]:
        """The optimizer's state by name: the same arrays all the time. With ``ranks`` this rank's share of it."""
        return self._step.state

    @property
    def model_state(self) -> dict[str, Array]:
        """What the model keeps from step to step, by name: the same arrays all the time."""
        return self._step.model_state

    @property
    def _step(self) -> TrainingStep:
        return self._run.runner.step
