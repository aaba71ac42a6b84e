"""Golden traces without pytest."""

from functools import partial
from pathlib import Path

import pytest

from dgrr.trace.golden.commands import check, record
from dgrr.trace.golden.errors import GoldenError

from .toy import train


def test_a_run_is_recorded_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "golden" / "toy.dgrr"
    assert record(path, train) == "written"
    written = path.read_bytes()
    assert check(path, train).same
    assert record(path, train) == "verified"
    assert path.read_bytes() == written
    found = check(path, partial(train, lr=0.25))
    assert (found.same, found.step) == (False, 0)
    assert path.read_bytes() == written
    assert record(path, partial(train, lr=0.25)) == "updated"
    assert not check(path, train).same


def test_a_policy_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "toy.dgrr"
    record(path, train, policy="rtol=1e-3")
    assert check(path, partial(train, off=1e-5), policy="rtol=1e-3").same
    assert not check(path, partial(train, off=1e-5)).same
    with pytest.raises(ValueError, match="policy: expected 'bitwise', 'ulp=4'"):
        check(path, train, policy="close")


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    path = tmp_path / "toy.dgrr"
    with pytest.raises(GoldenError, match="nothing was recorded: give it to a run"):
        record(path, lambda trace: None)
    missing = check(path, train)
    assert (missing.same, missing.verdict.value) == (False, "io")
    record(path, train)
    path.with_suffix(".dgrr.txt").unlink()
    with pytest.raises(GoldenError, match="the text beside it, toy.dgrr.txt, is missing"):
        check(path, train)
    path.with_suffix(".dgrr.txt").write_text("another\n")
    with pytest.raises(GoldenError, match="the text beside it, toy.dgrr.txt, is that of another file"):
        check(path, train)
    assert record(path, train) == "updated"
