"""What follows from header and schema: when a state is due, and which tensors stand where in a body.

A body is a run of tensors without padding. `BodyExtent` says which tensor stands at which offset of the body.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .constants import RecordMode
from .header import Header
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
    """What fronts and bodies of one trace depend on; `fronts` are those of its types, once they are met."""

    def __init__(self, schema: Schema, header: Header) -> None:
        self.schema = schema
        self.header = header
        self.algorithm = header.algorithm
        self.hash = header.algorithm.hash
        self.digest_size = header.algorithm.size
        self.mode = header.mode
        self.state_every = header.state_every
        self.states = len(schema.tensors) - schema.buffers
        self.fronts: dict[int, Any] = {}

    def due(self, step: int) -> bool:
        """Whether the state after `step` is digested."""
        return (step + 1) % self.state_every == 0

    def alike(self, step: int) -> int:
        """How many steps in turn, from one on, are like it in that the state after them is digested, or is not."""
        if self.state_every == 1:
            return sys.maxsize
        return max(1, self.state_every - 1 - step % self.state_every)

    def recorded(self, tensors: int, *, due: bool) -> int:
        """Of so many tensors that a STEP has digests of, how many are in its body; they come first."""
        if not self.mode.has_gradients:
            return 0
        return tensors - self.states if due and self.mode is not RecordMode.FULL else tensors

    def step_body(self, step: int, grads: Sequence[int], digests: Sequence[bytes]) -> list[BodyExtent]:
        """The body of a STEP: `digests` are those of the front, in its order."""
        if not self.mode.has_gradients:
            return []
        buffers = range(self.states, len(self.schema.tensors))
        parts = [("grad", i) for i in grads] + [("after", i) for i in buffers]
        if self.mode is RecordMode.FULL and self.due(step):
            parts += [("after", i) for i in range(self.states)]
        return self.extents(parts, digests)

    @property
    def keyframe_bytes(self) -> int:
        """Bytes of the body of a KEYFRAME."""
        return self.schema.nbytes if self.mode.has_keyframes else 0

    def keyframe_body(self, digests: Sequence[bytes]) -> list[BodyExtent]:
        """The body of a KEYFRAME."""
        if not self.mode.has_keyframes:
            return []
        return self.extents([("before", i) for i in range(len(self.schema.tensors))], digests)

    def extents(self, parts: Iterable[tuple[str, int]], digests: Sequence[bytes]) -> list[BodyExtent]:
        """A body of tensors, (what, position), that stand one behind the other."""
        extents: list[BodyExtent] = []
        offset = 0
        for (what, i), digest in zip(parts, digests, strict=False):
            nbytes = self.schema.tensors[i].nbytes
            extents.append(BodyExtent(i, what, offset, nbytes, digest))
            offset += nbytes
        return extents
