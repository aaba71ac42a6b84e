"""Drift told from change: another library gives other bits of the same calls, other code makes other calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Comparison, Keep, compare
from dgrr.trace.comparing.policy import Policy
from dgrr.trace.exit_codes import Exit
from dgrr.trace.frameworks.pytorch import recording
from dgrr.trace.golden.errors import GoldenDriftWarning, GoldenMismatchError
from dgrr.trace.golden.keeping import require_same
from dgrr.trace.golden.marker import marker_of
from dgrr.trace.golden.recording import GoldenRecording

from .gpt import torch, train

LEVEL: dict[str, Any] = {"level": "op"}


@contextmanager
def kernels(*, onednn: bool) -> Iterator[None]:
    """Those of oneDNN, or others for some ops."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(onednn)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


@pytest.fixture
def no_onednn() -> Iterator[None]:
    with kernels(onednn=False):
        yield


def recorded(path: Path, level: str = "op", ops: Any = "every", **made: Any) -> Path:
    train(Keep(path, record="bare", ops=ops), options={"level": level}, steps=2, **made)
    return path


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("right") / "right.dgrr")


def judged(right: Path, path: Path, **made: Any) -> Comparison:
    return compare(right, recorded(path, **made), policy="drift")


def test_other_kernels_are_drift(right: Path, tmp_path: Path, no_onednn: None) -> None:
    found = judged(right, tmp_path / "b.dgrr")
    assert (found.word, found.verdict.exit_code, found.step) == ("drift (environment)", Exit.DRIFT, 0)
    assert found.call is not None and found.call.change.value == "gives"
    assert (
        "drift: every recorded op is called with the same arguments as before; torch onednn: True -> False"
        in found.notes
    )
    assert not found and compare(right, tmp_path / "b.dgrr").verdict.exit_code == Exit.DIVERGED


def test_the_size_of_drift_is_told_where_values_are_recorded(tmp_path: Path, no_onednn: None) -> None:
    def kept(name: str) -> Any:
        return Keep(tmp_path / name, record="full", ops=[0])

    with kernels(onednn=True):
        train(kept("a"), steps=1, options={"level": "op"})
    train(kept("b"), steps=1, options={"level": "op"})
    found = compare(tmp_path / "a", tmp_path / "b", policy="drift")
    (size,) = [note for note in found.notes if note.startswith("drift: by up to ")]
    assert 0 < float(size.split()[4]) < 64 and "in the gradient of '" in size


CHANGES: dict[str, dict[str, Any]] = {
    "rope": {"rope": 10001.0},
    "scale": {"scale": 0.354},
    "mask": {"diagonal": 1},
    "eps": {"eps": 1.01e-5},
    "lr": {"lr": 1.0001e-2},
    "decay": {"decay": 0.101},
    "clip": {"clip": 0.0999},
    "dropout": {"dropout": 0.101},
    "std": {"std": 0.0200001},
    "order": {"order": [1, 0]},
    "shift": {"shift": True},
    "sum": {"reduction": "sum"},
    "schedule": {"warm": 1},
    "fused": {"fused": True},
    "residual": {"mlp_residual": 0.9999},
    "gelu": {"gelu": "tanh"},
    "embedding": {"embedding": 1.0001},
    "no zero_grad": {"zeroed": False},
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_is_called_drift(right: Path, tmp_path: Path, no_onednn: None, change: str) -> None:
    """Though other kernels ran as well, mostly before it."""
    found = judged(right, tmp_path / "b.dgrr", **CHANGES[change])
    assert found.verdict.value in ("diverged", "unproven") and found.cause is not None
    assert found.cause.value != "environment"


@pytest.mark.parametrize("change", ["rope", "shift", "clip", "fused"])
def test_a_change_on_one_machine_is_a_change(right: Path, tmp_path: Path, change: str) -> None:
    found = judged(right, tmp_path / "b.dgrr", **CHANGES[change])
    assert found.verdict.value == "diverged" and found.environment == {}


def test_a_kernel_that_changes_on_one_machine_is_no_drift(
    right: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where settings are not told, or a kernel is not deterministic."""
    settings = recording.settings_of
    monkeypatch.setattr(recording, "settings_of", lambda *given: settings(*given) | {"onednn": True})
    with kernels(onednn=False):
        found = judged(right, tmp_path / "b.dgrr")
    assert (found.word, found.environment) == ("diverged (gradient)", {})
    assert found.call is not None and found.call.change.value == "gives"


def test_a_schedule_that_changes_behind_drift(right: Path, tmp_path: Path, no_onednn: None) -> None:
    found = judged(right, tmp_path / "b.dgrr", warm=1)
    assert found.sentence.startswith("step 1 is not the same code: another lr: 0.009")
    assert "; before it, drift: step 0 is the first that differs" in found.sentence


def test_without_calls_nothing_is_called_drift(tmp_path: Path, no_onednn: None) -> None:
    with kernels(onednn=True):
        a = recorded(tmp_path / "a.dgrr", level="layer")
    found = judged(a, tmp_path / "b.dgrr", level="layer")
    assert found.word == "diverged (gradient)"
    assert (
        "drift or change: no calls of ops are recorded at step 0, record_torch(…, level='op'); "
        "torch onednn: True -> False"
    ) in found.notes


def test_a_golden_trace_passes_with_a_warning(tmp_path: Path) -> None:
    policy = Policy.parse("drift")

    def golden(name: str, **made: Any) -> Path:
        made_now = GoldenRecording(tmp_path / name, "golden", marker_of([((), {"policy": "drift"})]))
        train(made_now, steps=2, **made)
        return tmp_path / name

    a = golden("a.dgrr")
    require_same(a, golden("same.dgrr"), policy)
    with kernels(onednn=False):
        b, c = golden("b.dgrr"), golden("c.dgrr", scale=0.354)
    with pytest.warns(GoldenDriftWarning, match="torch onednn: True -> False"):
        require_same(a, b, policy)
    with pytest.raises(GoldenMismatchError):
        require_same(a, c, policy)


def test_the_policy_is_a_word() -> None:
    assert str(Policy.parse("drift")) == "drift" and Policy.parse("drift").bitwise
