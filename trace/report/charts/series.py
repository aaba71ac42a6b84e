"""Which charts a page has, and what is drawn in each: equal ones once, of all runs over each other."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....base.runs.completed_step import VALIDATION
from ...comparing.result import Comparison
from ..groups import groups
from ..packing import Pack
from ..run import PageRun
from .lines import Drawn, lines

_BOTH = ("linear", "log")


def label(runs: Sequence[PageRun], i: int) -> str:
    """A run as legends have it: a letter, where there are several, and the name of its file."""
    name = os.path.basename(runs[i].trace.path)
    return f"{letter(i)} · {name}" if len(runs) > 1 else name


def letter(i: int) -> str:
    """A for the first run.

    >>> letter(2)
    'C'
    """
    return chr(ord("A") + i)


def loss(runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], parting: int | None) -> dict[str, Any]:
    """The losses of training, then those of validations, to be seen on either axis."""
    drawn = [Drawn(i, label(runs, i), run["loss"]) for i, run in enumerate(packed)]
    drawn += _validated(runs, packed, "loss")
    return lines("Loss", drawn, parting=parting, height=340, axes=_BOTH)


def _validated(runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], name: str) -> list[Drawn]:
    """A figure of the validations of those runs that have it; of a lone run in another colour than its steps."""
    whole, look = VALIDATION + name, 1 if len(runs) == 1 else None
    return [
        Drawn(i, f"{label(runs, i)} {whole}", **run["validations"][whole], points=True, look=look)
        for i, run in enumerate(packed)
        if whole in run["validations"]
    ]


def gaps(runs: Sequence[PageRun], comparisons: Sequence[Comparison], pack: Pack) -> list[dict[str, Any] | None]:
    """How far the losses of each run are from those of the first; None for a run that is the same."""
    found = list[dict[str, Any] | None]()
    for i, comparison in enumerate(comparisons, 1):
        if comparison.same:
            found.append(None)
            continue
        steps = min(len(runs[0].losses), len(runs[i].losses))
        with np.errstate(invalid="ignore"):
            apart = np.abs(runs[0].losses[:steps].astype(np.float64) - runs[i].losses[:steps])
        line = Drawn(i, f"|A − {letter(i)}|", pack.add(apart))
        found.append(lines("Distance of the losses", [line], parting=comparison.step, axes=("log",)))
    return found


def rates(runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], parting: int | None) -> dict[str, Any]:
    """Charts of metrics and validations, changing hyperparameters, the norm of all gradients; else words."""
    charts = [_metric(runs, packed, name, parting) for name in _metrics(runs)]
    words = list[str]()
    for same in _alike(runs):
        if _changes(runs, same[0]):
            charts.append(_chart(runs, packed, same, parting))
        else:
            value = next(run.hyper[same[0]][0] for run in runs if same[0] in run.hyper)
            words.append(f"{_title(runs, same)} {value:.6g}")
    total = [
        Drawn(i, label(runs, i), run["figures"]["total"], run["figures"]["columns"])
        for i, run in enumerate(packed)
        if run["figures"]["norms"] is not None
    ]
    if total:
        charts.append(lines("norm of all gradients", total, parting=parting, axes=("log",)))
    return {"charts": charts, "constant": words}


def _metrics(runs: Sequence[PageRun]) -> list[str]:
    """The names of all that is measured beside the loss: of steps, or of validations alone."""
    validated = [name.removeprefix(VALIDATION) for name in _names(runs, "validations")]
    return list(dict.fromkeys([*_names(runs, "metrics"), *(name for name in validated if name != "loss")]))


def _metric(
    runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], name: str, parting: int | None
) -> dict[str, Any]:
    drawn = _drawn(runs, packed, "metrics", name)
    return lines(name, [*drawn, *_validated(runs, packed, name)], parting=parting)


def _chart(
    runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], same: Sequence[str], parting: int | None
) -> dict[str, Any]:
    return lines(_title(runs, same), _drawn(runs, packed, "hyper", same[0]), parting=parting)


def _drawn(runs: Sequence[PageRun], packed: Sequence[Mapping[str, Any]], kind: str, name: str) -> list[Drawn]:
    return [Drawn(i, label(runs, i), run[kind][name]) for i, run in enumerate(packed) if name in run[kind]]


def _names(runs: Sequence[PageRun], kind: str) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in getattr(run, kind)))


def _alike(runs: Sequence[PageRun]) -> list[list[str]]:
    """The hyperparameters, those together that groups have of one name and that are equal in every run."""
    found = dict[tuple[str, tuple[bytes, ...]], list[str]]()
    for name in _names(runs, "hyper"):
        key = name.partition("#")[0], tuple(_bytes(run.hyper.get(name)) for run in runs)
        found.setdefault(key, []).append(name)
    return list(found.values())


def _bytes(values: Array | None) -> bytes:
    return b"" if values is None else values.tobytes()


def _changes(runs: Sequence[PageRun], name: str) -> bool:
    """Whether it differs between steps or runs; a learning rate is always drawn."""
    values = [run.hyper[name] for run in runs if name in run.hyper and run.hyper[name].size]
    return name.startswith("lr") or len({float(x) for each in values for x in (each.min(), each.max())}) > 1


def _title(runs: Sequence[PageRun], same: Sequence[str]) -> str:
    """A hyperparameter with the patterns of its groups, where there are several groups and these do not all agree."""
    name = same[0].partition("#")[0]
    shown = "learning rate (lr)" if name == "lr" else name
    patterns = next((groups(run.trace.schema) for run in runs if same[0] in run.hyper), dict[str, str]())
    of = [patterns[one[len(name) :]] for one in same if one[len(name) :] in patterns]
    everywhere = sum(one.partition("#")[0] == name for one in _names(runs, "hyper"))
    return shown if not of or everywhere == len(same) else f"{shown} of {' and of '.join(of)}"
