"""The notebooks, executed: they are kept without outputs, and each reader of the site sees what they give today."""

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def stage(folder: Path) -> None:
    """Write every notebook with its outputs."""
    folder.mkdir(parents=True)
    for path in NOTEBOOKS:
        nbformat.write(executed(path), folder / path.name)


def executed(path: Path) -> Any:
    """A notebook with its outputs, run in an empty folder. Raises CellExecutionError where a cell does."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        manager = AsyncKernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, km=manager, timeout=120, resources=resources).execute()
    return notebook
