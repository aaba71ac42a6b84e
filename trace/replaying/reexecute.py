"""Re-execution of recorded steps: batches, losses and gradients held against a trace."""

from collections.abc import Generator
from contextlib import contextmanager
from traceback import format_exception_only
from typing import TypeAlias

import numpy as np

from ...arrays import Array, Arrays
from ...runtime.optim import clip_by_global_norm
from ..v2.check.difference import first_difference
from ..v2.check.report import Finding
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch, InputDigest, TensorDigest
from ..v2.read.reader import StepView, Trace
from ..v2.verdict import Verdict
from .execution import Batches, CannotExecuteError, Execution, LossFn
from .replay_state import ReplayState

Made: TypeAlias = tuple[dict[str, Array], dict[str, Array]]
"""The gradients of a step, and the buffers after it."""

_LONGEST = 400
"""Characters of the text of an exception that a finding shows."""

_ANEW = "give those of the run from its beginning, made anew: what a fit has iterated goes on with the next epoch"


class FailedError(Exception):
    """Ends a replay with its first finding."""

    def __init__(self, verdict: Verdict, text: str, step: int, tensor: str | None = None) -> None:
        super().__init__(text)
        self.finding = Finding(verdict, text, step, tensor)


@contextmanager
def blaming(verdict: Verdict, what: str, step: int) -> Generator[None]:
    """Turn whatever foreign code raises, Ctrl-C excepted, into the finding that ends a replay.

    Raises:
        FailedError: with `verdict`; or `unproven`, where memory was short, which says nothing about the run.
    """
    try:
        yield
    except (FailedError, InvalidTraceError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise FailedError(Verdict.UNPROVEN, f"{what}: there is not enough memory", step) from error
    except BaseException as error:  # a model may end the process, and a batch raise anything
        text = "".join(format_exception_only(error)).strip()
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        raise FailedError(verdict, f"{what}: {text}", step) from error


class Model:
    """The loss function and the batches of a run, each step held against what is recorded of it."""

    def __init__(self, trace: Trace, loss_fn: LossFn, batches: Batches) -> None:
        self._trace = trace
        self._execution = Execution(trace, loss_fn, batches)
        algorithm = trace.header.algorithm
        self._input_digest = InputDigest(algorithm)
        digests = {t.name: TensorDigest(algorithm, t.dtype, t.shape) for t in trace.schema.tensors}
        self._digests = {t.name: digests[t.name] for t in trace.schema.tensors if t.role is TensorRole.PARAM}
        self._buffer_digests = {t.name: digests[t.name] for t in trace.schema.tensors if t.role is TensorRole.BUFFER}

    def next_batch(self, view: StepView) -> tuple[Batch, ...]:
        """The micro-batches of a step; of every step in turn, from the first."""
        execution = self._execution
        try:
            execution.begin(view)
        except CannotExecuteError as error:
            raise FailedError(Verdict.UNPROVEN, str(error), view.step) from error
        with blaming(Verdict.DATA, "the batches cannot be read", view.step):
            batch = execution.take()
            if batch is None:
                raise FailedError(Verdict.DATA, f"there are no more batches; {_ANEW}", view.step)
            same = self._input_digest(execution.recorded(batch)) == view.input_digest
        if not same:
            cure = f"; {_ANEW}" if view.step == 0 else ""
            raise FailedError(Verdict.DATA, f"the batch is not the one that was recorded{cure}", view.step)
        return batch

    def execute(
        self, view: StepView, state: ReplayState, batch: tuple[Batch, ...], recorded: Made, ulp_tol: int
    ) -> Made:
        """Compute loss, gradients as the optimizer consumed them, and buffers after a step, and compare.

        `recorded`: the gradients and buffers that the trace holds, none in mode `digest`.
        """
        together = self._execution.together
        if view.micro_batches != together:
            text = f"expected {together} micro-batches as in the first step, got {view.micro_batches}"
            raise FailedError(Verdict.UNPROVEN, f"{text}; the trainer does not vary them", view.step)
        try:
            point = self._execution.point(state)
        except CannotExecuteError as error:
            raise FailedError(Verdict.UNPROVEN, str(error), view.step) from error
        with blaming(Verdict.GRADIENT, "the model cannot be executed again", view.step):
            made = self._execution.evaluate(view, state.of_role(TensorRole.PARAM), batch, point)
        self._compare_loss(view, made.loss, ulp_tol)
        grads = made.grads
        if view.clip is not None:
            grads = self._clipped(view, view.clip, grads, recorded[0], ulp_tol)
        self._compare_all(view, recorded[0], grads, ulp_tol)
        self._compare_buffers(view, recorded[1], made.buffers, ulp_tol)
        return grads, made.buffers

    def _compare_loss(self, view: StepView, loss: Array, ulp_tol: int) -> None:
        recorded = view.record.loss
        if loss.dtype != recorded.dtype:
            text = f"the loss is of another type: recorded {recorded.dtype}, found {loss.dtype}"
            raise FailedError(Verdict.GRADIENT, text, view.step, "loss")
        difference = first_difference(recorded, loss, ulp_tol)
        if difference is not None:
            raise FailedError(Verdict.GRADIENT, str(difference), view.step, "loss")

    def _compare_buffers(self, view: StepView, recorded: Arrays, found: Arrays, ulp_tol: int) -> None:
        for name, digest in view.buffer_digests.items():
            if self._buffer_digests[name](found[name]) == digest:
                continue
            text = "re-execution gives another state of the model"
            if not self._trace.header.mode.has_gradients:
                raise FailedError(Verdict.GRADIENT, f"{text}; element and values: not recorded", view.step, name)
            difference = first_difference(recorded[name], found[name], ulp_tol)
            if difference is not None:
                raise FailedError(Verdict.GRADIENT, f"{text}; {difference}", view.step, name)

    def _clipped(
        self, view: StepView, clip: tuple[float, float], grads: dict[str, Array], recorded: Arrays, ulp_tol: int
    ) -> dict[str, Array]:
        """The gradients clipped by norm. Where the scale is another one, the gradient that is to blame is named.

        Every gradient bears the scale of all. So those found are scaled as those recorded were, and then compared.
        """
        with blaming(Verdict.GRADIENT, "the recorded clipping cannot be executed again", view.step):
            clipped = clip_by_global_norm(grads, clip[0])
        if first_difference(np.array(clip[1]), np.array(clipped.scale), ulp_tol) is None:
            return clipped.grads
        if not self._all_recorded(view, clipped.grads):
            with np.errstate(all="ignore"):
                scaled = {name: grad * grad.dtype.type(clip[1]) for name, grad in grads.items()}
            self._compare_all(view, recorded, scaled, ulp_tol)
        text = f"the clip scale: recorded {clip[1]!r}, found {clipped.scale!r}"
        raise FailedError(Verdict.GRADIENT, text, view.step)

    def _all_recorded(self, view: StepView, grads: Arrays) -> bool:
        """Whether these are the recorded gradients, to the bit."""
        return {name: self._digests[name](grad) for name, grad in grads.items()} == view.grad_digests

    def _compare_all(self, view: StepView, recorded: Arrays, grads: Arrays, ulp_tol: int) -> None:
        for name in self._digests:
            self._compare(view, name, recorded.get(name), grads.get(name), ulp_tol)

    def _compare(self, view: StepView, name: str, recorded: Array | None, found: Array | None, ulp_tol: int) -> None:
        digest = view.grad_digests.get(name)
        if found is None and digest is None:
            return
        if found is None or digest is None:
            text = f"recorded {_presence(digest)}, found {_presence(found)}"
            raise FailedError(Verdict.GRADIENT, text, view.step, name)
        if self._digests[name](found) == digest:
            return
        if recorded is None:
            text = "re-execution gives another gradient; element and values: not recorded"
            raise FailedError(Verdict.GRADIENT, text, view.step, name)
        difference = first_difference(recorded, found, ulp_tol)
        if difference is not None:
            text = f"re-execution gives another gradient; {difference}"
            raise FailedError(Verdict.GRADIENT, text, view.step, name)


def _presence(value: object) -> str:
    return "no gradient" if value is None else "a gradient"
