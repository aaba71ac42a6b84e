"""Rolling back: the steps before one, as a child of the trace."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dgrr.trace import InvalidTraceError, Verdict, open_trace, replay, validate
from dgrr.trace.v2.repair.rollback import rollback_v2

RecordRun = Callable[..., Path]


def links(path: Path) -> list[bytes]:
    with open_trace(path) as trace:
        return [view.link for view in trace]


@pytest.mark.parametrize("step", [0, 3, 4, 6])
@pytest.mark.parametrize("state_every", [1, 4])
def test_rollback_makes_a_child(record_run: RecordRun, tmp_path: Path, step: int, state_every: int) -> None:
    path = record_run(state_every=state_every, keyframe_every=2)
    before = path.read_bytes()
    assert rollback_v2(path, step, tmp_path / "child") == 6 - step
    assert path.read_bytes() == before
    assert validate(tmp_path / "child").ok
    assert links(tmp_path / "child") == links(path)[:step]
    with open_trace(tmp_path / "child") as child:
        assert child.header.parent_root == before[-16:] + bytes(16)
        assert child.header.parent_steps == step
        assert child.header.salt != bytes(16)
    provable = state_every == 1 or step in (0, 4, 6)
    assert replay(tmp_path / "child").verdict is (Verdict.OK if provable else Verdict.UNPROVEN)


def test_rollback_refuses(record_run: RecordRun, tmp_path: Path) -> None:
    path = record_run()
    with pytest.raises(ValueError, match="step: expected 0 to 6, got 7"):
        rollback_v2(path, 7, tmp_path / "child")
    with pytest.raises(ValueError, match="writes only new files"):
        rollback_v2(path, 2, path)
    (tmp_path / "torn").write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InvalidTraceError):
        rollback_v2(tmp_path / "torn", 2, tmp_path / "child")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.dgrr", "torn"]
