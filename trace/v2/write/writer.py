"""Writing a trace: frames in order, chained, batched into few writes, indexed and sealed."""

from collections.abc import Iterator, Sequence
from math import gcd
from time import monotonic
from typing import Any, Self

import numpy as np
from typing_extensions import Buffer

from ....base.arrays import Array
from ....base.runs.completed_step import TapeNode
from ....base.runs.keep import COMMIT_EVERY
from ....base.system import FilePath
from ..errors import TraceWriteError
from ..format.constants import HEADER_LENGTH, MORE, STEPS_PER_INDEX, TAG_RUN
from ..format.digest import state_root
from ..format.frame import FrameEncoder
from ..format.frame_type import FrameType
from ..format.frames import COMMIT, EVENT, INDEX, KEYFRAME, SCHEMA, SEAL, EventRecord
from ..format.header import Header
from ..format.layout import FrameLayout
from ..format.of_step import NODES, OPS, encode_ops
from ..format.schema import Schema
from ..format.step import STEP
from ..read.scan import Walk
from .partial_file import PartialFile

HELD_BYTES = 256 << 10
WRITTEN_AT_ONCE = 32 << 10
HELD_SECONDS = 0.1


class TraceWriter:
    """Appends frames to `PATH.partial`: the caller hands in fronts and bodies, the rest is made here.

    Made by `create` or `behind`. `steps`: steps in the file; `link`: S[steps - 1]; `last_keyframe`: the number of
    the last KEYFRAME (-1: none), `keyframes` how many there are. `commit_every`: an fsync and a COMMIT after so many
    steps; None: never before the SEAL, unless asked.

    Where the file ends lies in arrays that a `PreparedStep` shares: `frames`, `last_link`, `step_count`; and in `held`,
    whose first `held_bytes` are frames that are held back.
    """

    def __init__(self, file: PartialFile, header: Header, schema: Schema, commit_every: int | None) -> None:
        self.header = header
        self.schema = schema
        self.layout = FrameLayout(schema, header)
        self.step_count: Array = np.zeros(1, np.int64)
        self._steps = self.step_count.data
        self.last_link: Array = np.zeros(header.algorithm.size, np.uint8)
        self.last_keyframe = -1
        self.keyframes = 0
        self._commit_every = commit_every
        self._marks_every = gcd(STEPS_PER_INDEX, commit_every or STEPS_PER_INDEX)
        self._file = file
        self.check_alive = file.check_alive
        self.frames = FrameEncoder(header.salt, header.first_link(), header.algorithm.hash)
        self.held: Array = np.empty(HELD_BYTES + WRITTEN_AT_ONCE, np.uint8)
        self.held_bytes: Array = np.zeros(1, np.int64)
        self._used = self.held_bytes.data
        self._offset = 0
        self._flushed_at = monotonic()
        self._step_offsets: list[int] = []
        self._keyframes: list[tuple[int, int]] = []
        self._indexes: list[int] = []
        self._nodes: dict[Sequence[TapeNode], int] = {}
        self._told: dict[int, int] = {}

    @classmethod
    def create(
        cls,
        path: FilePath,
        header: Header,
        schema: Schema,
        *,
        commit_every: int | None = COMMIT_EVERY,
        overwrite: bool = False,
    ) -> Self:
        """Create the file and write header and SCHEMA. Raises TraceWriteError."""
        writer = cls(PartialFile.create(path, overwrite=overwrite), header, schema, commit_every)
        try:
            writer._hold([header.encode()], HEADER_LENGTH)
            writer._synced()  # a file that a power cut leaves begins with a header, or is empty
            writer._append(SCHEMA, schema.encode())
        except BaseException:
            writer.discard()
            raise
        return writer

    @classmethod
    def behind(cls, walk: Walk, file: PartialFile, commit_every: int | None) -> Self:
        """Go on behind the frames that a walk has met, which are all that is left in the file."""
        header = walk.frames.header
        writer = cls(file, header, walk.schema, commit_every)
        writer.step_count[0] = walk.steps
        writer.last_link[:] = np.frombuffer(walk.link, np.uint8)
        writer.last_keyframe = walk.keyframes[-1][0]
        writer.keyframes = len(walk.keyframes)
        writer.frames = FrameEncoder(header.salt, walk.chain, header.algorithm.hash, walk.seq)
        writer._offset = walk.end
        listed_next = walk.expected_index()
        writer._step_offsets = list(listed_next.steps)
        writer._keyframes = list(listed_next.keyframes)
        writer._indexes = list(walk.indexes)
        writer._told = dict.fromkeys(walk.told, walk.steps - 1)
        return writer

    @property
    def steps(self) -> int:
        """How many steps are in the file."""
        return self._steps[0]

    @property
    def link(self) -> bytes:
        """The link of the last step in the state chain."""
        return self.last_link.tobytes()

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
        if self.last_keyframe < 0:
            hash = self.header.algorithm.hash
            self._set_link(hash(TAG_RUN + hash(self.schema.encode()) + root))
        self.last_keyframe = self.steps
        self.keyframes += 1
        self._keyframes.append((self.steps, self._offset))
        self._append(KEYFRAME, front, body)

    def step(self, front: bytes, body: Sequence[memoryview]) -> None:
        """Append the next STEP; then INDEX and COMMIT where they are due."""
        self._step_offsets.append(self._offset)
        self._append(STEP, front, body)
        self._set_link(front[: self.layout.digest_size])
        self.step_count += 1
        self.marks()

    def room(self, nbytes: int, *, told: bool = False) -> int:
        """How many STEPs may be made before something else is to be done; of each so many bytes are held back.

        Of those behind which more is told, the last one before marks is left out: these stand between the two.
        """
        every = self._commit_every or STEPS_PER_INDEX
        before_marks = min(STEPS_PER_INDEX - len(self._step_offsets), every - self._steps[0] % every) - told
        return min((len(self.held) - self._used[0]) // nbytes, before_marks) if nbytes else before_marks

    def made(
        self, nbytes: int, pieces: Sequence[Buffer] = (), steps: int = 1, told: Sequence[FrameType[Any]] = ()
    ) -> None:
        """The same for STEPs that a `PreparedFrame` has made: held back, or one to be written in these pieces.

        Each is of so many bytes, those of frames that tell more of it among them.
        """
        self._told |= {kind.code: self.steps - 1 for kind in told}
        end = self._offset + steps * nbytes
        self._step_offsets += range(self._offset, end, nbytes)
        self._offset = end
        if pieces:
            self._write(pieces)
        else:
            self._flush_if_due()
        if self._steps[0] % self._marks_every == 0:
            self.marks()

    def _set_link(self, link: bytes) -> None:
        self.last_link[:] = np.frombuffer(link, np.uint8)

    def marks(self, committed: int = 0) -> None:
        """Append the INDEX and the COMMIT that are due behind the last step.

        What is there already is not repeated: an INDEX that lists the step, a COMMIT of `committed` steps.
        """
        if len(self._step_offsets) == STEPS_PER_INDEX:
            self._index()
        every = self._commit_every
        if every is not None and self.steps % every == 0 and self.steps > committed:
            self.commit()

    def ops(self, nodes: tuple[TapeNode, ...], values: tuple[bytes, ...], grads: tuple[bytes | None, ...]) -> int:
        """Append the OPS of the last step, behind its NODES if they are new; how many bytes that took."""
        before = self._offset
        if nodes not in self._nodes:
            self._nodes[nodes] = self._offset
            self.told(NODES, NODES.front(self.layout).encode(nodes=nodes))
        self.told(OPS, encode_ops(self.layout, self._nodes[nodes], values, grads))
        return self._offset - before

    def told(self, kind: FrameType[Any], front: bytes, body: Sequence[memoryview] = ()) -> None:
        """Append a frame that tells more of the last step."""
        self._told[kind.code] = self.steps - 1
        self._append(kind, front, body, step=self.steps - 1)

    def has_told(self, kind: FrameType[Any]) -> bool:
        """Whether a frame of a type tells of the last step."""
        return self._told.get(kind.code) == self.steps - 1

    def event(self, kind: str, text: str) -> None:
        """Append an EVENT. Raises DomainError for a bad kind or too long a text."""
        EventRecord(kind, text).check()
        self.note(EVENT, EVENT.front(self.layout).encode(kind=kind, text=text))

    def note(self, kind: FrameType[Any], front: bytes) -> None:
        """Append a frame that says something behind the steps so far."""
        self._append(kind, front)

    def commit(self) -> None:
        """Write and fsync everything, then append a COMMIT that says so."""
        self._synced()
        self._append(COMMIT, COMMIT.front(self.layout).encode(steps=self.steps, synced=self._offset))
        self.flush()

    def seal(self, final: Sequence[bytes] = ()) -> None:
        """Append the last INDEX and the SEAL, fsync, and give the file its name.

        `final`: the digest of each tensor after the last step, or empty if they are not known.
        """
        if self._step_offsets or self._keyframes:
            self._index()
        root = state_root(self.header.algorithm, final)
        self._synced()  # as a COMMIT, it says that all before it is on the disk
        seal = SEAL.front(self.layout).encode(
            steps=self.steps,
            known=int(bool(final)),
            link=self.link,
            digests=final,
            root=root,
            indexes=self._indexes,
            offset=self._offset,
        )
        self._append(SEAL, seal)
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
        self._write([])

    def _synced(self) -> None:
        self.flush()
        self._file.sync()

    def _index(self) -> None:
        first = len(self._indexes) * STEPS_PER_INDEX
        previous = self._indexes[-1] if self._indexes else 0
        index = INDEX.front(self.layout).encode(
            first=first, previous=previous, steps=self._step_offsets, keyframes=self._keyframes
        )
        self._indexes.append(self._offset)
        self._step_offsets.clear()
        self._keyframes.clear()
        self._append(INDEX, index, step=first)

    def _append(
        self, kind: FrameType[Any], front: bytes, body: Sequence[memoryview] = (), step: int | None = None
    ) -> None:
        number = self.steps if step is None else step
        length = sum(map(len, body))
        if len(front) + length > self.header.largest_payload:
            self._append_parts(kind, number, front, body)
            return
        opening, closing = self.frames.encode(kind.code, number, front, length)
        self._hold([opening, *body, closing], len(opening) + length + len(closing))

    def _append_parts(self, kind: FrameType[Any], step: int, front: bytes, body: Sequence[memoryview]) -> None:
        largest = self.header.largest_payload
        if len(front) > largest:
            raise TraceWriteError(
                f"trace: the front of a frame has {len(front)} bytes; choose a largest_payload above it"
            )
        parts = list(_cut(body, len(front), largest))
        for part, (length, views) in enumerate(parts):
            flags = MORE if part < len(parts) - 1 else 0
            opening, closing = self.frames.encode(kind.code, step, b"" if part else front, length, flags, part)
            self._hold([opening, *views, closing], len(opening) + length + len(closing))

    def _hold(self, buffers: Sequence[Buffer], length: int) -> None:
        self.check_alive()
        self._offset += length
        if length >= WRITTEN_AT_ONCE:
            self._write(buffers)
            return
        held, used = self.held.data, self._used[0]
        for buffer in buffers:
            used, begin = used + memoryview(buffer).nbytes, used
            held[begin:used] = buffer
        self._used[0] = used
        self._flush_if_due()

    def _flush_if_due(self) -> None:
        """Hold nothing for longer than `HELD_SECONDS`, nor more than `HELD_BYTES`: there is room for the next frame."""
        if self._used[0] >= HELD_BYTES or monotonic() - self._flushed_at >= HELD_SECONDS:
            self.flush()

    def _write(self, buffers: Sequence[Buffer]) -> None:
        """Write what is held back, and these behind it."""
        held = self.held.data[: self._used[0]]
        self._used[0] = 0
        if held or buffers:
            self._file.write([held, *buffers])
        self._flushed_at = monotonic()


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
