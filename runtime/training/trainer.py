"""The trainer: steps over batches, recorded and saved if asked, with the same bits in every mode."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path as FilePath
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from ...arrays import Array, Arrays
from ...tape import NUMERICS, DomainError
from ...tape.values.unique import Unique
from ..captured.captured_step import CapturedStep
from ..captured.replayed_step import OnShapeChange
from ..data import Dataset
from ..optim import Rule
from ..step.eager import EagerStep, StateError
from ..step.evaluate import NonFiniteError
from ..step.loss_call import LossFn
from ..step.update import Recipe
from .batch_stream import Cursor, Feed
from .checkpoint import Checkpoint, CheckpointError, check_every, read_checkpoint, write_checkpoint
from .interrupt import held_interrupt
from .metrics import Metric, Model, evaluated
from .modes import StepMode, StepRunner
from .progress import Reporter, reporting
from .recorder_protocol import Mode, Path, Recorder, check_trace, is_path
from .result import Result
from .trace_session import Journal


class Listener(Protocol):
    """What a trainer tells of its run: a `Callback`, or anything with its methods."""

    def on_step(self, trainer: "Trainer", step: int, loss: float) -> bool | None:
        """A step is done; True ends the fit."""
        ...

    def on_epoch(self, trainer: "Trainer", epoch: int, loss: float) -> bool | None:
        """An epoch has ended; True ends the fit."""
        ...

    def on_end(self, trainer: "Trainer", result: Result) -> None:
        """The fit has ended."""
        ...


class Trainer(Unique):
    """Trains named parameters on batches.

    A step is always zero grad, forward, loss, backward, optimizer, whatever the mode. Where asked, gradients are
    averaged over micro-batches, then clipped by value, then by norm, before the optimizer updates parameters and
    state in place. A loss or gradient that is not finite ends the run before it is applied.

    Args:
        loss_fn: ``loss_fn(p, batch) -> scalar Var``, or ``loss_fn(p, batch, ctx)``, which may return
            ``(loss, new_state)``.
        params: start values by name; copied, the caller's arrays are not changed.
        optimizer: for example ``Adam(lr=1e-3)``; ``lr`` may be a schedule.
        mode: how steps run, with the same bits: "replay" runs the first ``warmup`` steps op by op, then captures
            the step once for each shape of batch, and replays it; "eager" runs every step op by op; "capture"
            captures every step anew, which is slow and of use to find faults only. A captured ``loss_fn`` runs
            once per shape, so it must not depend on anything but its arguments.
        trace: where to record the run: a path, or a recorder that was begun with the start of this run, or resumed
            where it was loaded. The trace is complete when `fit` returns.
        record: what is kept where `trace` is a path: "grads" records gradients, so that every update can be proved
            from the file alone; "digest" records digests, which need the model and the data for the proof.
        model_state: what a model keeps from step to step besides its parameters, as ``model.init_state()`` gives it;
            copied. ``loss_fn`` gets it as ``ctx.state``.
        seed: of ``ctx.random``; noted in the trace and in checkpoints.
        warmup: see mode.
        on_shape_change: in mode "replay", whether a batch of another shape than the one captured is captured too
            ("recapture") or raises ShapeError ("error").
        accumulate: how many batches in turn are one step. Losses and gradients are their sums, divided once; a
            rest of fewer batches at the end of an epoch is left out. Not to the bit what one large batch gives.
        clip_norm: bound of the joint norm of all gradients.
        clip_value: bound of every element of the gradients.
        callbacks: told of every step and epoch, in their order; see `Callback`.
        checkpoint: where `fit` saves the run: at its beginning, every ``checkpoint_every`` steps, and at its end.

    Raises:
        DomainError: an argument outside these.

    A run that survives its process; the same program, started again, goes on where it was::

        trainer = Trainer(loss_fn, params, Adam(1e-3), trace="run.dgrr", checkpoint="run.ckpt", checkpoint_every=100)
        if Path("run.ckpt").exists():
            trainer.load("run.ckpt")
        trainer.fit(batches, epochs=20)
    """

    instead = "save the run and load it into another: trainer.save(path), Trainer(...).load(path)"

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        optimizer: Rule,
        *,
        model_state: Arrays | None = None,
        mode: StepMode = "replay",
        trace: Path | Recorder | None = None,
        record: Mode = "grads",
        seed: int = 0,
        warmup: int = 2,
        on_shape_change: OnShapeChange = "recapture",
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        callbacks: Sequence[Listener] = (),
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int | None = None,
    ) -> None:
        if record not in ("digest", "grads"):
            raise DomainError(f"Trainer: argument 'record': expected 'digest' or 'grads', got {record!r}")
        check_trace(trace)
        check_every(checkpoint, checkpoint_every)
        recipe = Recipe(optimizer, accumulate, clip_norm, clip_value)
        self._run = StepRunner(loss_fn, params, recipe, mode, warmup, on_shape_change, model_state, seed)
        self._trace, self._seed, self._callbacks = trace, seed, tuple(callbacks)
        self._record: Mode = record
        self._checkpoint, self._every = checkpoint, checkpoint_every
        self.steps = 0
        """Steps done since the beginning of the run."""
        self._loss: float | None = None
        self._feed: Feed | None = None
        self._loaded: Checkpoint | None = None
        self._journal = self._new_journal(None)
        self._recorded = self._saved = False

    @property
    def optimizer(self) -> Rule:
        """The rule that updates the parameters."""
        return self._step.recipe.rule

    @property
    def params(self) -> dict[str, Array]:
        """The trained values by name: the same arrays all the time."""
        return self._step.params

    @property
    def state(self) -> dict[str, Array]:
        """The optimizer's state by name: the same arrays all the time."""
        return self._step.state

    @property
    def model_state(self) -> dict[str, Array]:
        """What the model keeps from step to step, by name: the same arrays all the time."""
        return self._step.model_state

    @property
    def _step(self) -> EagerStep | CapturedStep:
        return self._run.step

    # ------------------------------------------------------------------ training

    def fit(
        self,
        batches: Iterable[Any],
        *,
        steps: int | None = None,
        epochs: int | None = None,
        progress: bool | None = None,
    ) -> Result:
        """Train for a number of steps or epochs (default: one epoch), whichever ends first.

        ``batches`` is iterated once per epoch. ``progress``: None shows a bar on a terminal, True lines
        elsewhere too, False nothing. Ctrl-C takes effect between two steps; a trace then stays readable up to
        the last step.

        After `load` the fit that saved the checkpoint goes on: counts include what it had done, and ``batches``
        must give what they gave from its beginning. Those before the checkpoint are passed over untrained;
        `data.Batches`, whose order follows from seed and epoch, do not even read the epochs.

        Raises DomainError for a count below 0, batches that give no step, or a checkpoint file that another run
        left; NonFiniteError for a loss or gradient that is not finite, before it is applied or recorded; the
        trace then ends with the step before.
        """
        feed = Feed(batches, steps=steps, epochs=epochs, accumulate=self._step.recipe.accumulate, cursor=self._begin())
        began, losses = perf_counter(), list[Any]()
        with reporting(progress, feed.left) as reporter, held_interrupt() as check, self._journal as journal:
            self._feed = feed
            self._save_where_asked()
            for epoch, every in feed.epochs():
                for batch in every:
                    losses.append(self._train(batch))
                    feed.count_step()
                    self._finish_step(feed, float(losses[-1]), reporter)
                    check()
                self._finish_epoch(feed, epoch, reporter)
            self._save_where_asked()
            journal.end(self._step)
        self._feed = None
        result = Result(np.array(losses), len(losses), perf_counter() - began, self._step.digest())
        for callback in self._callbacks:
            callback.on_end(self, result)
        return result

    def _begin(self) -> Cursor:
        """Where the fit starts. Raises DomainError if it would hide an earlier trace or checkpoint."""
        if self._trace is not None and self._recorded:
            trace = f"trace {str(self._trace)!r}" if is_path(self._trace) else "recorder"
            raise DomainError(f"fit: the {trace} holds an earlier fit; make a new Trainer with its own trace")
        if self._checkpoint is not None and not self._saved and FilePath(self._checkpoint).exists():
            raise DomainError(
                f"fit: the checkpoint {str(self._checkpoint)!r} is there already; load it to go on, or remove it"
            )
        loaded, self._loaded = self._loaded, None
        self._journal = self._new_journal(None if loaded is None else loaded.steps)
        return Cursor() if loaded is None or loaded.cursor is None else loaded.cursor

    def _new_journal(self, loaded: int | None) -> Journal:
        return Journal(self._trace, self._record, self._seed, loaded)

    def _train(self, batch: Any) -> Any:
        if not self._recorded:
            self._recorded = True
            self._journal.begin(self._step)
        try:
            loss = self._run(batch)
        except NonFiniteError as error:
            raise NonFiniteError(
                f"fit: step {self.steps}: {error}; lower the learning rate or look at the batch"
            ) from None
        self._journal.step(self.steps, self._step, batch)
        self.steps += 1
        return loss

    def _finish_step(self, feed: Feed, loss: float, reporter: Reporter) -> None:
        self._loss = loss
        reporter.step(loss)
        for callback in self._callbacks:
            if callback.on_step(self, self.steps - 1, loss):
                feed.stop()
        if self._every is not None and self.steps % self._every == 0:
            self._save_where_asked()

    def _finish_epoch(self, feed: Feed, epoch: int, reporter: Reporter) -> None:
        assert self._loss is not None, "an epoch has a step"
        reporter.epoch(epoch, self._loss)
        for callback in self._callbacks:
            if callback.on_epoch(self, epoch, self._loss):
                feed.stop()

    # ------------------------------------------------------------------ checkpoints

    def save(self, path: str | PathLike[str]) -> None:
        """Save the run between two steps, so that `load` goes on from here to the bit.

        The file has its name only when it is whole and on the disk; what it replaces stays until then. A trace
        that is being recorded is brought to the disk before. Raises OSError if the file cannot be written.
        """
        self._journal.commit()
        step, fit = self._step, self._feed or self._loaded
        cursor = None if fit is None else fit.cursor
        write_checkpoint(path, Checkpoint(self._law(), self.steps, self._loss, cursor, step.digest(), step.arrays))

    def load(self, path: str | PathLike[str]) -> None:
        """Go back to where a checkpoint was saved, to the bit.

        If it was saved within a `fit`, the next `fit` continues that one, and its trace: it cuts off what the
        trace holds beyond the checkpoint.

        Raises CheckpointError, and changes nothing, for a file that is damaged, or of another model, optimizer or
        numerics version; OSError if it cannot be read.
        """
        checkpoint = read_checkpoint(path)
        for name, value in self._law().items():
            saved = checkpoint.law.get(name)
            if saved != value:
                raise CheckpointError(f"load: {str(path)!r}: {name}: it was saved with {saved}, this run has {value}")
        try:
            self._step.load_state_dict(checkpoint.arrays)
        except StateError as error:
            raise CheckpointError(f"load: {str(path)!r} is of another model: {error}") from None
        self.steps, self._loss = checkpoint.steps, checkpoint.loss
        self._loaded, self._feed = checkpoint, None
        self._recorded = False
        self._saved = self._saved or (self._checkpoint is not None and FilePath(path) == FilePath(self._checkpoint))

    def _law(self) -> dict[str, Any]:
        """What decides the run besides its data."""
        recipe = asdict(self._step.recipe) | {"rule": repr(self.optimizer)}
        return {"numerics": NUMERICS, "seed": self._seed, **recipe}

    def _save_where_asked(self) -> None:
        if self._checkpoint is not None:
            self.save(self._checkpoint)
            self._saved = True

    # ------------------------------------------------------------------ evaluation

    def evaluate(self, data: Dataset, metric: Metric = "loss", model: Model | None = None) -> float:
        """The mean loss on a data set, or the share of samples whose label has the largest of the model's outputs.

        "accuracy" needs ``model(p, x)`` or ``model(p, x, ctx)`` and a data set of (inputs, integer labels). A context
        has ``training=False``.
        Raises DomainError for another metric or a missing model.
        """
        point = replace(self._step.point, training=False)
        return evaluated(metric, self._step.loss_fn, model, self.params, data, point)
