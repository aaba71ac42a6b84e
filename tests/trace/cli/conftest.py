"""What tests of commands share."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ModuleOf = Callable[[str, str], Any]


@pytest.fixture
def module_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleOf:
    """In an empty folder, where a command can import it, the module of a name and a text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def made(name: str, text: str) -> Any:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return made
