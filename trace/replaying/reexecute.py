"""Re-execution of recorded steps: batches, losses and gradients held against a trace."""

from typing import TypeAlias

import numpy as np

from ...arrays import Array, Arrays
from ..v2.check.difference import first_difference
from ..v2.check.report import Finding
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch, InputDigest, TensorDigest
from ..v2.read.reader import StepView, Trace
from ..v2.verdict import Verdict
from .execution import Batches, Execution, LossFn
from .replay_state import ReplayState

Made: TypeAlias = tuple[dict[str, Array], dict[str, Array]]
"""The gradients of a step, and the buffers after it."""

_ANEW = "give those of the run from its beginning, made anew: what a fit has iterated goes on with the next epoch"


class FailedError(Exception):
    """Ends a replay with its first finding."""

    def __init__(self, verdict: Verdict, text: str, step: int, tensor: str | None = None) -> None:
        super().__init__(text)
        self.finding = Finding(verdict, text, step, tensor)


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
        batch = self._execution.take(view)
        if batch is None:
            raise FailedError(Verdict.DATA, f"there are no more batches; {_ANEW}", view.step)
        if self._input_digest(self._execution.recorded(batch)) != view.input_digest:
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
        made = self._execution.compute(view, state, batch)
        difference = first_difference(view.record.loss, np.asarray(made.loss), ulp_tol)
        if difference is not None:
            raise FailedError(Verdict.GRADIENT, str(difference), view.step, "loss")
        if view.clip is not None and made.clip != view.clip:
            text = f"the clip scale: recorded {view.clip[1]!r}, found {made.clip and made.clip[1]!r}"
            raise FailedError(Verdict.GRADIENT, text, view.step)
        for name in self._digests:
            self._compare(view, name, recorded[0].get(name), made.grads.get(name), ulp_tol)
        self._compare_buffers(view, recorded[1], made.buffers, ulp_tol)
        return made.grads, made.buffers

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
