"""The golden files of version 2, read by a second reader that shares no code with the package.

`Minimal` is written from docs/trace_format.md alone; it checks every byte of the two files, which are kept for
ever. What the runs computed is stated here by hand or recomputed in plain Python.
"""

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from dgrr.trace import CompletedStep, StepTape, TapeNode, open_recorder, open_trace, replay, validate

GOLDEN = Path(__file__).parents[3] / "golden"
PAGE = Path(__file__).parents[4] / "docs" / "trace_format.md"
ITEM = {"f32": (1, 4, "f"), "f64": (2, 8, "d"), "i64": (3, 8, "q"), "bool": (11, 1, "?")}


def u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


@dataclass
class Step:
    link: bytes
    loss: float
    clip: tuple[float, float]
    micro_batches: int
    hyper: tuple[float, ...]
    corrections: tuple[float, ...]
    input_digest: bytes
    grad_digests: dict[str, bytes]
    state_digests: list[bytes]
    grads: dict[str, bytes]
    ops: list[tuple[list[Any], bytes, bytes | None]] = field(default_factory=list)
    values: dict[tuple[str, int], bytes] = field(default_factory=dict)


@dataclass
class Minimal:
    """Reads a file of version 2 from its first byte to its last and asserts every rule it meets."""

    data: bytes
    steps: list[Step] = field(default_factory=list)
    keyframes: dict[int, dict[str, bytes]] = field(default_factory=dict)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        head = self.data[:256]
        assert head[:4] == b"DGRR"
        assert struct.unpack("<HHIHH", head[4:16]) == (2, 0, 256, 2, 8)
        assert u32(head, 252) == zlib.crc32(head[:252])
        self.salt, self.created_at, self.seed = head[16:32], u64(head, 32), u64(head, 40)
        self.mode, self.state_every, self.numerics = head[49], u32(head, 52), u32(head, 56)
        self.largest = u64(head, 64)
        assert head[51] == 0 and u32(head, 60) == 0 and not any(head[176:252])
        self.H: Callable[[bytes], bytes] = {
            1: lambda m: xxhash.xxh3_128(m).digest(),
            2: lambda m: hashlib.sha256(m).digest(),
        }[head[48]]
        self.D = len(self.H(b""))
        self.environment = head[72 : 72 + self.D]
        self.chain = self.H(b"DGRRfile" + head)
        self.offsets: dict[int, list[int]] = {}
        at, seq = 256, 0
        while at < len(self.data):
            at = self.frame(at, seq)
            seq += 1
        assert self.order[0] == 1 and self.order[1] == 2 and self.order[-1] == 6

    def frame(self, at: int, seq: int) -> int:
        head = self.data[at : at + 48]
        assert head[:4] == bytes.fromhex("da475246")
        assert zlib.crc32(self.salt + head[:44]) == u32(head, 44)
        kind, flags, part = head[4], head[5], int.from_bytes(head[6:8], "little")
        assert (flags, part, u64(head, 8)) == (0, 0, seq)  # no golden file is long enough for parts
        length, front_length = u32(head, 24), u32(head, 28)
        assert head[32:40] == self.chain[:8]
        payload = self.data[at + 48 : at + 48 + length]
        front, body = payload[:front_length], payload[front_length:]
        assert zlib.crc32(front) == u32(head, 40)
        end = at + 48 + length + -length % 8
        assert not any(self.data[at + 48 + length : end])
        self.chain = self.H(self.chain + head + front)
        assert self.data[end : end + self.D] == self.chain
        self.offsets.setdefault(kind, []).append(at)
        self.order.append(kind)
        {
            1: self.schema,
            2: self.keyframe,
            3: self.step,
            4: self.commit,
            5: self.index,
            6: self.seal,
            7: self.event,
            128: self.ops,
            129: self.nodes,
            130: self.values,
        }[kind](u64(head, 16), front, body, at)
        return end + self.D

    def schema(self, step: int, front: bytes, body: bytes, at: int) -> None:
        self.tree: Any = json.loads(front)
        text = json.dumps(self.tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert text.encode() == front and not body and step == 0
        self.schema_digest = self.H(front)
        self.tensors = self.tree["tensors"]
        self.params = [t for t in self.tensors if t["role"] == "param"]
        self.hyper = sum(len(g["hyperparameters"]) for g in self.tree["groups"])
        self.corrections = sum(g["corrections"] for g in self.tree["groups"])

    def digest(self, tensor: dict[str, Any], elements: bytes) -> bytes:
        code, _, _ = ITEM[tensor["dtype"]]
        shape = tensor["shape"]
        return self.H(struct.pack(f"<II{len(shape)}Q", code, len(shape), *shape) + elements)

    def split(self, tensors: list[dict[str, Any]], body: bytes) -> dict[str, bytes]:
        found = {}
        for t in tensors:
            size = ITEM[t["dtype"]][1]
            for n in t["shape"]:
                size *= n
            found[t["name"]], body = body[:size], body[size:]
        assert not body
        return found

    def take(self, front: bytes, at: int, count: int) -> list[bytes]:
        return [front[at + i * self.D : at + (i + 1) * self.D] for i in range(count)]

    def keyframe(self, step: int, front: bytes, body: bytes, at: int) -> None:
        assert struct.unpack("<II", front[:8]) == (0, 0)
        *digests, root = self.take(front, 8, len(self.tensors) + 1)
        assert len(front) == 8 + (len(self.tensors) + 1) * self.D
        assert root == self.H(b"DGRRroot" + b"".join(digests))
        if self.mode == 4:
            assert not body
            values = {}
        else:
            values = self.split(self.tensors, body)
            assert digests == [self.digest(t, values[t["name"]]) for t in self.tensors]
        self.keyframe_digests = digests
        assert step == len(self.steps) and step % self.state_every == 0
        if step == 0:
            self.link = self.H(b"DGRRrun2" + self.schema_digest + root)
        else:
            assert root == self.root
        self.keyframes[step] = values

    def step(self, step: int, front: bytes, body: bytes, at: int) -> None:
        D = self.D
        assert step == len(self.steps)
        fixed = D + 16
        self.link = self.H(self.link + struct.pack("<Q", step) + front[fixed:])
        assert front[:D] == self.link and not any(front[D:fixed])
        code, flags, zero, micro, bits, threshold, scale = struct.unpack_from("<BBHIQdd", front, fixed)
        assert zero == 0 and flags in (0, 1)
        as_bits, as_float = (("<I", "<f"), ("<Q", "<d"))[code - 1]
        loss = struct.unpack(as_float, struct.pack(as_bits, bits))[0]
        at_hyper = fixed + 32 + D
        scalars = struct.unpack_from(f"<{self.hyper + self.corrections}d", front, at_hyper)
        at_bitmap = at_hyper + 8 * len(scalars)
        bitmap = u64(front, at_bitmap)
        present = [t for i, t in enumerate(self.params) if bitmap >> i & 1]
        assert bitmap >> len(self.params) == 0
        due = (step + 1) % self.state_every == 0
        count = len(present) + (len(self.tensors) + 1 if due else 0)
        assert len(front) == at_bitmap + 8 + count * D
        digests = self.take(front, at_bitmap + 8, count)
        grad_digests = {t["name"]: d for t, d in zip(present, digests, strict=False)}
        after = digests[len(present) :]
        if due:
            self.root = after.pop()
            assert self.root == self.H(b"DGRRroot" + b"".join(after))
        grads = self.split(present, body) if self.mode == 2 else {}
        if self.mode == 2:
            assert {t["name"]: self.digest(t, grads[t["name"]]) for t in present} == grad_digests
        self.steps.append(
            Step(
                self.link,
                loss,
                (threshold, scale),
                micro,
                scalars[: self.hyper],
                scalars[self.hyper :],
                front[fixed + 32 : at_hyper],
                grad_digests,
                after,
                grads,
            )
        )

    def nodes(self, step: int, front: bytes, body: bytes, at: int) -> None:
        tree = json.loads(front)
        assert json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode() == front and not body
        assert step == len(self.steps) - 1 and list(tree) == ["nodes"]
        for i, (_, _, _, parents, *texts) in enumerate(tree["nodes"]):
            assert all(parent < i for parent in parents) and len(texts) == 4
        self.listed = getattr(self, "listed", {}) | {at: tree["nodes"]}

    def ops(self, step: int, front: bytes, body: bytes, at: int) -> None:
        nodes_at, n, zero = struct.unpack("<QII", front[:16])
        nodes = self.listed[nodes_at]
        assert len(nodes) == n and zero == 0 and not body and step == len(self.steps) - 1
        words = -(-n // 64) * 8
        bitmap = int.from_bytes(front[16 : 16 + words], "little")
        digests = self.take(front, 16 + words, n + bitmap.bit_count())
        assert len(front) == 16 + words + len(digests) * self.D and bitmap >> n == 0
        arrived = iter(digests[n:])
        grads = [next(arrived) if bitmap >> i & 1 else None for i in range(n)]
        assert not self.steps[step].ops
        self.steps[step].ops = list(zip(nodes, digests, grads, strict=False))

    def values(self, step: int, front: bytes, body: bytes, at: int) -> None:
        count, zero = struct.unpack("<II", front[:8])
        pairs = list(struct.iter_unpack("<II", front[8:]))
        assert len(pairs) == count and zero == 0 and step == len(self.steps) - 1
        own = self.steps[step]
        for (position, what), elements in zip(
            pairs,
            self.split([self.tensors[p] | {"name": i} for i, (p, _) in enumerate(pairs)], body).values(),
            strict=True,
        ):
            tensor = self.tensors[position]
            expected = own.state_digests[position] if what else own.grad_digests[tensor["name"]]
            assert self.digest(tensor, elements) == expected
            own.values["after" if what else "grad", position] = elements

    def commit(self, step: int, front: bytes, body: bytes, at: int) -> None:
        assert struct.unpack("<QQ", front) == (len(self.steps), at) and not body

    def event(self, step: int, front: bytes, body: bytes, at: int) -> None:
        kind, text = struct.unpack("<II", front[:8])
        assert len(front) == 8 + kind + text and step == len(self.steps)
        self.events.append((step, front[8 : 8 + kind].decode(), front[8 + kind :].decode()))

    def index(self, step: int, front: bytes, body: bytes, at: int) -> None:
        first, steps, keyframes, previous = struct.unpack("<QIIQ", front[:24])
        assert (first, step, previous) == (0, 0, 0)
        numbers = struct.unpack(f"<{steps + 2 * keyframes}Q", front[24:])
        assert list(numbers[:steps]) == self.offsets[3]
        assert list(numbers[steps::2]) == list(self.keyframes)
        assert list(numbers[steps + 1 :: 2]) == self.offsets[2]

    def seal(self, step: int, front: bytes, body: bytes, at: int) -> None:
        steps, known, indexes = struct.unpack("<QII", front[:16])
        assert steps == step == len(self.steps) and front[16 : 16 + self.D] == self.link
        count = len(self.tensors) + 1 if known else 0
        *self.final, root = self.take(front, 16 + self.D, count)
        assert root == self.H(b"DGRRroot" + b"".join(self.final))
        tail = front[16 + self.D * (count + 1) :]
        assert struct.unpack(f"<{indexes}Q", tail[:-16]) == tuple(self.offsets[5])
        assert tail[-16:] == struct.pack("<Q", at) + b"DGRRSEAL"


def test_the_grads_file() -> None:
    file = Minimal((GOLDEN / "v2_grads.dgrr").read_bytes())
    assert (file.salt, file.created_at, file.seed, file.numerics) == (bytes(range(16)), 0, 42, 1)
    assert (file.mode, file.state_every, file.largest, file.D) == (2, 1, 1 << 26, 16)
    assert file.events == [(0, "environment", "{}")]
    assert file.environment == file.H(b"{}")
    assert [(t["name"], t["role"], t["dtype"], t["shape"]) for t in file.tensors] == [
        ("w", "param", "f64", [2]),
        ("step", "state", "i64", []),
    ]
    assert file.tree["groups"][0]["rule"] == "sgd@1"
    assert file.order == [1, 2, 7, 3, 3, 3, 5, 6]
    assert [s.loss for s in file.steps] == [2.5, 0.625, 0.15625]
    assert [s.clip for s in file.steps] == [(0.0, 0.0), (1.0, 0.5), (0.0, 0.0)]
    assert file.steps[2].grads == {}
    for number, step in enumerate(file.steps):
        batch = file.digest({"dtype": "f64", "shape": [1]}, struct.pack("<d", number))
        assert step.input_digest == file.H(b"DGRRdata" + struct.pack("<II", 1, 1) + b"0" + batch)


def test_a_reader_older_than_a_rule_reads_on(tmp_path: Path) -> None:
    """`Minimal` knows nothing of `clip_value@1`."""
    params = {"w": np.array([1.0, -2.0])}
    run: dict[str, Any] = {"params": params, "state": {}, "rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1}
    with open_recorder(tmp_path / "t", record="grads", clip_value=0.25, **run) as recorder:
        told: dict[str, Any] = {"params": params, "state": {}, "batch": params, "hyper": {"lr": 0.5}}
        recorder.step(CompletedStep(step=0, loss=np.array(2.0), grads={"w": np.array([0.25, -0.125])}, **told))
    file = Minimal((tmp_path / "t").read_bytes())
    assert [(g["rule"], g["tensors"]) for g in file.tree["groups"]] == [("clip_value@1", []), ("sgd@1", [0])]
    assert file.steps[0].hyper == (0.25, 0.5)
    assert file.steps[0].grads == {"w": struct.pack("<2d", 0.25, -0.125)}


def _nodes(file: Minimal, step: int) -> list[tuple[str, str, bool]]:
    return [(node[0], node[5], grad is not None) for node, _, grad in file.steps[step].ops]


@pytest.mark.parametrize(("record", "mode"), [("bare", 4), ("digest", 1), ("grads", 2)])
def test_digests_of_every_value(tmp_path: Path, record: Any, mode: int) -> None:
    """OPS, NODES and VALUES by the page: two lists of nodes, the first of which two steps share."""
    w, step = np.array([1.0, -2.0]), np.zeros((), np.int64)
    run: dict[str, Any] = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1, "salt": bytes(16)}
    leaf = TapeNode("leaf", "float64", (2,), name="w")
    two = (leaf, TapeNode("mul", "float64", (2,), (0, 0), "", "", "blök.0", 'n.py:7: "\\\t'))
    lists = (two, (*two, TapeNode("sum", "float64", (), (1,), "axis=None")), two)
    options: dict[str, Any] = {"record": record, "record_ops": "every", "record_values": 64}
    with open_recorder(tmp_path / "t", params={"w": w}, state={"step": step}, **run, **options) as recorder:
        for k, nodes in enumerate(lists):
            values = [w * (k + i) for i in range(len(nodes))]
            grads = [None, *[w / (k + i) for i in range(1, len(nodes))]]
            assert recorder.wants_tape(k)
            told = {"hyper": {"lr": 0.5}, "batch": w, "loss": np.array(1.0), "grads": {"w": w + k}}
            after = {"params": {"w": w - k}, "state": {"step": np.array(k + 1)}}
            recorder.step(CompletedStep(step=k, tape=StepTape(nodes, values, grads), **told, **after))
    file = Minimal((tmp_path / "t").read_bytes())
    assert file.mode == mode
    assert [kind for kind in file.order if kind > 100] == [129, 128, 130, 129, 128, 128, 130]
    assert _nodes(file, 0) == _nodes(file, 2) == [("leaf", "w", False), ("mul", "", True)]
    assert _nodes(file, 1) == [("leaf", "w", False), ("mul", "", True), ("sum", "", True)]
    assert file.steps[0].ops[1][0] == ["mul", "float64", [2], [0, 0], "", "", "blök.0", 'n.py:7: "\\ ']
    tensor = {"dtype": "f64", "shape": [2]}
    _, value, grad = file.steps[1].ops[2]
    assert value == file.digest(tensor, (w * 3).tobytes())
    assert grad == file.digest(tensor, (w / 3).tobytes())
    last = {("grad", 0): (w + 2).tobytes(), ("after", 0): (w - 2).tobytes()}
    assert file.steps[2].values == {key: v for key, v in last.items() if record != "grads" or key[0] != "grad"} | (
        {("after", 1): struct.pack("<q", 3)} if record == "grads" else {}
    )
    assert not file.steps[1].values
    assert validate(tmp_path / "t").ok
    with open_trace(tmp_path / "t") as trace:
        for k, own in enumerate(file.steps):
            found = trace.ops(k)
            assert found is not None
            assert list(zip(found.values, found.grads, strict=True)) == [(v, g) for _, v, g in own.ops]
            assert [[n.op, list(n.parents), n.scope] for n in found.nodes] == [
                [n[0], n[3], n[6]] for n, _, _ in own.ops
            ]
        assert trace.tensor("w", step=2, what="after").tolist() == [-1.0, -4.0]
        assert trace.tensor("w", step=2).tolist() == [3.0, 0.0]


def test_the_updates_of_the_grads_file_in_plain_python() -> None:
    """w -= 0.5 * g, exactly; the step count counts every step."""
    file = Minimal((GOLDEN / "v2_grads.dgrr").read_bytes())
    w = list(struct.unpack("<2d", file.keyframes[0]["w"]))
    assert (w, file.keyframes[0]["step"]) == ([1.0, -2.0], bytes(8))
    for count, step in enumerate(file.steps, 1):
        if "w" in step.grads:
            w = [a - step.hyper[0] * g for a, g in zip(w, struct.unpack("<2d", step.grads["w"]), strict=True)]
        after = [struct.pack("<2d", *w), struct.pack("<q", count)]
        assert step.state_digests == [file.digest(t, e) for t, e in zip(file.tensors, after, strict=True)]
    assert w == [0.25, -0.5]
    assert file.final == file.steps[-1].state_digests


def test_the_digest_file() -> None:
    file = Minimal((GOLDEN / "v2_digest.dgrr").read_bytes())
    assert (file.mode, file.state_every, file.D, file.created_at) == (1, 2, 32, 10**18)
    assert file.order == [1, 2, 7, 3, 3, 4, 3, 3, 4, 2, 3, 7, 5, 6]
    assert file.events == [(0, "environment", "{}"), (5, "note", "fünf")]
    names = ["a", "β", "step", "corrections", "m/a", "m/β", "v/a", "v/β"]
    assert [t["name"] for t in file.tensors] == names
    assert [s.micro_batches for s in file.steps] == [2] * 5
    assert [bool(s.state_digests) for s in file.steps] == [False, True, False, True, False]
    assert list(file.keyframes) == [0, 4]
    assert struct.unpack("<q", file.keyframes[4]["step"]) == (4,)
    for t, step in enumerate(file.steps, 1):
        assert step.corrections == pytest.approx((1 - 0.9**t, 1 - 0.999**t), rel=1e-12)
    first = [(k + 1) / 8 for k in range(6)]
    assert file.steps[0].grad_digests["a"] == file.digest(file.tensors[0], struct.pack("<6f", *first))
    labels = file.digest({"dtype": "i64", "shape": [2]}, struct.pack("<2q", 3, 4))
    flags = file.digest({"dtype": "bool", "shape": [2]}, b"\x01\x00")
    parts = struct.pack("<I", 2) + struct.pack("<I", 1) + b"x" + flags + struct.pack("<I", 1) + b"y" + labels
    assert file.steps[3].input_digest == file.H(b"DGRRdata" + parts)


@pytest.mark.parametrize("name", ["v2_grads.dgrr", "v2_digest.dgrr"])
def test_the_package_reads_the_same(name: str) -> None:
    file = Minimal((GOLDEN / name).read_bytes())
    assert validate(GOLDEN / name).ok
    with open_trace(GOLDEN / name) as trace:
        assert trace.sealed
        assert [view.link for view in trace] == [step.link for step in file.steps]
        assert trace.loss.tolist() == [step.loss for step in file.steps]
        assert [view.grad_digests for view in trace] == [step.grad_digests for step in file.steps]
        assert [tuple(view.hyper.values()) for view in trace] == [step.hyper for step in file.steps]
        assert [(n, e.kind, e.text) for n, e in trace.events()] == file.events
        for number, values in file.keyframes.items():
            assert {n: a.tobytes() for n, a in trace.keyframe(number).items()} == values
        for view, step in zip(trace, file.steps, strict=True):
            assert {n: view.grad(n).tobytes() for n in step.grads} == step.grads


def test_the_grads_file_replays() -> None:
    report = replay(GOLDEN / "v2_grads.dgrr")
    assert report.ok
    assert report.update == "proven"


def test_the_example_of_the_page_is_the_grads_file() -> None:
    data = (GOLDEN / "v2_grads.dgrr").read_bytes()
    lines = re.findall(r"^    ([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", PAGE.read_text(), re.MULTILINE)
    assert len(lines) > 20
    for offset, text in lines:
        row = bytes.fromhex(text)
        assert data[int(offset, 16) :][: len(row)] == row, offset
