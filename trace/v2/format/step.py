"""The front of a STEP: scalars, bitmap and digests."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Buffer

from ....base.arrays import Array
from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import BATCH_ID_LENGTH, STEP_FIXED, U64, StepFlag
from .layout import FrameLayout

_FLAGS = sum(StepFlag)
_LOSS_BITS = {1: ("<u4", "<f4"), 2: ("<u8", "<f8")}


@dataclass(frozen=True, slots=True)
class StepRecord:
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


class StepScalars(NamedTuple):
    """What the front of a STEP says besides digests; `hyper` are hyperparameters, then bias corrections."""

    loss: Array
    flags: StepFlag
    micro_batches: int
    clip: tuple[float, float] | None
    hyper: Sequence[float]

    def put(self, layout: FrameLayout, front: Any) -> None:
        """Write them to their places in a front."""
        code = loss_code(self.loss.dtype)
        bits = self.loss.view(_LOSS_BITS[code][0]).item()
        fixed = (code, self.flags, 0, self.micro_batches, bits, *(self.clip or (0.0, 0.0)))
        STEP_FIXED.pack_into(front, layout.scalars_at, *fixed)
        struct.pack_into(f"<{layout.scalars}d", front, layout.hyper_at, *self.hyper)


def loss_code(dtype: np.dtype[Any]) -> int:
    """The code of a loss's dtype, float32 or float64."""
    return 1 if dtype.itemsize == 4 else 2


def bitmap(layout: FrameLayout, present: Iterable[int]) -> bytes:
    """The params that have a gradient, a bit for each."""
    return sum(1 << i for i in present).to_bytes(8 * layout.bitmap_words, "little")


def run_content(layout: FrameLayout, step: int, front: bytes) -> bytes:
    """What the state chain hashes of a step, the link before it excepted."""
    return U64.pack(step) + front[layout.scalars_at :]


def encode_step(layout: FrameLayout, hash: Callable[[Buffer], bytes], previous: bytes, record: StepRecord) -> bytes:
    """The front of a STEP that follows the state chain link `previous`; `record.link` is not looked at."""
    front = bytearray(layout.digests_at)
    record.scalars.put(layout, front)
    front[layout.input_at : layout.hyper_at] = record.input_digest
    front[layout.bitmap_at :] = bitmap(layout, record.grads)
    content = b"".join((front[layout.scalars_at :], *record.digests, record.root or b""))
    return hash(previous + U64.pack(record.step) + content) + record.batch_id + content


def present_grads(layout: FrameLayout, front: bytes, offset: int) -> tuple[int, ...]:
    """The bitmap of a STEP as positions.

    Raises:
        InvalidTraceError: `corrupt`: too short for a bitmap, or the bitmap names tensors beyond the params.
    """
    words = front[layout.bitmap_at : layout.digests_at]
    if len(words) < 8 * layout.bitmap_words:
        raise InvalidTraceError(Verdict.CORRUPT, "a STEP is too short for its bitmap", offset)
    present = _set_bits(words)
    if present and present[-1] >= layout.schema.params:
        raise InvalidTraceError(Verdict.CORRUPT, "the bitmap of a STEP names tensors that do not exist", offset)
    return present


@lru_cache(maxsize=64)  # all steps of most runs have the same
def _set_bits(words: bytes) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.unpackbits(np.frombuffer(words, np.uint8), bitorder="little")).tolist())


def decode_step(layout: FrameLayout, step: int, front: bytes, offset: int) -> StepRecord:
    """Read a front whose CRC is right.

    Raises:
        InvalidTraceError: `corrupt`: its length is not the derived one, or a field has an impossible value.
    """
    grads = present_grads(layout, front, offset)
    if len(front) != layout.step_front(step, len(grads)):
        raise InvalidTraceError(Verdict.CORRUPT, f"the front of STEP {step} has not the derived length", offset)
    code, flags, zero, micro, bits, threshold, scale = STEP_FIXED.unpack_from(front, layout.scalars_at)
    clipped = bool(flags & StepFlag.CLIPPED)
    if micro == 1 and flags & StepFlag.TREE:
        raise InvalidTraceError(
            Verdict.CORRUPT, f"one micro-batch of STEP {step} is said to be added in a tree", offset
        )
    if code not in _LOSS_BITS or flags & ~_FLAGS or zero or micro < 1 or (not clipped and (threshold or scale)):
        raise InvalidTraceError(Verdict.CORRUPT, f"a scalar of STEP {step} has an impossible value", offset)
    unsigned, floating = _LOSS_BITS[code]
    if code == 1 and bits >> 32:
        raise InvalidTraceError(Verdict.CORRUPT, f"the loss of STEP {step} has more than 32 bits", offset)
    loss = np.array(bits, unsigned).view(floating)
    if not np.isfinite(loss) and not flags & StepFlag.NON_FINITE:
        raise InvalidTraceError(Verdict.CORRUPT, f"the loss of STEP {step} is {loss}, and its flag is not set", offset)
    size = layout.digest_size
    digests = [front[i : i + size] for i in range(layout.digests_at, len(front), size)]
    scalars = struct.unpack_from(f"<{layout.scalars}d", front, layout.hyper_at)
    if layout.schema.clips_by_value and not scalars[0] >= 0:
        text = f"the bound of clipping by value in STEP {step} is {scalars[0]}"
        raise InvalidTraceError(Verdict.CORRUPT, text, offset)
    hyper = layout.schema.hyperparameters
    return StepRecord(
        step=step,
        link=front[:size],
        batch_id=front[size : size + BATCH_ID_LENGTH],
        loss=loss,
        flags=StepFlag(flags),
        micro_batches=micro,
        clip=(threshold, scale) if clipped else None,
        input_digest=front[layout.input_at : layout.hyper_at],
        hyper=scalars[:hyper],
        corrections=scalars[hyper:],
        grads=grads,
        root=digests.pop() if layout.due(step) else None,
        digests=tuple(digests),
    )
