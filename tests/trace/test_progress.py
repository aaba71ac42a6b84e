"""The bar of long work: on a terminal, where it is wanted, and nowhere else."""

from collections.abc import Callable, Iterable
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dgrr.trace import replay, write_report
from dgrr.trace.cli.main import main
from dgrr.trace.progress import showing


@pytest.mark.parametrize(("terminal", "wanted"), [(True, True), (True, False), (False, True)])
def test_the_bar(terminal: bool, wanted: bool) -> None:
    console = Console(file=StringIO(), force_terminal=terminal, width=80)
    assert list(showing(["a", "b"], "audit [b]", 5, wanted=wanted, done=3, console=console)) == ["a", "b"]
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("5/5" in said and "audit [b]" in said) is (terminal and wanted)
    assert bool(said) is (terminal and wanted)


def test_who_shows_a_bar(record_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands, over all steps; functions where they are asked to."""
    told, path = list[tuple[str, int, bool]](), record_run()

    def noted(results: Iterable[Any], what: str, total: int, *, wanted: bool) -> Iterable[Any]:
        told.append((what, total, wanted))
        return results

    for module in ("replaying.replay", "report.run"):
        monkeypatch.setattr(import_module(f"dgrr.trace.{module}"), "showing", noted)
    assert main(["replay", str(path)]) == 0
    assert told == [("replay", 6, True)]
    assert main(["report", str(path), "-o", f"{path}.html"]) == 0
    assert told[1:] == [("replay", 6, True), ("report", 6, True)]
    replay(path)
    write_report([path], f"{path}.html")
    assert told[3:] == [("replay", 6, False), ("replay", 6, False), ("report", 6, False)]
