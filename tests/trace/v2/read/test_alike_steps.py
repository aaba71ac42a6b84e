"""STEPs that are checked many in one launch, against the same frame by frame: of every file the same is found."""

import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import InvalidTraceError, open_trace, validate
from dgrr.trace.v2.read import locate, worth
from dgrr.trace.v2.read.prepared import alike_steps
from dgrr.trace.v2.read.prepared.alike_steps import MOST
from dgrr.trace.v2.read.prepared.steps_ahead import StepsAhead
from dgrr.trace.v2.read.scan import Walk

from ....fuzz.surgery import INDEX, STEP, File
from ..write.test_prepared import PARAMS, STEPS, begun, completed

SMALL = {name: array for name, array in PARAMS.items() if name != "big"}
D = 16
NEVER = sys.maxsize
OF_WALK = ("steps", "end", "chain", "seq", "link", "root", "root_step", "step_offsets", "keyframes", "indexes", "seal")


class Found:
    """What is found of files in both ways, and how many STEPs were passed over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self.passed = monkeypatch, 0
        self.walks: list[Walk] = []
        pass_over, begin = Walk.pass_over, Walk.__init__

        def counted(walk: Walk, steps: int, *rest: Any) -> None:
            self.passed += steps
            pass_over(walk, steps, *rest)

        def noted(walk: Walk, *given: Any) -> None:
            begin(walk, *given)
            self.walks.append(walk)

        monkeypatch.setattr(Walk, "pass_over", counted)
        monkeypatch.setattr(Walk, "__init__", noted)

    def of(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The report of a file, checked frame by frame, and in launches."""
        self._patch.setattr(worth, "WORTH", NEVER)
        slow = validate(path).to_dict()
        self._patch.setattr(worth, "WORTH", 0)
        return slow, validate(path).to_dict()

    def same(self, path: Path) -> dict[str, Any]:
        """What both ways find, which is the same, that of the walks too."""
        self.walks.clear()
        slow, fast = self.of(path)
        assert slow == fast
        one, other = self.walks
        assert [getattr(one, name) for name in OF_WALK] == [getattr(other, name) for name in OF_WALK]
        return fast


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Found:
    return Found(monkeypatch)


def recorded(path: Path, changes: list[dict[str, Any]], record: str = "grads", every: int = 1, **chosen: Any) -> Path:
    with begun(path, record, every, **chosen) as recorder:
        for i, change in enumerate(changes):
            recorder.step(completed(i, change))
    return path


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("record", ["digest", "grads", "full", "bare"])
@pytest.mark.parametrize("change", range(len(STEPS)))
def test_every_kind_of_step(change: int, record: str, every: int, tmp_path: Path, found: Found) -> None:
    path = recorded(tmp_path / "a", [STEPS[change]] * 14, record, every)
    assert found.same(path)["verdict"] == "ok"
    assert found.passed >= (6 if every > 1 else 13)


def test_kinds_in_turn(tmp_path: Path, found: Found) -> None:
    """One that comes again and is not like the first of its lengths is read frame by frame."""
    assert found.same(recorded(tmp_path / "a", STEPS * 3))["steps"] == 3 * len(STEPS)


def test_more_than_an_index_lists_with_keyframes_commits_and_metrics(tmp_path: Path, found: Found) -> None:
    own: dict[str, Any] = {"params": SMALL, "grads": SMALL}
    changes = [own | ({"metrics": {"a": float(i)}} if i % 100 == 7 else {}) for i in range(2100)]
    chosen: dict[str, Any] = {"params": SMALL, "keyframe_every": 300, "commit_every": 700, "clip_value": 2.5}
    assert found.same(recorded(tmp_path / "a", changes, **chosen))["verdict"] == "ok"
    assert found.passed == 2099


def test_steps_that_are_longer_than_what_is_read_at_once(tmp_path: Path, found: Found) -> None:
    path = recorded(tmp_path / "a", [{}] * 5)
    assert path.stat().st_size > 5 * 120_000
    assert found.same(path)["verdict"] == "ok"
    assert found.passed == 4


@pytest.mark.parametrize("record", ["digest", "grads", "full"])
def test_steps_whose_bodies_are_read_to_where_they_are_checked(
    record: str, tmp_path: Path, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long ones are. Of a byte changed anywhere in one, the same is found."""
    monkeypatch.setattr(alike_steps, "LONG", 1)
    path = small(tmp_path / "a", record=record)
    assert found.same(path)["verdict"] == "ok" and found.passed == 5
    data, file = path.read_bytes(), File.parse(path.read_bytes())
    begin = data.index(bytes(file.of(STEP, 3).front)) - 48
    verdicts = set[str]()
    for place in range(begin, data.index(bytes(file.of(STEP, 4).front)) - 48, 11):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        verdicts.add(found.same(path)["verdict"])
    assert verdicts and "ok" not in verdicts


@pytest.mark.parametrize("loss", [np.float32("nan"), np.float64("inf")])
def test_what_is_not_finite(loss: Any, tmp_path: Path, found: Found) -> None:
    broken = {"loss": np.array(loss)}
    path = recorded(tmp_path / "a", [{}, {}, broken, broken, {}, {}], on_nonfinite="record")
    assert found.same(path)["verdict"] == "ok"


def test_other_digests(tmp_path: Path, found: Found) -> None:
    assert found.same(recorded(tmp_path / "a", [{}] * 4, digest="sha256"))["verdict"] == "ok"
    assert found.passed == 0


def test_frames_of_parts(tmp_path: Path, found: Found) -> None:
    assert found.same(recorded(tmp_path / "a", [{}] * 4, largest_payload=4096))["verdict"] == "ok"
    assert found.passed == 0


def small(path: Path, **chosen: Any) -> Path:
    tiny = {"w": PARAMS["w"][:1, :2], "b": PARAMS["b"][:1]}
    return recorded(path, [{"params": tiny, "grads": tiny}] * 6, params=tiny, **chosen)


def bytes_of_a_step(file: File) -> range:
    return range(len(file.of(STEP, 3).front))


@pytest.mark.long
@pytest.mark.parametrize("relink", [False, True])
@pytest.mark.parametrize("record", ["digest", "grads", "full"])
def test_every_byte_of_a_front_changed_in_whole_frames(record: str, relink: bool, tmp_path: Path, found: Found) -> None:
    """The file chain and all CRCs are made anew, and the state chain or not: what is wrong is the content alone."""
    path = small(tmp_path / "a", record=record)
    untouched = path.read_bytes()
    verdicts = set[str]()
    for place in bytes_of_a_step(File.parse(untouched)):
        for bit in (1, 128):
            file = File.parse(untouched)
            file.of(STEP, 3).front[place] ^= bit
            if relink:
                file.relink()
            path.write_bytes(file.encode(links=False))
            verdicts.add(found.same(path)["verdict"])
    assert verdicts >= ({"corrupt", "ok"} if relink else {"corrupt", "chain"})


@pytest.mark.long
@pytest.mark.parametrize("record", ["digest", "grads"])
def test_every_byte_of_a_frame_damaged(record: str, tmp_path: Path, found: Found) -> None:
    path = small(tmp_path / "a", record=record)
    untouched = path.read_bytes()
    step = File.parse(untouched).of(STEP, 3)
    length = 48 + len(step.front) + len(step.body) + D
    for place in range(step.offset, step.offset + length):
        damaged = bytearray(untouched)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        assert found.same(path)["verdict"] != "ok"


def test_every_length(tmp_path: Path, found: Found) -> None:
    path = small(tmp_path / "a", record="grads")
    data = path.read_bytes()
    for length in range(File.parse(data).of(STEP, 2).offset, len(data), 7):
        path.write_bytes(data[:length])
        found.same(path)


def test_runs_as_long_as_a_launch_and_one_more(tmp_path: Path, found: Found) -> None:
    tiny = {"w": PARAMS["w"][:1, :2]}
    for count in (MOST, MOST + 1, MOST + 2, 2 * MOST + 1):
        change: dict[str, Any] = {"params": tiny, "grads": tiny}
        path = recorded(tmp_path / f"{count}", [change] * count, params=tiny)
        before = found.passed
        assert found.same(path)["steps"] == count
        assert found.passed - before == count - 1


def views(path: Path) -> list[Any]:
    """Every STEP as a reader finds it, or what it says of one that is not whole."""
    found = list[Any]()
    with open_trace(path, mode="point_in_time") as trace:
        for i in range(len(trace)):
            try:
                view = trace[i]
                found.append((view._frame, view.record))
            except InvalidTraceError as error:
                found.append(str(error))
    return found


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The STEPs that are read ahead, from the second on."""
    made, real = list[int](), StepsAhead.get

    def noted(self: StepsAhead, step: int) -> Any:
        found = real(self, step)
        made.extend([] if found is None else [step])
        return found

    monkeypatch.setattr(StepsAhead, "get", noted)
    return made


def both_views(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(worth, "WORTH", NEVER)
    slow = views(path)
    monkeypatch.setattr(worth, "WORTH", 0)
    monkeypatch.setattr(locate, "WORTH", 0)
    fast = views(path)
    assert repr(slow) == repr(fast)
    return fast


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("record", ["digest", "full", "bare"])
def test_every_kind_of_step_is_read_ahead(
    record: str, every: int, tmp_path: Path, ahead: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for change in range(len(STEPS)):
        path = recorded(tmp_path / f"{change}", [STEPS[change]] * 14, record, every)
        both_views(path, monkeypatch)
        assert ahead and min(ahead) <= 3 * every
        ahead.clear()


def test_damage_is_found_ahead_too(tmp_path: Path, ahead: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    for every in (1, 2):
        path = small(tmp_path / f"{every}", record="grads")
        untouched = path.read_bytes()
        step = File.parse(untouched).of(STEP, 3)
        for place in range(step.offset, step.offset + 48 + len(step.front) + len(step.body) + D, 5):
            damaged = bytearray(untouched)
            damaged[place] ^= 4
            path.write_bytes(damaged)
            both_views(path, monkeypatch)
    assert ahead


def test_few_steps_are_checked_frame_by_frame(tmp_path: Path, found: Found) -> None:
    """So that who checks a short trace compiles nothing."""
    assert validate(recorded(tmp_path / "a", [{}] * 9)).ok
    assert found.passed == 0


@pytest.mark.long
@pytest.mark.parametrize("place", range(48))
def test_every_byte_of_a_head_changed_in_whole_frames(place: int, tmp_path: Path, found: Found) -> None:
    """The file chain is made anew; the CRC of the head stays, or is made anew."""
    path = small(tmp_path / "a", record="grads")
    file = File.parse(path.read_bytes())
    lying = file.frames.index(file.of(STEP, 3))
    for sealed in (False, True):

        def head_of(i: int, head: bytes, sealed: bool = sealed) -> bytes:
            if i != lying:
                return head
            changed = head[:place] + bytes([head[place] ^ 1]) + head[place + 1 :]
            crc = zlib.crc32(file.header[16:32] + changed[:44]).to_bytes(4, "little")
            return changed[:44] + crc if sealed else changed

        path.write_bytes(file.encode(links=False, head_of=head_of))
        assert found.same(path)["verdict"] != "ok" or (sealed and place >= 44)


@pytest.mark.parametrize("loss", [np.float32("nan"), np.float32("-inf")])
def test_a_loss_that_is_not_finite_and_not_flagged(loss: Any, tmp_path: Path, found: Found) -> None:
    path = small(tmp_path / "a")
    file = File.parse(path.read_bytes())
    file.of(STEP, 3).front[D + 24 : D + 28] = loss.tobytes()
    file.relink()
    path.write_bytes(file.encode(links=False))
    assert found.same(path)["verdict"] == "corrupt"


def test_a_bound_of_clipping_below_0(tmp_path: Path, found: Found) -> None:
    path = small(tmp_path / "a", clip_value=2.5)
    file = File.parse(path.read_bytes())
    front = file.of(STEP, 3).front
    at = front.index(np.float64(2.5).tobytes())
    front[at : at + 8] = np.float64(-2.5).tobytes()
    file.relink()
    path.write_bytes(file.encode(links=False))
    assert found.same(path)["verdict"] == "corrupt"


def test_an_index_that_is_missing(tmp_path: Path, found: Found) -> None:
    tiny = {"w": PARAMS["w"][:1, :2]}
    change: dict[str, Any] = {"params": tiny, "grads": tiny}
    path = recorded(tmp_path / "a", [change] * 1030, "digest", params=tiny, keyframe_every=2000, commit_every=2000)
    file = File.parse(path.read_bytes())
    file.frames.remove(file.of(INDEX))
    path.write_bytes(file.encode(links=False))
    assert found.same(path)["verdict"] == "corrupt"
