"""Copying a trace frame by frame into a new file, with new links, chains and marks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from ....base.completed_step import TapeNode
from ..format.constants import U64
from ..format.control_frames import EventRecord, SealRecord
from ..format.keyframe import KeyframeRecord
from ..format.metrics import MetricsRecord
from ..format.ops import OpsRecord
from ..format.step import StepRecord
from ..format.values import ValuesRecord
from ..read.scan import Record, Walk
from ..read.source import Frame, FrameSource
from .writer import TraceWriter

Copied: TypeAlias = tuple[FrameSource, Frame, Record]
"""A frame, what it says, and the file that it is of."""

Edit: TypeAlias = Callable[[StepRecord, bytes, bytes], tuple[bytes, bytes]]
"""(record, front, body) of a STEP → front and body to write; the state chain link is made anew."""


def keep(record: StepRecord, front: bytes, body: bytes) -> tuple[bytes, bytes]:
    """The edit that changes nothing."""
    return front, body


def of_walk(walk: Walk) -> Iterator[Copied]:
    """The frames of a walk, to be copied."""
    return ((walk.frames, frame, record) for frame, record in walk)


def copy_trace(copied: Iterable[Copied], writer: TraceWriter, steps: int, edit: Edit = keep) -> None:
    """Write the first `steps` steps, all that is told of them, their keyframes and events, and seal.

    Steps are numbered from 0 on. COMMIT and INDEX are made by the writer; frames of unknown types are left out, and
    VALUES where steps are edited.
    """
    final: Sequence[bytes] = ()
    nodes: dict[int, tuple[TapeNode, ...]] = {}
    for frames, frame, record in copied:
        match record:
            case KeyframeRecord(step=step) if step <= steps:
                writer.keyframe(frame.front, record.root, [memoryview(_body(frames, frame))])
            case StepRecord(step=step) if step < steps:
                front, body = edit(record, frame.front, _body(frames, frame))
                writer.step(_linked(writer, front), [memoryview(body)])
                final = record.state_in_order(writer.layout) if record.root else ()
            case tuple():
                nodes[frame.offset] = record
            case OpsRecord() if frame.step < steps:
                writer.ops(nodes[record.nodes_at], record.values, record.grads)
            case ValuesRecord(step=step) if step < steps and edit is keep:
                writer.values(frame.front, [memoryview(_body(frames, frame))])
            case MetricsRecord(step=step) if step < steps:
                writer.metrics(frame.front)
            case EventRecord() if frame.step <= steps:
                writer.event(record.kind, record.text)
            case SealRecord() if record.steps <= steps:
                final = record.final[:-1]
            case _:
                pass
    writer.seal(final)


def _body(frames: FrameSource, frame: Frame) -> bytes:
    return b"".join(frames.body_blocks(frame, 0, frame.body_length))


def _linked(writer: TraceWriter, front: bytes) -> bytes:
    layout = writer.layout
    content = front[layout.scalars_at :]
    link = writer.header.algorithm.hash(writer.link + U64.pack(writer.steps) + content)
    return link + front[layout.digest_size :]
