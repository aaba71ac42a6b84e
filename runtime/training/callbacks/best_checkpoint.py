"""Keeping the best state of a fit."""

from typing import Literal

from ....base.system import FilePath
from ..trainer import Trainer
from .monitor import Monitor


class BestCheckpoint(Monitor):
    """Saves a checkpoint whenever a figure is the best so far; ``trainer.load(path)`` goes back there.

    The first save replaces any file at the path. Put this after the callbacks whose state after the measurement belongs
    in the checkpoint.

    Args:
        path: of the checkpoint.
        monitor, min_delta, mode: as for `EarlyStopping`.

    Raises:
        DomainError: as `EarlyStopping`; OSError if the file cannot be written.

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, BestCheckpoint, Trainer
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     best = BestCheckpoint(f"{folder}/best.ckpt", monitor="loss")
    ...     trainer = Trainer(lambda p, x: (p["w"] * x).sum() ** 2, {"w": np.ones(1)}, SGD(1.5), callbacks=[best])
    ...     losses = trainer.fit([np.ones(1)], epochs=3).losses
    ...     trainer.load(f"{folder}/best.ckpt")
    >>> losses, trainer.steps, best.best
    (array([ 1.,  4., 16.]), 1, 1.0)
    """

    def __init__(
        self,
        path: FilePath,
        monitor: str = "validation_loss",
        *,
        min_delta: float = 0.0,
        mode: Literal["min", "max"] = "min",
    ) -> None:
        self.path = path
        super().__init__(monitor, mode, min_delta)

    def measured(self, trainer: Trainer, *, better: bool) -> None:
        """Save the best."""
        if better:
            trainer.save(self.path)
