"""Writing the page of some runs."""

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from ... import __version__
from ...base.atomic_file import replacing, require_replaceable
from ...base.errors import DomainError
from ...base.packages import package
from ...base.system import FilePath
from ..comparing.result import Comparison
from ..replaying.recomputed import RunMode, require_mode
from ..replaying.replay import replay
from ..replaying.replay_state import Rules
from ..replaying.validate import validate
from ..v2.check.report import Report
from ..v2.read.reader import TraceReader, open_reader
from . import differences
from .packing import Pack
from .page import page, require_other_name
from .run import MakeRun, PageRun, RunAgain, collected


@dataclass(frozen=True)
class Written:
    """A page: where it is, its size, what is proven of each run, and how the others differ from the first."""

    path: str
    nbytes: int
    proofs: tuple[Report, ...]
    comparisons: tuple[Comparison, ...]
    rebuilt: tuple[int, ...]
    """The steps of the first run that were computed again."""
    sealed: bool
    """Whether every run is finished."""


def write_report(
    paths: Sequence[FilePath],
    out: FilePath,
    *,
    make_run: MakeRun | None = None,
    rules: Rules = (),
    mode: RunMode = "replay",
    rebuild: Iterable[int] | None = None,
    refresh: float | None = None,
    progress: bool = False,
) -> Written:
    """Write a page that shows recorded runs: one self-contained HTML file for a browser.

    The page proves of each run what `replay` proves: every update, and with the model every gradient too. It shows a
    damaged trace up to the damage. It replaces a file of that name once it is complete.

    Args:
        paths: the traces; the others are compared with the first.
        out: the page.
        make_run: a function that returns the loss function and the batches of the first run; with it, gradients are
            proven, and the ``rebuild`` steps are recomputed with every node.
        rules: the classes of rules that are not built in, as for `replay`.
        mode: how steps are done again, likewise.
        rebuild: the steps of the first run to rebuild; None: the first, the last and the one with the greatest
            gradient.
        refresh: for a run in progress: nothing is recomputed, and the page reloads after so many seconds.
        progress: whether bars are shown on a terminal, of the replay of each run and of the reading that follows.

    Raises:
        DomainError: another mode, no traces, ``out`` is one of them, or there is no such step.
        TraceFileError: a trace cannot be opened, or is of another version.
        ModuleNotFoundError: bokeh, which draws, is not installed.
        OSError: the page cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Trainer
    >>> with TemporaryDirectory() as folder:
    ...     run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), trace=f"{folder}/run.dgrr")
    ...     _ = run.fit([np.ones(2)], steps=3)
    ...     written = write_report([f"{folder}/run.dgrr"], f"{folder}/report.html")
    >>> written.proofs[0].update, written.nbytes < 2_000_000
    ('proven', True)
    """
    names = [os.fspath(path) for path in paths]
    require_mode("write_report", mode)
    if not names:
        raise DomainError("write_report: argument 'paths': expected a trace or more, got none")
    require_other_name("write_report", names, out)
    require_replaceable(out)
    drawing = _drawing()
    again = RunAgain(make_run, rules, mode, None if rebuild is None else list(rebuild), progress)
    with ExitStack() as stack:
        traces = [stack.enter_context(open_reader(name, mode="point_in_time")) for name in names]
        found = differences.compared(traces)
        runs = _runs(traces, found, again, recompute=refresh is None)
        text = _text(runs, found, refresh, drawing)
        sealed = all(trace.sealed for trace in traces)
    with replacing(out) as file:
        file.write(text)
    rebuilt = tuple(graph["step"] for graph in runs[0].rebuilt)
    return Written(os.fspath(out), len(text), tuple(run.proofs for run in runs), tuple(found), rebuilt, sealed)


def _runs(
    traces: Sequence[TraceReader], found: Sequence[Comparison], again: RunAgain, *, recompute: bool
) -> list[PageRun]:
    """What the page shows of each run; only of the first there is a model."""
    runs, special = list[PageRun](), differences.steps_of(found)
    for trace in traces:
        _require_steps(trace, again.rebuild or ())
        runs.append(collected(trace, _proofs(trace.path, again, recompute=recompute), again, special))
        again = replace(again, make_run=None, rebuild=None)
    return runs


def _text(runs: Sequence[PageRun], found: Sequence[Comparison], refresh: float | None, drawing: Any) -> bytes:
    """The page."""
    pack, paths = Pack(), [os.path.basename(run.trace.path) for run in runs]
    others = zip(runs[1:], found, strict=True)
    data: dict[str, Any] = {
        "version": __version__,
        "refresh": refresh,
        "runs": [run.packed(pack) for run in runs],
        "differences": [differences.packed(runs[0], run, comparison, pack) for run, comparison in others],
    }
    data["charts"] = drawing.charts(runs, data["runs"], found, pack)
    text = page(f"{', '.join(paths)} - dgrr report", data, pack.texts, drawing.library())
    return text.encode(errors="replace")  # a path may hold what no text can


def _drawing() -> Any:
    """What draws. Raises ModuleNotFoundError that says how to get it."""
    package("write_report", "bokeh")
    return import_module("dgrr.trace.report.charts.of_page")


def _proofs(path: str, again: RunAgain, *, recompute: bool) -> Report:
    if not recompute:
        return validate(path)
    loss_fn, batches = again.made()
    how: dict[str, Any] = {"rules": again.rules, "mode": again.mode, "progress": again.progress}
    return replay(path, loss_fn=loss_fn, batches=batches, **how)


def _require_steps(trace: TraceReader, rebuild: Iterable[int]) -> None:
    for step in rebuild:
        if not 0 <= step < len(trace):
            there = f"expected 0 to {len(trace) - 1}" if len(trace) else "it has no steps"
            raise DomainError(f"write_report: argument 'rebuild': {trace.path} has no step {step}: {there}")
