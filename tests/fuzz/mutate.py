"""Mutations of traces: of bytes, of fields, of frames, of the JSON inside; all drawn from one generator."""

import json
import struct
import zlib
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from surgery import SCHEMA, File, Frame

from dgrr.trace.v2.errors import InvalidTraceError
from dgrr.trace.v2.format.fields import Document
from dgrr.trace.v2.format.frames import FRAMES
from dgrr.trace.v2.format.header import decode_header
from dgrr.trace.v2.format.layout import FrameLayout
from dgrr.trace.v2.format.limits import Limits
from dgrr.trace.v2.format.schema_json import decode_schema

INTEGERS = (
    0,
    1,
    2,
    7,
    255,
    256,
    65_535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
)
FLOATS = (0.0, -0.0, -1.0, 1e308, float("inf"), float("nan"))
TEXTS = (
    "",
    "w",
    "é" * 200,
    "x" * 300,
    "adam@1",
    "sgd@1",
    "clip_value@1",
    "none@9",
    "a@b",
    "param",
    "state",
    "buffer",
    "f32",
    "bf16",
    "f8e5m2fnuz",
    "f8e8m0fnu",
    "c128",
    "bool",
    "\\" * 99,
)


def mutated(seeds: list[bytes], random: Random) -> bytes:
    """One hostile file."""
    file = deepcopy(File.parse(random.choice(seeds)))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        random.choice(MUTATIONS)(file, random)
    data = bytearray(file.encode(links=random.random() < 0.8))
    if random.random() < 0.1:
        _bytes(data, random)
    return bytes(data)


def _frame(file: File, random: Random) -> Frame:
    return random.choice(file.frames) if file.frames else Frame(random.choice([*FRAMES]), 0, 0, 0, bytearray(), b"")


def change_front(file: File, random: Random) -> None:
    """Some bytes of a front."""
    _bytes(_frame(file, random).front, random)


def change_body(file: File, random: Random) -> None:
    """Some bytes of a body."""
    frame = _frame(file, random)
    data = bytearray(frame.body)
    _bytes(data, random)
    frame.body = bytes(data)


def change_field(file: File, random: Random) -> None:
    """A number in a front: where a field is declared to begin, or somewhere."""
    frame = _frame(file, random)
    form, values = random.choice(
        (("<I", INTEGERS), ("<Q", INTEGERS), ("<B", INTEGERS), ("<H", INTEGERS), ("<d", FLOATS))
    )
    size = struct.calcsize(form)
    if len(frame.front) < size:
        return
    at = random.randrange(len(frame.front) - size + 1)
    at -= at % min(size, 4)
    declared = [begin for begin in fields_at(file, frame).values() if begin + size <= len(frame.front)]
    if declared and random.random() < 0.5:
        at = random.choice(declared)
    value: Any = random.choice(values)
    packed = struct.pack(form, value if form == "<d" else value % (1 << 8 * size))
    frame.front[at : at + size] = packed


def fields_at(file: File, frame: Frame) -> dict[str, int]:
    """Where the fields of a front begin, by their declaration, as far as header and schema tell."""
    try:
        header = bytes(file.header)
        layout = FrameLayout(
            decode_schema(bytes(file.frames[0].front), Limits()),
            decode_header(header + zlib.crc32(header).to_bytes(4, "little")),
        )
    except InvalidTraceError:
        return {}
    return FRAMES[frame.kind].front(layout).at if frame.kind in FRAMES else {}


def change_header(file: File, random: Random) -> None:
    """A field of the header."""
    at = random.choice((8, 12, 14, 32, 40, 48, 49, 50, 51, 52, 56, 60, 64, 72, 168, random.randrange(len(file.header))))
    file.header[at] = random.choice((0, 1, 2, 3, 4, 5, 255, random.randrange(256)))


def move_frames(file: File, random: Random) -> None:
    """Frames twice, elsewhere, missing, or of another kind."""
    if not file.frames:
        return
    at, to = random.randrange(len(file.frames)), random.randrange(len(file.frames))
    what = random.randrange(6)
    if what == 0:
        file.frames.insert(to, deepcopy(file.frames[at]))
    elif what == 1:
        file.frames[at], file.frames[to] = file.frames[to], file.frames[at]
    elif what == 2:
        del file.frames[at]
    elif what == 3:
        del file.frames[at:]
    elif what == 4:
        file.frames[at].kind = random.choice((*FRAMES, 0, 77, 200))
    else:
        field = random.choice(("flags", "part", "step"))
        setattr(file.frames[at], field, random.choice((0, 1, 2, 255)) if field != "step" else random.choice(INTEGERS))


def change_json(file: File, random: Random) -> None:
    """A value in the SCHEMA, or in a list of nodes, written canonically."""
    frames = [
        frame for frame in file.frames if frame.kind in FRAMES and isinstance(FRAMES[frame.kind].fields[0], Document)
    ]
    if not frames:
        return
    frame = random.choice(frames)
    try:
        tree: Any = json.loads(frame.front)
    except ValueError:
        return
    places = list(_places(tree))
    if not places:
        return
    holder, key = random.choice(places)
    holder[key] = random.choice(
        (_other(holder[key], random), random.choice(INTEGERS), random.choice(TEXTS), [], {}, None, True)
    )
    if random.random() < 0.2 and isinstance(holder, list):
        holder.extend(deepcopy(holder) * random.choice((1, 50)))
    text = json.dumps(tree, sort_keys=frame.kind == SCHEMA, separators=(",", ":"), ensure_ascii=False)
    frame.front[:] = text.encode()


def _places(tree: Any) -> Any:
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, int):
        return value + random.choice((-1, 1))
    if isinstance(value, list):
        return value[::-1] if random.random() < 0.5 else value * 2
    return random.choice(TEXTS)


def _bytes(data: bytearray, random: Random) -> None:
    """Flip, overwrite, cut, double or insert."""
    at = random.randrange(len(data) + 1)
    what = random.randrange(5)
    if what == 0 and at < len(data):
        data[at] ^= 1 << random.randrange(8)
    elif what == 1:
        data[at : at + 8] = random.randbytes(8)
    elif what == 2:
        del data[at:]
    elif what == 3:
        data[at:at] = data[at : at + random.choice((1, 8, 16, 64))]
    else:
        data[at:at] = bytes(random.choice((1, 4, 8, 16)))


MUTATIONS: tuple[Callable[[File, Random], None], ...] = (
    change_front,
    change_body,
    change_field,
    change_field,
    change_header,
    move_frames,
    change_json,
    change_json,
)
