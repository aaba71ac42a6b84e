"""OPS, NODES, VALUES and METRICS frames whose CRCs and chains are right and whose content lies."""

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import CompletedStep, InvalidTraceError, StepTape, TapeNode, open_trace, validate
from dgrr.trace.v2.format.documents.nodes import decode_nodes
from dgrr.trace.v2.format.limits import Limits
from dgrr.trace.v2.repair.rollback import rollback_v2

from ....keeping import recorder_of
from .test_damage import frame_bounds
from .test_hostile import frame

OPS, NODES, VALUES, METRICS = 128, 129, 130, 131
LEAF = ["leaf", "float64", [2], [], "", "w", "", ""]
MUL = ["mul", "float64", [2], [0, 0], "", "", "0", "n.py:7: w * w"]
W = np.array([1.0, -2.0])


def nodes_front(*rows: Any) -> bytes:
    return json.dumps({"nodes": rows}, separators=(",", ":"), ensure_ascii=False).encode()


def ops_front(nodes_at: int, count: int = 2, bitmap: int = 0b10, digests: int = 3, zero: int = 0) -> bytes:
    return struct.pack("<QIIQ", nodes_at, count, zero, bitmap) + bytes(16 * digests)


def recorded(path: Path, **options: Any) -> bytes:
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1, "salt": bytes(16)}
    recorder = recorder_of(path, record="digest", params={"w": W}, state={}, **run, **options)
    nodes = (TapeNode(*_tupled(LEAF)), TapeNode(*_tupled(MUL)))
    for k in range(2):
        tape = StepTape(nodes, [W, W * W], [None, W])
        told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {"w": W + k}, "params": {"w": W - k}, "state": {}}
        recorder.step(CompletedStep(step=k, loss=np.array(1.0), batch=W, tape=tape, **told))
    recorder.close()
    return path.with_name(f"{path.name}.partial").read_bytes()


def _tupled(row: list[Any]) -> list[Any]:
    return [tuple(field) if isinstance(field, list) else field for field in row]


def followed_by(tmp_path: Path, *frames: tuple[int, bytes, int] | Callable[[int], tuple[int, bytes, int]]) -> str:
    """What `validate` says of two steps and then these frames: (type, front, step), made from the first's offset."""
    data = recorded(tmp_path / "t")
    at, seq = len(data), len(frame_bounds(data))
    for i, each in enumerate(frames):
        kind, front, step = each(at) if callable(each) else each
        data += frame(data[-16:], kind, seq + i, step, front)[0]
    (tmp_path / "lie").write_bytes(data)
    return str(validate(tmp_path / "lie"))


def nodes(at: int) -> tuple[int, bytes, int]:
    return NODES, nodes_front(LEAF, MUL), 1


def test_frames_that_tell_the_truth(tmp_path: Path) -> None:
    assert "unsealed" in followed_by(tmp_path, nodes, lambda at: (OPS, ops_front(at), 1)).splitlines()[0]


@pytest.mark.parametrize(
    ("front", "text"),
    [
        (lambda at: ops_front(at, digests=2), "OPS 1: its front of 56 bytes ends inside 'grads'"),
        (lambda at: ops_front(at, digests=4), "OPS 1: its front has 88 bytes, 72 follow from its fields"),
        (lambda at: ops_front(at, bitmap=0b110), "OPS 1: 'arrived': bit 2 of 2 is set"),
        (lambda at: ops_front(at, digests=1), "OPS 1: its front of 40 bytes ends inside 'values'"),
        (lambda at: ops_front(at, zero=1), "OPS 1: 'zero': expected 00000000, got 01000000"),
        (lambda at: ops_front(at, count=1 << 31), "OPS 1: its front of 72 bytes ends inside 'arrived'"),
        (lambda at: ops_front(at, count=1, bitmap=1, digests=2), "an OPS frame names no NODES frame of its length"),
        (lambda at: ops_front(at + 8), "an OPS frame names no NODES frame of its length"),
        (lambda at: b"\0" * 15, "OPS 1: its front of 15 bytes ends inside 'zero'"),
    ],
)
def test_ops_that_lie(tmp_path: Path, front: Callable[[int], bytes], text: str) -> None:
    assert f"corrupt: {text}" in followed_by(tmp_path, nodes, lambda at: (OPS, front(at), 1))


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([(NODES, nodes_front(LEAF), 0)], "NODES 0 after 2 steps"),
        ([(OPS, ops_front(256), 2)], "OPS 2 after 2 steps"),
        ([nodes, nodes], "NODES 1 after 2 steps"),
        ([nodes, lambda at: (OPS, ops_front(at), 1), lambda at: (OPS, ops_front(at), 1)], "OPS 1 after 2 steps"),
        ([(VALUES, struct.pack("<II", 0, 0), 1)] * 2, "VALUES 1 after 2 steps"),
        ([(METRICS, struct.pack("<IIdI1s", 1, 0, 0.5, 1, b"a"), 1)] * 2, "METRICS 1 after 2 steps"),
        ([(METRICS, struct.pack("<IIdI1s", 1, 0, 0.5, 1, b"a"), 0)], "METRICS 0 after 2 steps"),
    ],
)
def test_frames_in_the_wrong_place(tmp_path: Path, frames: Any, text: str) -> None:
    assert f"corrupt: {text}" in followed_by(tmp_path, *frames)


@pytest.mark.parametrize(
    ("front", "text"),
    [
        (struct.pack("<II", 1, 0), "VALUES 1: its front of 8 bytes ends inside 'tensors'"),
        (struct.pack("<IIII", 1, 1, 0, 0), "VALUES 1: 'zero': expected 00000000, got 01000000"),
        (struct.pack("<III", 1, 0, 0), "VALUES 1: its front of 12 bytes ends inside 'tensors'"),
        (
            struct.pack("<IIII", 1, 0, 1, 0),
            "VALUES 1: it names a tensor that its STEP has no digest of, or names it twice",
        ),
        (
            struct.pack("<IIII", 1, 0, 0, 2),
            "VALUES 1: it names a tensor that its STEP has no digest of, or names it twice",
        ),
        (
            struct.pack("<6I", 2, 0, 0, 0, 0, 0),
            "VALUES 1: it names a tensor that its STEP has no digest of, or names it twice",
        ),
        (struct.pack("<IIII", 1, 0, 0, 0), "the body of VALUES 1 has 0 bytes, expected 16"),
    ],
)
def test_values_that_lie(tmp_path: Path, front: bytes, text: str) -> None:
    assert text in followed_by(tmp_path, (VALUES, front, 1))


TOLD = "METRICS 1: "
ENDS = TOLD + "its front of {} bytes ends inside '{}'"


@pytest.mark.parametrize(
    ("front", "text"),
    [
        (b"", ENDS.format(0, "n")),
        (struct.pack("<II", 0, 0), TOLD + "it has no metric, or a name twice"),
        (struct.pack("<IIdI1s", 1, 1, 0.5, 1, b"a"), TOLD + "'zero': expected 00000000, got 01000000"),
        (struct.pack("<IIdI1sx", 1, 0, 0.5, 1, b"a"), TOLD + "its front has 22 bytes, 21 follow from its fields"),
        (struct.pack("<IIdI1s", 1 << 31, 0, 0.5, 1, b"a"), ENDS.format(21, "values")),
        (struct.pack("<IIddI1sI1s", 2, 0, 0.5, 1.5, 1, b"a", 1, b"a"), TOLD + "it has no metric, or a name twice"),
        (struct.pack("<IIdI1s", 1, 0, 0.5, 2, b"a"), ENDS.format(21, "names")),
        (struct.pack("<IIddI1s", 2, 0, 0.5, 1.5, 1, b"a"), ENDS.format(29, "names")),
        (struct.pack("<IIdI", 1, 0, 0.5, 0), TOLD + "names of metrics have 1 to 255 bytes, got 0"),
        (struct.pack("<IIdI1s", 1, 0, 0.5, 1, b"\xff"), TOLD + "'names': 'utf-8' codec can't decode"),
        (struct.pack("<IIdI1s", 1, 0, 0.5, 1, b"\n"), TOLD + "name '\\n' has control characters"),
    ],
)
def test_metrics_that_lie(tmp_path: Path, front: bytes, text: str) -> None:
    assert f"corrupt: {text}" in followed_by(tmp_path, (METRICS, front, 1))


def test_metrics_that_tell_the_truth(tmp_path: Path) -> None:
    found = followed_by(tmp_path, (METRICS, struct.pack("<IIdI1s", 1, 0, 0.5, 1, b"a"), 1))
    assert "unsealed" in found.splitlines()[0]
    with open_trace(tmp_path / "lie") as trace:
        assert (trace.metrics(-1), trace.metrics(0)) == ({"a": 0.5}, {})


def test_metrics_that_no_trace_can_hold(tmp_path: Path) -> None:
    """The step is not written, and the same is refused of each name and of all together."""
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1, "params": {"w": W}, "state": {}}
    told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {"w": W}, "params": {"w": W}, "state": {}, "batch": W}
    refused = {
        "": "recorder.step: metrics: names of metrics have 1 to 255 bytes, got 0",
        "a\n": "recorder.step: metrics: name 'a\\n' has control characters",
        "x" * 256: "recorder.step: metrics: names of metrics have 1 to 255 bytes, got 256",
    }
    with recorder_of(tmp_path / "t", **run) as recorder:
        for name, text in refused.items():
            with pytest.raises(ValueError, match=re.escape(text)):
                recorder.step(CompletedStep(step=0, loss=np.array(1.0), metrics={name: 0.5}, **told))
        many = {f"{i:0250}": 0.5 for i in range(251)}
        with pytest.raises(ValueError, match="metrics: expected at most 65536 bytes in all, got 65770"):
            recorder.step(CompletedStep(step=0, loss=np.array(1.0), metrics=many, **told))
        recorder.step(CompletedStep(step=0, loss=np.array(1.0), metrics={"a": np.nan, "b": np.inf}, **told))
    with open_trace(tmp_path / "t") as trace:
        assert len(trace) == 1
        assert list(map(str, trace.metrics(0).values())) == ["nan", "inf"]


@pytest.mark.parametrize(
    "front",
    [
        b"",
        b"[]",
        b"nonsense",
        b'{"nodes":7}',
        b'{"nodes":[7]}',
        b'{"nodes":[[]]}',
        b'{"nodes":{}}',
        b'{"nodes": []}',
        b'{"other":[]}',
        b'{"nodes":[],"other":[]}',
        b"[" * 100_000,
        b'{"nodes":' + b"[" * 20 + b"]" * 20 + b"}",
        nodes_front([*LEAF, "more"]),
        nodes_front(LEAF[:-1]),
        nodes_front(["leaf", "float24", [2], [], "", "", "", ""]),
        nodes_front(["leaf", "O", [2], [], "", "", "", ""]),
        nodes_front(["leaf", [1], [2], [], "", "", "", ""]),
        nodes_front([7, "float64", [2], [], "", "", "", ""]),
        nodes_front(["leaf", "float64", [-1], [], "", "", "", ""]),
        nodes_front(["leaf", "float64", [1.0], [], "", "", "", ""]),
        nodes_front(["leaf", "float64", [True], [], "", "", "", ""]),
        nodes_front(["leaf", "float64", 2, [], "", "", "", ""]),
        nodes_front(["mul", "float64", [2], [0], "", "", "", ""]),
        nodes_front(LEAF, ["mul", "float64", [2], [-1], "", "", "", ""]),
        nodes_front(["leaf", "float64", [2], [], "", "a\nb", "", ""]),
        b"\xff" + nodes_front(LEAF),
        b'{"nodes":[],"nodes":[]}',
    ],
)
def test_lists_of_nodes_that_lie(front: bytes) -> None:
    with pytest.raises(ValueError, match="it cannot be read: "):
        decode_nodes(front, Limits())


def test_every_flipped_bit_and_every_truncation_is_found(tmp_path: Path) -> None:
    recorded(tmp_path / "t", ops="every", values=1000)
    data = (tmp_path / "t.partial").read_bytes()
    first = frame_bounds(data)[3:]
    starts = {start for start, _ in first}
    assert {data[start + 4] for start in starts} >= {OPS, NODES, VALUES}
    for at in range(min(starts), len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        (tmp_path / "bad").write_bytes(changed)
        assert validate(tmp_path / "bad").verdict.value in ("torn-tail", "corrupt", "chain"), at
        (tmp_path / "bad").write_bytes(data[:at])
        expected = "unsealed" if at in starts else "torn-tail"
        assert validate(tmp_path / "bad").verdict.value == expected, at


def test_a_changed_value_is_found_by_readers(tmp_path: Path) -> None:
    """A body is covered by the digest in its STEP, whatever the frame's own chain says."""
    recorded(tmp_path / "t", ops="first", values=1000)
    data = bytearray((tmp_path / "t.partial").read_bytes())
    ((_, end),) = [b for b in frame_bounds(bytes(data)) if data[b[0] + 4] == VALUES]
    data[end - 24] ^= 1
    (tmp_path / "bad").write_bytes(data)
    assert not validate(tmp_path / "bad").ok
    with open_trace(tmp_path / "bad", mode="point_in_time") as trace:
        assert trace.ops(0) is not None
        with pytest.raises(InvalidTraceError, match="is not what its digest says"):
            trace.tensor("w", step=0, what="after")


def test_a_child_keeps_what_is_told_of_its_steps(tmp_path: Path) -> None:
    recorded(tmp_path / "t", ops="every", values=1000)
    for steps in (1, 2):
        child = tmp_path / f"child{steps}"
        rollback_v2(tmp_path / "t.partial", steps, child)
        assert validate(child).ok
        with open_trace(tmp_path / "t.partial") as parent, open_trace(child) as copy:
            assert [view.ops() for view in copy] == [parent.ops(k) for k in range(steps)]
            assert copy.tensor("w", step=0, what="after").tolist() == [1.0, -2.0]
