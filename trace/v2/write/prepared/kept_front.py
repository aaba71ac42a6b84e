"""Fronts of steps of one kind that stay side by side: those of a launch are looked at behind it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .....base.arrays import Array
from .....base.runs.completed_step import CompletedStep
from .....tape.numerics.prepared.moves import Appended
from .....tape.numerics.prepared.places import place_of
from .....tape.numerics.prepared.prepared_calls import PreparedPart
from ...read.prepared.prepared_head import zeros
from .prepared_front import MOST, PreparedFront


class KeptFront(PreparedFront):
    """Leaves each front behind the one before it, in a launch those of all its steps."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._fronts, self._used = zeros(MOST * len(self._front)), np.zeros(1, np.int64)

    @property
    def fronts(self) -> list[bytes]:
        """Those of the last launch, or of the last step alone."""
        each, made = len(self._front), int(self._used[0])
        return [self._fronts[at : at + each].tobytes() for at in range(0, made, each)]

    def run(self, done: CompletedStep) -> tuple[Array, ...] | None:
        """See `PreparedFront`."""
        self._used[0] = 0
        return super().run(done)

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], scale: Array | None) -> Array | None:
        """See `PreparedFront`."""
        made = super().rows(first, hyper, scale)
        self._used[0] = 0
        return made

    def _parts(self) -> Iterator[PreparedPart]:
        yield from super()._parts()
        yield self._counted()
        yield Appended([(place_of(self._front), len(self._front))], self._fronts, self._used)
