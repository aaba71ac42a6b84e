"""The front of a VALUES frame: which gradients of a step, and which tensors after it, stand in its body.

Modes that record digests alone keep the elements of a few tensors so; the digests are those of the STEP.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import U32_PAIR
from .layout import BodyExtent, FrameLayout
from .step import StepRecord

_KINDS = ("grad", "after")


@dataclass(frozen=True, slots=True)
class ValuesRecord:
    """What the body holds, and where."""

    step: int
    extents: tuple[BodyExtent, ...]


def recordable(layout: FrameLayout, step: StepRecord) -> dict[tuple[str, int], bytes]:
    """What a VALUES frame of a step may hold, (`grad` or `after`, position), and the digest of each."""
    found = {("grad", i): digest for i, digest in step.grad_digests().items()}
    buffers = step.digests[len(step.grads) :][: layout.schema.buffers]
    found |= {("after", layout.states + i): digest for i, digest in enumerate(buffers)}
    if step.root is not None:
        found |= {("after", i): digest for i, digest in enumerate(step.state_in_order(layout))}
    return found


def encode_values(chosen: Sequence[tuple[str, int]]) -> bytes:
    """The front for tensors (`grad` or `after`, position), which follow in this order."""
    return U32_PAIR.pack(len(chosen), 0) + b"".join([U32_PAIR.pack(i, _KINDS.index(what)) for what, i in chosen])


def decode_values(layout: FrameLayout, step: StepRecord, front: bytes, offset: int) -> ValuesRecord:
    """Read a front whose CRC is right; `step` is the STEP that it belongs to.

    Raises:
        InvalidTraceError: `corrupt`: its length, or a tensor that the step has no digest of, or has twice.
    """
    if len(front) % U32_PAIR.size or front[:8] != U32_PAIR.pack(len(front) // U32_PAIR.size - 1, 0):
        raise InvalidTraceError(Verdict.CORRUPT, "the length of a VALUES frame does not follow from its count", offset)
    digests, at, extents = recordable(layout, step), 0, list[BodyExtent]()
    pairs: list[tuple[int, int]] = list(U32_PAIR.iter_unpack(front[8:]))
    for position, kind in pairs:
        what = _KINDS[kind] if kind < len(_KINDS) else ""
        digest = digests.pop((what, position), None)
        if digest is None:
            text = f"a VALUES frame names a tensor that STEP {step.step} has no digest of, or names it twice"
            raise InvalidTraceError(Verdict.CORRUPT, text, offset)
        nbytes = layout.schema.tensors[position].nbytes
        extents.append(BodyExtent(position, what, at, nbytes, digest))
        at += nbytes
    return ValuesRecord(step.step, tuple(extents))
