"""Writing a trace: frames in order, chained, batched into few writes, indexed and sealed."""

import os
import time
from collections.abc import Iterator, Sequence

from typing_extensions import Buffer

from .digest import state_root
from .errors import TraceWriteError
from .file import PartialFile
from .format import COMMIT, HEADER_LENGTH, MORE, STEPS_PER_INDEX, TAG_RUN, FrameType
from .frame import FrameEncoder
from .header import Header
from .layout import Layout
from .marks import EventRecord, IndexRecord, SealRecord
from .schema import Schema

HELD_BYTES = 256 << 10
WRITTEN_AT_ONCE = 32 << 10
HELD_SECONDS = 0.1
COMMIT_EVERY = 1024


class TraceWriter:
    """Appends frames to `PATH.partial`: the caller hands in fronts and bodies, the rest is made here.

    `commit_every`: an fsync and a COMMIT after so many steps; None: never before the SEAL.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: Header,
        schema: Schema,
        *,
        commit_every: int | None = COMMIT_EVERY,
        overwrite: bool = False,
    ) -> None:
        """Create the file and write header and SCHEMA. Raises TraceWriteError."""
        self.header = header
        self.schema = schema
        self.layout = Layout(schema, header.algorithm, header.mode, header.state_every)
        self.steps = 0
        self._commit_every = commit_every
        self._file = PartialFile(path, overwrite=overwrite)
        self._frames = FrameEncoder(header.salt, header.first_link(), header.algorithm.hash)
        self._held = bytearray()
        self._offset = 0
        self._flushed_at = time.monotonic()
        self._step_offsets: list[int] = []
        self._keyframes: list[tuple[int, int]] = []
        self._indexes: list[int] = []
        self.link = b""
        self._hold([header.encode()], HEADER_LENGTH)
        front = schema.encode()
        self._schema_digest = header.algorithm.hash(front)
        self._append(FrameType.SCHEMA, front)

    @property
    def closed(self) -> bool:
        """Whether it takes no more frames: sealed, closed, or stopped by an error."""
        return not self._file.alive

    @property
    def path(self) -> str:
        """The final name."""
        return str(self._file.path)

    def keyframe(self, front: bytes, root: bytes, body: Sequence[memoryview]) -> None:
        """Append the KEYFRAME before the next step."""
        if not self.link:
            self.link = self.header.algorithm.hash(TAG_RUN + self._schema_digest + root)
        self._keyframes.append((self.steps, self._offset))
        self._append(FrameType.KEYFRAME, front, body)

    def step(self, front: bytes, body: Sequence[memoryview]) -> None:
        """Append the next STEP; then INDEX and COMMIT where they are due."""
        self._step_offsets.append(self._offset)
        self._append(FrameType.STEP, front, body)
        self.link = front[: self.layout.digest_size]
        self.steps += 1
        if self.steps % STEPS_PER_INDEX == 0:
            self._index()
        if self._commit_every is not None and self.steps % self._commit_every == 0:
            self.commit()

    def event(self, kind: str, text: str) -> None:
        """Append an EVENT. Raises ValueError for a bad kind or too long a text."""
        self._append(FrameType.EVENT, EventRecord(kind, text).encode())

    def commit(self) -> None:
        """Write and fsync everything, then append a COMMIT that says so."""
        self.flush()
        self._file.sync()
        self._append(FrameType.COMMIT, COMMIT.pack(self.steps, self._offset))
        self.flush()

    def seal(self, final: Sequence[bytes] = ()) -> None:
        """Append the last INDEX and the SEAL, fsync, and give the file its name.

        `final`: the digest of each tensor after the last step, or empty if they are not known.
        """
        if self._step_offsets or self._keyframes:
            self._index()
        root = (state_root(self.header.algorithm, final),) if final else ()
        seal = SealRecord(self.steps, self.link, (*final, *root), tuple(self._indexes))
        self._append(FrameType.SEAL, seal.encode(self._offset))
        self.flush()
        self._file.publish()

    def close(self) -> None:
        """Write what is held back and close; the file stays unsealed as `PATH.partial`. Idempotent."""
        try:
            if self._file.alive:
                self.flush()
        finally:
            self._file.close()

    def discard(self) -> None:
        """Close and delete the unfinished file."""
        self._file.discard()

    def flush(self) -> None:
        """Hand everything held back to the system."""
        held, self._held = self._held, bytearray()
        if held:
            self._file.write([held])
        self._flushed_at = time.monotonic()

    def _index(self) -> None:
        first = len(self._indexes) * STEPS_PER_INDEX
        previous = self._indexes[-1] if self._indexes else 0
        index = IndexRecord(first, previous, tuple(self._step_offsets), tuple(self._keyframes))
        self._indexes.append(self._offset)
        self._step_offsets.clear()
        self._keyframes.clear()
        self._append(FrameType.INDEX, index.encode(), step=first)

    def _append(self, type: FrameType, front: bytes, body: Sequence[memoryview] = (), step: int | None = None) -> None:
        number = self.steps if step is None else step
        length = sum(map(len, body))
        if len(front) + length > self.header.largest_payload:
            self._append_parts(type, number, front, body)
            return
        opening, closing = self._frames.encode(type, number, front, length)
        self._hold([opening, *body, closing], len(opening) + length + len(closing))

    def _append_parts(self, type: FrameType, step: int, front: bytes, body: Sequence[memoryview]) -> None:
        largest = self.header.largest_payload
        if len(front) > largest:
            raise TraceWriteError(
                f"trace: the front of a frame has {len(front)} bytes; choose a largest_payload above it"
            )
        parts = list(_cut(body, len(front), largest))
        for part, (length, views) in enumerate(parts):
            flags = MORE if part < len(parts) - 1 else 0
            opening, closing = self._frames.encode(type, step, b"" if part else front, length, flags, part)
            self._hold([opening, *views, closing], len(opening) + length + len(closing))

    def _hold(self, buffers: Sequence[Buffer], length: int) -> None:
        self._file.check_alive()
        self._offset += length
        if length >= WRITTEN_AT_ONCE:
            held, self._held = self._held, bytearray()
            self._file.write([held, *buffers])
            self._flushed_at = time.monotonic()
            return
        for buffer in buffers:
            self._held += buffer
        if len(self._held) >= HELD_BYTES or time.monotonic() - self._flushed_at >= HELD_SECONDS:
            self.flush()


def _cut(body: Sequence[memoryview], taken: int, largest: int) -> Iterator[tuple[int, list[memoryview]]]:
    """The body as (length, views) of parts of `largest` bytes, `taken` of the first being taken."""
    room = largest - taken
    views: list[memoryview] = []
    length = 0
    for view in body:
        while len(view) > room:
            views.append(view[:room])
            yield length + room, views
            view, room, length, views = view[room:], largest, 0, []
        views.append(view)
        room -= len(view)
        length += len(view)
    yield length, views
