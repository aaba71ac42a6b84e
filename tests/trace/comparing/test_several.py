"""Tolerances that are derived from recorded runs, and answers for servers of continuous integration."""

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from dgrr.base.runs.completed_step import CompletedStep
from dgrr.base.runs.run import RuleGroup
from dgrr.trace import Keep, Run, compare, open_recorder, spread
from dgrr.trace.cli.main import main


def recorded(path: Path, apart: float, *, lr: float = 0.1, **kept: Any) -> Path:
    """Two steps of a run whose numbers are so far from those of another."""
    w = np.array([1.0, 2.0]) + apart
    run = Run({"w": np.zeros(2)}, {"step": np.array(0)}, [RuleGroup("own@1", ("lr",))], numerics=0)
    with open_recorder(Keep(path, **{"record": "full", **kept}), run) as recorder:
        for k in range(2):
            recorder.step(
                CompletedStep(
                    step=k,
                    loss=np.float64(4.0) + apart,
                    hyper={"lr": lr},
                    grads={"w": w},
                    params={"w": w},
                    state={"step": np.array(k + 1)},
                    batch=(),
                )
            )
    return path


@pytest.mark.parametrize("kept", [{}, {"record": "bare", "sketches": True}])
def test_three_times_what_was_met_is_allowed(tmp_path: Path, kept: Any) -> None:
    a, b = recorded(tmp_path / "a", 0.0, **kept), recorded(tmp_path / "b", 1e-6, **kept)
    found = spread([a, b])
    assert found.loss == pytest.approx(2.5e-7, rel=1e-3)
    assert found.policy["loss"].startswith("rtol=7.5e-07,") or found.policy["loss"].startswith("rtol=7.6e-07,")
    if not kept:
        assert found.absolute["w"] == pytest.approx(1e-6) and "atol=3.0e-06" in found.policy["*"].replace("3.1", "3.0")
    assert compare(a, b, policy=found.policy)
    assert compare(a, recorded(tmp_path / "c", 2e-6, **kept), policy=found.policy)
    assert not compare(a, recorded(tmp_path / "d", 1e-4, **kept), policy=found.policy)


def test_equal_runs_have_the_policy_of_bits(tmp_path: Path) -> None:
    a, b = recorded(tmp_path / "a", 0.0), recorded(tmp_path / "b", 0.0)
    assert spread([a, b]).policy == {"loss": "bitwise", "*": "bitwise"}


def test_runs_of_other_code_have_no_spread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = recorded(tmp_path / "a", 0.0), recorded(tmp_path / "b", 0.0, lr=0.2)
    with pytest.raises(ValueError, match="expected two traces at least, got 1"):
        spread([a])
    with pytest.raises(ValueError, match="step 0 of .*b was given another batch or setting than that of .*a"):
        spread([a, b])
    assert main(["spread", str(a), str(b)]) == 1
    assert "argument PATH: argument 'paths': expected runs of one code" in capsys.readouterr().err


def test_the_command_prints_what_a_policy_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = recorded(tmp_path / "a", 0.0), recorded(tmp_path / "b", 1e-6)
    assert main(["spread", str(a), str(b), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["spread"]["policy"] == spread([a, b]).policy


def test_a_nightly_job_has_a_test_for_each_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, apart in (("a", 0.0), ("b", 1e-3)):
        (tmp_path / folder).mkdir()
        recorded(tmp_path / folder / "0.dgrr", 0.0)
        recorded(tmp_path / folder / "1.dgrr", apart)
    out = tmp_path / "out.xml"
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--junit", str(out)]) == 4
    suite = fromstring(out.read_bytes())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert [Path(case.get("name") or "").name for case in suite] == ["0.dgrr", "1.dgrr"]
    failure = suite[1].find("failure")
    assert failure is not None and "step 0 is the first that differs" in (failure.get("message") or "")
    (tmp_path / "b" / "0.dgrr").write_bytes(b"DGRR")
    assert main(["diff", str(tmp_path / "a" / "0.dgrr"), str(tmp_path / "b" / "0.dgrr"), "--junit", str(out)]) == 3
    suite = fromstring(out.read_bytes())
    assert suite.get("errors") == "1" and suite[0].find("error") is not None
    capsys.readouterr()
