"""Files whose CRCs and file chain are right and whose content breaks one rule of the page."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from xxhash import xxh3_128_digest as xxh

from dgrr.trace import Verdict, validate

from ....fuzz.surgery import COMMIT, EVENT, INDEX, KEYFRAME, SEAL, STEP, File

RecordRun = Callable[..., Path]


@pytest.fixture
def file(record_run: RecordRun) -> File:
    """Six steps of Adam in f32 with 8 tensors; a KEYFRAME before step 2 and 4 and 6, a COMMIT after 3 and 6."""
    path = record_run(keyframe_every=2, commit_every=3)
    file = File.parse(path.read_bytes())
    assert file.encode(links=False) == path.read_bytes()
    file.relink()
    assert file.encode(links=False) == path.read_bytes()
    return file


D = 16
SCALARS = D + 16
CLIP, INPUT = SCALARS + 16, SCALARS + 32
BITMAP = INPUT + D + 8 * (5 + 2)
DIGESTS = BITMAP + 8


def flip(place: int, kind: int, number: int = 0, *, relink: bool = False) -> Callable[[File], None]:
    """Invert the lowest bit of one byte of a front (counted from its end if negative)."""

    def edit(file: File) -> None:
        file.of(kind, number).front[place] ^= 1
        if relink:
            file.relink()

    return edit


def put(place: int, value: bytes, *, kind: int = STEP, number: int = 1) -> Callable[[File], None]:
    """Write over a part of a front and make the state chain right again."""

    def edit(file: File) -> None:
        front = file.of(kind, number).front
        front[place : place + len(value)] = value
        file.relink()

    return edit


def another_keyframe(file: File) -> None:
    """KEYFRAME 2 with another value, its digest and root right: but not the state STEP 1 left."""
    frame = file.of(KEYFRAME, 1)
    frame.body = struct.pack("<f", 7.0) + frame.body[4:]
    digests_at = 8
    frame.front[digests_at : digests_at + D] = xxh(struct.pack("<IIQQ", 1, 2, 3, 2) + frame.body[:24])
    frame.front[-D:] = xxh(b"DGRRroot" + bytes(frame.front[digests_at:-D]))


def another_final_state(file: File) -> None:
    front = file.of(SEAL).front
    start = 16 + D
    front[start] ^= 1
    front[start + 8 * D : start + 9 * D] = xxh(b"DGRRroot" + bytes(front[start : start + 8 * D]))


def longer_body(kind: int) -> Callable[[File], None]:
    def edit(file: File) -> None:
        file.of(kind, 1 if kind in (STEP, KEYFRAME) else 0).body += bytes(8)

    return edit


def longer_front(kind: int, number: int) -> Callable[[File], None]:
    def edit(file: File) -> None:
        file.of(kind, number).front += bytes(8)
        file.relink()

    return edit


def drop(kind: int, number: int = 0) -> Callable[[File], None]:
    return lambda file: file.frames.remove(file.of(kind, number))


def repeat(kind: int, number: int = 0) -> Callable[[File], None]:
    def edit(file: File) -> None:
        frame = file.of(kind, number)
        file.frames.insert(file.frames.index(frame) + 1, frame)

    return edit


def renumber(kind: int, number: int = 0) -> Callable[[File], None]:
    def edit(file: File) -> None:
        file.of(kind, number).step += 1

    return edit


def another_environment(file: File) -> None:
    """The run is said to be of another machine; the digest in the header stays."""
    front = file.of(EVENT).front
    assert b"environment" in front
    at = front.index(b"numpy") + len(b'numpy": "')
    front[at] = ord("9") if front[at] != ord("9") else ord("8")


CASES = {
    "another environment": (
        another_environment,
        "corrupt: EVENT 0: the text of the environment is not what the digest in the",
    ),
    "a link of the state chain": (flip(0, STEP, 3), "chain: the link of STEP 3 in the state chain is wrong"),
    "a loss without its link": (flip(SCALARS + 8, STEP, 3), "chain: the link of STEP 3"),
    "a state digest": (
        flip(-2 * D, STEP, 3, relink=True),
        "corrupt: STEP 3: its state root is not that of its digests",
    ),
    "a state root": (flip(-1, STEP, 3, relink=True), "corrupt: STEP 3: its state root is not that of its digests"),
    "a keyframe of another state": (another_keyframe, "chain: the root of KEYFRAME 2 is not that of STEP 1"),
    "a root of a keyframe": (flip(-1, KEYFRAME, 1), "corrupt: KEYFRAME 2: its root is not that of its digests"),
    "lengths in a keyframe": (
        flip(0, KEYFRAME, 1),
        "corrupt: KEYFRAME 2: its front has something else than zeros up to a multiple",
    ),
    "a body of a keyframe": (longer_body(KEYFRAME), "corrupt: the body of KEYFRAME 2 has 128 bytes, expected 120"),
    "a keyframe twice": (repeat(KEYFRAME, 1), "corrupt: KEYFRAME 2 after 2 steps"),
    "a keyframe of another step": (renumber(KEYFRAME, 1), "corrupt: KEYFRAME 3 after 2 steps"),
    "a step left out": (drop(STEP, 4), "corrupt: STEP 5 after 4 steps"),
    "a step twice": (repeat(STEP, 2), "corrupt: STEP 2 after 3 steps"),
    "a body of a step": (longer_body(STEP), "corrupt: the body of STEP 1 has 40 bytes, expected 32"),
    "a front too long for any step": (longer_front(STEP, 0), "corrupt: a front of 328 bytes (at most 320)"),
    "a front too long for this step": (longer_front(STEP, 2), "corrupt: STEP 2: its front has 312 bytes, 304 follow"),
    "a bitmap of the wrong gradients": (put(BITMAP, b"\x05"), "corrupt: STEP 1: 'grads': bit 2 of 2 is set"),
    "a bitmap of fewer gradients": (put(BITMAP, b"\x01"), "corrupt: STEP 1: its front has 320 bytes, 304 follow"),
    "a code of the loss": (put(SCALARS, b"\x03"), "corrupt: STEP 1: a scalar has an impossible value"),
    "flags of a step": (put(SCALARS + 1, b"\x08"), "corrupt: STEP 1: a scalar has an impossible value"),
    "a tree of one": (put(SCALARS + 1, b"\x04"), "corrupt: STEP 1: one micro-batch is said to be added in a tree"),
    "a zero of a step": (put(SCALARS + 2, b"\x01"), "corrupt: STEP 1: 'zero': expected 0000, got 0100"),
    "no micro-batch": (put(SCALARS + 4, bytes(4)), "corrupt: STEP 1: a scalar has an impossible value"),
    "clipping without its flag": (put(CLIP, struct.pack("<d", 1)), "corrupt: STEP 1: a scalar has an impossible value"),
    "a loss of 64 bits in f32": (put(SCALARS + 12, b"\x01"), "corrupt: STEP 1: its loss has more than 32 bits"),
    "a NaN without its flag": (
        put(SCALARS + 8, struct.pack("<f", float("nan"))),
        "corrupt: STEP 1: its loss is nan, and its flag is not set",
    ),
    "steps of a COMMIT": (flip(0, COMMIT, 0), "corrupt: a COMMIT has the wrong counts"),
    "offset of a COMMIT": (flip(8, COMMIT, 0), "corrupt: a COMMIT has the wrong counts"),
    "the step of an EVENT": (renumber(EVENT, 1), "corrupt: EVENT 3 after 2 steps"),
    "a body of an EVENT": (longer_body(EVENT), "corrupt: the body of EVENT 0 has 8 bytes, expected 0"),
    "the kind of an EVENT": (flip(8, EVENT), "ok"),
    "a capital in the kind": (
        put(8, b"N", kind=EVENT, number=1),
        "corrupt: EVENT 2: event kind: expected 1 to 64 of the characters a-z0-9_-",
    ),
    "no UTF-8 in an EVENT": (
        put(20, b"\xff", kind=EVENT, number=1),
        "corrupt: EVENT 2: 'text': 'utf-8' codec can't decode byte 0xff",
    ),
    "lengths of an EVENT": (flip(4, EVENT), " bytes ends inside 'text'"),
    "an INDEX left out": (drop(INDEX), "corrupt: SEAL 6: it says that it stands at byte "),
    "an offset in an INDEX": (flip(24, INDEX), "corrupt: an INDEX is not what the file makes it"),
    "the step of an INDEX": (renumber(INDEX), "corrupt: INDEX 1 after 6 steps"),
    "counts of an INDEX": (flip(8, INDEX), "corrupt: INDEX 0: its front of 136 bytes ends inside 'keyframes'"),
    "steps of the SEAL": (flip(0, SEAL), "corrupt: the SEAL does not list"),
    "the link of the SEAL": (flip(16, SEAL), "corrupt: the SEAL does not list"),
    "an index of the SEAL": (flip(-24, SEAL), "corrupt: the SEAL does not list"),
    "the offset of the SEAL": (flip(-16, SEAL), "corrupt: SEAL 6: it says that it stands at byte "),
    "the flag of the SEAL": (flip(8, SEAL), "corrupt: SEAL 6: 'magic': expected 444752525345414c, got"),
    "a final digest": (flip(16 + D, SEAL), "chain: the final state of the SEAL is not that of the last step"),
    "another final state": (another_final_state, "chain: the final state of the SEAL is not that of the last step"),
    "the SEAL twice": (repeat(SEAL), "corrupt: bytes behind the SEAL"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_broken_rule(file: File, tmp_path: Path, name: str) -> None:
    edit, expected = CASES[name]
    edit(file)
    (tmp_path / "lie").write_bytes(file.encode(links=False))
    assert expected in str(validate(tmp_path / "lie"))


def test_a_wrong_number_with_the_right_link(file: File, tmp_path: Path) -> None:
    (tmp_path / "lie").write_bytes(file.encode(links=False, seq=lambda i: i + (i > 4)))
    assert "chain: frame 6 where frame 5 is expected" in str(validate(tmp_path / "lie"))


def test_a_final_state_without_its_index(file: File, tmp_path: Path) -> None:
    """No INDEX at all, and a SEAL that agrees: the steps are still in none."""
    drop(INDEX)(file)
    front = file.of(SEAL).front
    front[12:16] = bytes(4)
    del front[-24:-16]
    before = len(file.encode(links=False)) - (48 + len(front) + D)
    front[-16:-8] = struct.pack("<Q", before)
    (tmp_path / "lie").write_bytes(file.encode(links=False))
    assert "corrupt: a step or keyframe before the SEAL is in no INDEX" in str(validate(tmp_path / "lie"))


def test_only_a_whole_commit_behind_the_damage_counts(file: File, tmp_path: Path) -> None:
    """Damage in STEP 4, and behind it COMMIT 6 and SEAL, whose fronts are then damaged too."""
    data = bytearray(file.encode(links=False))
    marks = [f for f in file.frames if f.kind in (COMMIT, SEAL)][1:]
    data[file.of(STEP, 4).offset + 60] ^= 1
    (tmp_path / "lie").write_bytes(data)
    assert validate(tmp_path / "lie").verdict is Verdict.CORRUPT
    for frame in marks:
        data[frame.offset + 48] ^= 1
    (tmp_path / "lie").write_bytes(data)
    assert validate(tmp_path / "lie").verdict is Verdict.TORN_TAIL
