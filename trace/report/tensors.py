"""The figures of a run's tensors, step by step: what the heat map, the table of a step and the histograms show."""

from typing import Any

import numpy as np

from ...base.arrays import Array
from ..v2.format.constants import TensorRole
from ..v2.read.reader import TraceReader
from .chosen import Chosen
from .codes import encode
from .figures import FIGURES, distance, figures, histogram, norm
from .packing import Pack
from .walk import Walked

EXPLODING = 100.0
"""A gradient is marked as exploding from so many times the median norm of its param on."""


class TensorFigures:
    """Collects, step by step, the norms of all gradients and updates, and every figure of some steps."""

    def __init__(self, trace: TraceReader, kept: Chosen) -> None:
        self._kept, self.columns = kept, kept.columns
        self._column = {step: i for i, step in enumerate(kept.columns)}
        self._detail = {step: i for i, step in enumerate(kept.details)}
        self._histogrammed = frozenset(kept.histograms)
        tensors = trace.schema.tensors
        self.params = [t.name for t in tensors if t.role is TensorRole.PARAM]
        self._tensors = [t.name for t in tensors]
        cells = (len(kept.columns), len(self.params))
        self.norms = np.full(cells, np.nan)
        self.ratios = np.full(cells, np.nan)
        self.digests = np.zeros(cells, np.uint64)
        """The first bytes of the digest of each gradient, by which two runs are compared; 0: no gradient."""
        self.grad_figures = np.full((len(kept.details), len(self.params), len(FIGURES)), np.nan)
        self.value_figures = np.full((len(kept.details), len(self._tensors), len(FIGURES)), np.nan)
        self._histograms = list[dict[str, Any]]()
        self._counts = list[Array]()

    def add(self, walked: Walked) -> None:
        """Take a step."""
        step = walked.view.step
        if step in self._column:
            self._add_column(self._column[step], walked)
        if step in self._detail:
            self._add_detail(self._detail[step], walked)
        if step in self._histogrammed:
            self._add_histograms(walked)

    def _add_column(self, column: int, walked: Walked) -> None:
        digests = walked.view.grad_digests
        for i, name in enumerate(self.params):
            if name in digests:
                self.digests[column, i] = int.from_bytes(digests[name][:8], "little") or 1
            if name not in walked.grads:
                continue
            self.norms[column, i] = norm(walked.grads[name])
            if name in walked.before:
                before = walked.before[name]
                weight = norm(before)
                moved = distance(walked.after[name], before)
                self.ratios[column, i] = moved / weight if weight else np.nan

    def _add_detail(self, row: int, walked: Walked) -> None:
        for i, name in enumerate(self.params):
            if name in walked.grads:
                self.grad_figures[row, i] = figures(walked.grads[name])
        for i, name in enumerate(self._tensors):
            if name in walked.after:
                self.value_figures[row, i] = figures(walked.after[name])

    def _add_histograms(self, walked: Walked) -> None:
        for what, arrays in (("weights", walked.before), ("gradients", walked.grads)):
            for i, name in enumerate(self.params):
                found = histogram(arrays[name]) if name in arrays else None
                if found is not None:
                    self._counts.append(found[2])
                    place = {"step": walked.view.step, "what": what, "param": i}
                    self._histograms.append({**place, "low": found[0], "high": found[1]})

    # ------------------------------------------------------------------ for the page

    def packed(self, pack: Pack) -> dict[str, Any]:
        """All of it as the page has it; null for what no step had."""
        return {
            "columns": pack.add(np.array(self.columns, np.uint32)),
            "params": self.params,
            "norms": _codes(pack, self.norms),
            "ratios": _codes(pack, self.ratios),
            "exploding": pack.add(encode(self.exploding)),
            "total": pack.add(self._totals()),
            "details": pack.add(np.array(self._kept.details, np.uint32)),
            "gradient_figures": _floats(pack, self.grad_figures),
            "value_figures": _floats(pack, self.value_figures),
            "histograms": self._histograms,
            "counts": pack.add(np.array(self._counts, np.uint32)),
        }

    @property
    def exploding(self) -> Array:
        """From which norm on a gradient is marked as exploding, by param."""
        known = np.where(np.isfinite(self.norms) & (self.norms > 0), self.norms, np.nan)
        usual = np.array([np.nanmedian(column) if np.isfinite(column).any() else np.inf for column in known.T])
        return usual * EXPLODING

    def _totals(self) -> Array:
        """The norm of all gradients of a step together; NaN where none is known."""
        known = ~np.isnan(self.norms)
        with np.errstate(all="ignore"):
            totals = np.sqrt(np.sum(np.where(known, self.norms, 0.0) ** 2, axis=1))
        return np.where(known.any(axis=1), totals, np.nan)


def _codes(pack: Pack, magnitudes: Array) -> dict[str, Any] | None:
    return None if np.isnan(magnitudes).all() else pack.add(encode(magnitudes))


def _floats(pack: Pack, numbers: Array) -> dict[str, Any] | None:
    if np.isnan(numbers).all():
        return None
    with np.errstate(over="ignore"):
        return pack.add(numbers.astype(np.float32))
