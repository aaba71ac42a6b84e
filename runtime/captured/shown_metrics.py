"""The metrics that the loss function of a captured step returns."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.prepared.number_means import NumberMeans
from ...tape.numerics.prepared.prepared_calls import PreparedCalls


class ShownMetrics:
    """The means over the micro-batches of a step, as `mean_metrics` makes them, made in compiled code.

    ``passes`` are the metrics of each micro-batch, where a run leaves them.
    """

    def __init__(self, passes: Sequence[Mapping[str, Array]]) -> None:
        names = dict.fromkeys(name for made in passes for name in made)
        numbers = [[made[name] for made in passes if name in made] for name in names]
        self.made = [array for each in numbers for array in each]
        """All that a run leaves."""
        self.values: Array = np.zeros(len(names))
        """The means, once they are made of it."""
        self.places = {name: self.values[i : i + 1].reshape(()) for i, name in enumerate(names)}
        """Where those lie, by name."""
        self._program = PreparedCalls(NumberMeans(self.values, numbers, single=len(passes) == 1)) if names else None

    @property
    def rows(self) -> Array | None:
        """Rows of the machine that make the means; None where there are none."""
        return None if self._program is None else self._program.rows()

    def of_run(self) -> dict[str, float]:
        """Those of the last run."""
        if self._program is None:
            return {}
        self._program.run()
        return dict(zip(self.places, self.values.tolist(), strict=True))

    def of_steps(self, means: Array) -> list[dict[str, float]]:
        """Those of several steps, each of which has left a row of means."""
        return [dict(zip(self.places, row, strict=True)) for row in means.tolist()]
