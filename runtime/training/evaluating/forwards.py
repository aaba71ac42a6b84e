"""Forward passes over the arrays of a step, which go on being trained."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from inspect import ismethod
from typing import Any

from ....tape import AnyVar, DomainError
from ...captured.captured_forward import CapturedForward
from ...optim.averages import averaged
from ...step.forward import Forward, eager_forward, loss_forward, model_forward
from ...step.training_step import TrainingStep
from ..step_runner import StepOptions

Model = Callable[..., AnyVar]
"""``model(p, x)`` or ``model(p, x, ctx)``."""

MODELS_KEPT = 8
"""Models whose tables are kept."""


class Forwards:
    """Forward passes over the arrays of a step: op by op, or captured at the first batch of each signature.

    With ``averages`` they take the running averages of the parameters.
    """

    def __init__(self, step: TrainingStep, options: StepOptions, *, averages: bool = False) -> None:
        self._step, self._averages = step, averages
        self._eager, self._plan_bytes = options.mode == "eager", options.plan_bytes
        self.ranks = options.ranks
        """Those that share the batches."""
        self._models: dict[Any, tuple[Any, Callable[[Any], Any]]] = {}

    @cached_property
    def loss(self) -> Callable[[Any], Any]:
        """A batch -> the loss and the metrics by name."""
        return self._of(loss_forward(self._step.loss_fn))

    def model(self, model: Model) -> Callable[[Any], Any]:
        """Inputs -> the outputs of a model: views that are valid until the next call."""
        key = (id(model.__self__), model.__func__) if ismethod(model) else id(model)
        known = self._models.get(key)
        if known is None:
            if len(self._models) == MODELS_KEPT:
                del self._models[next(iter(self._models))]
            known = self._models[key] = model, self._of(model_forward(model))
        return known[1]

    def _of(self, function: Forward) -> Callable[[Any], Any]:
        step = self._step
        if self._averages and step.own is not None:
            raise DomainError(
                "averages: expected a trainer without ranks, each of which keeps a share of the averages; save the run "
                "and load it in one process, or take trainer.averaged"
            )
        params = averaged(step.params, step.state) if self._averages else step.params
        if not self._eager:
            arrays = {**step.arrays, "params": params}
            return CapturedForward(function, arrays, step.seed, self._plan_bytes, step.mirror)
        return lambda batch: eager_forward(function, params, batch, replace(step.point, training=False))
