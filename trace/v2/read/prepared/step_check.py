"""STEPs of one kind, each checked by one compiled call: what its bytes must be is made anew, and held against them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.crc32.checksums import Checksums
from .....tape.numerics.prepared.alike import Alike, BytePair
from .....tape.numerics.prepared.moves import Counter, Move, Moves
from .....tape.numerics.prepared.places import place_of
from .....tape.numerics.prepared.prepared_calls import Copied, PreparedCalls, PreparedPart
from .....tape.numerics.xxh3.constants import DIGEST
from .....tape.numerics.xxh3.digests import Digests, Message
from ...format.constants import HEAD_LENGTH, SEQ_AT, TAG_ROOT, StepFlag
from ...format.digest import preamble
from ...format.layout import BodyExtent, FrameLayout
from ...format.step import STEP
from ..source import Frame
from .prepared_head import PreparedHead, own_bytes, whole, zeros

_LOSSES: dict[int, np.dtype[Any]] = {1: np.dtype(np.float32), 2: np.dtype(np.float64)}


class ChainEnds(NamedTuple):
    """What the next STEP follows: the ends of both chains, and the numbers of its frame and of itself."""

    chain: Array
    link: Array
    seq: Array
    step: Array

    @classmethod
    def new(cls) -> "ChainEnds":
        """To be filled."""
        words = np.zeros(2, np.int64)
        return cls(zeros(DIGEST), zeros(DIGEST), words[:1], words[1:])


class StepCheck:
    """Checks STEPs that have the lengths, flags and gradients of one that was found good.

    Args:
        ends: go on behind each STEP.
        frame: the good one, of one part.
        extents: the tensors of its body, which are checked.
        in_turn: whether each has to follow the one before it by both chains, and is checked with its body. Else it
            stands alone, as a reader finds it: behind the digest that lies before it.
    """

    def __init__(
        self,
        ends: ChainEnds,
        layout: FrameLayout,
        salt_crc: int,
        frame: Frame,
        extents: Sequence[BodyExtent],
        *,
        in_turn: bool,
    ) -> None:
        self._ends, self._layout, self._salt_crc, self._in_turn = ends, layout, salt_crc, in_turn
        self._extents = extents if in_turn else ()
        self._declared, self._good = STEP.front(layout), own_bytes(frame.front)
        self._due = layout.due(frame.step)
        self.opening, payload = HEAD_LENGTH + len(frame.front), len(frame.front) + frame.body_length
        self.span = frame.end - frame.offset
        self._hashed = zeros(DIGEST + self.opening)
        self._front = self._hashed[DIGEST + HEAD_LENGTH :]
        self.body: Array = zeros(frame.body_length if in_turn else 0)
        self.closing = range(HEAD_LENGTH + payload, self.span)
        """Where in it padding and chain digest lie, as head and front lie in its first ``opening`` bytes."""
        self._closing = zeros(len(self.closing))
        self._copied = dict[int | None, Copied]()
        self._program = PreparedCalls(*self._parts())

    def run(self, data: Array, places: Array, closing_at: int | None = None) -> int:
        """How many STEPs in turn, of those that lie at some places of data, are those that come next.

        The 16 bytes before each belong to the data. Where its last ones lie is said if that is not as in a file:
        ``closing_at`` behind its place, and the body is not among the data, but in ``body``.
        """
        if closing_at not in self._copied:
            self._copied[closing_at] = Copied(self._pieces(closing_at))
        return self._program.run_on(self._copied[closing_at].of(data, places), len(places))

    def said(self, data: Array, place: int) -> tuple[bytes, bytes]:
        """The front of a STEP that was checked, and its state root, or nothing where the state is not due."""
        front = data[place + HEAD_LENGTH : place + self.opening].tobytes()
        return front, front[-DIGEST:] if self._due else b""

    def _pieces(self, closing_at: int | None) -> list[tuple[Array, int]]:
        """What is copied of a STEP, and where that begins, counted from its head."""
        body = [(self.body, self.opening)] if closing_at is None else []
        closing = self._closing, self.closing.start if closing_at is None else closing_at
        return [(out, at) for out, at in [(self._hashed, -DIGEST), *body, closing] if out.nbytes]

    # ------------------------------------------------------------------ the program

    def _parts(self) -> Iterator[PreparedPart]:
        root = own_bytes(TAG_ROOT + bytes(DIGEST * len(self._layout.schema.tensors))) if self._due else zeros(0)
        before_link, link, closing = zeros(DIGEST + 8), zeros(DIGEST), zeros(len(self._closing))
        digests, made_root = zeros(DIGEST * len(self._extents)), zeros(DIGEST if self._due else 0)
        head = zeros(HEAD_LENGTH)
        made_head = self._head(head)
        yield Moves([*made_head.moves, *self._joined(root)])
        yield Checksums(made_head.checksums)
        messages = [*self._tensors(digests), self._loss(), whole(self._hashed, closing[-DIGEST:])]
        messages += [whole(root, made_root)] if self._due else []
        yield Digests(messages)
        first, last = self._declared.fixed, len(self._front) - DIGEST
        made = [
            BytePair(head, self._hashed[DIGEST:][:HEAD_LENGTH]),
            BytePair(digests, self._front[first:][: len(digests)]),
            BytePair(made_root, self._front[last:][: len(made_root)]),
            BytePair(closing, self._closing),
        ]
        yield Alike([*self._same_fields(), *made])
        if self._in_turn:
            yield from self._linked(before_link, link)
        yield Moves([], [Counter(self._ends.seq), Counter(self._ends.step)])

    def _head(self, head: Array) -> PreparedHead:
        """The head that it must have, by what the frame before it says."""
        ends, in_turn, body = self._ends, self._in_turn, self.closing.start - self.opening
        seq = ends.seq if in_turn else self._hashed[DIGEST + SEQ_AT :]
        before = ends.chain if in_turn else self._hashed[:DIGEST]
        return PreparedHead(STEP, head, self._front, body, seq, ends.step, before, self._salt_crc)

    def _linked(self, before_link: Array, link: Array) -> Iterator[PreparedPart]:
        """The digest before it, hashed with it, is the end of the file chain, and its link follows the last one."""
        ends, content = self._ends, self._front[self._declared.at[STEP.chained] :]
        yield Moves([Move(before_link[:DIGEST], place_of(ends.link)), Move(before_link[DIGEST:], place_of(ends.step))])
        yield Digests([Message(before_link, content.nbytes, link, place_of(content))])
        yield Alike([BytePair(ends.chain, self._hashed[:DIGEST]), BytePair(link, self._front[:DIGEST])])
        yield Moves([Move(ends.chain, place_of(self._closing[-DIGEST:])), Move(ends.link, place_of(link))])

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

    def _tensors(self, digests: Array) -> Iterator[Message]:
        for i, e in enumerate(self._extents):
            spec, elements = self._layout.schema.tensors[e.tensor], self.body[e.offset :][: e.nbytes]
            head = own_bytes(preamble(spec.dtype, spec.shape))
            yield Message(head, e.nbytes, digests[DIGEST * i :][:DIGEST], place_of(elements))

    def _loss(self) -> Message:
        """The loss, which must be finite; nobody asks for its digest."""
        dtype = _LOSSES[int(self._good[self._declared.at["dtype"]])]
        bits = self._front[self._declared.at["loss"] :][: dtype.itemsize]
        return Message(zeros(0), bits.nbytes, zeros(DIGEST), place_of(bits), numbers=dtype)

    def _same_fields(self) -> Iterator[BytePair]:
        """Fields that are those of the good one: all that its record is held against but the loss."""
        at, places = self._declared.at, self._declared.places
        alike = [slice(at["dtype"], at["loss"]), places["grads"]]
        alike += [slice(at["loss"] + 4, at["threshold"])] if self._good[at["dtype"]] == 1 else []
        alike += [slice(at["threshold"], at["input_digest"])] if not self._is_clipped() else []
        alike += [slice(at["hyper"], at["hyper"] + 8)] if self._layout.schema.clips_by_value else []
        for place in alike:
            yield BytePair(self._good[place], self._front[place])

    def _is_clipped(self) -> bool:
        return bool(self._good[self._declared.at["flags"]] & StepFlag.CLIPPED)


def is_like_others(layout: FrameLayout, frame: Frame) -> bool:
    """Whether STEPs like this one can be checked so: of one part, and finite."""
    flags = frame.front[STEP.front(layout).at["flags"]]
    return frame.parts == 1 and not flags & StepFlag.NON_FINITE
