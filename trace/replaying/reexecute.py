"""Re-execution of recorded steps: batches, losses and gradients held against a trace."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from traceback import format_exception_only
from typing import Any, TypeAlias

import numpy as np

from ... import runtime
from ...arrays import Array, Arrays
from ...runtime.optim import clip_by_global_norm, clip_by_value
from ...runtime.step.batch import batch_arrays
from ...runtime.step.eager import averaged
from ...runtime.step.evaluate import Evaluation
from ...runtime.step.loss_call import RunPoint
from ..v2.check.difference import first_difference
from ..v2.check.report import Finding
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch, InputDigest, TensorDigest
from ..v2.format.schema import CLIP_EVENT
from ..v2.read.reader import StepView, Trace
from ..v2.verdict import Verdict
from .replay_state import ReplayState

LossFn: TypeAlias = Callable[..., Any]
Batches: TypeAlias = Iterable[Batch]
Made: TypeAlias = tuple[dict[str, Array], dict[str, Array]]
"""The gradients of a step, and the buffers after it."""

_MOST_TOGETHER = 1 << 16
"""Micro-batches of a step that are gathered; a file may claim four thousand million."""

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
    """The loss function and the batches of a run, from its beginning.

    As in training, so many batches in turn are one step as the first step says, and a rest of fewer at the end of
    an epoch is left out.
    """

    def __init__(self, trace: Trace, loss_fn: LossFn, batches: Batches) -> None:
        self._trace = trace
        self._loss_fn = loss_fn
        self._given = batches
        self._together = 1
        self._batches = _epochs(batches, self._together)
        self._clip_event = None if trace.schema.clips_by_value else _clip_event(trace)
        algorithm = trace.header.algorithm
        self._input_digest = InputDigest(algorithm)
        digests = {t.name: TensorDigest(algorithm, t.dtype, t.shape) for t in trace.schema.tensors}
        self._digests = {t.name: digests[t.name] for t in trace.schema.tensors if t.role is TensorRole.PARAM}
        self._buffer_digests = {t.name: digests[t.name] for t in trace.schema.tensors if t.role is TensorRole.BUFFER}

    def next_batch(self, view: StepView) -> tuple[Batch, ...]:
        """The micro-batches of a step; of every step in turn, from the first."""
        if view.step == 0:
            self._together = view.micro_batches
            self._batches = _epochs(self._given, self._together)
        if self._together > _MOST_TOGETHER:
            text = f"{self._together} micro-batches in one step; at most {_MOST_TOGETHER} are executed again"
            raise FailedError(Verdict.UNPROVEN, text, view.step)
        with blaming(Verdict.DATA, "the batches cannot be read", view.step):
            batch = next(self._batches, None)
            if batch is None:
                raise FailedError(Verdict.DATA, f"there are no more batches; {_ANEW}", view.step)
            recorded = batch[0] if self._together == 1 else tuple(batch_arrays(batch))
            same = self._input_digest(recorded) == view.input_digest
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
        if view.micro_batches != self._together:
            text = f"expected {self._together} micro-batches as in the first step, got {view.micro_batches}"
            raise FailedError(Verdict.UNPROVEN, f"{text}; the trainer does not vary them", view.step)
        point = RunPoint(self._step_before(view, state), self._trace.header.seed, state.of_role(TensorRole.BUFFER))
        with blaming(Verdict.GRADIENT, "the model cannot be executed again", view.step):
            passes = self._passes(state.of_role(TensorRole.PARAM), batch, point)
            loss, grads = averaged(passes, self._digests)
            bound = self._clip_event if view.clip_value is None else view.clip_value
            if bound is not None:
                grads = clip_by_value(grads, bound)
        self._compare_loss(view, np.asarray(loss), ulp_tol)
        if view.clip is not None:
            grads = self._clipped(view, view.clip, grads, recorded[0], ulp_tol)
        self._compare_all(view, recorded[0], grads, ulp_tol)
        self._compare_buffers(view, recorded[1], passes[-1].model_state, ulp_tol)
        return grads, passes[-1].model_state

    def _step_before(self, view: StepView, state: ReplayState) -> int:
        """How many steps came before, as the optimizer counts them: random draws are keyed by it."""
        count = state.values.get("step")
        if count is None or count.shape != () or count.dtype.kind not in "iu":
            text = "the trace has no tensor 'step' of one integer, from which the model's random draws follow"
            raise FailedError(Verdict.UNPROVEN, text, view.step)
        return int(count)

    def _passes(self, params: Arrays, batch: tuple[Batch, ...], point: RunPoint) -> list[Evaluation]:
        """Each micro-batch evaluated, the model's state handed on from one to the next."""
        passes = list[Evaluation]()
        for micro in batch:
            passes.append(runtime.evaluate(self._loss_fn, params, micro, point))
            point = point.after(passes[-1].model_state)
        return passes

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


def _clip_event(trace: Trace) -> float | None:
    """The bound of clipping by value as traces held it before their schemas did."""
    for _, event in trace.events():
        if event.kind == CLIP_EVENT:
            try:
                limit = float(event.text)
            except ValueError:
                limit = -1.0
            if not limit >= 0:
                raise InvalidTraceError(Verdict.CORRUPT, f"the bound of clipping by value is {event.text!r}")
            return limit
    return None


def _presence(value: object) -> str:
    return "no gradient" if value is None else "a gradient"


def _epochs(batches: Batches, n: int) -> Iterator[tuple[Batch, ...]]:
    """The batches, ``n`` at a time, iterated again when they end, until an iteration gives no step."""
    more = True
    while more:
        more, items = False, iter(batches)
        while len(together := tuple(islice(items, n))) == n:
            more = True
            yield together
