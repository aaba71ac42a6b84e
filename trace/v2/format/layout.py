"""Where everything stands in the payload of a STEP or KEYFRAME: derived from the schema, never believed.

A body is a run of tensors without padding. `BodyExtent` says which tensor stands at which offset of the body.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .constants import BATCH_ID_LENGTH, STEP_FIXED, U32_PAIR, RecordMode, pad8
from .digest import Algorithm
from .schema import Schema


@dataclass(frozen=True, slots=True)
class BodyExtent:
    """One tensor in a body: its position in the schema, its offset, its bytes and what it is.

    `what` is `grad` for a gradient, else `after` (in a STEP) or `before` (in a KEYFRAME).
    """

    tensor: int
    what: str
    offset: int
    nbytes: int
    digest: bytes


class FrameLayout:
    """The lengths that follow from header and schema."""

    def __init__(self, schema: Schema, algorithm: Algorithm, mode: RecordMode, state_every: int) -> None:
        size = algorithm.size
        self.schema = schema
        self.digest_size = size
        self.mode = mode
        self.state_every = state_every
        self.states = len(schema.tensors) - schema.buffers
        self.bitmap_words = -(-schema.params // 64)
        self.scalars_at = size + BATCH_ID_LENGTH
        self.input_at = self.scalars_at + STEP_FIXED.size
        self.hyper_at = self.input_at + size
        self.scalars = schema.hyperparameters + schema.corrections
        self.bitmap_at = self.hyper_at + 8 * self.scalars
        self.digests_at = self.bitmap_at + 8 * self.bitmap_words
        self.keyframe_digests = size * (len(schema.tensors) + 1)

    def due(self, step: int) -> bool:
        """Whether the state after `step` is digested."""
        return (step + 1) % self.state_every == 0

    def step_front(self, step: int, present: int) -> int:
        """Bytes of the front of a STEP with `present` gradients."""
        digests = present + self.schema.buffers + (self.states + 1 if self.due(step) else 0)
        return self.digests_at + digests * self.digest_size

    def recorded(self, tensors: int, *, due: bool) -> int:
        """Of so many tensors that a STEP has digests of, how many are in its body; they come first."""
        if not self.mode.has_gradients:
            return 0
        return tensors - self.states if due and self.mode is not RecordMode.FULL else tensors

    def keyframe_front(self, opaque: int) -> int:
        """Bytes of the front of a KEYFRAME with `opaque` bytes of generator and cursor."""
        return U32_PAIR.size + pad8(opaque) + self.keyframe_digests

    def step_body(self, step: int, grads: Sequence[int], digests: Sequence[bytes]) -> list[BodyExtent]:
        """The body of a STEP: `digests` are those of the front, in its order."""
        if not self.mode.has_gradients:
            return []
        buffers = range(self.states, len(self.schema.tensors))
        parts = [("grad", i) for i in grads] + [("after", i) for i in buffers]
        if self.mode is RecordMode.FULL and self.due(step):
            parts += [("after", i) for i in range(self.states)]
        return self._extents(parts, digests)

    @property
    def keyframe_bytes(self) -> int:
        """Bytes of the body of a KEYFRAME."""
        return self.schema.nbytes if self.mode.has_keyframes else 0

    def keyframe_body(self, digests: Sequence[bytes]) -> list[BodyExtent]:
        """The body of a KEYFRAME."""
        if not self.mode.has_keyframes:
            return []
        return self._extents([("before", i) for i in range(len(self.schema.tensors))], digests)

    def _extents(self, parts: Iterable[tuple[str, int]], digests: Sequence[bytes]) -> list[BodyExtent]:
        extents: list[BodyExtent] = []
        offset = 0
        for (what, i), digest in zip(parts, digests, strict=False):
            nbytes = self.schema.tensors[i].nbytes
            extents.append(BodyExtent(i, what, offset, nbytes, digest))
            offset += nbytes
        return extents
