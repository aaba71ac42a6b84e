"""Sources with one place changed, and whether that is found."""

import shutil
from collections.abc import Callable
from pathlib import Path

from .host import HEADERS, PACKAGE, Host, HostError


def mutated(folder: Path, programs: Path, file: str, old: str, new: str) -> Host:
    """A host of the sources with one place changed."""
    sources = (PACKAGE / "tape/ops").rglob("*.cu")
    for path in (*HEADERS.glob("*.cuh"), *sources):
        shutil.copy(path, folder)
    text = (folder / file).read_text()
    assert old in text, "the mutant is of another source"
    (folder / file).write_text(text.replace(old, new))
    return Host(programs, folder, folder)


def is_found(search: Callable[..., int], *arguments: object) -> bool:
    """Whether wrong elements are found, or what no device allows."""
    try:
        return search(*arguments) > 0
    except HostError:
        return True
