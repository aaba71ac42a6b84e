"""A rate that is set before each update: that of a recorded step."""

from dataclasses import dataclass, field

import numpy as np

from ....base.arrays import Array
from ..laws.known import HYPER
from .schedules import Schedule, ScheduleNodes, Vector


@dataclass(frozen=True)
class ToldRate(Schedule):
    """The first of the hyperparameters that stand in ``vector``, whatever the count; captured steps read all of them.

    >>> told = ToldRate()
    >>> told.vector[0] = 0.5
    >>> told(3)
    0.5
    """

    vector: Vector = field(default_factory=lambda: np.zeros(HYPER), compare=False)

    def hyper(self, base: Vector, step: Array) -> Vector:
        """``base`` with the rate that stands there now."""
        out = base.copy()
        out[0] = self.vector[0]
        return out

    def graph(self, nodes: ScheduleNodes, base: int, step: int) -> int:
        """The vector itself."""
        return nodes.told(self.vector)
