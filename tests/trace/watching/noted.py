"""Runs whose loss function notes its own values, step by step: a second account of when something was so first.

Nothing here knows of tapes, names of nodes, or conditions: a plain loop, numpy, and what the trainer tells a recorder.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dgrr.runtime import SGD, Adam, Trainer
from dgrr.runtime.optim import StepDecay
from dgrr.tape import nn, ops
from dgrr.trace import CompletedStep, Run

MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.ReLU(), nn.Dropout(0.25), nn.Linear(4, 2))
RNG = np.random.default_rng(5)
BATCHES = [
    (RNG.standard_normal((6, 3)).astype(np.float32), RNG.standard_normal((6, 2)).astype(np.float32)) for _ in range(5)
]
STEPS = 48
"""More than are done op by op."""


@dataclass
class Note:
    """One step: values and gradients of variables, for every micro-batch in turn; all else as the trainer had it."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    grads: dict[str, list[Any]] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    """Every tensor of the run."""
    done: Any = None


_NOTES: list[Note] = []


@contextmanager
def noting(first: Note) -> Iterator[list[Note]]:
    """Let `noted` write to the last of these notes."""
    _NOTES[:] = [first]
    try:
        yield _NOTES
    finally:
        _NOTES.clear()


def noted(name: str, var: Any) -> Any:
    """The Var itself; where somebody is noting, its value and its gradient are kept."""
    if _NOTES:
        note = _NOTES[-1]
        note.values.setdefault(name, []).append(var.numpy().copy())
        place = len(note.values[name]) - 1
        gradients = note.grads.setdefault(name, [])
        gradients.append(None)
        if var.tape.node(var).requires_grad:
            var.register_hook(lambda g: gradients.__setitem__(place, g.numpy().copy()))
    return var


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """A loss with noise, a state of the model, and metrics."""
    x, target = batch
    noisy = x + ctx.random.normal(x.shape, np.float32) * 0.125
    noted("noisy", noisy)
    h = MODEL(p, noisy, ctx)
    noted("h", h)
    wide = ops.exp(h * 0.5)
    noted("wide", wide)
    return ops.mse_loss(wide, target), ctx.state, {"top": wide.max()}


class Opener:
    """What a trainer records to, which notes the state before the first step."""

    def __init__(self, notes: list[Note]) -> None:
        self.notes = notes

    def open_recorder(self, run: Run) -> "Recorder":
        self.notes[-1].before = deepcopy({**run.params, **run.state, **run.model_state})
        return Recorder(self.notes)


class Recorder:
    """Keeps what a trainer tells of its steps."""

    def __init__(self, notes: list[Note]) -> None:
        self.notes = notes

    def wants_tape(self, step: int) -> bool:
        return False

    def step(self, done: CompletedStep) -> None:
        self.notes[-1].done = deepcopy(done)
        self.notes.append(Note(before=deepcopy({**done.params, **done.state, **done.model_state})))

    def commit(self) -> None: ...
    def seal(self) -> None: ...
    def close(self) -> None: ...


RULES: dict[str, Callable[[], Any]] = {
    "plain": lambda: Adam(0.05),
    "groups": lambda: {"*.weight": Adam(StepDecay(0.08, every=10, factor=0.5)), "*": SGD(0.1, momentum=0.9)},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "groups": {"accumulate": 2, "clip_norm": 0.4, "clip_value": 0.2, "frozen": ["0.bias"]},
}


def trainer(kind: str, trace: Any, **more: Any) -> Trainer:
    """Of one of the runs."""
    state = MODEL.init_state()
    return Trainer(
        loss_fn, MODEL.init(1), RULES[kind](), model_state=state, seed=9, trace=trace, **OPTIONS[kind] | more
    )


def notes_of(kind: str) -> list[Note]:
    """Every step of a run, noted as it was done op by op; the last is the state behind it."""
    with noting(Note()) as notes:
        trainer(kind, Opener(notes), mode="eager").fit(BATCHES, steps=STEPS, progress=False)
        return list(notes)


Figure = Callable[[Note], list[float]]


def records(figure: Figure, notes: list[Note], sign: int = 1) -> list[tuple[int, float]]:
    """The steps at which a figure, or its negative, is greater than ever before, with a number between it and that."""
    highest, found = -np.inf, list[tuple[int, float]]()
    for step, note in enumerate(notes):
        value = max(sign * x for x in figure(note))
        if value > highest:
            if np.isfinite(highest):
                found.append((step, (highest + value) / 2))
            highest = value
    return found


def float64(array: Any) -> Any:
    return np.asarray(array, np.float64)


def every(name: str, what: str, reduce: Callable[[Any], Any]) -> Figure:
    """What a reduction gives for each of the micro-batches."""
    return lambda note: [float(reduce(float64(x))) for x in getattr(note, what)[name]]


def one(figure: Callable[[Note], Any]) -> Figure:
    """What is the same for all of them."""
    return lambda note: [float(figure(note))]


FIGURES: dict[str, Figure] = {
    "loss": one(lambda note: note.done.loss),
    "top": one(lambda note: note.done.metrics["top"]),
    "step": one(lambda note: note.done.step),
    "lr": one(lambda note: note.done.hyper["lr"]),
    'absmax("0.weight")': one(lambda note: np.abs(float64(note.before["0.weight"])).max()),
    'mean("4.bias")': one(lambda note: float64(note.before["4.bias"]).mean()),
    'max("1.running_mean")': one(lambda note: float64(note.before["1.running_mean"]).max()),
    'norm(grad("4.weight"))': one(lambda note: np.linalg.norm(float64(note.done.grads["4.weight"]))),
    'absmax(update("4.bias"))': one(
        lambda note: np.abs(float64(note.done.params["4.bias"]) - float64(note.before["4.bias"])).max()
    ),
    "absmax(h)": every("h", "values", lambda x: np.abs(x).max()),
    "min(h)": every("h", "values", np.min),
    "norm(wide)": every("wide", "values", np.linalg.norm),
    "mean(wide) + 2 * max(wide)": every("wide", "values", lambda x: x.mean() + 2 * x.max()),
    "max(noisy)": every("noisy", "values", np.max),
    "norm(grad(h))": every("h", "grads", np.linalg.norm),
}
