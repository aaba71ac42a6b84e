"""The face of the trace wing: its names are loaded when they are first asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dgrr.trace


@pytest.mark.parametrize("name", dgrr.trace.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(dgrr.trace, name) is getattr(dgrr.trace, name)
    assert name in dir(dgrr.trace)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^dgrr.trace has no 'nothing'$"):
        _ = dgrr.trace.nothing  # type: ignore[attr-defined]


def test_type_checkers_are_told_the_same() -> None:
    tree = ast.parse(Path(dgrr.trace.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    told = {alias.name: "." * node.level + (node.module or "") for node in imports for alias in node.names}
    assert told == dgrr.trace._HOMES
    assert sorted(told) == sorted(dgrr.trace.__all__)


def test_to_import_it_loads_nothing_else() -> None:
    program = (
        "import sys, dgrr.trace; print(sorted(m for m in sys.modules if m.startswith(('dgrr.', 'numpy', 'xxhash'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['dgrr.trace']\n"
