"""Every frame type, declared once: see `docs/trace_format.md`, whose tables a test holds to these declarations."""

import re
from dataclasses import dataclass
from typing import Any, Final

from ....base.errors import DomainError
from ....base.runs.called_op import CalledOp
from .constants import (
    CALLS_BYTES,
    ENVIRONMENT_EVENT,
    EVENT_BYTES,
    KNOWS_PACKED_CALLS,
    NOTES_BYTES,
    RESUME_BYTES,
    SEAL_MAGIC,
    STEPS_PER_INDEX,
)
from .digest import state_root
from .documents.calls import decode_calls, decode_packed_calls, encode_calls, encode_packed_calls
from .documents.notes import decode_notes, encode_notes
from .fields import (
    BYTES,
    DIGEST,
    JSON,
    PADDING,
    TEXT,
    U32,
    U64,
    Bounds,
    DigestField,
    Document,
    Field,
    Here,
    T,
    When,
    always,
    pairs,
)
from .frame_type import FramePlace, FrameType
from .layout import FrameLayout
from .of_step import METRICS, NODES, OPS, SKETCHES, VALIDATION, VALUES
from .schema import Schema
from .schema_json import decode_schema
from .step import STEP

_KIND = re.compile(r"[a-z0-9_-]{1,64}")


SCHEMA: Final = FrameType(
    1,
    "SCHEMA",
    FramePlace.FIRST,
    "tensors and rules; exactly once, first",
    (Document("schema", JSON, None, "canonical JSON in UTF-8", encode=Schema.encode, decode=decode_schema),),
    lambda here, said: said["schema"],
    chained="schema",
)


@dataclass(frozen=True, slots=True)
class KeyframeRecord:
    """The state before `step`: opaque generator and cursor, digests in schema order, their root."""

    step: int
    generator: bytes
    cursor: bytes
    digests: tuple[bytes, ...]
    root: bytes


def _keyframe(here: Here, said: dict[str, Any]) -> KeyframeRecord:
    generator, cursor = said["generator"], said["cursor"]
    if len(generator) + len(cursor) > RESUME_BYTES:
        raise DomainError(f"its generator and cursor have more than {RESUME_BYTES} bytes together")
    return KeyframeRecord(here.step, generator, cursor, said["digests"], said["root"])


def _keyframe_holds(layout: FrameLayout, record: KeyframeRecord) -> None:
    if record.root != state_root(layout.algorithm, record.digests):
        raise DomainError("its root is not that of its digests")


KEYFRAME: Final = FrameType(
    2,
    "KEYFRAME",
    FramePlace.BEFORE,
    "the whole state before step k; number 0 comes second",
    (
        Field(
            "r",
            U32,
            None,
            "length r of the state of a random generator",
            counts="generator",
            at_most=lambda bounds: RESUME_BYTES,
        ),
        Field(
            "c",
            U32,
            None,
            "length c of a data cursor; r + c is at most 65536",
            counts="cursor",
            at_most=lambda bounds: RESUME_BYTES,
        ),
        Field("generator", BYTES, "r", "state of the random generator, opaque"),
        Field("cursor", BYTES, "c", "data cursor, opaque"),
        PADDING,
        DigestField("digests", T, "digest of every tensor, in the order of the schema"),
        DigestField("root", None, "state root"),
    ),
    _keyframe,
    body=lambda layout, record, step: layout.keyframe_body(record.digests),
    holds=_keyframe_holds,
    chained="root",
)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A note in the file: what kind, and its text."""

    kind: str
    text: str

    def check(self) -> None:
        """Raise DomainError for a kind of other characters than `a-z0-9_-`."""
        if not _KIND.fullmatch(self.kind):
            raise DomainError(f"event kind: expected 1 to 64 of the characters a-z0-9_-, got {self.kind!r}")


def _event(here: Here, said: dict[str, Any]) -> EventRecord:
    record, header = EventRecord(said["kind"], said["text"]), here.layout.header
    record.check()
    told, found = header.environment, header.algorithm.hash(record.text.encode())
    if record.kind == ENVIRONMENT_EVENT and any(told) and found.ljust(len(told), b"\0") != told:
        raise DomainError("the text of the environment is not what the digest in the header says")
    return record


EVENT: Final = FrameType(
    7,
    "EVENT",
    FramePlace.BETWEEN,
    "a note",
    (
        Field("kind_length", U32, None, "length of the kind", counts="kind"),
        Field("text_length", U32, None, "length of the text", counts="text"),
        Field("kind", TEXT, "kind_length", "kind"),
        Field("text", TEXT, "text_length", "text"),
    ),
    _event,
    largest=EVENT_BYTES,
)

NOTES: Final = FrameType(
    133,
    "NOTES",
    FramePlace.BETWEEN,
    "what the user notes of the run, where it is computed, and since when",
    (Document("notes", JSON, None, "what is noted", encode=encode_notes, decode=decode_notes),),
    lambda here, said: said["notes"],
    largest=NOTES_BYTES,
    told="notes",
)


@dataclass(frozen=True, slots=True)
class CallsRecord:
    """Calls of ops inside of the step behind the steps so far, of which the first has number `first` there."""

    first: int
    calls: tuple[CalledOp, ...]


def _calls(here: Here, said: dict[str, Any]) -> CallsRecord:
    packed, known = said["form"], here.layout.header.reader >= KNOWS_PACKED_CALLS
    if packed > known:
        raise DomainError(f"its form is {packed}, which a reader of version {here.layout.header.reader} does not know")
    decode = decode_packed_calls if packed else decode_calls
    return CallsRecord(said["first"], decode(said["text"], said["digests"], here.limits))


def encode_front_of_calls(layout: FrameLayout, record: CallsRecord) -> bytes:
    """The front of CALLS. Raises DomainError for more than 4 MiB."""
    packed = layout.header.reader >= KNOWS_PACKED_CALLS
    text, digests = (encode_packed_calls if packed else encode_calls)(record.calls)
    return CALLS.front(layout).encode(first=record.first, form=int(packed), text=text, digests=digests)


CALLS: Final = FrameType(
    134,
    "CALLS",
    FramePlace.BETWEEN,
    "calls of ops inside STEP k, written while it runs, before it",
    (
        Field("first", U32, None, "number of the first of these calls in step k"),
        Field("t", U32, None, "length of the text", counts="text"),
        Field("d", U32, None, "number of digests", counts="digests"),
        Field("form", U32, None, "0, or 1 for the packed form, in files whose reader has version 4 at least"),
        Field("text", BYTES, "t", "the calls, JSON; in the packed form as a stream of zlib"),
        DigestField("digests", "d", "of every call what it took, then what it gave or changed; packed: each once"),
    ),
    _calls,
    largest=CALLS_BYTES,
    told="calls of ops",
)

COMMIT: Final = FrameType(
    4,
    "COMMIT",
    FramePlace.BETWEEN,
    "everything before it has reached the disk",
    (
        Field("steps", U64, None, "steps so far"),
        Field("synced", U64, None, "bytes synced: the offset of this frame"),
    ),
    lambda here, said: (said["steps"], said["synced"]),
    derived=True,
)


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """Where up to 1024 steps stand, from step `first` on, and the keyframes among them as (step, offset)."""

    first: int
    previous: int
    steps: tuple[int, ...]
    keyframes: tuple[tuple[int, int], ...]


INDEX: Final = FrameType(
    5,
    "INDEX",
    FramePlace.LISTING,
    "after every 1024 steps, and before SEAL",
    (
        Field("first", U64, None, "first step listed, f, a multiple of 1024"),
        Field(
            "n",
            U32,
            None,
            "n, number of steps listed: 1024, in the last INDEX 0 to 1024",
            counts="steps",
            at_most=lambda bounds: STEPS_PER_INDEX,
        ),
        Field(
            "q",
            U32,
            None,
            "q, number of keyframes listed",
            counts="keyframes",
            at_most=lambda bounds: STEPS_PER_INDEX + 1,
        ),
        Field("previous", U64, None, "offset of the previous INDEX; 0: none"),
        Field("steps", U64, "n", "offsets of STEP f, f+1, …"),
        Field(
            "keyframes", pairs(U64), "q", "number and offset of each KEYFRAME k with f ≤ k < f + 1024 written so far"
        ),
    ),
    lambda here, said: IndexRecord(said["first"], said["previous"], said["steps"], said["keyframes"]),
    derived=True,
)


@dataclass(frozen=True, slots=True)
class SealRecord:
    """The end of a run: number of steps, last link of the state chain, offsets of all INDEX frames.

    `final` is the digest of each tensor after the last step and then their root, or empty if not known.
    """

    steps: int
    link: bytes
    final: tuple[bytes, ...]
    indexes: tuple[int, ...]


def _seal(here: Here, said: dict[str, Any]) -> SealRecord:
    if said["known"] > 1:
        raise DomainError("the flag of the final state is neither 0 nor 1")
    if said["offset"] != here.offset:
        raise DomainError(f"it says that it stands at byte {said['offset']}")
    final = (*said["digests"], said["root"]) if said["known"] else ()
    return SealRecord(said["steps"], said["link"], final, said["indexes"])


def _indexes(bounds: Bounds) -> int:
    return bounds.size // (STEPS_PER_INDEX * STEP.front(bounds.layout).fixed) + 1


_FINAL = When("if the final state follows", lambda here: bool(here.said["known"]))

SEAL: Final = FrameType(
    6,
    "SEAL",
    FramePlace.LAST,
    "exactly once, last; nothing follows it",
    (
        Field("steps", U64, None, "number of steps N"),
        Field("known", U32, None, "1 if the final state follows, else 0"),
        Field("x", U32, None, "x, number of INDEX frames", counts="indexes", at_most=_indexes),
        Field("link", DIGEST, None, "S[N-1]"),
        DigestField("digests", T, "digest of each tensor after the last step", _FINAL),
        DigestField("root", None, "their root", _FINAL),
        Field("indexes", U64, "x", "offsets of all INDEX frames"),
        Field("offset", U64, None, "offset of this frame"),
        Field("magic", always(SEAL_MAGIC, "8 B"), None, "`DGRRSEAL`"),
    ),
    _seal,
)

SEAL_TAIL: Final = SEAL.packed("offset", "magic")
"""What a sealed file ends with, but for the last digest."""

_OF_STEP = (NODES, OPS, VALUES, SKETCHES, METRICS, VALIDATION)
_ORDER = (SCHEMA, KEYFRAME, EVENT, NOTES, CALLS, STEP, *_OF_STEP, COMMIT, INDEX, SEAL)

FRAMES: Final[dict[int, FrameType[Any]]] = {frame.code: frame for frame in _ORDER}
"""All types by their codes, in the order in which frames of one number stand."""
