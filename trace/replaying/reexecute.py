"""Re-execution of recorded steps: batches, losses and gradients held against a trace."""

from collections.abc import Iterator
from itertools import product
from traceback import format_exception_only
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.errors import DgrrError
from ...runtime.step.batch import batch_arrays, map_batch
from ..v2.check.difference import first_difference
from ..v2.check.report import Finding
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import NUMPY_DTYPES, Batch, InputDigest, TensorDigest, is_plain
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .execution import Batches, CannotExecuteError, ComputedStep, Execution, LossFn
from .replay_state import ReplayState

Made: TypeAlias = tuple[dict[str, Array], dict[str, Array]]
"""The gradients of a step, and the buffers after it."""

_LONGEST = 400
"""Characters of the text of an exception that a finding shows."""

_ANEW = "pass those of the run from its beginning, freshly made if they can be iterated only once"


class FailedError(DgrrError):
    """Ends a replay with its first finding."""

    def __init__(self, verdict: Verdict, text: str, step: int, tensor: str | None = None) -> None:
        super().__init__(text)
        self.finding = Finding(verdict, text, step, tensor)


class Blaming(NamedTuple):
    """A context that turns whatever foreign code raises, Ctrl-C excepted, into the finding that ends a replay.

    A model may end the process, and a batch raise anything.

    Raises:
        FailedError: with `verdict`; or `unproven`, where memory was short or the file says too little, which says
            nothing about the run.
    """

    verdict: Verdict
    what: str
    step: int

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, (FailedError, InvalidTraceError, KeyboardInterrupt)):
            return
        verdict, text = self.verdict, "".join(format_exception_only(error)).strip()
        text = f"{self.what}: {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}"
        if isinstance(error, CannotExecuteError):
            verdict, text = Verdict.UNPROVEN, str(error)
        elif isinstance(error, MemoryError):
            verdict, text = Verdict.UNPROVEN, f"{self.what}: there is not enough memory"
        raise FailedError(
            verdict, text, self.step
        ) from error  # a model may end the process, and a batch raise anything


class Executed(NamedTuple):
    """A step that was computed again, and is the recorded one."""

    grads: dict[str, Array]
    """As the optimizer consumed them."""
    buffers: dict[str, Array]
    """After the step."""
    computed: ComputedStep


class Model:
    """The loss function and the batches of a run, each step held against what is recorded of it."""

    def __init__(self, trace: TraceReader, loss_fn: LossFn, batches: Batches) -> None:
        self._trace, self.loss_fn = trace, loss_fn
        self._execution = Execution(trace, loss_fn, batches)
        self.agreed = False
        """Whether a batch was the recorded one, since some were passed over."""
        algorithm = trace.header.algorithm
        self._input_digest = InputDigest(algorithm)
        digests = {t.name: TensorDigest(algorithm, t.dtype, t.shape) for t in trace.schema.tensors}
        self._digests = {t.name: digests[t.name] for t in trace.schema.tensors if t.role is TensorRole.PARAM}
        self._buffer_digests = {t.name: digests[t.name] for t in trace.schema.tensors if t.role is TensorRole.BUFFER}

    def pass_over(self, steps: int) -> None:
        """Leave out the batches of so many steps from where the run stands, at first its beginning."""
        self.agreed = False
        with Blaming(Verdict.DATA, "the batches cannot be read", 0):
            self._execution.pass_over(steps)

    def ahead(self) -> Iterator[tuple[Batch, ...]]:
        """The micro-batches of the steps behind those passed over or taken, to be taken again."""
        return self._execution.ahead()

    def take(self, view: StepView) -> tuple[Batch, ...]:
        """The micro-batches of a step; of every step in turn, from the first or what was passed over."""
        with Blaming(Verdict.DATA, "the batches cannot be read", view.step):
            batch = self._execution.take(view)
            if batch is None:
                raise FailedError(Verdict.DATA, f"there are no more batches; {_ANEW}", view.step)
        return batch

    def require_recorded(self, view: StepView, batch: tuple[Batch, ...]) -> None:
        """Raise FailedError for micro-batches that are not those of a step."""
        with Blaming(Verdict.DATA, "the batches cannot be read", view.step):
            given = self._execution.recorded(batch)
            same = self._input_digest(given) == view.input_digest
            cure = "" if same else self._other_dtype(given, view.input_digest)
        if not same:
            cure = cure or ("" if self.agreed else f"; {_ANEW}")
            raise FailedError(Verdict.DATA, f"the batch is not the one that was recorded{cure}", view.step)
        self.agreed = True

    def _other_dtype(self, batch: Batch, digest: bytes) -> str:
        """What to say of a batch that is the recorded one once all its arrays of one dtype are of another."""
        present = {np.asarray(array).dtype for array in batch_arrays(batch)}
        for given, recorded in product(present, filter(is_plain, NUMPY_DTYPES.values())):
            real = (given.kind, recorded.kind).count("c") in (0, 2)  # no cast loses an imaginary part
            if real and self._input_digest(_converted(batch, given, recorded)) == digest:
                cure = f"its numbers are, as {given} where {recorded} was recorded"
                return f", but {cure}; convert with .astype(np.{recorded})"
        return ""

    def left_over(self, steps: int) -> list[str]:
        """What is left of the batches where so many steps end within an iteration, if their number is known."""
        left = self._execution.left_over(steps)
        return [f"the trace ends before its batches do: {left} of an iteration are left"] if left else []

    def execute(
        self, view: StepView, state: ReplayState, batch: tuple[Batch, ...], recorded: Made, ulp_tol: int
    ) -> Executed:
        """Compute loss, gradients as the optimizer consumed them, and buffers after a step, and compare.

        `recorded`: the gradients and buffers that the trace holds, none in mode `digest`.
        """
        together = self._execution.together
        if view.micro_batches != together:
            text = f"expected {together} micro-batches as in the first step, got {view.micro_batches}"
            raise FailedError(Verdict.UNPROVEN, f"{text}; the trainer does not vary them", view.step)
        with Blaming(Verdict.GRADIENT, "the model cannot be executed again", view.step):
            made = self._execution.compute(view, state, batch)
        self._compare_loss(view, np.asarray(made.loss), ulp_tol)
        with Blaming(Verdict.GRADIENT, "the recorded clipping cannot be executed again", view.step):
            grads, clip = made.consumed(view)
        if view.clip is not None and clip is not None and not _same_number(view.clip[1], clip[1], ulp_tol):
            if not self._all_recorded(view, grads):
                self._compare_all(view, recorded[0], _scaled(made.grads, view.clip[1]), ulp_tol)
            text = f"the clip scale: recorded {view.clip[1]!r}, found {clip[1]!r}"
            raise FailedError(Verdict.GRADIENT, text, view.step)
        self._compare_all(view, recorded[0], grads, ulp_tol)
        self._compare_buffers(view, recorded[1], made.buffers, ulp_tol)
        return Executed(grads, made.buffers, made)

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


def _converted(batch: Batch, given: np.dtype[Any], to: np.dtype[Any]) -> Batch:
    """A batch whose arrays of one dtype are of another; what does not fit is no matter, as it is only compared."""

    def convert(_: str, array: Any) -> Array:
        return np.asarray(array).astype(to) if np.asarray(array).dtype == given else array

    with np.errstate(all="ignore"):
        converted: Batch = map_batch(convert, batch)
    return converted


def _same_number(recorded: float, found: float, ulp_tol: int) -> bool:
    return first_difference(np.array(recorded), np.array(found), ulp_tol) is None


def _scaled(grads: Arrays, scale: float) -> dict[str, Array]:
    """Gradients as clipping by another scale makes them: every one bears the scale that all of them gave.

    So where the scale is not the recorded one, those found are compared as those recorded were scaled, and the one
    that is to blame is named.
    """
    with np.errstate(all="ignore"):
        return {name: grad * grad.dtype.type(scale) for name, grad in grads.items()}


def _presence(value: object) -> str:
    return "no gradient" if value is None else "a gradient"
