"""The front of each step of a run, from what was computed: in one prepared call where that can be, else from parts."""

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

from ....base.arrays import Array
from ....base.completed_step import CompletedStep, of_group
from ..errors import NonFiniteStepError
from ..format.constants import BATCH_ID_LENGTH, RecordMode, StepFlag
from ..format.digest import Algorithm, InputDigest, state_root
from ..format.layout import FrameLayout
from ..format.step import StepRecord, StepScalars, encode_step
from .prepared import PreparedFronts
from .tensors import CORRECTIONS, RecordedTensors, scalar_loss

_NO_BATCH_ID = bytes(BATCH_ID_LENGTH)

_FLAGS = {
    (False, False): StepFlag(0),
    (False, True): StepFlag.TREE,
    (True, False): StepFlag.CLIPPED,
    (True, True): StepFlag.CLIPPED | StepFlag.TREE,
}
"""What is said of a step that was clipped or not, and whose gradients were added in a tree or not."""


class MadeFront(NamedTuple):
    """The front of a step, and the tensors of its body, in canonical form."""

    front: bytes
    body: list[Array]


class StepFronts:
    """Makes the fronts of a run.

    Args:
        layout, algorithm, tensors: of the trace.
        clip_value: the bound of clipping by value, if the schema says that there is one.
        stops: whether a value that is not finite is an error.
    """

    def __init__(
        self,
        layout: FrameLayout,
        algorithm: Algorithm,
        tensors: RecordedTensors,
        clip_value: float | None,
        *,
        stops: bool,
    ) -> None:
        self._layout, self._algorithm, self._tensors, self._stops = layout, algorithm, tensors, stops
        self._input_digest = InputDigest(algorithm)
        self._bound = () if clip_value is None else (float(clip_value),)
        groups = list(enumerate(layout.schema.rules))
        self._hyperparameters = [of_group(name, i) for i, group in groups for name in group.hyperparameters]
        self._corrections = [of_group(CORRECTIONS, i) for i, group in groups if group.corrections]
        self._prepared = PreparedFronts(layout, tensors) if algorithm is Algorithm.XXH3_128 else None

    def make(self, previous: bytes, done: CompletedStep) -> MadeFront:
        """The front of a step behind the link ``previous``.

        Raises:
            NonFiniteStepError: the loss or a gradient is not finite, and that is an error.
            ValueError: an array has another dtype or shape than the schema says.
        """
        loss, broken = scalar_loss(done.step, done.loss)
        if broken is not None and self._stops:
            raise broken
        present, due = self._tensors.present(done.grads), self._layout.due(done.step)
        arrays = self._tensors.arrays(done, present, due=due)
        front, scalars = None, self._scalars(done, loss)
        if self._prepared is not None and broken is None:
            front = self._prepared.make(previous, done, scalars, present, arrays, due=due)
        if front is None:
            front, arrays = self._by_parts(previous, done, scalars, present, arrays, broken)
        return MadeFront(front, self._body(arrays, due=due))

    def _body(self, arrays: list[Array], *, due: bool) -> list[Array]:
        """The tensors of a front whose values are recorded too."""
        mode = self._layout.mode
        if not mode.has_gradients:
            return []
        return arrays[: len(arrays) - self._layout.states] if due and mode is not RecordMode.FULL else arrays

    def _scalars(self, done: CompletedStep, loss: Array) -> StepScalars:
        clip = None if done.clip is None else (done.clip[0], done.clip[1] if done.clip[1] == done.clip[1] else nan)
        hyper = [*self._bound, *map(done.hyper.__getitem__, self._hyperparameters)]
        for name in self._corrections:
            hyper += done.state[name].tolist()
        flags = _FLAGS[done.clip is not None, done.order == "tree" and done.micro_batches > 1]
        return StepScalars(loss, flags, done.micro_batches, clip, hyper)

    def _by_parts(
        self,
        previous: bytes,
        done: CompletedStep,
        scalars: StepScalars,
        present: tuple[int, ...],
        given: Sequence[Array],
        broken: NonFiniteStepError | None,
    ) -> tuple[bytes, list[Array]]:
        broken = broken or self._tensors.nonfinite(done.step, present, given)
        if broken is not None:
            if self._stops:
                raise broken
            scalars = scalars._replace(flags=scalars.flags | StepFlag.NON_FINITE)
        tensors = self._tensors.in_front(present, due=self._layout.due(done.step))
        arrays = [tensor.taken(array) for tensor, array in zip(tensors, given, strict=True)]
        digests = [tensor.digest.of_bytes(array.data) for tensor, array in zip(tensors, arrays, strict=True)]
        return self._encoded(previous, done, scalars, present, digests), arrays

    def _encoded(
        self, previous: bytes, done: CompletedStep, scalars: StepScalars, present: tuple[int, ...], digests: list[bytes]
    ) -> bytes:
        layout, hyper = self._layout, self._layout.schema.hyperparameters
        first = len(present) + layout.schema.buffers
        state = digests[first:] + digests[len(present) : first]
        record = StepRecord(
            step=done.step,
            link=b"",
            batch_id=_NO_BATCH_ID,
            loss=scalars.loss,
            flags=scalars.flags,
            micro_batches=scalars.micro_batches,
            clip=scalars.clip,
            input_digest=self._input_digest(done.batch),
            hyper=tuple(scalars.hyper[:hyper]),
            corrections=tuple(scalars.hyper[hyper:]),
            grads=present,
            digests=tuple(digests),
            root=state_root(self._algorithm, state) if layout.due(done.step) else None,
        )
        return encode_step(layout, self._algorithm.hash, previous, record)
