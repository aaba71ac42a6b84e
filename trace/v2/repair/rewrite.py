"""Copying a trace frame by frame into a new file, with new links, chains and marks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ....base.runs.completed_step import TapeNode
from ..format.frame_type import FramePlace
from ..format.frames import FRAMES, EventRecord, KeyframeRecord, SealRecord
from ..format.of_step import NODES, OpsRecord
from ..format.step import StepRecord, relinked
from ..read.scan import Walk
from ..read.source import Frame, FrameSource
from ..write.writer import TraceWriter

Copied: TypeAlias = tuple[FrameSource, Frame, Any]
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
    elements that are told of steps where these are edited.
    """
    final: Sequence[bytes] = ()
    nodes: dict[int, tuple[TapeNode, ...]] = {}
    for frames, frame, record in copied:
        match record:
            case KeyframeRecord(step=step) if step <= steps:
                writer.keyframe(frame.front, record.root, [memoryview(_body(frames, frame))])
            case StepRecord(step=step) if step < steps:
                front, body = edit(record, frame.front, _body(frames, frame))
                writer.step(relinked(writer.layout, writer.link, writer.steps, front), [memoryview(body)])
                final = record.state_in_order(writer.layout) if record.root else ()
            case EventRecord() if frame.step <= steps:  # which a recovery adds, too
                writer.event(record.kind, record.text)
            case _ if _is_note(frame) and frame.step <= steps:
                writer.note(FRAMES[frame.type], frame.front)
            case SealRecord() if record.steps <= steps:
                final = record.final[:-1]
            case OpsRecord() if frame.step < steps:
                writer.ops(nodes[record.nodes_at], record.values, record.grads)
            case _ if frame.type == NODES.code:
                nodes[frame.offset] = record
            case _ if _is_told(frame) and frame.step < steps and (edit is keep or not frame.body_length):
                writer.told(FRAMES[frame.type], frame.front, [memoryview(_body(frames, frame))])
            case _:
                pass
    writer.seal(final)


def _body(frames: FrameSource, frame: Frame) -> bytes:
    return b"".join(frames.body_blocks(frame, 0, frame.body_length))


def _is_note(frame: Frame) -> bool:
    """Whether it is one of any number of notes between two steps."""
    return frame.type in FRAMES and FRAMES[frame.type].is_note


def _is_told(frame: Frame) -> bool:
    """Whether it tells more of a step."""
    return frame.type in FRAMES and FRAMES[frame.type].place is FramePlace.AFTER
