"""The trainer: steps over batches, recorded and saved if asked, with the same bits in every mode."""

from collections.abc import Iterable, Sequence
from typing import Any

from ...base.arrays import Arrays
from ...base.runs.completed_step import Order
from ...base.runs.keep import Keep, Mode
from ...base.runs.run import OnNonfinite
from ...base.system import FilePath
from ...tape import DomainError
from ..captured.kept import PLAN_BYTES
from ..captured.replayed_step import Device, OnShapeChange
from ..data import Dataset
from ..optim.groups import Optimizer
from ..optim.patterns import Pattern
from ..ranks.exchange import Exchange
from ..step.loss_call import LossFn
from ..step.recipe import Recipe
from .batch_stream import Cursor, Feed
from .callback_list import CallbackList
from .evaluating.fit_validation import FitValidation
from .evaluating.forwards import Forwards
from .fitting.fit import Fit
from .fitting.journal import Journal
from .fitting.peers import Peers
from .history import History
from .recorder_protocol import Traced, is_taken, taken, traced
from .result import Result
from .saving.checkpoint import Checkpoint
from .saving.save_place import SavePlace
from .saving.saved_run import SavedRun
from .step_runner import StepMode, StepOptions, StepRunner
from .trained_arrays import TrainedArrays


class Trainer(TrainedArrays):
    """Trains named parameters on batches.

    A step is always zero grad, forward, loss, backward, optimizer, whatever the mode. If you ask for it, gradients are
    averaged over micro-batches, then clipped by value, then by norm, before the optimizer updates parameters and state
    in place. A loss or gradient that is not finite ends the run before it is applied, unless ``on_nonfinite`` says
    otherwise.

    Args:
        loss_fn: ``loss_fn(p, batch) -> scalar Var``, or ``loss_fn(p, batch, ctx)``. It may return
            ``(loss, metrics)``, metrics being scalar Vars by name, which are shown and change nothing; for a model
            with a state ``(loss, new_state)`` or ``(loss, new_state, metrics)``.
        params: start values by name; copied, so your arrays do not change.
        optimizer: for example ``Adam(lr=1e-3)``; ``lr`` may be a schedule. Or rules by patterns of names,
            ``{"*.bias": SGD(0.1), "*": AdamW(1e-3)}``: the first that matches a parameter updates it. A predicate such
            as ``lambda name, value: value.ndim < 2`` can replace a pattern; it is called once, on ``params``.
        frozen: name patterns, or predicates, of parameters that are not trained: they get no gradient.
        ema: decay of running averages of the trained parameters, in [0, 1); None keeps none. See `averaged`.
        mode: how steps run, with the same bits: "replay" runs the first ``warmup`` steps op by op, then captures
            the step once for each shape of batch, and replays it; "eager" runs every step op by op; "capture"
            captures every step again, which is slow and only useful to find faults. A captured ``loss_fn`` must depend
            on nothing but its arguments; otherwise an error says so (docs/captured_steps.md).
        trace: where to record the run: a new path; a `Keep`, which also says what the trace keeps; a recorder begun at
            the start of this run, or resumed where the run was loaded; or an object whose ``open_recorder`` makes one.
            The trace is complete when `fit` returns.
        record: what a trace at a path keeps of each step, by default "grads"; see `Keep`.
        model_state: what a model keeps from step to step besides its parameters, as ``model.init_state()`` returns it;
            copied. ``loss_fn`` gets it as ``ctx.state``.
        seed: of ``ctx.random``; noted in the trace and in checkpoints.
        warmup: see mode.
        on_shape_change: in mode "replay", whether a batch of another shape than the one captured is captured too
            ("recapture") or raises ShapeError ("error").
        accumulate: how many successive batches form one step. Losses and gradients are summed, then divided once; fewer
            batches left at the end of an epoch are skipped. The result differs in bits from that of one large batch.
        order: how to sum: "chain" adds one batch after the other; "tree" adds in pairs, level by level, so that several
            processes can share the sum, and the model's state becomes the mean over the batches.
        clip_norm: bound of the joint norm of all gradients.
        clip_value: bound of every element of the gradients.
        on_nonfinite: "stop" ends the run at a loss or gradient that is infinite or NaN, before it is applied; "record"
            continues with the rule, which mostly makes the parameters NaN, to see, and prove, how a run broke down.
            ``history.nonfinite`` has the steps.
        ranks: connects this process with others that run the same program, for ``order="tree"``. Each computes some of
            the batches of every step, and all get the bits of one process. The first writes trace, checkpoint and
            progress. Call `fit`, `save`, `load` and `averaged` on all of them.
        callbacks: called at every step, validation and epoch, in order; see `Callback`. After every epoch, a plain
            function is called as ``f(trainer, epoch, loss)``.
        checkpoint: where `fit` saves the run: at its beginning, every ``checkpoint_every`` steps, and at its end.
        device: where steps run, with the same bits: "cpu", or "cuda", an NVIDIA GPU; see docs/gpu.md. With ``ranks``
            each has its own.
        witness: the share of the steps on a GPU that the CPU recomputes while the GPU goes on, drawn by ``seed`` and
            their numbers; ``witnessed`` has them. One with other bits ends the fit.
        plan_bytes: how much memory the plans of captured steps may take, arenas and input buffers, and as much those of
            evaluation. With more than two shapes, each is captured when it has come 32 times, and runs op by op before.

    Raises:
        CudaError: there is no device "cuda", or a kernel has no form for it.
        DomainError: any other argument; a trace that already exists, if its `Keep` does not overwrite it and there is
            no checkpoint to resume from.

    A run that survives its process: start the same program again, and it continues where it was::

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
        optimizer: Optimizer,
        *,
        model_state: Arrays | None = None,
        mode: StepMode = "replay",
        trace: FilePath | Traced | None = None,
        record: Mode | None = None,
        seed: int = 0,
        warmup: int = 0,
        on_shape_change: OnShapeChange = "recapture",
        accumulate: int = 1,
        order: Order = "chain",
        clip_norm: float | None = None,
        clip_value: float | None = None,
        frozen: Sequence[Pattern] = (),
        ema: float | None = None,
        on_nonfinite: OnNonfinite = "stop",
        ranks: Exchange | None = None,
        callbacks: Sequence[Any] = (),
        checkpoint: FilePath | None = None,
        checkpoint_every: int | None = None,
        device: Device = "cpu",
        witness: float | None = None,
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        self._trace = traced(trace, record)
        self._place = SavePlace(checkpoint, checkpoint_every)
        self._peers = Peers(ranks, self._trace)
        if self._peers.writes and is_taken(self._trace) and not self._trace.overwrite and not self._place.exists():
            raise taken("Trainer: argument 'trace'", self._trace)
        recipe = Recipe(
            *(optimizer, accumulate, clip_norm, clip_value),
            frozen=frozen,
            ema=ema,
            on_nonfinite=on_nonfinite,
            order=order,
        )
        how = StepOptions(
            mode,
            warmup=warmup,
            on_shape_change=on_shape_change,
            ranks=ranks,
            device=device,
            plan_bytes=plan_bytes,
            witness=witness,
        )
        runner = StepRunner(loss_fn, params, recipe, how, model_state=model_state, seed=seed)
        self._run = SavedRun(runner, CallbackList(callbacks), writes=self._peers.writes)
        self._forwards = Forwards(runner.step, how)
        self._averaged = Forwards(runner.step, how, averages=True)
        self.history = History(runner.step.groups, 0)
        """What the fit in progress, or the last one, has measured."""
        self._fit: Fit | None = None
        """In progress, or the last one."""
        self._loaded: Checkpoint | None = None
        """From which the next fit goes on."""

    def about(self) -> dict[str, object]:
        """A summary for people: parameters, optimizer, mode, files, how far it has come."""
        files = {"trace": self._trace.path if isinstance(self._trace, Keep) else None, "checkpoint": self._place.path}
        loss = self._run.loss
        last = {"last loss": None if loss is None else f"{loss:.6g}"}
        more = {**files, **last}
        return {**super().about(), **{name: value for name, value in more.items() if value is not None}}

    # ------------------------------------------------------------------ training

    def fit(
        self,
        batches: Iterable[Any],
        *,
        steps: int | None = None,
        epochs: int | None = None,
        validation: Dataset | Iterable[Any] | None = None,
        validate_every: int | None = None,
        gradient_norm: bool = False,
        progress: bool | None = None,
    ) -> Result:
        """Train for a number of steps or epochs (default: one epoch), whichever ends first.

        Args:
            batches: iterated once per epoch.
            steps: how many steps the fit has.
            epochs: how many epochs it has.
            validation: a data set, or batches that can be iterated again, to measure loss and metrics on: after every
                epoch, with ``training=False`` and without gradients. It does not affect the run; the trace records the
                figures.
            validate_every: validate after so many steps instead.
            gradient_norm: whether to measure the joint gradient norm of every step, after clipping by value, for the
                history. This takes time; ``clip_norm`` measures it anyway.
            progress: None shows a bar on a terminal and in a notebook, True lines elsewhere too, False nothing.

        Steps run several in one launch where nobody looks between them (docs/training.md). Ctrl-C takes effect between
        two launches, within 0.05 seconds; a trace then stays readable up to the last step.

        A second fit of a trainer has its own counts, and continues the trace if that is a path. The same `Epochs`, such
        as ``dataset.batches``, continue where they were; an epoch in progress is finished first, and counts. Other
        batches start with their first epoch.

        After `load`, the fit that saved the checkpoint continues: counts include what it had done, and ``batches`` must
        give what they gave from its beginning. Batches before the checkpoint are skipped; whole epochs of an `Epochs`
        are not even read. A fit that saved at its end continues if the counts are larger. If the checkpoint was saved
        between two fits, the next fit is new.

        Raises DomainError for a count below 0, batches that give no step, samples instead of batches, a trace that
        already exists, or a checkpoint file of another run; NonFiniteError for a loss or gradient that is not finite,
        before it is applied or recorded; the trace then ends with the step before; CaptureError if ``loss_fn`` behaves
        differently from when it was captured; to check, it is recorded again at the captured steps 2, 4, 8, … and after
        the last one; WitnessError for a step of a GPU that the CPU recomputes with other bits, which it names, some
        steps later.
        """
        observed = FitValidation.of(self._forwards, validation, validate_every, batches)
        together, own = self._step.recipe.accumulate, self._run.runner.own
        start = self._start(batches)
        feed = Feed(batches, steps=steps, epochs=epochs, accumulate=together, cursor=start, own=own)
        journal = self._new_journal()
        self._loaded = None
        self._peers.agree_on_fit(
            self._run,
            {"batches": batches, "validation": validation},
            {"fit: steps": steps, "fit: epochs": epochs, "fit: validate_every": validate_every},
        )
        self._fit = fit = Fit(
            *(self, self._run, feed, journal),
            peers=self._peers,
            place=self._place,
            validation=observed,
            gradient_norm=gradient_norm,
        )
        self.history = fit.history
        return fit(progress if self._run.writes else False)

    @property
    def validates(self) -> bool:
        """Whether the fit in progress, or the last one, has a validation."""
        return self._fit is not None and self._fit.validation is not None

    def _start(self, batches: Iterable[Any]) -> Cursor:
        """Where a fit on these batches starts."""
        if self._loaded is not None:
            return self._loaded.cursor or Cursor()
        return Cursor() if self._fit is None else self._fit.feed.next(batches)

    def _new_journal(self) -> Journal:
        """The trace of a fit. Raises DomainError if the fit would hide an earlier trace or checkpoint."""
        fit, writes, loaded = self._fit, self._run.writes, self._loaded is not None
        goes_on = not loaded and fit is not None and fit.journal.holds_run
        if goes_on and not isinstance(self._trace, Keep):
            raise DomainError(
                "fit: argument 'trace': expected a path, in which a second fit goes on, got a recorder, which holds an "
                "earlier fit and cannot be reopened; make a new Trainer with its own trace"
            )
        begins = writes and not loaded and not goes_on
        if begins and is_taken(self._trace) and not self._trace.overwrite:
            raise taken("fit", self._trace, self._place.path)
        if writes:
            self._place.require_free()
        return Journal(self._trace, loaded=self.steps if goes_on or loaded else None, writes=writes)

    # ------------------------------------------------------------------ checkpoints

    def save(self, path: FilePath) -> None:
        """Save the run between two steps, so that `load` continues from here to the bit.

        The file gets its name only when it is complete and on disk; until then the old one stays. A trace in progress
        is flushed to disk first. With ``ranks``, all call it and the first writes; any number of ranks, or one process,
        can continue. Raises OSError if the file cannot be written.
        """
        if self._fit is not None and self._loaded is None:
            self._fit.save(path)
        else:
            self._run.save(path, None if self._loaded is None else self._loaded.cursor)

    def load(self, path: FilePath) -> None:
        """Go back to where a checkpoint was saved, to the bit.

        If it was saved within a `fit`, or by one at its end, the next `fit` continues that one; if between two fits,
        the next is new, with counts and batches from their beginning. The trace continues: an unfinished one is cut off
        after the checkpoint, and a finished one continues after its last step.

        Raises CheckpointError, and changes nothing, for a damaged file, or one of another model, optimizer or numerics
        version; OSError if it cannot be read.
        """
        self._loaded = self._run.load(path)
        self._peers.forget()
        self._place.note(path)
