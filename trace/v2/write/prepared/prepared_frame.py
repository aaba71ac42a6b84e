"""Whole frames of the steps of one kind: what a `PreparedFront` makes, with head, checksums, chain and body."""

from collections.abc import Iterator, Mapping, Sequence

from typing_extensions import Buffer

from .....base.arrays import Array
from .....base.completed_step import CompletedStep
from .....tape.numerics.crc32.checksums import Checksum, Checksums
from .....tape.numerics.prepared.moves import Appended, Counter, Move, Moves
from .....tape.numerics.prepared.places import place_of
from .....tape.numerics.prepared.prepared_calls import PreparedPart
from .....tape.numerics.xxh3.constants import DIGEST
from .....tape.numerics.xxh3.digests import Digests
from ...format.constants import (
    FRONT_CRC_AT,
    HEAD,
    HEAD_CRC_AT,
    HEAD_LENGTH,
    LINK_AT,
    SEQ_AT,
    STEP_AT,
    SYNC,
    U32,
    pad8,
)
from ...format.digest import raw
from ...format.step import STEP
from ..scalar_names import ScalarNames
from ..tensors import RecordedTensors
from ..writer import WRITTEN_AT_ONCE, TraceWriter
from .prepared_front import PreparedFront, StepKind, whole, zeros


class PreparedFrame(PreparedFront):
    """Makes the STEPs of one kind in one launch, and has both chains and all counts of the writer go on.

    A frame that is short enough is appended to what the writer holds back, with its body. Of others all but the body is
    made, whose arrays are written from where they lie.
    """

    def __init__(self, kind: StepKind, names: ScalarNames, tensors: RecordedTensors, writer: TraceWriter) -> None:
        before = DIGEST + HEAD_LENGTH
        super().__init__(kind, writer.layout, names, tensors, writer.last_link, writer.step_count, before)
        self._writer, self._opening = writer, self._memory[DIGEST:]
        self._head = self._opening[:HEAD_LENGTH]
        self.payload = len(self._front) + sum(self._nbytes[self.body])
        HEAD.pack_into(self._head.data, 0, SYNC, STEP.code, 0, 0, 0, 0, self.payload, len(self._front), b"", 0)
        self._closing = zeros(pad8(self.payload) - self.payload + DIGEST)
        self.nbytes = HEAD_LENGTH + self.payload + len(self._closing)
        """Of a whole frame."""
        self.is_held = self.nbytes < WRITTEN_AT_ONCE
        """Whether a frame is short enough to be held back."""

    def _parts(self) -> Iterator[PreparedPart]:
        yield from super()._parts()
        yield self._numbered()
        yield Checksums(self._checksums())
        yield Digests([whole(self._memory, self._writer.frames.chain, self._closing[-DIGEST:])])
        yield self._counted(Counter(self._writer.frames.seq))
        if self.is_held:
            yield self._appended()

    def _numbered(self) -> Moves:
        """Where the file ends, into the head."""
        head, frames = self._head, self._writer.frames
        return Moves(
            [
                Move(self._memory[:DIGEST], place_of(frames.chain)),
                Move(head[SEQ_AT:STEP_AT], place_of(frames.seq)),
                Move(head[STEP_AT:][: self._step.nbytes], place_of(self._step)),
                Move(head[LINK_AT:FRONT_CRC_AT], place_of(frames.chain)),
            ]
        )

    def _checksums(self) -> list[Checksum]:
        """The two of the head."""
        head = self._head
        return [
            Checksum(self._front, head[FRONT_CRC_AT:][: U32.size]),
            Checksum(head[:HEAD_CRC_AT], head[HEAD_CRC_AT:], self._writer.frames.salt_crc),
        ]

    def _appended(self) -> Appended:
        body = range(self.body.start, self.body.stop)
        pieces = [(place_of(self._opening), self._opening.nbytes)]
        pieces += [(self._given.place(i), self._nbytes[i]) for i in body]
        pieces += [(place_of(self._closing), self._closing.nbytes)]
        return Appended(pieces, self._writer.held, self._writer.held_bytes)

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]]) -> Array | None:
        """See `PreparedFront`; None too where a frame is too long to be held back."""
        return super().rows(first, hyper) if self.is_held else None

    def pieces(self, arrays: Sequence[Array]) -> list[Buffer]:
        """The frame of the last step, made of these arrays, where it is not held back."""
        return [self._opening.data, *map(raw, arrays[self.body]), self._closing.data]
