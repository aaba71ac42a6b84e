"""The steps of one fit: done in launches, recorded, and told to all who look at them."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ....base.system import FilePath
from ...step.batch import row_count
from ...step.evaluate import NonFiniteError
from ...step.training_step import SeveralSteps, TrainingStep
from ..batch_stream import Feed
from ..callback_list import Call
from ..evaluating.fit_validation import FitValidation
from ..history import History
from ..progress import Reporter, reporting
from ..result import Result
from ..saving.save_place import SavePlace
from ..saving.saved_run import SavedRun
from .interrupt import held_interrupt
from .journal import Journal
from .pace import Pace
from .peers import Peers
from .watch import Watch


class Fit:
    """One fit of a trainer.

    Args:
        trainer: what callbacks are given.
        run: what is trained.
        feed: its batches.
        journal: its trace.
        peers: the ranks that do the same.
        place: where the run is saved.
        validation: what is measured besides; None for nothing.
        gradient_norm: whether to measure the norm of the gradients where clipping does not.
    """

    def __init__(
        self,
        trainer: Any,
        run: SavedRun,
        feed: Feed,
        journal: Journal,
        *,
        peers: Peers,
        place: SavePlace,
        validation: FitValidation | None,
        gradient_norm: bool,
    ) -> None:
        self._trainer, self._run, self._peers, self._place = trainer, run, peers, place
        self.feed, self.journal, self.validation = feed, journal, validation
        self.history = History(self._step.groups, run.steps)
        self.has_ended = False
        """Whether it has come to its end; an error or an interrupt leaves it in progress."""
        self._clip_norm = self._step.recipe.clip_norm
        self._measures_norm = gradient_norm or self._clip_norm is not None
        self._watch = Watch(self._step)

    @property
    def _step(self) -> TrainingStep:
        return self._run.runner.step

    def __call__(self, progress: bool | None) -> Result:
        """Do its steps, and show on the way how far it is. Raises as `Trainer.fit`."""
        began = perf_counter()
        shown = reporting(progress, self.feed.left, self.feed.epoch_count, self.history.running)
        with shown as reporter, held_interrupt() as check, self.journal as journal:
            losses = self._train_epochs(reporter, check)
            journal.end(self._step)
        self.has_ended = True
        found = self._watch.findings(self.history, self._clip_norm)
        seconds = perf_counter() - began
        result = Result(np.array(losses), len(losses), seconds, self._step.digest(), self.history, found)
        for tell in self._run.callbacks.on_end:
            tell(self._trainer, result)
        return result

    def save(self, path: FilePath) -> None:
        """Save the run, to continue this fit if it has not ended; what was recorded is on the disk before."""
        self.journal.commit()
        self._run.save(path, None if self.has_ended else self.feed.cursor)

    def _save_where_asked(self) -> None:
        if self._place.path is not None:
            self.save(self._place.path)
            self._place.note(self._place.path)

    # ------------------------------------------------------------------ steps

    def _train_epochs(self, reporter: Reporter, check: Callable[[], None]) -> list[Any]:
        """The loss of every step that is left, each done, recorded and told."""
        for tell in self._run.callbacks.on_begin:
            tell(self._trainer, self.feed.cursor.steps)
        self._save_where_asked()
        losses, pace = list[Any](), self._new_pace()
        for epoch, take in self.feed.epochs():
            self.history.begin_epoch(epoch)
            while batches := take(min(pace.room(self._run.steps), self.journal.room(self._run.steps))):
                while batches:
                    began = perf_counter()
                    done = self._train(batches)
                    pace.took(perf_counter() - began, len(done.losses), len(batches))
                    losses.extend(done.losses)
                    self._finish_steps(done, reporter, check)
                    check()
                    batches = batches[len(done.losses) :]
            self._finish_epoch(epoch, reporter, check)
        self._run.runner.finish()
        self._save_where_asked()
        return losses

    def _new_pace(self) -> Pace:
        told = bool(self._run.callbacks.on_step) or self._step.recipe.on_nonfinite == "record"
        measured = self._measures_norm and self._clip_norm is None
        every = [None if self.validation is None else self.validation.every, self._place.every]
        return Pace(self._watch, alone=told or measured, periods=[int(n) for n in every if n is not None])

    def _train(self, batches: Sequence[Any]) -> SeveralSteps:
        """Do the first of these steps: as many as one launch can have, or one."""
        journal, done = self.journal, None
        if journal.takes_launches:
            done = self._run.runner.several(batches, self._run.steps, journal.launches)
        return self._train_one(batches[0]) if done is None else done

    def _train_one(self, batch: Any) -> SeveralSteps:
        runner, number = self._run.runner, self._run.steps
        self._peers.agree_on_program(self._run, batch)
        self.journal.begin(runner.step)
        try:
            tape = self.journal.tape(number, lambda: runner.tape(batch))
            loss = runner.witnessed(batch, number)
        except NonFiniteError as error:
            raise self._where(error) from None
        step = runner.step
        self.journal.step(number, step, batch, tape)
        norms = [step.gradient_norm()] if self._measures_norm else []
        return SeveralSteps(row_count(batch), [loss], [step.metrics], norms)

    def _where(self, error: Exception) -> Exception:
        """An error of the next step, with the number of that step if it is a value that is not finite."""
        if not isinstance(error, NonFiniteError):
            return error
        return NonFiniteError(f"fit: step {self._run.steps}: {error}; lower the learning rate or look at the batch")

    # ------------------------------------------------------------------ those who look

    def _finish_steps(self, done: SeveralSteps, reporter: Reporter, check: Callable[[], None]) -> None:
        """Note and tell what was done, then raise what ended the step behind it."""
        n, run = len(done.losses), self._run
        if n:
            self._watch.steps(self._step, run.steps, done.rows, n)
            run.steps += n
            self.feed.count_steps(n)
            run.loss = float(done.losses[-1])
            self.history.add_steps(done.losses, done.metrics, done.norms)
            reporter.steps(n)
        if done.error is not None:
            raise self._where(done.error) from None
        self._tell_step(check)

    def _tell_step(self, check: Callable[[], None]) -> None:
        """Look at the last step where somebody wants to."""
        if not self._step.is_finite:
            self.history.note_nonfinite()
        self._tell(self._run.callbacks.on_step, self._run.steps - 1, self._run.loss)
        if self.validation is not None and self.validation.is_due(self._run.steps):
            self._validate(self.validation, check)
        if self._place.is_due(self._run.steps):
            self._save_where_asked()

    def _finish_epoch(self, epoch: int, reporter: Reporter, check: Callable[[], None]) -> None:
        assert self._run.loss is not None, "an epoch has a step"
        if self.validation is not None and self.validation.every is None:
            self._validate(self.validation, check)
        reporter.epoch(epoch, self.history.running())
        self.history.end_epoch()
        self._tell(self._run.callbacks.on_epoch, epoch, self._run.loss)

    def _validate(self, validation: FitValidation, check: Callable[[], None]) -> None:
        figures = validation.figures(check)
        self.history.add_validation(figures)
        self.journal.validation(figures)
        self._tell(self._run.callbacks.on_validation, self._run.steps - 1, figures)

    def _tell(self, callbacks: Sequence[Call], *what: Any) -> None:
        """Call those of one moment, each of which may stop the fit."""
        for tell in callbacks:
            if tell(self._trainer, *what):
                self.feed.stop()
