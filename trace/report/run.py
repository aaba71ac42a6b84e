"""One recorded run as a page shows it."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...base.arrays import Array
from ...base.runs.completed_step import of_group
from ...runtime.ir.step_tape import tape_of
from ..comparing.settings import environment_of
from ..diagnosed import diagnosed
from ..exporting.columns import by_name
from ..progress import showing
from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import RunMode
from ..replaying.replay_state import Rules
from ..replaying.travel import RebuildError, at
from ..told import ToldOfRun, in_table, machine, readable
from ..v2.check.report import Report
from ..v2.errors import InvalidTraceError, NotRecordedError
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from .chosen import chosen
from .graph import rebuilt_graph, recorded_graph
from .groups import groups
from .packing import Pack
from .pictures import TensorPictures
from .tensors import TensorFigures
from .walk import walk

MakeRun: TypeAlias = Callable[[], tuple[LossFn, Batches]]
"""Makes the loss function of a run and its batches from the beginning, each time anew."""


@dataclass(frozen=True)
class RunAgain:
    """How the steps of a run are done again, of which a page shows more then.

    Args:
        make_run: makes the loss function and the batches.
        rules: classes of rules that are not built in.
        mode: as for `replay`.
        rebuild: the steps to rebuild; None: the first, the last and the one with the greatest gradient.
        progress: whether a bar is shown on a terminal.
    """

    make_run: MakeRun | None = None
    rules: Rules = ()
    mode: RunMode = "replay"
    rebuild: Sequence[int] | None = None
    progress: bool = False

    def made(self) -> tuple[LossFn, Batches] | tuple[None, None]:
        """Loss function and batches, if there are any."""
        return (None, None) if self.make_run is None else self.make_run()


@dataclass
class PageRun:
    """What a page shows of a run; `collected` makes it of an open trace."""

    trace: TraceReader
    proofs: Report
    losses: Array
    hyper: dict[str, Array]
    metrics: dict[str, Array]
    nonfinite: list[int]
    tensors: TensorFigures
    pictures: TensorPictures
    notes: list[str] = field(default_factory=list[str])
    graph: dict[str, Any] | None = None
    rebuilt: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    told: ToldOfRun = field(default_factory=ToldOfRun)

    @property
    def validations(self) -> dict[str, tuple[Array, Array]]:
        """Figure of a validation → the steps behind which it was measured, and its values."""
        rows = {step: figures for step, figures in self.told.validations.items() if step < len(self.losses)}
        found = dict[str, tuple[Array, Array]]()
        for name in dict.fromkeys(name for figures in rows.values() for name in figures):
            having = {step: figures[name] for step, figures in rows.items() if name in figures}
            found[name] = np.array(list(having), np.uint32), np.array(list(having.values()), np.float64)
        return found

    def packed(self, pack: Pack) -> dict[str, Any]:
        """All of it as the page has it."""
        header, schema = self.trace.header, self.trace.schema
        return {
            "path": self.trace.path,
            "steps": len(self.losses),
            "sealed": self.trace.sealed,
            "proofs": self.proofs.to_dict(),
            "notes": self.notes,
            "header": {
                "record mode": header.mode.name.lower(),
                "seed": header.seed,
                "numerics version": header.numerics,
                "digests": header.algorithm.name.replace("_", "-"),
                "state digested every": f"{header.state_every} step{'' if header.state_every == 1 else 's'}",
                "root": self.trace.root.hex() if self.trace.sealed else "none, since the run is not finished",
            },
            "created": header.created_at,
            "environment": {key: _text(value) for key, value in environment_of(self.trace).items()},
            "rules": self._rules(),
            "tensors": [[t.name, t.role.name.lower(), t.dtype, list(t.shape), t.nbytes] for t in schema.tensors],
            "events": _events(self.trace),
            "loss": pack.add(self.losses.astype(np.float64)),
            "loss_dtype": self.losses.dtype.name,
            "hyper": {name: pack.series(values) for name, values in self.hyper.items()},
            "metrics": {name: pack.series(values) for name, values in self.metrics.items()},
            "validations": {n: {"xs": pack.add(xs), "ys": pack.add(ys)} for n, (xs, ys) in self.validations.items()},
            "best_validation": [self.told.best, self.told.best_loss],
            "told_notes": {name: in_table(value) for name, value in self.told.notes.items()},
            "noted": [[steps, readable(noted.time), machine(noted)] for steps, noted in self.told.noted],
            "nonfinite": self.nonfinite,
            "figures": self.tensors.packed(pack),
            "pictures": self.pictures.packed(pack),
            "graph": self.graph,
            "rebuilt": self.rebuilt,
        }

    def _rules(self) -> list[dict[str, Any]]:
        """The rule of each group of params, and what its hyperparameters are called in `hyper`."""
        schema = self.trace.schema
        patterns = groups(schema)
        return [
            {
                "rule": group.rule,
                "params": patterns.get(of_group("", i), ""),
                "hyper": {name: of_group(name, i) for name in group.hyperparameters},
                "count": sum(place < schema.params for place in group.tensors),
            }
            for i, group in enumerate(schema.rules)
        ]


def collected(trace: TraceReader, proofs: Report, again: RunAgain, special: Iterable[int] = ()) -> PageRun:
    """Read an open trace once from its beginning to its end, and rebuild some of its steps where its model is given.

    ``proofs`` is what is proven of it; ``special`` are steps that are shown closely, whatever else is.
    """
    views, schema = _scalars(trace), trace.schema
    closely = [*views.nonfinite[:32], *special, *(again.rebuild or ())]
    tensors = TensorFigures(trace, chosen(len(views.losses), schema.params, len(schema.tensors), closely))
    pictures = TensorPictures(trace, len(views.losses), closely)
    loss_fn, batches = again.made()
    steps = walk(trace, loss_fn, batches, rules=again.rules, mode=again.mode)
    for walked in showing(steps, "report", len(trace), wanted=again.progress):
        tensors.add(walked)
        pictures.add(walked)
    notes = [*steps.notes, *(f"worth a look: {finding}" for finding in diagnosed(trace))]
    graph, told = recorded_graph(trace, len(views.losses)), ToldOfRun.of(trace)
    run = PageRun(trace, proofs, **vars(views), tensors=tensors, pictures=pictures, notes=notes, graph=graph, told=told)
    if again.make_run is not None:
        _rebuild(run, again)
    return run


# ------------------------------------------------------------------ numbers of each step


@dataclass
class _Scalars:
    losses: Array
    hyper: dict[str, Array]
    metrics: dict[str, Array]
    nonfinite: list[int]


def _scalars(trace: TraceReader) -> _Scalars:
    """Loss, metrics, hyperparameters and clipping of every step."""
    losses, rows, shown, nonfinite = list[Any](), list[dict[str, float]](), list[dict[str, float]](), list[int]()
    for view in _up_to_damage(trace):
        losses.append(view.loss)
        rows.append(_of_step(view))
        shown.append(_metrics(view))
        if view.nonfinite:
            nonfinite.append(view.step)
    return _Scalars(np.array(losses), by_name(rows), by_name(shown), nonfinite)


def _up_to_damage(trace: TraceReader) -> Iterator[StepView]:
    """The steps up to the first that is damaged."""
    with suppress(InvalidTraceError):
        yield from trace


def _metrics(view: StepView) -> dict[str, float]:
    """Those of a step; none where damage behind it may have taken them."""
    with suppress(InvalidTraceError):
        return view.metrics()
    return {}


def _of_step(view: StepView) -> dict[str, float]:
    clip = {} if view.clip is None else {"clip threshold": view.clip[0], "clip scale": view.clip[1]}
    return {**view.hyper, **clip, "micro-batches": float(view.micro_batches)}


# ------------------------------------------------------------------ steps that are computed again


def _worth(run: PageRun) -> list[int]:
    """The steps that most is learned of: the first, the last, and the one with the greatest gradient."""
    if not len(run.losses):
        return []
    known = np.nan_to_num(run.tensors.norms, nan=-1.0, posinf=np.finfo(np.float64).max)
    columns = run.tensors.columns
    worst = [columns[int(known.max(axis=1).argmax())]] if known.size and known.max() > 0 else []
    return sorted({0, len(run.losses) - 1, *worst})


def _rebuild(run: PageRun, again: RunAgain) -> None:
    for step in dict.fromkeys(_worth(run) if again.rebuild is None else again.rebuild):
        try:
            past = at(run.trace, step, *again.made(), rules=again.rules, mode=again.mode)
        except (RebuildError, NotRecordedError) as error:
            run.notes.append(f"step {step} cannot be rebuilt: {error}")
            continue
        params = [t.name for t in run.trace.schema.tensors[: run.trace.schema.params]]
        graph = rebuilt_graph(step, tape_of(past.passes, params))
        if graph is None:
            run.notes.append(f"step {step} has more nodes than a page shows")
            continue
        run.rebuilt.append({**graph, "keyframe": past.keyframe, "loss": float(past.loss), "passes": len(past.passes)})


def _events(trace: TraceReader) -> list[list[object]]:
    found = list[list[object]]()
    with suppress(InvalidTraceError):  # which the proofs tell
        found.extend([steps, event.kind, event.text] for steps, event in trace.events())
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
