"""What a fit has done."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .history import History


@dataclass(frozen=True)
class Result:
    """What `Trainer.fit` did."""

    losses: npt.NDArray[np.floating[Any]]
    """The loss of every step of this call, before its update."""
    steps: int
    seconds: float
    state_digest: str
    """SHA-256, in hex, over parameters, optimizer state and the model's state after the last step."""
    history: History = field(compare=False)
    """Loss, learning rate, metrics and validation of every step and epoch of this call, as tables."""
