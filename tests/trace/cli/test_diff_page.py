"""``dgrr diff --html``: what it answers, what it refuses, and that its exit code is that of the comparison."""

import json
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.trace.cli import main


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that part, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for path, start in (("run.dgrr", 1.0), ("other.dgrr", 2.0)):
        params = {"w": np.full(3, start)}
        trainer = Trainer(lambda p, x: (p["w"] * x).sum(), params, SGD(0.5), trace=Keep(path, ops="first"))
        trainer.fit([np.ones(3)], steps=2)


@pytest.mark.parametrize(("other", "code"), [("other.dgrr", 4), ("run.dgrr", 0)])
def test_it_answers_as_without_a_page(other: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run.dgrr", other]) == code
    alone = capsys.readouterr().out
    assert main(["diff", "run.dgrr", other, "--html", "page.html"]) == code
    size = Path("page.html").stat().st_size
    assert capsys.readouterr().out == f"{alone}page.html: {size:,} bytes, open it in a browser\n"
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_the_answer_for_programs_names_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run.dgrr", "other.dgrr", "--html", "page.html", "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["result"]["written"] == "page.html"
    assert main(["diff", "run.dgrr", "other.dgrr", "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["result"]["written"] is None


def test_no_page_replaces_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("other.dgrr").read_bytes()
    assert main(["diff", "run.dgrr", "other.dgrr", "--html", "./other.dgrr"]) == 1
    error = "dgrr: argument --html: ./other.dgrr is one of the traces: give the page another name\n"
    assert capsys.readouterr().err == error
    assert Path("other.dgrr").read_bytes() == before


def test_no_page_of_what_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run.dgrr", "missing", "--html", "page.html"]) == 2
    assert "cannot open missing" in capsys.readouterr().err
    assert not Path("page.html").exists()


def test_a_page_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "run.dgrr", "other.dgrr", "--html", "nowhere/page.html"]) == 2
    assert capsys.readouterr().err == "dgrr: nowhere/page.html: No such file or directory\n"


def test_version_1_has_no_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--steps", "1", "--out", "v1"]) == 0
    assert main(["diff", "v1", "v1", "--html", "page.html"]) == 1
    assert "argument --html: it is not for v1, which is of version 1" in capsys.readouterr().err
