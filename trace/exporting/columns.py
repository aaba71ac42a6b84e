"""What is recorded of the steps as columns: a row for each step.

Numbers are widened to float64, which changes none.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import Array
from ..v2.read.reader import TraceReader


class Coded(NamedTuple):
    """A column of words: the place of each in `words`, -1 for none."""

    codes: Array
    words: tuple[str, ...]

    def tolist(self) -> list[str | None]:
        """The word of each row."""
        return [None if code < 0 else self.words[code] for code in self.codes.tolist()]


Columns: TypeAlias = dict[str, Array | Coded]
"""Name → its numbers or words, one for each row."""


def wide(trace: TraceReader) -> Columns:
    """A row for each step: its loss, its hyperparameters and what else it was told.

    Columns: `step`; `loss`; each hyperparameter, as a step's `hyper` calls it; `clip_norm` and `clip_scale`, NaN where
    gradients were not clipped by norm, if any step was; `micro_batches`; `nonfinite`; each metric, and each figure of a
    validation in the row of the step that it stands behind, NaN where there is none, as `metric NAME` and `validation
    NAME` where the name is one of those before.
    """
    rows = [(v.step, float(v.loss), v.hyper, v.clip, v.micro_batches, v.nonfinite) for v in trace]
    steps, losses, hyper, clips, together, nonfinite = zip(*rows, strict=True) if rows else ((),) * 6
    names = list(hyper[0]) if hyper else []
    columns: Columns = {
        "step": np.array(steps, np.int64),
        "loss": np.array(losses, np.float64),
        **{name: np.array([told[name] for told in hyper], np.float64) for name in names},
    }
    if any(clips):
        known = [clip or (np.nan, np.nan) for clip in clips]
        columns["clip_norm"], columns["clip_scale"] = np.array(known, np.float64).T.copy()
    columns["micro_batches"] = np.array(together, np.int64)
    columns["nonfinite"] = np.array(nonfinite, np.bool_)
    validations = trace.validations()
    figures = {"metric": [view.metrics() for view in trace], "validation": [validations.get(i, {}) for i in steps]}
    for what, told in figures.items():
        columns |= {f"{what} {name}" if name in columns else name: array for name, array in by_name(told).items()}
    return columns


def by_name(rows: Sequence[Mapping[str, float]]) -> dict[str, Array]:
    """A column for each name that any row has; NaN where a row has it not."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows], np.float64) for name in names}
