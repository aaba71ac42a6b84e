"""Telling a torn tail from corruption."""

from collections.abc import Iterator
from zlib import crc32

from ..errors import DamageError, InvalidTraceError
from ..format.constants import ALIGNMENT, HEAD_LENGTH, SYNC
from ..format.frame import Head
from ..format.frames import COMMIT, SEAL
from ..verdict import Verdict
from .source import FrameSource

READ_AGAIN = 8
"""How often the bytes of a file are read in search of whole frames, at most: a hostile file is full of heads."""


def judge(frames: FrameSource, damage: DamageError) -> InvalidTraceError:
    """What the damage means: `corrupt` if a whole COMMIT or SEAL stands behind it, else `torn-tail`."""
    offset = damage.offset or 0
    allowance = READ_AGAIN * frames.source.size
    for candidate in sync_words(frames, offset + ALIGNMENT):
        head = _commit_head(frames, candidate)
        if head is None:
            continue
        if allowance < 0:
            text = f"{damage.text}, and more heads stand behind it than any writer leaves"
            return InvalidTraceError(Verdict.CORRUPT, text, offset)
        allowance -= head.front_length
        if _front_is_whole(frames, candidate, head):
            text = f"{damage.text}, and data that was committed at byte {candidate} stands behind it"
            return InvalidTraceError(Verdict.CORRUPT, text, offset)
    return InvalidTraceError(Verdict.TORN_TAIL, f"{damage.text}, and nothing committed stands behind it", offset)


def sync_words(frames: FrameSource, start: int) -> Iterator[int]:
    """Where a frame may begin from `start` on: every aligned sync word."""
    source = frames.source
    position = start
    while position + HEAD_LENGTH <= source.size:
        length = min(source.limits.block, source.size - position)
        data = source.read(position, length)
        found = data.find(SYNC)
        while found >= 0:
            if (position + found) % ALIGNMENT == 0:
                yield position + found
            found = data.find(SYNC, found + 1)
        position += max(length - len(SYNC) + 1, 1)


def _commit_head(frames: FrameSource, offset: int) -> Head | None:
    try:
        head = frames.head(offset)
    except InvalidTraceError as error:
        if error.verdict is Verdict.IO:
            raise
        return None
    return head if head.type in (COMMIT.code, SEAL.code) else None


def _front_is_whole(frames: FrameSource, offset: int, head: Head) -> bool:
    crc = 0
    for block in frames.source.blocks(offset + HEAD_LENGTH, head.front_length):
        crc = crc32(block, crc)
    return crc == head.front_crc
