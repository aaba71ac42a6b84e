"""The golden files of version 2, read by a second reader that shares no code with the package.

`Minimal` is written from docs/trace_format.md alone; it checks every byte of the two files, which are kept for
ever. What the runs computed is stated here by hand or recomputed in plain Python.
"""

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import CompletedStep, StepTape, TapeNode, open_trace, replay, validate

from ....keeping import recorder_of
from .minimal import Minimal

GOLDEN = Path(__file__).parents[3] / "golden"
PAGE = Path(__file__).parents[4] / "docs" / "trace_format.md"


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
    with recorder_of(tmp_path / "t", record="grads", clip_value=0.25, **run) as recorder:
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
    options: dict[str, Any] = {"record": record, "ops": "every", "values": 64}
    with recorder_of(tmp_path / "t", params={"w": w}, state={"step": step}, **run, **options) as recorder:
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


def test_a_golden_trace_that_is_kept() -> None:
    """Mode `bare` with every op digested, as the plugin of pytest wrote it once."""
    (path,) = (Path(__file__).parents[2] / "golden" / "kept").rglob("*.dgrr")
    file = Minimal(path.read_bytes())
    assert (file.mode, len(file.steps), set(file.order)) == (4, 50, {1, 2, 3, 5, 6, 7, 128, 129, 130})
    assert [bool(step.values) for step in file.steps] == [True, *[False] * 48, True]
    with open_trace(path) as trace:
        for view, step in zip(trace, file.steps, strict=True):
            found = view.ops()
            assert found is not None
            assert [(n.op, v, g) for n, v, g in zip(found.nodes, found.values, found.grads, strict=True)] == [
                (n[0], v, g) for n, v, g in step.ops
            ]
            grads = {node.name: grad for node, grad in zip(found.nodes, found.grads, strict=True) if node.name}
            assert grads == view.grad_digests


def _recorded(path: Path, steps: int, count: int, **options: Any) -> Minimal:
    """A run of many params, of which four have gradients, with a buffer, state and a rule of two hyperparameters."""
    rng = np.random.default_rng(2)
    params = {f"p{i:02}": rng.standard_normal((2, 3)).astype((np.float32, np.float64)[i % 2]) for i in range(count)}
    state, buffers = {"step": np.zeros((), np.int64), "m": np.zeros(2000)}, {"seen": np.zeros(3, np.float32)}
    run: dict[str, Any] = {"rule": "none@1", "hyperparameters": ["lr", "x"], "numerics": 1, "salt": bytes(16)}
    run |= {"params": params, "state": state, "model_state": buffers, "on_nonfinite": "record"}
    with recorder_of(path, **run, **options) as recorder:
        for k in range(steps):
            for array in (params["p00"], state["m"], buffers["seen"]):
                array += 1
            state["step"][...] = k + 1
            grads = {name: params[name] * 0.5 for name in ("p00", "p03", "p64", "p69")[k % 4 :] if name in params}
            told = {"grads": grads, "params": params, "state": state, "model_state": buffers}
            told["batch"] = (np.arange(k % 3),)
            told["metrics"] = {"accuracy": k / 4, "größe": -k} if k % 3 else {}
            loss = np.array(np.inf if k == 2 else 1 / (k + 1), np.float32)
            clip = (0.5, 0.25) if k % 2 else None
            recorder.step(CompletedStep(step=k, loss=loss, hyper={"lr": 0.5, "x": k / 8}, clip=clip, **told))
    return Minimal(path.read_bytes())


@pytest.mark.parametrize("record", ["digest", "grads", "full", "bare"])
def test_every_mode_with_buffers_and_frames_in_parts(tmp_path: Path, record: Any) -> None:
    options: dict[str, Any] = {"state_every": 2, "keyframe_every": 4, "largest_payload": 8192, "values": 4096}
    if record == "bare":
        options["keyframe_every"] = 8
    file = _recorded(tmp_path / "t", 6, 70, record=record, **options)
    assert validate(tmp_path / "t").ok
    assert list(file.keyframes) == ([0] if record == "bare" else [0, 4])
    assert file.parts == {"bare": 1, "digest": 3, "grads": 3, "full": 3}[record]
    with open_trace(tmp_path / "t") as trace:
        for view, step in zip(trace, file.steps, strict=True):
            assert (view.clip or (0.0, 0.0), tuple(view.hyper.values())) == (step.clip, step.hyper)
            assert view.nonfinite is (view.step == 2)
            assert view.loss == step.loss
            assert {**view.buffer_digests, **view.state_digests} == step.after_digests
            assert view.grad_digests == step.grad_digests
            k = view.step
            assert view.metrics() == step.metrics == ({"accuracy": k / 4, "größe": -k} if k % 3 else {})
            assert {name: array.tobytes() for name, array in view.after().items()} == step.after
            if step.grads:
                assert {name: array.tobytes() for name, array in view.gradients().items()} == step.grads
        for number, values in file.keyframes.items():
            if values:
                assert {name: array.tobytes() for name, array in trace.keyframe(number).items()} == values
    kept = {"grads": [False, True], "full": [False, False]}.get(record, [True, True])  # what the STEPs leave out
    assert [bool(file.steps[step].values) for step in (0, 5)] == kept


def test_an_index_of_1024_steps_and_one_of_the_rest(tmp_path: Path) -> None:
    file = _recorded(tmp_path / "t", 1027, 1, record="digest", keyframe_every=1024, commit_every=512, state_every=1024)
    assert (len(file.offsets[5]), len(file.offsets[4]), list(file.keyframes)) == (2, 2, [0, 1024])
    assert len(file.steps) == 1027


def test_a_type_that_no_reader_knows_is_skipped(tmp_path: Path) -> None:
    """A frame of type 200 behind the last step, with INDEX and SEAL made anew behind it."""
    from dgrr.trace.v2.format.frame import FrameEncoder

    data = (GOLDEN / "v2_grads.dgrr").read_bytes()
    file = Minimal(data)
    at = file.offsets[5][0]
    encoder = FrameEncoder(file.salt, data[at - 16 : at], file.H, file.order.index(5))
    made = data[:at] + b"".join(encoder.encode(200, 3, b"front", 0))
    shift = len(made) - at
    index = bytearray(data[file.offsets[5][0] + 48 :][: int.from_bytes(data[at + 28 : at + 32], "little")])
    made += b"".join(encoder.encode(5, 0, bytes(index), 0))
    seal_at = len(made)
    old = file.offsets[6][0]
    front = bytearray(data[old + 48 :][: int.from_bytes(data[old + 28 : old + 32], "little")])
    front[-24:-16], front[-16:-8] = (at + shift).to_bytes(8, "little"), seal_at.to_bytes(8, "little")
    made += b"".join(encoder.encode(6, 3, bytes(front), 0))
    (tmp_path / "t").write_bytes(made)
    again = Minimal(made)
    assert again.order == [1, 2, 7, 3, 3, 3, 200, 5, 6]
    assert [step.link for step in again.steps] == [step.link for step in file.steps]
    assert validate(tmp_path / "t").ok
