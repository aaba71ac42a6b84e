"""The front of a step: in one prepared call, or of its parts, which says what is wrong with them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....base.arrays import Array
from ....base.runs.completed_step import CompletedStep
from ..errors import NonFiniteStepError
from ..format.constants import BATCH_ID_LENGTH, StepFlag
from ..format.digest import Algorithm, InputDigest, raw, state_root
from ..format.layout import FrameLayout
from ..format.step import StepRecord, StepScalars, encode_step
from .prepared.kept_front import KeptFront
from .prepared.prepared_front import StepKind
from .prepared.prepared_steps import PreparedSteps
from .scalar_names import ScalarNames
from .tensors import RecordedTensors, scalar_loss

_NO_BATCH_ID = bytes(BATCH_ID_LENGTH)


class MadeFront(NamedTuple):
    """The front of a step, and the tensors of its body, in canonical form."""

    front: bytes
    body: list[Array]


class FrontRows(NamedTuple):
    """Rows of the machine, run behind each of so many steps at most, and what then has their fronts."""

    rows: Array
    steps: int
    made: KeptFront


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
        self.names = ScalarNames.of(layout.schema, clip_value)
        self._link, self._step = np.zeros(algorithm.size, np.uint8), np.zeros(1, np.int64)
        prepares = algorithm is Algorithm.XXH3_128
        self._prepared = PreparedSteps(self.names, tensors, layout, self._made) if prepares else None

    def _made(self, kind: StepKind) -> KeptFront:
        return KeptFront(kind, self._layout, self.names, self._tensors, self._link, self._step)

    def make(self, previous: bytes, done: CompletedStep) -> MadeFront:
        """The front of a step behind the link ``previous``: in one call where it can be. Raises as `by_parts` does."""
        if self._prepared is not None:
            self._link.data[: len(previous)], self._step[0] = previous, done.step
            made = self._prepared.run(done)
            if made is not None:
                prepared, arrays = made
                return MadeFront(bytes(prepared.front), list(arrays[prepared.body]))
        return self.by_parts(previous, done)

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], scale: Array | None) -> FrontRows | None:
        """What makes the fronts of several steps in one launch, run behind each of them; their links are none.

        All have the arrays of the first, and the scale of clipping, where they lie. None, where each is to be made
        alone.
        """
        if self._prepared is None:
            return None
        front, room = self._prepared.next(first.step)
        if front is None:
            return None
        self._step[0] = first.step
        rows = front.rows(first, hyper[:room], scale)
        return None if rows is None else FrontRows(rows, min(room, len(hyper)), front)

    def by_parts(self, previous: bytes, done: CompletedStep) -> MadeFront:
        """The same, made of its parts.

        Raises:
            NonFiniteStepError: the loss or a gradient is not finite, and that is an error.
            DomainError: an array has another dtype or shape than the schema says.
        """
        loss, broken = scalar_loss(done.step, done.loss)
        self._allow(broken)
        present, due = self._tensors.present(done.grads), self._layout.due(done.step)
        given = self._tensors.arrays(done, present, due=due)
        broken = broken or self._tensors.nonfinite(done.step, present, given)
        self._allow(broken)
        scalars = self.names.of_step(done, loss)
        if broken is not None:
            scalars = scalars._replace(flags=scalars.flags | StepFlag.NON_FINITE)
        tensors = self._tensors.in_front(present, due=due)
        arrays = [tensor.taken(array) for tensor, array in zip(tensors, given, strict=True)]
        digests = [tensor.digest.of_bytes(raw(array)) for tensor, array in zip(tensors, arrays, strict=True)]
        front = self._encoded(previous, done, scalars, present, digests)
        return MadeFront(front, arrays[: self._layout.recorded(len(arrays), due=due)])

    def _allow(self, broken: NonFiniteStepError | None) -> None:
        """Raise what is not finite, if that is an error."""
        if broken is not None and self._stops:
            raise broken

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
        return encode_step(layout, previous, record)
