"""What a fit has done."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.diagnosis import Remark, worth_a_look
from ...screen.curves import sparkline
from ...screen.panels import ShownAsPanel
from ...screen.plotting import curve
from ...screen.showing import counted, rate
from .history import History

_SAID = ("epoch", "step", "loss", "lr", "seconds")
"""Of an epoch's row, what is said otherwise."""


@dataclass(frozen=True, repr=False)
class Result(ShownAsPanel):
    """What `Trainer.fit` did; it prints, and shows itself in a notebook, with its losses as a curve."""

    losses: npt.NDArray[np.floating[Any]]
    """The loss of every step of this call, before its update."""
    steps: int
    seconds: float
    state_digest: str
    """SHA-256, in hex, over parameters, optimizer state and the model's state after the last step."""
    history: History = field(compare=False)
    """Loss, learning rate, metrics and validation of every step and epoch of this call, as tables."""
    findings: tuple[Remark, ...] = field(default=(), compare=False)
    """What is worth a look, such as parameters that no gradient reached."""

    def _title(self) -> str:
        last = f", last loss {self.losses[-1]:.6g}" if self.steps else ""
        return f"Result: {counted(self.steps, 'step')} in {self.seconds:.2f} s{last}"

    def about(self) -> dict[str, object]:
        """A summary for people: losses, speed, the last validation, the state digest."""
        found: dict[str, object] = {}
        if self.steps:
            found["loss"] = f"{self.losses[0]:.6g} to {self.losses[-1]:.6g}  {sparkline(self.losses)}"
            found |= self._best()
        if self.seconds > 0:
            found["speed"] = rate(self.steps, self.seconds)
        measured = {name: f"{x:.6g}" for name, x in self.history.last_epoch().items() if name not in _SAID}
        return {**found, **measured, **worth_a_look(self.findings), "state digest": self.state_digest}

    def _best(self) -> dict[str, object]:
        finite = np.flatnonzero(np.isfinite(self.losses))
        if not finite.size:
            return {}
        best = int(finite[np.argmin(self.losses[finite])])
        return {"best loss": f"{self.losses[best]:.6g} at step {self.history.first + best}"}

    def plot(self, ax: Any = None) -> Any:
        """The loss of every step, and of every validation, as a plot; gives matplotlib's axes.

        Args:
            ax: axes to draw on; None makes new ones.

        Raises ModuleNotFoundError where matplotlib is not installed, which comes with ``pip install "dgrr[plot]"``.
        """
        ax = curve("Result.plot", self.losses, ax, first=self.history.first)
        steps = self.history.steps
        for name in (name for name in steps.columns if name.endswith("loss") and name != "loss"):
            measured = np.isfinite(steps[name])
            ax.plot(steps["step"][measured], steps[name][measured], "o-", markersize=4, label=name)
        ax.legend()
        return ax
