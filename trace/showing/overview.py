"""A run on one screen: its loss, its worst gradients, its speed, and what is proven of it."""

import os
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from ...base.diagnosis import Remark, worth_a_look
from ...screen.curves import plotted, sparkline
from ...screen.showing import counted, drawn, facts_grid, rate, size
from ..diagnosed import diagnosed
from ..json_value import Plain
from ..replaying.validate import validate
from ..told import ToldOfRun
from ..v2.check.report import Report
from ..v2.errors import InvalidTraceError, NotRecordedError, UnsealedTraceWarning
from ..v2.format.constants import TensorRole
from ..v2.read.locate import ReadMode
from ..v2.read.reader import TraceReader, open_reader
from ..v2.verdict import Verdict
from .gradients import GradientFigures, gradient_figures
from .state import State, state_of

WORST = 5
"""Gradients that are shown."""

CURVE = 200
"""Steps of the loss that `to_dict` has at most, evenly apart."""


@dataclass(frozen=True)
class RunOverview(Plain):
    """What a trace says of a run; `losses` has NaN for a step that is not whole."""

    path: str
    state: State
    bytes: int
    seed: int
    mode: str
    rules: tuple[str, ...]
    parameters: int
    tensors: int
    losses: Any = field(repr=False)
    speed: float | None
    """Steps per second from the creation of the file to its last write; None where that cannot be said."""
    state_root: str | None
    """The last one that is recorded."""
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    """Of the last step."""
    told: ToldOfRun = field(default_factory=ToldOfRun)
    """Notes, hosts and times, and validations."""
    gradients: tuple[GradientFigures, ...] = ()
    seen: int = 0
    """Steps whose gradients were read."""
    findings: tuple[Remark, ...] = ()
    """What is worth a look."""
    report: Report | None = None
    """What `validate` says of it; None of one that was not asked."""

    @property
    def steps(self) -> int:
        """How many it has."""
        return len(self.losses)

    @property
    def best(self) -> int | None:
        """The step with the least loss."""
        finite = np.flatnonzero(np.isfinite(self.losses))
        return int(finite[np.argmin(self.losses[finite])]) if finite.size else None

    @property
    def title(self) -> str:
        """Its file, how long it is, and how that stands."""
        return f"{self.path}: {counted(self.steps, 'step')}, {self.state}"

    @property
    def model(self) -> str:
        """How large it is, and what trains it."""
        rules = ", ".join(self.rules)
        return f"{counted(self.parameters, 'parameter')} in {counted(self.tensors, 'tensor')}, {rules}"

    def _told(self) -> dict[str, object]:
        best, places = self.best, [int(i) for i in np.linspace(0, self.steps - 1, min(self.steps, CURVE))]
        return {
            "path": self.path,
            "state": self.state,
            "steps": self.steps,
            "bytes": self.bytes,
            "seed": self.seed,
            "mode": self.mode,
            "rules": self.rules,
            "parameters": self.parameters,
            "tensors": self.tensors,
            "last_loss": self.losses[-1] if self.steps else None,
            "best_loss": None if best is None else self.losses[best],
            "best_step": best,
            "nonfinite": int(self.steps - np.isfinite(self.losses).sum()),
            "curve": {"steps": places, "losses": [self.losses[i] for i in places]},
            "steps_per_second": self.speed,
            "metrics": self.metrics,
            "validations": [{"step": step, "figures": found} for step, found in self.told.validations.items()],
            "notes": self.told.notes,
            "noted": [{"steps": steps, "host": record.host, "time": record.time} for steps, record in self.told.noted],
            "gradients": self.gradients,
            "findings": self.findings,
            "state_root": self.state_root,
            "report": self.report,
        }

    def screen(self, width: int) -> RenderableType:
        """All of it for a rich console."""
        parts: list[RenderableType] = [Text(self.title, "bold"), Text()]
        curve = plotted(self.losses, width=min(width, 100))
        parts += [Text("\n".join(["loss", *curve])), Text()] if curve else []
        parts.append(facts_grid(self._facts()))
        if self.gradients:
            parts += [Text(), self._gradient_table()]
        return Group(*parts)

    def line(self) -> str:
        """The end of it in one line."""
        last = f"last loss {self.losses[-1]:.6g}  {sparkline(self.losses, 30)}" if self.steps else "no loss yet"
        return f"step {self.steps}  {last}"

    def _facts(self) -> dict[str, object]:
        found: dict[str, object] = {}
        if (best := self.best) is not None:
            found["best loss"] = f"{self.losses[best]:.6g} at step {best}"
        if self.steps:
            found["last loss"] = f"{self.losses[-1]:.6g} at step {self.steps - 1}"
        if self.metrics:
            found["metrics"] = (
                f"{', '.join(f'{name} {value:.6g}' for name, value in self.metrics.items())}, at the last step"
            )
        found |= self.told.facts()
        if self.speed is not None:
            found["speed"] = f"{rate(self.speed, 1.0)} on average, by the times of the file"
        found["model"] = self.model
        found["recorded"] = f"{self.mode}, {size(self.bytes)}, seed {self.seed}"
        if self.state_root is not None:
            found["state root"] = self.state_root
        found |= worth_a_look(self.findings)
        if self.report is not None:
            found["verdict"] = _verdict(self.report)
        return found

    def _gradient_table(self) -> RenderableType:
        worst = self.gradients[:WORST]
        columns = ["largest gradients", "greatest |g|", "at step", "last |g|", "zeros"]
        rows = [[row.name, row.largest, row.step, row.last, f"{row.zeros:.0%}"] for row in worst]
        if any(row.remark for row in worst):
            columns, rows = [*columns, "remark"], [[*row, of.remark] for row, of in zip(rows, worst, strict=True)]
        more = f", {len(self.gradients) - WORST} more have smaller ones" if len(self.gradients) > WORST else ""
        seen = Text(f"seen at {counted(self.seen, 'step')} of {self.steps:,}{more}")
        return Group(drawn("", columns, rows), seen)


def _verdict(report: Report) -> Text:
    """The word, what is proven and what is not, what was found first, or what would prove more."""
    proofs = report.proofs
    words = [f"{', '.join(name for name in proofs if proofs[name] == word)} {word}" for word in _words(proofs)]
    text = Text.assemble((report.verdict.value, "bold green" if report.ok else "bold red"), f": {'; '.join(words)}")
    more = report.findings[0].text if report.findings else f"dgrr replay {report.path} proves more"
    return text.append(f"\n{more}")


def _words(proofs: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(proofs.values()))


def overview(path: str, *, whole: bool = True) -> RunOverview:
    """What is to be shown of a run; of an unfinished one, or up to the first damage, what can be read.

    With ``whole`` the file is validated and its gradients are read, which takes the longer the larger it is.

    Raises:
        TraceFileError, InvalidTraceError: the trace cannot be read at all.
    """
    try:
        run = _read(path, "point_in_time", whole=whole)
    except InvalidTraceError:  # behind a seal that is whole
        run = _read(path, "salvage", whole=whole)
    if not whole:
        return run
    report = validate(run.path)
    broken = report.verdict in (Verdict.CORRUPT, Verdict.CHAIN)
    return replace(run, report=report, state="damaged" if broken else run.state)


def _read(path: str, mode: ReadMode, *, whole: bool) -> RunOverview:
    with read(path, mode) as trace:
        run = of_trace(trace)
        if not whole:
            return run
        gradients, seen = gradient_figures(trace)
        return replace(run, gradients=tuple(gradients), seen=seen, findings=diagnosed(trace))


def read(path: str, mode: ReadMode = "point_in_time") -> TraceReader:
    """Open a trace, up to its first damage; that it is unfinished is said with what is shown of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsealedTraceWarning)
        return open_reader(path, mode=mode)


def of_trace(trace: TraceReader) -> RunOverview:
    """What an open trace says of its run."""
    params = [spec for spec in trace.schema.tensors if spec.role is TensorRole.PARAM]
    return RunOverview(
        path=trace.path,
        state=state_of(trace),
        bytes=os.stat(trace.path).st_size,
        seed=trace.header.seed,
        mode=trace.header.mode.name.lower(),
        rules=tuple(group.rule for group in trace.schema.rules),
        parameters=sum(int(np.prod(spec.shape)) for spec in params),
        tensors=len(params),
        losses=trace.loss,
        speed=speed(trace),
        state_root=last_root(trace),
        metrics=_last_metrics(trace),
        told=ToldOfRun.of(trace),
    )


def _last_metrics(trace: TraceReader) -> dict[str, float]:
    """Those of the last step; none where damage may have taken them."""
    with suppress(InvalidTraceError, NotRecordedError):
        return trace.metrics(-1) if len(trace) else {}
    return {}


def speed(trace: TraceReader) -> float | None:
    """Steps of the run per second from the creation of its file to its last write; None where these cannot tell."""
    steps = len(trace) - trace.header.parent_steps
    seconds = (os.stat(trace.path).st_mtime_ns - trace.header.created_at) / 1e9
    return steps / seconds if steps > 0 and seconds > 0 and trace.header.created_at > 0 else None


def last_root(trace: TraceReader) -> str | None:
    """The state root after the last step, in hexadecimal; None where it is not recorded."""
    if trace.seal is not None:
        return trace.seal.final[-1].hex() if trace.seal.final else None
    root = trace[-1].root if len(trace) else None
    return None if root is None else root.hex()
