"""All charts of a page, each drawn by Bokeh, which not everybody has: `write` imports this where it is there."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...comparing.result import Comparison
from ..packing import Pack
from ..run import PageRun
from . import series
from .histograms import outlines
from .maps import maps
from .plots import library

__all__ = ["charts", "library"]


def charts(
    runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], comparisons: Sequence[Comparison], pack: Pack
) -> dict[str, Any]:
    """The charts by their sections; `packed` are the runs as the page has them."""
    parting = min((found.step for found in comparisons if found.step is not None), default=None)
    steps = max(len(run.losses) for run in runs)
    return {
        "loss": series.loss(runs, packed, parting),
        "rates": series.rates(runs, packed, parting),
        "gaps": series.gaps(runs, comparisons, pack),
        "maps": [maps(run, runs[0] if i else None, steps, parting) for i, run in enumerate(runs)],
        "histogram": outlines(),
    }
