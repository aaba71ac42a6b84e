"""Tools for tests of verifiers: they damage or forge a copy of a trace on purpose.

`flip_bit` is what a bad disk does; `forge_gradient` is what someone does who knows the format.
"""

import os
from pathlib import Path

import numpy as np

from ....base import system
from ....base.atomic_file import replacing
from ...file_version import open_regular
from ..errors import NotRecordedError
from ..format.digest import numpy_dtype, tensor_digest
from ..format.limits import Limits
from ..format.step import STEP, StepRecord
from ..read.scan import Walk
from ..read.source import FrameSource, Source
from ..write.writer import TraceWriter
from .rewrite import copy_trace, of_walk

_Path = str | os.PathLike[str]


def flip_bit(src: _Path, dst: _Path, offset: int, bit: int) -> None:
    """Copy `src` to `dst` with bit 0..7 of the byte at `offset` inverted."""
    data = bytearray(Path(src).read_bytes())
    data[offset] ^= 1 << bit
    with replacing(dst) as file:
        file.write(data)


def forge_gradient(src: _Path, dst: _Path, step: int, name: str) -> None:
    """Copy a trace with one gradient altered and every digest, CRC and chain made to agree with it.

    The largest element of the gradient of `name` is halved (a zero becomes one); in a trace of record mode
    `digest`, which holds no values, its digest is changed. States stay as recorded, so `validate` accepts the
    copy and `replay` must answer `update` (or `gradient`, where only the model can tell).

    Raises:
        NotRecordedError: there is no such step, or no gradient of that name in it.
        TraceFileError, TraceWriteError: a file cannot be read or written.
    """
    descriptor = open_regular(os.fspath(src))
    try:
        frames = FrameSource(Source(descriptor, Limits(), os.fspath(src)))
        walk = Walk(frames)
        forger = _Forger(frames, walk, step, name)
        with_salt = TraceWriter.create(dst, frames.header, walk.schema, overwrite=True)
        try:
            copy_trace(of_walk(walk), with_salt, _LAST, forger.edit)
        finally:
            with_salt.close()
    finally:
        system.release(descriptor)
    if not forger.done:
        raise NotRecordedError(f"forge_gradient: there is no gradient of '{name}' at step {step} of {src}")


_LAST = 1 << 63


class _Forger:
    """The edit of one gradient."""

    def __init__(self, frames: FrameSource, walk: Walk, step: int, name: str) -> None:
        self._algorithm = frames.algorithm
        self._layout = walk.layout
        self._step = step
        self._tensor = walk.schema.position.get(name, -1)
        self.done = False

    def edit(self, record: StepRecord, front: bytes, body: bytes) -> tuple[bytes, bytes]:
        """Alter the gradient if this is the step."""
        if record.step != self._step or self._tensor not in record.grads:
            return front, body
        self.done = True
        place = record.grads.index(self._tensor)
        at = STEP.front(self._layout).fixed + place * self._layout.digest_size
        extents = self._layout.step_body(record.step, record.grads, record.digests)
        if not extents:
            return front[:at] + bytes([front[at] ^ 1]) + front[at + 1 :], body
        extent = extents[place]
        spec = self._layout.schema.tensors[self._tensor]
        end = extent.offset + extent.nbytes
        grad = np.frombuffer(body[extent.offset : end], numpy_dtype(spec.dtype)).reshape(spec.shape).copy()
        largest = int(np.argmax(np.abs(grad)))
        grad.flat[largest] = grad.flat[largest] / 2 or 1
        digest = tensor_digest(self._algorithm, grad)
        forged = front[:at] + digest + front[at + len(digest) :]
        return forged, body[: extent.offset] + grad.tobytes() + body[end:]
