"""What the golden file of a test is called. Standard library only: test runners load this before any test."""

import re
from hashlib import sha256
from pathlib import Path, PurePosixPath

from ...base.errors import DomainError

SUFFIX = ".dgrr"
SIDECAR_SUFFIX = ".dgrr.txt"

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST = 120
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}")


def module_folder(module: Path, golden: Path, root: Path) -> str:
    """The folder of a test module inside the folder of golden files, with `/` between its parts.

    That of the module below the folder that holds the golden files, else below the root of the project, else its
    name alone.

    >>> tests = Path("/project/tests")
    >>> module_folder(tests / "runtime" / "test_fit.py", tests / "golden", tests.parent)
    'runtime/test_fit'
    >>> module_folder(Path("/project/src/test_sums.py"), tests / "golden", tests.parent)
    'src/test_sums'
    """
    above = next((f for f in (golden.parent, root) if module.is_relative_to(f)), module.parent)
    return PurePosixPath(*module.relative_to(above).with_suffix("").parts).as_posix()


def file_stem(test: str) -> str:
    """The name of the golden file of a test: classes before dots, its parameters after a dash.

    What not every file system takes becomes `_`, and so that two tests never share a name by that, such a name, and
    one that is cut, ends with eight digits of the SHA-256 of the test's own.

    >>> file_stem("TestDigits::test_fit[adam-0.1]"), file_stem("test_fit")
    ('TestDigits.test_fit-adam-0.1', 'test_fit')
    >>> file_stem("test_fit[a b]")
    'test_fit-a_b-25f43ce3'
    """
    function, bracket, case = test.partition("[")
    whole = function.replace("::", ".") + (f"-{case.removesuffix(']')}" if bracket else "")
    safe = _UNSAFE.sub("_", whole)[:_LONGEST]
    return safe if safe == whole else f"{safe}-{sha256(test.encode()).hexdigest()[:8]}"


def checked_name(name: str) -> str:
    """A name that a test gives. Raises DomainError that says which names there are.

    >>> checked_name("digits_mlp")
    'digits_mlp'
    """
    if not _NAME.fullmatch(name):
        raise DomainError(
            f"golden_trace: argument 'name': expected up to 120 letters, digits, '.', '_' and '-', which begin with "
            f"none of '.' and '-', got {name!r}"
        )
    return name


def salt(name: str) -> bytes:
    """The salt of a golden file, which follows from its name: so a run that has not changed has the same bytes.

    >>> len(salt("test_fit"))
    16
    """
    return sha256(f"golden trace {name}".encode()).digest()[:16]
