"""The bar of an audit: on a terminal, where it is wanted, and nowhere else."""

from io import StringIO

import pytest
from rich.console import Console

from dgrr.trace.auditing.progress import showing


@pytest.mark.parametrize(("terminal", "wanted"), [(True, True), (True, False), (False, True)])
def test_the_bar(terminal: bool, wanted: bool) -> None:
    console = Console(file=StringIO(), force_terminal=terminal, width=80)
    assert list(showing(["a", "b"], 3, 5, wanted=wanted, console=console)) == ["a", "b"]
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("5/5" in said and "audit" in said) is (terminal and wanted)
    assert bool(said) is (terminal and wanted)
