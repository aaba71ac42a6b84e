"""What a run is known to have from elsewhere, held against what its trace says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import NUMERICS, nn
from dgrr.trace import Verdict, replay, validate
from dgrr.trace.cli.main import main
from dgrr.trace.v2.repair.rollback import rollback_v2

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


# ------------------------------------------------------------------ another run: its length, its beginning, its rules


def plain_loss(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


def train(path: Path, *, weight: float = 1.0, rule: Any = None, **options: Any) -> Path:
    trainer = Trainer(plain_loss, {"w": np.full(4, weight)}, rule or SGD(0.1), trace=path, **options)
    trainer.fit([np.ones(4)], steps=6, progress=False)
    return path


def test_a_run_that_was_cut_and_sealed_anew(tmp_path: Path) -> None:
    """It is whole in itself: only who knows its length can tell."""
    rollback_v2(train(tmp_path / "run"), 4, tmp_path / "cut")
    assert validate(tmp_path / "cut").ok
    assert validate(tmp_path / "run", steps=6).ok
    for report in (validate(tmp_path / "cut", steps=6), replay(tmp_path / "cut", steps=6)):
        assert (report.verdict, report.exit_code) == (Verdict.CHAIN, 3)
        assert report.findings[0].text == "steps: expected 6, the trace has 4: it was cut, or goes on"
        assert report.update == "not proven"


def test_a_run_of_another_beginning(tmp_path: Path) -> None:
    one, other = train(tmp_path / "one"), train(tmp_path / "other", weight=2.0)
    starts = [validate(path).start for path in (one, other)]
    assert starts[0] != starts[1]
    assert validate(one, expect_start=str(starts[0]).upper()).ok
    for report in (validate(other, expect_start=starts[0]), replay(other, expect_start=starts[0])):
        expected = f"start: expected {starts[0]}, the trace begins with {starts[1]}: it begins differently"
        assert (report.verdict, report.findings[0].text) == (Verdict.CHAIN, expected)


def test_a_run_by_another_rule(tmp_path: Path) -> None:
    path = train(tmp_path / "t", clip_value=0.5)
    assert validate(path, expect_rules=["clip_value@1", "sgd@1"]).ok
    for report in (validate(path, expect_rules=["adam@1"]), replay(path, expect_rules=["adam@1"])):
        assert (report.verdict, report.exit_code) == (Verdict.CHAIN, 3)
        assert report.findings[0].text == "rules: expected adam@1, the trace has clip_value@1, sgd@1"


def test_version_1_has_steps_alone() -> None:
    assert validate(GOLDEN, steps=1).ok
    texts = [f.text for f in validate(GOLDEN, steps=2, expect_start="0" * 32, expect_rules=["sgd@1"]).findings]
    assert texts == [
        "steps: expected 2, the trace has 1: it was cut, or goes on",
        f"start: expected {'0' * 32}, the trace has none: it begins differently",
        "rules: expected sgd@1, the trace names none",
    ]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"steps": -1}, "argument 'steps': expected a whole number of at least 0, got -1"),
        ({"steps": 1.5}, "argument 'steps': expected a whole number of at least 0, got 1.5"),
        (
            {"expect_start": "x"},
            "argument 'expect_start': expected the 32 or 64 hexadecimal digits of a state root, got 'x'",
        ),
        (
            {"expect_rules": "sgd@1"},
            "argument 'expect_rules': expected the names of all rules, got 'sgd@1'; write ['sgd@1']",
        ),
    ],
)
def test_expectations_that_are_none(given: dict[str, Any], text: str) -> None:
    for command in (validate, replay):
        with pytest.raises(ValueError, match="expected") as caught:
            command("none", **given)
        assert str(caught.value) == f"{command.__name__}: {text}"


@pytest.mark.parametrize("command", ["validate", "replay"])
def test_the_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    path = train(tmp_path / "t", record="grads")
    start = str(validate(path).start)
    right = ["--steps", "6", "--expect-start", start, "--expect-rule", "sgd@1"]
    assert main([command, str(path), *right]) == 0
    capsys.readouterr()
    assert main([command, str(path), "--steps", "7", "--expect-start", "0" * 32, "--expect-rule", "adam@1"]) == 3
    said = capsys.readouterr().err
    assert [said.count(f"chain: {what}: expected ") for what in ("steps", "start", "rules")] == [1, 1, 1]
    assert main([command, str(path), "--expect-start", "0"]) == 1
    assert (
        "argument --expect-start: expected the 32 or 64 hexadecimal digits of a state root" in capsys.readouterr().err
    )
    for option in ("--steps=1", f"--expect-start={start}", "--expect-rule=sgd@1"):
        assert main([command, str(GOLDEN), option]) == 1
        assert (
            f"argument {option.partition('=')[0]}: it is not for {GOLDEN}, which is of version 1"
            in capsys.readouterr().err
        )
