"""What a run is known to have from elsewhere, held against what its trace says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import NUMERICS, nn
from dgrr.trace import Verdict, replay

RecordRun = Callable[..., Path]
GOLDEN = Path(__file__).parents[2] / "golden" / "v1_one_step.dgrr"
DROPOUT = nn.Dropout(0.5)


def noisy_loss(p: Any, x: Any, ctx: Any) -> Any:
    """A loss that draws from the seed."""
    return DROPOUT({}, p["w"] * x, ctx).sum()


def test_a_wrong_seed_replays_well_until_it_is_said(tmp_path: Path) -> None:
    """The model draws from the seed that the trace names, so a run of a wrong seed agrees with itself."""
    path, batches = tmp_path / "t.dgrr", [np.ones(64, np.float32)]
    Trainer(noisy_loss, {"w": np.ones(64, np.float32)}, SGD(0.1), trace=path, seed=8).fit(batches, steps=3)
    assert replay(path, loss_fn=noisy_loss, batches=batches).ok
    assert replay(path, loss_fn=noisy_loss, batches=batches, seed=8).ok
    report = replay(path, loss_fn=noisy_loss, batches=batches, seed=7)
    assert (report.verdict, report.exit_code) == (Verdict.DATA, 5)
    assert report.findings[0].text == "seed: expected 7, the trace says 8"
    assert (report.update, report.gradient) == ("not proven", "not proven")


def test_another_numerics_version_than_expected(record_run: RecordRun) -> None:
    path = record_run()
    assert replay(path, numerics=NUMERICS).ok
    report = replay(path, numerics=NUMERICS + 1)
    assert (report.verdict, report.exit_code) == (Verdict.NUMERICS, 6)
    assert report.findings[0].text == f"numerics version: expected {NUMERICS + 1}, the trace says {NUMERICS}"


def test_both_are_said_before_what_else_was_found(record_run: RecordRun) -> None:
    report = replay(record_run(seal=False), seed=1, numerics=0)
    assert [finding.verdict for finding in report.findings] == [Verdict.DATA, Verdict.NUMERICS, Verdict.UNSEALED]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ({"seed": 42}, None),
        ({"seed": 0}, "seed: expected 0, the trace says 42"),
        ({"numerics": 1}, "numerics version: expected 1, a trace of version 1 names none"),
    ],
)
def test_version_1(expected: dict[str, int], text: str | None) -> None:
    report = replay(GOLDEN, **expected)
    assert [finding.text for finding in report.findings] == ([text] if text else [])


@pytest.mark.parametrize("length", [0, 7, 8, 255, 256, 300])
def test_a_file_that_is_cut_within_its_beginning(record_run: RecordRun, tmp_path: Path, length: int) -> None:
    (tmp_path / "cut").write_bytes(record_run().read_bytes()[:length])
    report = replay(tmp_path / "cut", seed=7)
    assert report.findings[-1].verdict is Verdict.TORN_TAIL


def test_damage_is_said_before_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(GOLDEN.read_bytes()[:-1])
    report = replay(tmp_path / "bad", seed=7)
    assert [finding.verdict for finding in report.findings] == [Verdict.CORRUPT]
