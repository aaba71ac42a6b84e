"""The trainer: steps over batches, recorded if asked, in the fixed order forward, loss, backward, optimizer."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count, islice
from time import perf_counter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..tape import AnyVar, DomainError, Tape
from .capture import CapturedStep
from .data import Dataset
from .evaluate import Array, Arrays, LossFn, NonFiniteError, on_tape
from .interrupt import held_interrupt
from .optim import Rule
from .progress import Reporter, reporting
from .recording import Mode, Path, Recorder, open_recorder

Model = Callable[[Any, AnyVar], AnyVar]
EVALUATION_BATCH = 256


@dataclass(frozen=True)
class Result:
    """What `Trainer.fit` did."""

    losses: npt.NDArray[np.floating[Any]]
    """The loss of every step, before its update."""
    steps: int
    seconds: float
    state_digest: str
    """SHA-256, in hex, over parameters and optimizer state after the last step."""


class Trainer:
    """Trains named parameters on batches.

    Args:
        loss_fn: ``loss_fn(p, batch) -> scalar Var``.
        params: start values by name; copied, the caller's arrays are not changed.
        optimizer: for example ``Adam(lr=1e-3)``.
        trace: where to record the run; the trace is complete when `fit` returns.
        record: "grads" records gradients, so that every update can be proved from the file alone;
            "digest" records digests, which need the model and the data for the proof.
        seed: noted in the trace.
    """

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        optimizer: Rule,
        *,
        trace: Path | None = None,
        record: Mode = "grads",
        seed: int = 0,
    ) -> None:
        if record not in ("digest", "grads"):
            raise DomainError(f"Trainer: argument 'record': expected 'digest' or 'grads', got {record!r}")
        self._step = CapturedStep(loss_fn, params, optimizer)
        self._trace, self._seed = trace, seed
        self._record: Mode = record
        self.steps = 0

    @property
    def optimizer(self) -> Rule:
        """The rule that updates the parameters."""
        return self._step.optimizer

    @property
    def params(self) -> dict[str, Array]:
        """The trained values by name."""
        return self._step.params

    @property
    def state(self) -> dict[str, Array]:
        """The optimizer's state by name."""
        return self._step.state

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

        Raises DomainError for a count below 0 or batches that give none, NonFiniteError for a loss or gradient
        that is not finite, before it is applied or recorded; the trace then ends with the step before.
        """
        total = _total(batches, steps, epochs)
        began, losses = perf_counter(), list[Any]()
        with reporting(progress, total) as reporter, held_interrupt() as check, self._recording() as recorder:
            for batch in _epochs(batches, epochs, steps, reporter, losses):
                losses.append(self._train(batch, recorder))
                reporter.step(float(losses[-1]))
                check()
        return Result(np.array(losses), len(losses), perf_counter() - began, self._step.digest())

    def _train(self, batch: Any, recorder: Recorder | None) -> Any:
        try:
            made = self._step.evaluate(batch)
        except NonFiniteError as error:
            raise NonFiniteError(
                f"fit: step {self.steps}: {error}; lower the learning rate or look at the batch"
            ) from None
        self._step.update(made.grads)
        if recorder is not None:
            recorder.step(
                step=self.steps,
                loss=made.loss,
                hyper=self.optimizer.hyperparameters(),
                grads=made.grads,
                params=self.params,
                state=self.state,
                batch=batch,
            )
        self.steps += 1
        return made.loss[()]

    def _recording(self) -> AbstractContextManager[Recorder | None]:
        if self._trace is None:
            return nullcontext(None)
        if self.steps:
            raise DomainError(
                f"fit: the trace {str(self._trace)!r} holds an earlier fit; make a new Trainer with its own trace"
            )
        recorder = open_recorder(
            self._trace,
            record=self._record,
            params=self.params,
            state=self.state,
            rule=self.optimizer,
            seed=self._seed,
        )
        return _Sealing(recorder)

    def evaluate(
        self, data: Dataset, metric: Literal["loss", "accuracy"] = "loss", model: Model | None = None
    ) -> float:
        """The mean loss on a data set, or the share of samples whose label has the largest of the model's outputs.

        "accuracy" needs ``model(p, x)`` and a data set of (inputs, integer labels).
        Raises DomainError for another metric or a missing model.
        """
        if metric == "loss":
            return self._mean(data, self._batch_loss)
        if metric != "accuracy":
            raise DomainError(f"evaluate: argument 'metric': expected 'loss' or 'accuracy', got {metric!r}")
        if model is None:
            raise DomainError("evaluate: argument 'model': expected model(p, x) for 'accuracy', got None")
        return self._mean(data, lambda batch: _accuracy(model, self.params, batch))

    def _batch_loss(self, batch: Any) -> float:
        tape: Tape[Any] = Tape()
        p = {name: tape.const(value) for name, value in self.params.items()}
        return float(self._step.loss_fn(p, on_tape(tape, batch)).item())

    def _mean(self, data: Dataset, measure: Callable[[Any], float]) -> float:
        total = sum(measure(batch) * len(batch[0]) for batch in data.batches(EVALUATION_BATCH))
        return total / len(data)


class _Sealing:
    """Completes a recorder's trace when a run ends well or at a non-finite value, else leaves it readable."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> Recorder:
        return self._recorder

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None or issubclass(kind, NonFiniteError):
            self._recorder.seal()
        else:
            self._recorder.close()


def _accuracy(model: Model, params: Arrays, batch: Any) -> float:
    if len(batch) != 2:
        raise DomainError(f"evaluate: argument 'data': expected inputs and labels, got {len(batch)} arrays")
    inputs, labels = batch
    tape: Tape[Any] = Tape()
    p = {name: tape.const(value) for name, value in params.items()}
    chosen: Array = model(p, tape.const(inputs)).numpy().argmax(axis=-1)
    return int(np.count_nonzero(chosen == labels)) / len(labels)


def _total(batches: Iterable[Any], steps: int | None, epochs: int | None) -> int | None:
    """The number of steps, where it is known before."""
    for name, value in (("steps", steps), ("epochs", epochs)):
        if value is not None and value < 0:
            raise DomainError(f"fit: argument {name!r}: expected at least 0, got {value}")
    known = len(batches) * (1 if epochs is None else epochs) if isinstance(batches, Sized) else None
    if steps is None:
        return known
    return steps if epochs is None or known is None else min(steps, known)


def _epochs(
    batches: Iterable[Any], epochs: int | None, steps: int | None, reporter: Reporter, losses: list[Any]
) -> Iterator[Any]:
    """Batch after batch, epoch after epoch; without a count of epochs, one, or as many as the steps need.

    The consumer appends a loss for each batch before it asks for the next. The last epoch may be cut short.
    """
    numbers = range(epochs) if epochs is not None else range(1) if steps is None else count()
    for number in numbers:
        before = len(losses)
        if before == steps:
            return
        yield from islice(batches, None if steps is None else steps - before)
        if len(losses) == before:
            raise DomainError(
                "fit: argument 'batches': expected at least one batch per epoch, got none; "
                "an iterator is used up after one epoch, so pass something that can be iterated again"
            )
        reporter.epoch(number, float(losses[-1]))
