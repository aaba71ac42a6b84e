"""The maps of a run: of its gradients, of its updates, and of what differs from the first run."""

from typing import Any

from ..differences import OTHER, UNKNOWN, gradients
from ..run import PageRun
from .heat import Cells, Marks, differing, heat, marks

_Found = tuple[str, str, Any, Marks]


def maps(run: PageRun, first: PageRun | None, wide: int, parting: int | None) -> list[dict[str, Any]]:
    """Those of which anything is known, as wide as the longest run; `first` is what this run is held against."""
    of = run.tensors
    found: list[_Found] = [
        ("gradient", "norm of the gradient", of.norms, marks(of.norms, of.exploding)),
        ("ratio", "norm of the update by that of the weights", of.ratios, marks(of.ratios)),
    ]
    others = None if first is None else gradients(first, run)
    if others is not None:
        found.append(
            ("differs", "gradients that differ from those of A", None, differing(others != UNKNOWN, others == OTHER))
        )
    return [
        {
            "name": name,
            "text": text,
            **heat(Cells(of.columns, len(run.losses), of.params, magnitudes, marked), wide, parting),
        }
        for name, text, magnitudes, marked in found
        if marked.known.any()
    ]
