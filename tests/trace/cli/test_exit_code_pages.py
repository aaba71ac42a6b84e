"""The pages that list verdicts and exit codes have all of them."""

import re
from pathlib import Path

import pytest

import dgrr
from dgrr.trace import Verdict
from dgrr.trace.cli import main
from dgrr.trace.exit_codes import Exit


def rows(page: str, columns: int) -> list[list[str]]:
    """The rows of the tables of a page that have so many columns."""
    lines = (Path(dgrr.__file__).parent / "docs" / page).read_text().splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return [row for row in cells if len(row) == columns]


WORDS = {(str(int(verdict.exit_code)), verdict.value) for verdict in Verdict}


def test_the_page_for_programs_tells_what_to_do_of_every_verdict() -> None:
    told = {(row[0], word) for row in rows("agents.md", 5) for word in row[1].replace("`", "").split(", ")}
    assert told >= WORDS
    assert {str(int(code)) for code in Exit} == {code for code, _ in told if code.isdigit()}
    assert all(row[4] for row in rows("agents.md", 5)), "what to do stands in each row"


def test_the_page_on_the_format_has_every_verdict() -> None:
    told = {(code, word.strip("`")) for code, word, _ in rows("trace_format.md", 3) if word.startswith("`")}
    assert {(code, word) for code, word in told if code.isdigit()} == WORDS


def test_the_page_and_the_help_have_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = re.findall(r"^ +(\d+)  (\S.*)$", capsys.readouterr().out.partition("exit codes:")[2], re.MULTILINE)
    assert said == [(str(int(code)), code.about) for code in Exit]
    assert [code for code, _ in rows("command_line.md", 2) if code.isdigit()] == [code for code, _ in said]
