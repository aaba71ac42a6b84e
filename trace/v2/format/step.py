"""STEP: scalars, bitmap and digests of one step."""

import struct
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array
from ....base.errors import DomainError
from .constants import BATCH_ID_LENGTH, StepFlag
from .digest import state_root
from .fields import (
    BITS,
    BYTES,
    CORRECTIONS,
    DIGEST,
    F64,
    HYPERPARAMETERS,
    STATES,
    U8,
    U16,
    U32,
    U64,
    B,
    DigestField,
    Field,
    Here,
    P,
    When,
    bitmap,
    zero,
)
from .frame_type import FramePlace, FrameType
from .layout import BodyExtent, FrameLayout

_FLAGS = [StepFlag(flags) for flags in range(sum(StepFlag) + 1)]
_CLIPPED, _NON_FINITE, _TREE = map(int, (StepFlag.CLIPPED, StepFlag.NON_FINITE, StepFlag.TREE))
_LOSS_BITS: dict[int, tuple[np.dtype[Any], np.dtype[Any]]] = {
    1: (np.dtype("<u4"), np.dtype("<f4")),
    2: (np.dtype("<u8"), np.dtype("<f8")),
}


class StepRecord(NamedTuple):
    """A decoded front. `grads` are the positions of the params that have a gradient.

    `digests` are those of gradients, buffers and (if due) params and state, in the order of the front;
    `root` is the state root if due.
    """

    step: int
    link: bytes
    batch_id: bytes
    loss: Array
    flags: StepFlag
    micro_batches: int
    clip: tuple[float, float] | None
    input_digest: bytes
    hyper: tuple[float, ...]
    corrections: tuple[float, ...]
    grads: tuple[int, ...]
    digests: tuple[bytes, ...]
    root: bytes | None

    @property
    def scalars(self) -> "StepScalars":
        """What it says besides digests."""
        return StepScalars(self.loss, self.flags, self.micro_batches, self.clip, (*self.hyper, *self.corrections))

    def grad_digests(self) -> dict[int, bytes]:
        """Position of a param → digest of its gradient."""
        return dict(zip(self.grads, self.digests, strict=False))

    def state_in_order(self, layout: FrameLayout) -> tuple[bytes, ...]:
        """The digests of all tensors after the step in the order of the schema, if the state is due."""
        after = self.digests[len(self.grads) :]
        buffers = layout.schema.buffers
        return after[buffers:] + after[:buffers]


def _record(here: Here, said: dict[str, Any]) -> StepRecord:
    code, flags, micro, bits = said["dtype"], said["flags"], said["micro_batches"], said["loss"]
    threshold, scale = said["threshold"], said["scale"]
    clipped = flags & _CLIPPED
    if micro == 1 and flags & _TREE:
        raise DomainError("one micro-batch is said to be added in a tree")
    if code not in _LOSS_BITS or flags >= len(_FLAGS) or micro < 1 or (not clipped and (threshold or scale)):
        raise DomainError("a scalar has an impossible value")
    unsigned, floating = _LOSS_BITS[code]
    if code == 1 and bits >> 32:
        raise DomainError("its loss has more than 32 bits")
    loss = np.array(bits, unsigned).view(floating)
    if not isfinite(loss) and not flags & _NON_FINITE:
        raise DomainError(f"its loss is {loss}, and its flag is not set")
    hyper = said["hyper"]
    if here.layout.schema.clips_by_value and not hyper[0] >= 0:
        raise DomainError(f"the bound of clipping by value is {hyper[0]}")
    return StepRecord(
        here.step,
        said["link"],
        said["batch_id"],
        loss,
        _FLAGS[flags],
        micro,
        (threshold, scale) if clipped else None,
        said["input_digest"],
        hyper,
        said["corrections"],
        said["grads"],
        said["gradients"] + said["buffers"] + said["state"],
        said["root"],
    )


def _holds(layout: FrameLayout, record: StepRecord) -> None:
    if record.root is not None and record.root != state_root(layout.algorithm, record.state_in_order(layout)):
        raise DomainError("its state root is not that of its digests")


def _body(layout: FrameLayout, record: StepRecord, step: object) -> list[BodyExtent]:
    return layout.step_body(record.step, record.grads, record.digests)


DUE = When("if the state is due", lambda here: not (here.step + 1) % here.layout.state_every)

STEP = FrameType(
    3,
    "STEP",
    FramePlace.STEP,
    "what step k computed",
    (
        Field("link", DIGEST, None, "state chain link S[k]"),
        Field("batch_id", BYTES, BATCH_ID_LENGTH, "batch id, opaque; zero: none"),
        Field("dtype", U8, None, "dtype code of the loss, 1 or 2"),
        Field(
            "flags",
            U8,
            None,
            "flags: bit 0 gradients were clipped by norm, bit 1 the loss or a gradient is not finite, bit 2 "
            "micro-batches were added in a tree",
        ),
        zero(U16),
        Field("micro_batches", U32, None, "number of micro-batches whose gradients were accumulated, at least 1"),
        Field("loss", U64, None, "bits of the loss (`f32`: in the low half)"),
        Field("threshold", F64, None, "threshold of clipping (not clipped: 0)"),
        Field("scale", F64, None, "scale of clipping (not clipped: 0)"),
        Field("input_digest", DIGEST, None, "input digest"),
        Field("hyper", F64, HYPERPARAMETERS, "hyperparameters actually used, group by group"),
        Field("corrections", F64, CORRECTIONS, "bias corrections, group by group"),
        Field("grads", BITS, P, "bit `i mod 64` of word `i div 64` says that param i has a gradient; other bits zero"),
        DigestField("gradients", "grads", "digest of each gradient present, in order"),
        DigestField("buffers", B, "digest of each buffer after the step"),
        DigestField("state", STATES, "digest of each param and state tensor after the step", DUE),
        DigestField("root", None, "state root after the step", DUE),
    ),
    _record,
    body=_body,
    holds=_holds,
    chained="dtype",
)

_ZERO = bytes(2)
_FIXED = STEP.packed("dtype", "scale")


class StepScalars(NamedTuple):
    """What the front of a STEP says besides digests; `hyper` are hyperparameters, then bias corrections."""

    loss: Array
    flags: StepFlag
    micro_batches: int
    clip: tuple[float, float] | None
    hyper: Sequence[float]

    @property
    def fixed(self) -> tuple[Any, ...]:
        """The fields from the dtype of the loss to the scale of clipping."""
        code = 1 if self.loss.dtype.itemsize == 4 else 2
        bits = self.loss.view(_LOSS_BITS[code][0]).item()
        return (code, self.flags, _ZERO, self.micro_batches, bits, *(self.clip or (0.0, 0.0)))

    def put(self, at: Mapping[str, int], front: Any) -> None:
        """Write them to their places in a front, where its fields begin at these."""
        _FIXED.pack_into(front, at["dtype"], *self.fixed)
        struct.pack_into(f"<{len(self.hyper)}d", front, at["hyper"], *self.hyper)


def step_link(layout: FrameLayout, previous: bytes, step: int, front: bytes) -> bytes:
    """The link in the state chain that a front has as step number `step` behind the link `previous`."""
    return _link(layout, previous, step, STEP.front(layout).chained(front))


def _link(layout: FrameLayout, previous: bytes, step: int, content: bytes) -> bytes:
    return layout.hash(previous + step.to_bytes(8, "little") + content)


def relinked(layout: FrameLayout, previous: bytes, step: int, front: bytes) -> bytes:
    """A front that says this link."""
    return step_link(layout, previous, step, front) + front[layout.digest_size :]


def encode_step(layout: FrameLayout, previous: bytes, record: StepRecord) -> bytes:
    """The front of a STEP that follows the state chain link `previous`; `record.link` is not looked at."""
    declared = STEP.front(layout)
    at, front = declared.at, bytearray(declared.fixed)
    record.scalars.put(at, front)
    front[declared.places["input_digest"]] = record.input_digest
    front[declared.places["grads"]] = bitmap(record.grads, layout.schema.params)
    content = b"".join((front[at[STEP.chained] :], *record.digests, record.root or b""))
    return _link(layout, previous, record.step, content) + record.batch_id + content
