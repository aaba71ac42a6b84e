"""A command is a file and a word: made-up ones show that nothing else is needed."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgrr.trace.cli import commands, main

MADE_UP = '''
"""``dgrr count-bytes``."""

import os

from dgrr.trace.cli.answer import Fact, done
from dgrr.trace.cli.formats import format_of

HELP = """
Count the bytes of a trace.

examples:
  dgrr count-bytes run.dgrr    all of them
"""

ALIASES = ("wc",)


def add_arguments(parser):
    parser.trace()
    parser.step("up to this one")


def run(args):
    found = format_of(args).validate
    size = os.stat(args.path).st_size
    return done(Fact("bytes", size, f"{args.path}: step {args.step}"), Fact("by", found.__module__))
'''


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command more, in a file of a folder that is searched too."""
    (tmp_path / "count_bytes.py").write_text(MADE_UP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.setattr(commands, "PLACES", (*commands.PLACES, "count_bytes"))
    assert main(["train", "--steps", "2", "--out", "v1"]) == 0
    yield
    sys.modules.pop(f"{commands.__name__}.count_bytes", None)


@pytest.mark.usefixtures("made_up")
def test_a_command_is_a_file_and_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["count-bytes", "v1", "--step", "3"]) == 0
    assert capsys.readouterr().out == "v1: step 3\n"
    assert main(["wc", "v1", "--step", "0", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["command"], answer["verdict"], answer["paths"]) == ("count-bytes", "ok", ["v1"])
    assert answer["result"] == {"bytes": 64 + 2 * 72, "by": "dgrr.trace.cli.v1"}


@pytest.mark.usefixtures("made_up")
def test_its_help_and_its_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert re.search(r"\n    count-bytes \(wc\)\s+count the bytes of a trace\n", capsys.readouterr().out)
    assert main(["count-bytes", "--help"]) == 0
    out = capsys.readouterr().out
    assert "\nCount the bytes of a trace.\n" in out
    assert out.endswith("\nexamples:\n  dgrr count-bytes run.dgrr    all of them\n")
    assert main(["count-bytes"]) == 1
    assert "dgrr count-bytes: error: the following arguments are required: PATH" in capsys.readouterr().err
    assert main(["count-bytes", "v1", "--step", "x"]) == 1
    assert "argument --step: expected an integer, got 'x'" in capsys.readouterr().err
    assert main(["count-bytes", "missing"]) == 2
    assert capsys.readouterr().err == "dgrr: cannot open missing: No such file or directory\n"


def test_every_file_is_a_command() -> None:
    rooms = [Path(folder) for folder in commands.__path__]
    files = [path.relative_to(room).with_suffix("") for room in rooms for path in room.rglob("*.py")]
    assert sorted(".".join(f.parts) for f in files if f.stem != "__init__") == sorted(commands.PLACES)
