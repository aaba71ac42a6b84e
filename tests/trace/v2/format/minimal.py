"""A second reader of version 2 that shares no code with the package: written from docs/trace_format.md alone."""

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import xxhash

NAMES = (
    *("f32", "f64", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"),
    *("f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "c64", "c128", "f8e8m0fnu"),
)
SIZES = (4, 8, 8, 4, 2, 1, 8, 4, 2, 1, 1, 2, 2, 1, 1, 1, 1, 8, 16, 1)
ITEM = {name: (code, size) for code, (name, size) in enumerate(zip(NAMES, SIZES, strict=True), 1)}


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
    after_digests: dict[str, bytes]
    after: dict[str, bytes]
    ops: list[tuple[list[Any], bytes, bytes | None]] = field(default_factory=list)
    values: dict[tuple[str, int], bytes] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)


@dataclass
class Minimal:
    """Reads a file of version 2 from its first byte to its last and asserts every rule it meets.

    `newest`: the last type of frames that it knows; it skips those behind.
    """

    data: bytes
    newest: int = 135
    steps: list[Step] = field(default_factory=list)
    keyframes: dict[int, dict[str, bytes]] = field(default_factory=dict)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        head = self.data[:256]
        assert head[:4] == b"DGRR"
        *fixed, self.reader, alignment = struct.unpack("<HHIHH", head[4:16])
        assert fixed == [2, 0, 256] and alignment == 8 and self.reader in (2, 3, 4, 5)
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
            at, seq = self.frame(at, seq)
        assert self.order[0] == 1 and self.order[1] == 2 and self.order[-1] == 6

    def frame(self, at: int, seq: int) -> tuple[int, int]:
        """A frame with all its parts: where the next one begins, and its number."""
        kind, step, front, body, end, more = self.part(at, seq, 0)
        parts = 1
        while more:
            assert len(front) + len(body) == parts * self.largest
            again = self.part(end, seq + parts, parts)
            assert again[:2] == (kind, step) and again[3]
            body, end, more = body + again[3], again[4], again[5]
            parts += 1
        self.parts = max(getattr(self, "parts", 0), parts)
        self.offsets.setdefault(kind, []).append(at)
        self.order.append(kind)
        if kind > self.newest:
            return end, seq + parts  # skipped
        self.read(kind, step, front, body, at)
        return end, seq + parts

    def part(self, at: int, seq: int, number: int) -> tuple[int, int, bytes, bytes, int, bool]:
        head = self.data[at : at + 48]
        assert head[:4] == bytes.fromhex("da475246")
        assert zlib.crc32(self.salt + head[:44]) == u32(head, 44)
        kind, flags, part = head[4], head[5], int.from_bytes(head[6:8], "little")
        assert (part, u64(head, 8)) == (number, seq) and flags in (0, 1) and at % 8 == 0
        length, front_length = u32(head, 24), u32(head, 28)
        assert length <= self.largest and (front_length == 0 or number == 0)
        assert head[32:40] == self.chain[:8]
        payload = self.data[at + 48 : at + 48 + length]
        front, body = payload[:front_length], payload[front_length:]
        assert zlib.crc32(front) == u32(head, 40)
        end = at + 48 + length + -length % 8
        assert not any(self.data[at + 48 + length : end])
        self.chain = self.H(self.chain + head + front)
        assert self.data[end : end + self.D] == self.chain
        return kind, u64(head, 16), front, body, end + self.D, bool(flags)

    def read(self, kind: int, step: int, front: bytes, body: bytes, at: int) -> None:
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
            131: self.metrics,
            132: self.validation,
            133: self.noted,
            134: self.called,
            135: self.sketched,
        }[kind](step, front, body, at)

    def schema(self, step: int, front: bytes, body: bytes, at: int) -> None:
        self.tree: Any = json.loads(front)
        text = json.dumps(self.tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert text.encode() == front and not body and step == 0
        self.schema_digest = self.H(front)
        self.tensors = self.tree["tensors"]
        assert self.reader >= 3 or all(ITEM[t["dtype"]][0] < 12 for t in self.tensors)
        self.params = [t for t in self.tensors if t["role"] == "param"]
        self.buffers = [t for t in self.tensors if t["role"] == "buffer"]
        self.updated = [t for t in self.tensors if t["role"] != "buffer"]
        assert self.tensors == self.updated + self.buffers and self.updated[: len(self.params)] == self.params
        self.hyper = sum(len(g["hyperparameters"]) for g in self.tree["groups"])
        self.corrections = sum(g["corrections"] for g in self.tree["groups"])

    def digest(self, tensor: dict[str, Any], elements: bytes) -> bytes:
        code, _ = ITEM[tensor["dtype"]]
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
        random, cursor = struct.unpack("<II", front[:8])
        opaque = random + cursor
        begin = 8 + opaque + -opaque % 8
        assert opaque <= 65536 and not any(front[8 + opaque : begin])
        *digests, root = self.take(front, begin, len(self.tensors) + 1)
        assert len(front) == begin + (len(self.tensors) + 1) * self.D
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
        assert zero == 0 and flags < 4 and micro >= 1
        assert flags & 1 or (threshold, scale) == (0.0, 0.0)
        as_bits, as_float = (("<I", "<f"), ("<Q", "<d"))[code - 1]
        loss = struct.unpack(as_float, struct.pack(as_bits, bits))[0]
        at_hyper = fixed + 32 + D
        scalars = struct.unpack_from(f"<{self.hyper + self.corrections}d", front, at_hyper)
        at_bitmap = at_hyper + 8 * len(scalars)
        assert flags & 2 or math.isfinite(loss)
        words = -(-len(self.params) // 64)
        bitmap = int.from_bytes(front[at_bitmap : at_bitmap + 8 * words], "little")
        present = [t for i, t in enumerate(self.params) if bitmap >> i & 1]
        assert bitmap >> len(self.params) == 0
        due = (step + 1) % self.state_every == 0
        count = len(present) + len(self.buffers) + (len(self.updated) + 1 if due else 0)
        assert len(front) == at_bitmap + 8 * words + count * D
        digests = self.take(front, at_bitmap + 8 * words, count)
        grad_digests = {t["name"]: d for t, d in zip(present, digests, strict=False)}
        of_buffers, after = digests[len(present) :][: len(self.buffers)], digests[len(present) + len(self.buffers) :]
        if due:
            self.root = after.pop()
            after += of_buffers
            assert self.root == self.H(b"DGRRroot" + b"".join(after))
        known = {t["name"]: d for t, d in zip(self.buffers, of_buffers, strict=True)}
        known |= {t["name"]: d for t, d in zip(self.tensors, after, strict=False)}
        inside = {1: [], 2: self.buffers, 3: self.buffers + (self.updated if due else []), 4: []}[self.mode]
        grads = present if self.mode in (2, 3) else []
        # A param may stand in the body twice, as its gradient and as its value after the step.
        titled = [t | {"name": "grad " + t["name"]} for t in grads] + inside
        elements = self.split(titled, body)
        assert {t["name"]: self.digest(t, elements["grad " + t["name"]]) for t in grads} == (
            grad_digests if grads else {}
        )
        assert all(self.digest(t, elements[t["name"]]) == known[t["name"]] for t in inside)
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
                {t["name"]: elements["grad " + t["name"]] for t in grads},
                known,
                {t["name"]: elements[t["name"]] for t in inside},
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
            expected = (own.after_digests if what else own.grad_digests)[tensor["name"]]
            assert self.digest(tensor, elements) == expected
            own.values["after" if what else "grad", position] = elements

    def metrics(self, step: int, front: bytes, body: bytes, at: int) -> None:
        self.figures(self.steps[step].metrics, step, front, body)

    def validation(self, step: int, front: bytes, body: bytes, at: int) -> None:
        self.figures(self.steps[step].validation, step, front, body)

    def noted(self, step: int, front: bytes, body: bytes, at: int) -> None:
        told = json.loads(front)
        assert told.keys() == {"notes", "host", "time"} and not body and step == len(self.steps)
        self.notes = [*getattr(self, "notes", []), (step, told)]

    def called(self, step: int, front: bytes, body: bytes, at: int) -> None:
        first, length, count, form = struct.unpack("<IIII", front[:16])
        text, digests = front[16 : 16 + length], front[16 + length :]
        assert form == (self.reader == 4) and not body and step == len(self.steps) and len(digests) == count * self.D
        told = json.loads(zlib.decompress(text) if form else text)
        table = [digests[i * self.D : (i + 1) * self.D] for i in range(count)]
        if form:
            new = [sum(not back for back in told["digests"][:i]) for i in range(len(told["digests"]))]
            table = [table[n - back] for n, back in zip(new, told["digests"], strict=True)]
        found, at = [], 0
        for *texts, flags, taken, given in told["calls"]:
            begin = at + bool(flags & 4)
            parts = table[begin : begin + taken + given]
            found.append(([told["texts"][i] for i in texts], flags, parts[:taken], parts[taken:]))
            at = begin + taken + given
        assert at == len(table)
        self.calls: dict[int, list[Any]] = getattr(self, "calls", {})
        self.calls[step] = [*self.calls.get(step, [])[:first], *found]

    def sketched(self, step: int, front: bytes, body: bytes, at: int) -> None:
        count, sums = struct.unpack("<II", front[:8])
        assert sums == 16 * count and not body and step == len(self.steps) - 1 and len(front) == 8 + 72 * count
        self.sketches: dict[tuple[int, int, int], tuple[float, ...]] = {}
        for i in range(count):
            position, kind = struct.unpack_from("<II", front, 8 + 8 * i)
            self.sketches[step, position, kind] = struct.unpack_from("<16f", front, 8 + 8 * count + 64 * i)

    def figures(self, found: dict[str, float], step: int, front: bytes, body: bytes) -> None:
        count, zero = struct.unpack("<II", front[:8])
        assert count and zero == 0 and not body and step == len(self.steps) - 1 and not found
        numbers, at = struct.unpack(f"<{count}d", front[8 : 8 + 8 * count]), 8 + 8 * count
        for number in numbers:
            name, at = front[at + 4 :][: u32(front, at)].decode(), at + 4 + u32(front, at)
            assert name and name not in found
            found[name] = number
        assert at == len(front)

    def commit(self, step: int, front: bytes, body: bytes, at: int) -> None:
        assert struct.unpack("<QQ", front) == (len(self.steps), at) and not body

    def event(self, step: int, front: bytes, body: bytes, at: int) -> None:
        kind, text = struct.unpack("<II", front[:8])
        assert len(front) == 8 + kind + text and step == len(self.steps)
        self.events.append((step, front[8 : 8 + kind].decode(), front[8 + kind :].decode()))

    def index(self, step: int, front: bytes, body: bytes, at: int) -> None:
        first, steps, keyframes, previous = struct.unpack("<QIIQ", front[:24])
        before = self.offsets[5][:-1]
        assert first == step == 1024 * len(before) and previous == (before[-1] if before else 0) and not body
        numbers = struct.unpack(f"<{steps + 2 * keyframes}Q", front[24:])
        listed = self.offsets[3][first:]
        assert list(numbers[:steps]) == listed and len(listed) <= 1024
        pairs = [(k, o) for k, o in zip(self.keyframes, self.offsets[2], strict=True) if k // 1024 == len(before)]
        assert list(zip(numbers[steps::2], numbers[steps + 1 :: 2], strict=True)) == pairs

    def seal(self, step: int, front: bytes, body: bytes, at: int) -> None:
        steps, known, indexes = struct.unpack("<QII", front[:16])
        assert steps == step == len(self.steps) and front[16 : 16 + self.D] == self.link
        count = len(self.tensors) + 1 if known else 0
        *self.final, root = self.take(front, 16 + self.D, count)
        assert root == self.H(b"DGRRroot" + b"".join(self.final))
        tail = front[16 + self.D * (count + 1) :]
        assert struct.unpack(f"<{indexes}Q", tail[:-16]) == tuple(self.offsets[5])
        assert tail[-16:] == struct.pack("<Q", at) + b"DGRRSEAL"
