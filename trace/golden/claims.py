"""Which test writes which golden file: one test for each, in all processes of a run."""

import os
from hashlib import sha256
from pathlib import Path

from ...base import system


def claim(folder: Path, name: str, owner: str) -> str:
    """The test that has claimed a golden file in this run: ``owner`` itself, or one that came before.

    Names that differ in the case of letters alone are one file on some systems, and so they are here.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as made:
    ...     claims = [claim(Path(made), "test_fit", "test_a"), claim(Path(made), "Test_Fit", "test_b")]
    >>> claims
    ['test_a', 'test_a']
    """
    folder.mkdir(parents=True, exist_ok=True)
    claimed = folder / sha256(name.casefold().encode()).hexdigest()
    own = folder / f"{os.getpid()}.tmp"
    own.write_text(owner)
    try:
        system.link(own, claimed)  # with its content, or not at all
    except FileExistsError:
        return claimed.read_text()
    finally:
        own.unlink()
    return owner
