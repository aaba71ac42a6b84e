"""Ending a fit that gets no better."""

from collections.abc import Mapping
from typing import Any, Literal

from ....tape import DomainError
from ..trainer import Trainer
from .monitor import Monitor


class EarlyStopping(Monitor):
    """Ends a fit once a figure has not improved for a number of measurements.

    Checkpoints hold its counts, so a resumed fit ends at the same step. A new fit of the same trainer counts from zero.

    Args:
        monitor: "validation_loss", "validation_" and the name of a metric, "loss", or a metric.
        patience: after how many measurements in a row without improvement the fit ends.
        min_delta: by how much a value must beat the best one to be better.
        mode: "min" if less is better, else "max". NaN is never better.

    Raises:
        DomainError: an argument outside these; when the fit begins or first measures, a figure that it does not have.

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, EarlyStopping, Trainer
    >>> batches = [np.ones(1)] * 2
    >>> stopping = EarlyStopping(monitor="loss", patience=2, min_delta=1.0)
    >>> trainer = Trainer(lambda p, x: (p["w"] * x).sum() ** 2, {"w": np.ones(1)}, SGD(0.1), callbacks=[stopping])
    >>> trainer.fit(batches, epochs=20).history.epochs["loss"].round(2), stopping.best_step
    (array([0.82, 0.34, 0.14]), 1)
    """

    def __init__(
        self,
        monitor: str = "validation_loss",
        *,
        patience: int = 3,
        min_delta: float = 0.0,
        mode: Literal["min", "max"] = "min",
    ) -> None:
        if patience != int(patience) or patience < 1:
            raise DomainError(
                f"EarlyStopping: argument 'patience': expected a whole number of at least 1, got {patience!r}"
            )
        self.patience = int(patience)
        super().__init__(monitor, mode, min_delta)

    def _start(self) -> None:
        super()._start()
        self.waited = 0
        """Measurements since the best one."""

    def measured(self, trainer: Trainer, *, better: bool) -> bool | None:
        """End the fit if its patience is used up."""
        self.waited = 0 if better else self.waited + 1
        return self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {**super().state_dict(), "waited": self.waited}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`."""
        super().load_state_dict(state)
        self.waited = state["waited"]
