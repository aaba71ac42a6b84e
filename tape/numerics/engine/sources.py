"""Which source files a kernel is made of: its own, and all that it imports, directly or not.

Kernels inline what they import, so their machine code is as old as the oldest of these files. A module of which no
kernel inlines anything may say so by a line ``# kernels: none``; then it and its imports are left out. So a formula can
stand beside a class that is made from it.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

PACKAGE = Path(__file__).parents[3]
"""The folder of dgrr."""

IMPORT = re.compile(
    r"^[ \t]*from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]+)"
    r"|^[ \t]*import[ \t]+(?P<modules>[^\n]+)",
    re.MULTILINE,
)
"""An import statement. It is looked for in the text because parsing every file would cost each process 0.1 s."""

NONE = re.compile(r"^# kernels: none$", re.MULTILINE)
"""What a module says of which no kernel inlines anything."""

COMMENT = re.compile(r"#[^\n]*")


@cache
def sources_digest(path: Path) -> str:
    """SHA-256 over the source file at ``path`` and all that it imports from dgrr and from beside it.

    Over their names too, by which machine code kept on the disk finds the modules that it is of: a module that is
    moved, its text unchanged, has other code.
    """
    digest = sha256()
    for source in sorted(sources(path)):
        digest.update(_name(source) + _file_digest(source))
    return digest.hexdigest()


def _name(path: Path) -> bytes:
    """The name of a source file, wherever the package is installed."""
    return (path.relative_to(PACKAGE).as_posix() if PACKAGE in path.parents else path.name).encode() + b"\0"


@cache
def _file_digest(path: Path) -> bytes:
    return sha256(path.read_bytes()).digest()


def sources(path: Path) -> set[Path]:
    """The source file at ``path`` and all that it imports, directly or not, from dgrr and from beside it."""
    found, waiting = set[Path](), [path]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting.extend(path for path in imported(source) if not _without_kernels(path))
    return found


@cache
def _without_kernels(path: Path) -> bool:
    return bool(NONE.search(path.read_text()))


@cache
def imported(path: Path) -> frozenset[Path]:
    """The source files that the one at ``path`` names in its import statements."""
    found = set[Path]()
    for match in IMPORT.finditer(COMMENT.sub("", path.read_text())):
        if match["modules"]:
            for module in match["modules"].split(","):
                found |= _absolute(path, module.split()[0], ())
        else:
            names = [name.split()[0] for name in match["names"].strip("() \n").split(",") if name.strip()]
            if match["dots"]:
                found |= _named(path.parents[len(match["dots"]) - 1], match["module"], names)
            else:
                found |= _absolute(path, match["module"], names)
    return frozenset(found)


def _absolute(path: Path, module: str, names: list[str] | tuple[str, ...]) -> set[Path]:
    """The files of ``import module``; what lies beside a file of dgrr is never meant, even if it has that name."""
    top, _, rest = module.partition(".")
    if top == "dgrr":
        return _named(PACKAGE, rest, names)
    return set() if PACKAGE in path.parents else _named(path.parent, module, names)


def _named(folder: Path, module: str, names: list[str] | tuple[str, ...]) -> set[Path]:
    """The files of ``from module import names``, ``module`` being below a folder; none if it is not there."""
    base = folder.joinpath(*module.split(".")) if module else folder
    files = {_file_of(base), *(_file_of(base / name) for name in names)}
    return {file for file in files if file is not None}


def _file_of(module: Path) -> Path | None:
    """The source file of a module or package; None if there is none."""
    candidates = (module.with_name(f"{module.name}.py"), module / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)
