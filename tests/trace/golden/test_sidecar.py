"""The text beside a golden file."""

import re
from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import CompletedStep, open_trace
from dgrr.trace.golden.sidecar import agrees, sidecar

from ...keeping import recorder_of

pytestmark = pytest.mark.quick


def trace(path: Path, steps: int, tensors: int = 1) -> Path:
    """A trace of some steps, the loss of each its number."""
    params = {f"layer{i}": np.zeros((2, 3), np.float32) for i in range(tensors)}
    run = {"params": params, "state": {}, "rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 3, "seed": 7}
    with recorder_of(path, salt=bytes(16), created_at=0, **run) as recorder:
        for step in range(steps):
            told = {"hyper": {"lr": 0.1}, "grads": {}, "params": params, "state": {}, "batch": ()}
            recorder.step(CompletedStep(step=step, loss=np.array(step / 10, np.float32), **told))
    return path


def test_it_says_what_a_reviewer_asks(tmp_path: Path) -> None:
    lines = sidecar(trace(tmp_path / "t.dgrr", 2)).splitlines()
    assert lines[0] == "golden trace of 2 steps"
    with open_trace(tmp_path / "t.dgrr") as there:
        root = there.seal.final[-1] if there.seal is not None else b""
        digest = there.seal.final[0].hex() if there.seal is not None else ""
        assert lines[1:3] == [f"state chain  {there[-1].link.hex()}", f"state root   {root.hex()}"]
    assert lines[3:] == [
        "numerics  3",
        "seed      7",
        "rule      sgd@1",
        "  lr           0.1",
        "",
        "1 tensor",
        f"  layer0  param  f32  [2, 3]  {digest}",
        "",
        "loss",
        "       0  0.0                      0x0.0p+0",
        "       1  0.1                      0x1.99999a0000000p-4",
    ]


def test_it_is_the_same_wherever_the_run_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = sidecar(trace(tmp_path / "here.dgrr", 2))
    monkeypatch.setattr("dgrr.trace.v2.write.open_recorder.describe_environment", lambda: {"cpu": "another"})
    assert sidecar(trace(tmp_path / "there.dgrr", 2)) == here


@pytest.mark.parametrize(("steps", "tensors"), [(0, 0), (0, 1), (1, 1), (40, 40), (41, 41), (500, 60)])
def test_it_fits_a_screen_or_two(tmp_path: Path, steps: int, tensors: int) -> None:
    path = trace(tmp_path / "t.dgrr", steps, tensors)
    text = sidecar(path)
    assert len(text.splitlines()) <= 100
    assert agrees(text, path)
    if steps:
        first, *_, last = text.partition("loss\n")[2].splitlines() * 2
        assert (int(first.split()[0]), int(last.split()[0])) == (0, steps - 1)


def test_another_run_has_another(tmp_path: Path) -> None:
    assert not agrees(sidecar(trace(tmp_path / "a.dgrr", 2)), trace(tmp_path / "b.dgrr", 3))


def test_a_text_with_the_names_of_before_still_agrees(tmp_path: Path) -> None:
    path, other = trace(tmp_path / "a.dgrr", 2), trace(tmp_path / "b.dgrr", 3)
    old = sidecar(path).replace("state chain  ", "chain     ").replace("state root   ", "state     ")
    older = re.sub(r"(  layer0 .*)  [0-9a-f]{32}$", r"\1", old, flags=re.MULTILINE)
    assert len({old, older, sidecar(path)}) == 3
    for text in (old, older):
        assert agrees(text, path)
        assert not agrees(text, other)


def test_a_text_with_another_digest_of_a_tensor_does_not_agree(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.dgrr", 2, 3)
    assert agrees(sidecar(path), path)
    assert not agrees(re.sub(r"(layer1 .* )[0-9a-f]{32}$", rf"\g<1>{32 * 'a'}", sidecar(path), flags=re.M), path)
