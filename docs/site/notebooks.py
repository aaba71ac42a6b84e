"""The notebooks, executed: they are kept without outputs, and each reader of the site sees what they give today."""

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from dgrr.tape.numerics.engine.compile_notice import BEGINNING

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def stage(folder: Path) -> None:
    """Write every notebook with its outputs."""
    folder.mkdir(parents=True)
    for path in NOTEBOOKS:
        nbformat.write(executed(path), folder / path.name)


def executed(path: Path) -> Any:
    """A notebook with its outputs. Raises CellExecutionError where a cell does.

    If kernels were compiled, which a notebook tells by a bar, it runs once more: readers of the site see none of that.
    """
    notebook = run(path)
    return run(path) if BEGINNING in nbformat.writes(notebook) else notebook


def run(path: Path) -> Any:
    """A notebook after one run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=300, startup_timeout=300, resources=resources).execute()
    return notebook
