"""STEPs of one kind, each checked by one compiled call: what its bytes must be is made anew, and held against them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.crc32.checksums import Checksum, Checksums
from .....tape.numerics.prepared.alike import Alike, Pair
from .....tape.numerics.prepared.moves import Counter, Move, Moves
from .....tape.numerics.prepared.places import place_of
from .....tape.numerics.prepared.prepared_calls import Copied, PreparedCalls, PreparedPart
from .....tape.numerics.xxh3.constants import DIGEST
from .....tape.numerics.xxh3.digests import Digests, Message
from ...format.constants import (
    FRONT_CRC_AT,
    HEAD,
    HEAD_CRC_AT,
    HEAD_LENGTH,
    LINK_AT,
    SEQ_AT,
    STEP_AT,
    SYNC,
    TAG_ROOT,
    U32,
    StepFlag,
)
from ...format.digest import preamble
from ...format.layout import BodyExtent, FrameLayout
from ...format.step import STEP
from ..source import Frame

_LOSSES: dict[int, np.dtype[Any]] = {1: np.dtype(np.float32), 2: np.dtype(np.float64)}


class ChainEnds(NamedTuple):
    """What the next STEP follows: the ends of both chains, and the numbers of its frame and of itself."""

    chain: Array
    link: Array
    seq: Array
    step: Array


class StepCheck:
    """Checks STEPs that have the lengths, flags and gradients of one that was found good.

    Args:
        ends: are taken from, and go on behind each STEP.
        frame, extents: the good one, of one part, and the tensors of its body.
    """

    def __init__(self, ends: ChainEnds, layout: FrameLayout, salt_crc: int, frame: Frame, extents: list[BodyExtent]):
        self._ends, self._layout, self._salt_crc, self._extents = ends, layout, salt_crc, extents
        self._declared, self._good = STEP.front(layout), _bytes(frame.front)
        self.span = frame.end - frame.offset
        memory = _zeros(DIGEST + self.span)
        opening, payload = HEAD_LENGTH + len(frame.front), len(frame.front) + frame.body_length
        self._before, self._hashed = memory[:DIGEST], memory[: DIGEST + opening]
        self.frame = memory[DIGEST:]
        """The bytes of the STEP that is checked, or was."""
        self._front = self.frame[HEAD_LENGTH:opening]
        self._body = self.frame[opening:]
        self._closing = self.frame[HEAD_LENGTH + payload :]
        self._head = _zeros(HEAD_LENGTH)
        HEAD.pack_into(self._head.data, 0, *_head_of(frame, payload))
        self._due = layout.due(frame.step)
        self._program = PreparedCalls(*self._parts())

    def said(self, frame: Array) -> tuple[bytes, bytes]:
        """The front of a STEP that was checked, and its state root, or nothing where the state is not due."""
        front = frame[HEAD_LENGTH:][: len(self._front)].tobytes()
        return front, front[-DIGEST:] if self._due else b""

    def holds(self) -> bool:
        """Whether the bytes in `frame` are the next STEP."""
        return not self._program.run()

    def run(self, data: Array, places: Array) -> int:
        """How many STEPs in turn, of those that lie at some places of data, are those that come next."""
        return self._program.run_on(Copied(self.frame, data, places), len(places))

    # ------------------------------------------------------------------ the program

    def _parts(self) -> Iterator[PreparedPart]:
        root = _bytes(TAG_ROOT + bytes(DIGEST * len(self._layout.schema.tensors))) if self._due else _zeros(0)
        before_link, link, closing = _zeros(DIGEST + 8), _zeros(DIGEST), _zeros(len(self._closing))
        digests, made_root = _zeros(DIGEST * len(self._extents)), _zeros(DIGEST if self._due else 0)
        content = self._front[self._declared.at[STEP.chained] :]
        yield Moves([*self._numbered(before_link), *self._joined(root)])
        yield Checksums(self._checksums())
        messages = [*self._tensors(digests), self._loss()]
        messages += [_whole(root, made_root)] if self._due else []
        messages += [Message(before_link, content.nbytes, link, place_of(content))]
        yield Digests([*messages, _whole(self._hashed, closing[-DIGEST:])])
        first, last = self._declared.fixed, len(self._front) - DIGEST
        made = [
            Pair(self._head, self.frame[:HEAD_LENGTH]),
            Pair(link, self._front[:DIGEST]),
            Pair(digests, self._front[first:][: len(digests)]),
            Pair(made_root, self._front[last:][: len(made_root)]),
            Pair(closing, self._closing),
        ]
        yield Alike([*self._same_fields(), *made])
        ends = self._ends
        moves = [Move(ends.chain, place_of(closing[-DIGEST:])), Move(ends.link, place_of(link))]
        yield Moves(moves, [Counter(ends.seq), Counter(ends.step)])

    def _numbered(self, before_link: Array) -> list[Move]:
        """What the frame before it says, into the places of what this one must say."""
        ends, head = self._ends, self._head
        return [
            Move(self._before, place_of(ends.chain)),
            Move(head[SEQ_AT:STEP_AT], place_of(ends.seq)),
            Move(head[STEP_AT:][: ends.step.nbytes], place_of(ends.step)),
            Move(head[LINK_AT:FRONT_CRC_AT], place_of(ends.chain)),
            Move(before_link[:DIGEST], place_of(ends.link)),
            Move(before_link[DIGEST:], place_of(ends.step)),
        ]

    def _joined(self, root: Array) -> list[Move]:
        """The digests of the state in the order of the schema, which has buffers last."""
        if not self._due:
            return []
        schema, states = self._layout.schema, self._layout.states
        end = len(self._front) - DIGEST
        begin = end - DIGEST * states
        of_buffers = self._front[begin - DIGEST * schema.buffers : begin]
        return [
            Move(root[len(TAG_ROOT) :][: DIGEST * states], place_of(self._front[begin:end])),
            Move(root[len(TAG_ROOT) + DIGEST * states :], place_of(of_buffers)),
        ]

    def _checksums(self) -> list[Checksum]:
        head = self._head
        return [
            Checksum(self._front, head[FRONT_CRC_AT:][: U32.size]),
            Checksum(head[:HEAD_CRC_AT], head[HEAD_CRC_AT:], self._salt_crc),
        ]

    def _tensors(self, digests: Array) -> Iterator[Message]:
        for i, e in enumerate(self._extents):
            spec, elements = self._layout.schema.tensors[e.tensor], self._body[e.offset :][: e.nbytes]
            head = _bytes(preamble(spec.dtype, spec.shape))
            yield Message(head, e.nbytes, digests[DIGEST * i :][:DIGEST], place_of(elements))

    def _loss(self) -> Message:
        """The loss, which must be finite; nobody asks for its digest."""
        dtype = _LOSSES[int(self._good[self._declared.at["dtype"]])]
        bits = self._front[self._declared.at["loss"] :][: dtype.itemsize]
        return Message(_zeros(0), bits.nbytes, _zeros(DIGEST), place_of(bits), numbers=dtype)

    def _same_fields(self) -> Iterator[Pair]:
        """Fields that are those of the good one: all that its record is held against but the loss."""
        at, places = self._declared.at, self._declared.places
        alike = [slice(at["dtype"], at["loss"]), places["grads"]]
        alike += [slice(at["loss"] + 4, at["threshold"])] if self._good[at["dtype"]] == 1 else []
        alike += [slice(at["threshold"], at["input_digest"])] if not self._is_clipped() else []
        alike += [slice(at["hyper"], at["hyper"] + 8)] if self._layout.schema.clips_by_value else []
        for place in alike:
            yield Pair(self._good[place], self._front[place])

    def _is_clipped(self) -> bool:
        return bool(self._good[self._declared.at["flags"]] & StepFlag.CLIPPED)


def _head_of(frame: Frame, payload: int) -> tuple[object, ...]:
    return SYNC, frame.type, 0, 0, 0, 0, payload, len(frame.front), b"", 0


def _zeros(nbytes: int) -> Array:
    return np.zeros(nbytes, np.uint8)


def _bytes(data: bytes) -> Array:
    return np.frombuffer(bytearray(data), np.uint8)


def _whole(data: Array, out: Array) -> Message:
    """The digest of some bytes without a head."""
    return Message(data[:0], data.nbytes, out, place_of(data))
