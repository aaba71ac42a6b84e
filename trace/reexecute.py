"""Re-execution of recorded steps: batches, losses and gradients held against a trace."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from .. import runtime
from ..runtime.optim import clip_by_global_norm
from .v2.difference import first_difference
from .v2.digest import Array, Batch, InputDigest, TensorDigest
from .v2.format import RecordMode
from .v2.reader import StepView, Trace
from .v2.report import Finding
from .v2.verdict import Verdict

LossFn: TypeAlias = Callable[..., Any]
Batches: TypeAlias = Iterable[Batch]


class FailedError(Exception):
    """Ends a replay with its first finding."""

    def __init__(self, verdict: Verdict, text: str, step: int, tensor: str | None = None) -> None:
        super().__init__(text)
        self.finding = Finding(verdict, text, step, tensor)


class Model:
    """The loss function and the batches of a run, from its beginning."""

    def __init__(self, trace: Trace, loss_fn: LossFn, batches: Batches) -> None:
        self._trace = trace
        self._loss_fn = loss_fn
        self._batches = _epochs(batches)
        algorithm = trace.header.algorithm
        self._input_digest = InputDigest(algorithm)
        self._digests = {
            t.name: TensorDigest(algorithm, t.dtype, t.shape) for t in trace.schema.tensors[: trace.schema.params]
        }

    def next_batch(self, view: StepView) -> Batch:
        """The batch of a step."""
        try:
            batch = next(self._batches)
        except StopIteration:
            raise FailedError(Verdict.DATA, "there are no more batches", view.step) from None
        if self._input_digest(batch) != view.input_digest:
            raise FailedError(Verdict.DATA, "the batch is not the one that was recorded", view.step)
        return batch

    def execute(self, view: StepView, params: dict[str, Array], batch: Batch, ulp_tol: int) -> dict[str, Array]:
        """Compute loss and gradients of a step as the optimizer consumed them, and compare."""
        if view.micro_batches != 1:
            text = f"its gradients were accumulated over {view.micro_batches} micro-batches"
            raise FailedError(Verdict.UNPROVEN, f"{text}, which replay does not re-execute", view.step)
        loss, grads = runtime.gradients(self._loss_fn, params, batch)
        difference = first_difference(view.record.loss, np.asarray(loss), ulp_tol)
        if difference is not None:
            raise FailedError(Verdict.GRADIENT, str(difference), view.step, "loss")
        if view.clip is not None:
            grads = self._clipped(view, view.clip, grads)
        for name in self._digests:
            self._compare(view, name, grads.get(name), ulp_tol)
        return grads

    def _clipped(self, view: StepView, clip: tuple[float, float], grads: Mapping[str, Array]) -> dict[str, Array]:
        clipped = clip_by_global_norm(grads, clip[0])
        if clipped.scale != clip[1]:
            text = f"the clip scale: recorded {clip[1]!r}, found {clipped.scale!r}"
            raise FailedError(Verdict.GRADIENT, text, view.step)
        return clipped.grads

    def _compare(self, view: StepView, name: str, found: Array | None, ulp_tol: int) -> None:
        recorded = view.grad_digests.get(name)
        if found is None and recorded is None:
            return
        if found is None or recorded is None:
            text = f"recorded {_presence(recorded)}, found {_presence(found)}"
            raise FailedError(Verdict.GRADIENT, text, view.step, name)
        if self._digests[name](found) == recorded:
            return
        if self._trace.header.mode is RecordMode.DIGEST:
            text = "re-execution gives another gradient; element and values: not recorded"
            raise FailedError(Verdict.GRADIENT, text, view.step, name)
        difference = first_difference(view.grad(name), found, ulp_tol)
        if difference is not None:
            text = f"re-execution gives another gradient; {difference}"
            raise FailedError(Verdict.GRADIENT, text, view.step, name)


def _presence(value: object) -> str:
    return "no gradient" if value is None else "a gradient"


def _epochs(batches: Batches) -> Iterator[Batch]:
    """The batches, iterated again when they end, until an iteration gives none."""
    more = True
    while more:
        more = False
        for batch in batches:
            more = True
            yield batch
