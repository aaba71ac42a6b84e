"""A smaller learning rate where a fit gets no better."""

from collections.abc import Mapping
from math import isnan
from typing import Any, Literal

from ....tape import DomainError
from ....tape.numerics.math.exact import difference, product
from ....tape.record.kinds.values import NOT_NEGATIVE
from ...optim.rates.held import HeldRate
from ..trainer import Trainer
from .monitor import Monitor

WITHIN_1 = "a number from 0 to below 1"


class ReduceLROnPlateau(Monitor):
    """Multiplies the learning rate by a factor when a figure has not improved in more than ``patience`` measurements.

    Pass its rate ``lr`` to a rule, ``Adam(plateau.lr)``, and the object itself as a callback. A trace records the rate
    of each step, so a replay needs no measurements. Checkpoints hold counts and rate. A new fit of the same trainer
    counts from zero, from the rate reached.

    Source: torch.optim.lr_scheduler.ReduceLROnPlateau, whose arguments and order of operations these are.

    Args:
        lr: the first rate.
        monitor, mode: as for `EarlyStopping`.
        factor: what the rate is multiplied by, below 1.
        patience: how many measurements in a row without improvement are tolerated.
        threshold: by how much a value must beat the best one: ``best * (1 - threshold)``, or plus where more is better.
        threshold_mode: "rel" for that, "abs" for ``best - threshold``.
        cooldown: how many measurements after a reduction are not counted.
        min_lr: the rate is never less.
        eps: the rate stays if it would change by no more than this.

    Raises:
        DomainError: an argument outside these; when the fit begins or first measures, a figure that it does not have.

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, ReduceLROnPlateau, Trainer
    >>> plateau = ReduceLROnPlateau(0.75, monitor="loss", factor=0.5, patience=0)
    >>> def loss_fn(p, x):
    ...     return (p["w"] * x).sum() ** 2
    >>> trainer = Trainer(loss_fn, {"w": np.ones(1)}, SGD(plateau.lr), callbacks=[plateau])
    >>> batches = [np.array([1.25])]
    >>> trainer.fit(batches, epochs=4).losses.round(2), plateau.lr.now
    (array([1.56, 2.82, 5.09, 0.15]), 0.1875)
    """

    def __init__(
        self,
        lr: float,
        monitor: str = "validation_loss",
        *,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        _require("lr", NOT_NEGATIVE.fits(lr), NOT_NEGATIVE.expected, lr)
        _require("factor", 0 <= factor < 1, WITHIN_1, factor)
        for name, count in (("patience", patience), ("cooldown", cooldown)):
            _require(name, int(count) == count and count >= 0, "a whole number of at least 0", count)
        _require("threshold_mode", threshold_mode in ("rel", "abs"), "'rel' or 'abs'", threshold_mode)
        for name, value in (("threshold", threshold), ("min_lr", min_lr), ("eps", eps)):
            _require(name, NOT_NEGATIVE.fits(value), NOT_NEGATIVE.expected, value)
        self.factor, self.patience, self.cooldown = float(factor), int(patience), int(cooldown)
        self.threshold, self.threshold_mode = float(threshold), threshold_mode
        self.min_lr, self.eps = float(min_lr), float(eps)
        self.lr = HeldRate(float(lr))
        super().__init__(monitor, mode, 0.0)

    def _start(self) -> None:
        super()._start()
        self.waited = self.cooling = 0

    def _better(self, value: float) -> bool:
        if isnan(value) or self.best is None:
            return not isnan(value)
        less = self.mode == "min"
        if self.threshold_mode == "abs":
            return value < self.best - self.threshold if less else value > self.best + self.threshold
        return value < self.best * (1 - self.threshold) if less else value > self.best * (1 + self.threshold)

    def measured(self, trainer: Trainer, *, better: bool) -> None:
        """Take a smaller rate if the patience is used up."""
        self.waited = 0 if better else self.waited + 1
        if self.cooling:
            self.cooling, self.waited = self.cooling - 1, 0
        if self.waited > self.patience:
            self._reduce()
            self.cooling, self.waited = self.cooldown, 0

    def _reduce(self) -> None:
        smaller = max(product(self.lr.now, self.factor), self.min_lr)
        if difference(self.lr.now, smaller) > self.eps:
            self.lr.set(smaller)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {**super().state_dict(), "waited": self.waited, "cooling": self.cooling, "lr": self.lr.now}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`."""
        super().load_state_dict(state)
        self.waited, self.cooling = state["waited"], state["cooling"]
        self.lr.set(state["lr"])


def _require(argument: str, met: bool, expected: str, given: object) -> None:
    if not met:
        raise DomainError(f"ReduceLROnPlateau: argument {argument!r}: expected {expected}, got {given!r}")
