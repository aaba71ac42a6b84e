"""Callbacks that watch one figure of a fit: its best value, and what follows from it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import isnan
from typing import Any, Literal

from ....base.runs.completed_step import VALIDATION
from ....tape import DomainError
from ..trainer import Trainer
from .callback import Callback


class Monitor(Callback, ABC):
    """Watches a figure: ``validation_…`` at every validation, others, as means of the epoch, at its end.

    Args:
        monitor: a column of ``history.epochs``, such as "validation_loss", "loss", or a metric of the loss function.
        mode: whether the least or the greatest value is the best.
        min_delta: by how much at least a better value is better.

    Raises:
        DomainError: another mode, a negative ``min_delta``; when a fit begins or first measures, a figure that it
            does not have.
    """

    def __init__(self, monitor: str, mode: Literal["min", "max"], min_delta: float) -> None:
        where = type(self).__name__
        if mode not in ("min", "max"):
            raise DomainError(f"{where}: argument 'mode': expected 'min' or 'max', got {mode!r}")
        if not min_delta >= 0:
            raise DomainError(f"{where}: argument 'min_delta': expected a number of at least 0, got {min_delta!r}")
        self.monitor, self.mode, self.min_delta = monitor, mode, min_delta
        self._start()

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best:.6g} after step {self.best_step}"
        return f"<{type(self).__name__} of {self.monitor}{best}>"

    def _start(self) -> None:
        self.best: float | None = None
        """The best value so far."""
        self.best_step: int | None = None
        """The step behind which it was measured."""
        self._seen = -1

    @abstractmethod
    def measured(self, trainer: Trainer, *, better: bool) -> bool | None:
        """The figure was measured once more; ``better`` says whether it is the best so far."""

    # ------------------------------------------------------------------ moments

    def on_begin(self, trainer: Trainer, steps: int) -> None:
        """Start afresh, unless the fit goes on."""
        if steps == 0:
            self._start()
        if self.monitor.startswith(VALIDATION) and not trainer.validates:
            raise self._unknown("none of a validation; pass fit(…, validation=…) or monitor='loss'")

    def on_validation(self, trainer: Trainer, step: int, figures: Mapping[str, float]) -> bool | None:
        """Take the figure, if it is of the validation."""
        return self._take(trainer, figures) if self.monitor.startswith(VALIDATION) else None

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool | None:
        """Take the figure, if it is of the training."""
        if self.monitor.startswith(VALIDATION) or not (row := trainer.history.last_epoch()):
            return None
        return self._take(trainer, row)

    def _take(self, trainer: Trainer, figures: Mapping[str, float]) -> bool | None:
        step = trainer.steps - 1
        if step <= self._seen:  # a resumed fit tells of its last step once more
            return None
        if self.monitor not in figures:
            raise self._unknown(", ".join(map(repr, figures)))
        self._seen, value = step, figures[self.monitor]
        better = self._better(value)
        if better:
            self.best, self.best_step = value, step
        return self.measured(trainer, better=better)

    def _better(self, value: float) -> bool:
        if isnan(value) or self.best is None:
            return not isnan(value)
        gain = self.best - value if self.mode == "min" else value - self.best
        return gain > self.min_delta

    def _unknown(self, got: str) -> DomainError:
        where = f"{type(self).__name__}: argument 'monitor'"
        return DomainError(f"{where}: expected a figure of the fit, got {self.monitor!r}; there is {got}")

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"best": self.best, "best_step": self.best_step, "seen": self._seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`."""
        self.best, self.best_step, self._seen = state["best"], state["best_step"], state["seen"]
