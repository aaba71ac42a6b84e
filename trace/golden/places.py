"""Where the golden files of a test module lie: that follows from the module's place, never from the current folder."""

from collections.abc import Iterator
from pathlib import Path

from ...base.errors import DgrrError
from .names import module_folder
from .settings import FOLDER

MARKS = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git")
"""What stands in the root of a project."""


class TwoSetsError(DgrrError):
    """A module has golden files in two places, or would have them."""


def golden_folder(module: Path, project: Path | None) -> Path:
    """The folder of golden files of a module for which no setting names one.

    The one above it that has files of this module; else that of the project, whose root is the folder of pytest's
    settings, the nearest with a mark of a project, the one that holds ``tests``, or else the module's own.

    Args:
        module: its file.
        project: the folder of the settings that pytest has found, if any.

    Raises:
        TwoSetsError: several have files of this module.
    """
    found = list(_sets(module))
    if len(found) > 1:
        raise TwoSetsError(
            f"golden files of {module} lie in {found[0]} and in {found[1]}: delete those that are not to count, "
            "or name their folder with --dgrr-dir"
        )
    return found[0] if found else root_of(module, project) / FOLDER


def root_of(module: Path, project: Path | None) -> Path:
    """The root of the project of a module; arguments as of `golden_folder`."""
    if project is not None and module.is_relative_to(project):
        return project
    marked = (folder for folder in module.parents if any((folder / mark).exists() for mark in MARKS))
    above_tests = (folder.parent for folder in module.parents if folder.name == "tests")
    return next(marked, None) or next(above_tests, module.parent)


def require_one_set(module: Path, golden: Path, root: Path) -> None:
    """Raise TwoSetsError if the project's settings name a folder without files of a module that lie elsewhere."""
    if (golden / module_folder(module, golden, root)).is_dir():
        return
    for other in _sets(module):
        raise TwoSetsError(
            f"golden files of {module} lie in {other}, and a second set would begin in {golden}, which dgrr_dir names: "
            "move them there, or delete them"
        )


def _sets(module: Path) -> Iterator[Path]:
    """The folders of golden files above a module, where no setting names one, that have files of it."""
    for root in module.parents:
        golden = root / FOLDER
        if (golden / module_folder(module, golden, root)).is_dir():
            yield golden
