"""``dgrr cache``: the folder of compiled kernels, its size, filling, emptying and carrying it."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....exit_codes import Exit
from ....file_version import TraceFileError
from ...answer import Answer, Fact, done, ended, listed, untold
from ...arguments import FUNCTION, Parser
from ...loading import load_step

HELP = """
Show, fill, clear or carry the folder of compiled kernels.

Kernels serve every machine that has their level of instructions and the same versions of dgrr, numba and
Python. They are machine code: import only what you trust. Modules are looked for in the current folder, then
among the installed ones.

examples:
  dgrr cache                       show where it is, and its size
  dgrr cache warm train:make       compile what the step of make() of train.py runs
  dgrr cache warm --level v3       compile for machines that have x86-64-v3
  dgrr cache export kernels.tar    write this machine's kernels to one file
  dgrr cache import kernels.tar    add those that are missing here
"""

CARRIED = ("export", "import")


def add_arguments(parser: Parser) -> None:
    action = "show the folder, clear it, warm it (compile ahead), export it to a file, or import such a file"
    choices = ("show", "clear", "warm", *CARRIED)
    parser.add_argument("action", nargs="?", choices=choices, default="show", help=f"{action}; default: %(default)s")
    parser.captured_step(
        "with warm: function that returns a captured step, whose kernels to compile; default: every op in float32. "
        "With export and import: the file"
    )
    level = "with warm and export: level of instructions, such as v3; default: this machine's"
    parser.add_argument("--level", metavar="LEVEL", help=level)


def run(args: argparse.Namespace) -> Answer:
    """What the folder then holds, beside what was done."""
    _require_fitting(args)
    if args.action == "warm":
        return _warmed(args)
    if args.action == "export":
        return _exported(args)
    if args.action == "import":
        return _imported(args.function)
    return _cleared() if args.action == "clear" else done(*_facts())


def _require_fitting(args: argparse.Namespace) -> None:
    """Raise UsageError for arguments that another action takes, or a file that is missing."""
    if args.function is not None and args.action not in ("warm", *CARRIED):
        args.parser.error(f"argument {FUNCTION}: it goes with warm, not with {args.action}")
    if args.level is not None and args.action not in ("warm", "export"):
        args.parser.error(f"argument --level: it goes with warm and export, not with {args.action}")
    if args.function is None and args.action in CARRIED:
        args.parser.error(f"expected the file: dgrr cache {args.action} FILE")


def _level(args: argparse.Namespace) -> str:
    """The level that is asked for by the whole of its name or the end of it. Raises UsageError."""
    from .....tape.numerics.engine.code_for import levels, target

    parser: Parser = args.parser
    if args.level is None:
        return target()[1]
    names = [level.name for level in levels()]
    found = next((name for name in names if args.level in (name, name.removeprefix("x86-64-"))), None)
    if found is None:
        parser.error(f"argument --level: expected one of {', '.join(names)}, got {args.level!r}")
    return found


def _warmed(args: argparse.Namespace) -> Answer:
    """Compile, and say what the folder then holds, and what could not be compiled."""
    from .....tape.numerics.engine.code_for import host_level, levels, target
    from ... import warm

    level, names = _level(args), [level.name for level in levels()]
    if level != target()[1]:
        if names.index(level) > names.index(host_level().name):
            most = f"this machine has {host_level().name} at most, and what is compiled is run"
            args.parser.error(f"argument --level: {most}; warm {level} where it can run, and export it there")
        return _warmed_elsewhere(warm.in_another_process(level, args.function), level)
    failures = warm.compiled(warm.tasks()) if args.function is None else []
    if args.function is not None:
        load_step(args.function)
    if not failures:
        return done(*_facts())
    lines = listed(f"{failure['task']}: {failure['error']}" for failure in failures)
    return ended(Exit.IO, "failed", *_facts(failed=failures), error=f"not everything was compiled:\n{lines}")


def _warmed_elsewhere(answer: Mapping[str, Any], level: str) -> Answer:
    """What a process that compiled for another level has answered."""
    if not answer:
        raise TraceFileError(f"the process that compiled for {level} ended before it was done", Exit.IO)
    result: Mapping[str, Any] = answer["result"] or {}
    facts = _facts(failed=result.get("failed", ()))
    return ended(Exit(answer["exit_code"]), answer["verdict"], *facts, error=answer["error"] or "")


def _cleared() -> Answer:
    """Remove the files."""
    from .....base import kernel_cache

    held = kernel_cache.files()
    text = f"{kernel_cache.folder()}: removed {_described(held)}"
    try:
        kernel_cache.clear()
    except OSError as error:
        raise TraceFileError(f"{error.filename}: cannot be removed: {error.strerror}", Exit.IO) from None
    return done(*_facts(text, removed=len(held)))


def _exported(args: argparse.Namespace) -> Answer:
    """Write the kernels of a level, and those for GPUs, to a file."""
    from .....base import kernel_archive, kernel_cache
    from .....tape.numerics.engine.disk_cache import compiled_by

    level, folder = _level(args), kernel_cache.folder()
    names = [path.relative_to(folder).as_posix() for path in kernel_cache.files()]
    packed = [name for name in names if kernel_archive.NAME.fullmatch(name) and name.split("/")[:-1] in ([], [level])]
    if not any("/" in name for name in packed):
        advice = f"`dgrr cache warm --level {level}` compiles them"
        raise TraceFileError(f"{folder}: expected kernels for {level}, got none; {advice}", Exit.IO)
    kernel_archive.pack(args.function, compiled_by(level), packed)
    text = f"{args.function}: {len(packed)} files of kernels for {level}"
    return done(*_facts(text, exported=len(packed)))


def _imported(path: str) -> Answer:
    """Take in what a file holds and the folder does not, if this environment could load it."""
    from .....base.kernel_archive import KernelArchiveError, read, unpack
    from .....tape.numerics.engine.code_for import target
    from .....tape.numerics.engine.disk_cache import compiled_by

    try:
        archive = read(path)
    except KernelArchiveError as error:
        raise TraceFileError(str(error), Exit.IO) from None
    level = archive.made_by.get("level", "")
    if archive.made_by != compiled_by(level):
        theirs, ours = (", ".join(made_by.values()) for made_by in (archive.made_by, compiled_by(level)))
        advice = "export them where the same is installed"
        raise TraceFileError(f"{path}: expected kernels of {ours}, got those of {theirs}; {advice}", Exit.IO)
    new = unpack(archive)
    text = f"{path}: {len(archive.files)} files of kernels for {level}, {len(new)} of them new"
    if level != target()[1]:
        text += f"\n{path}: this machine uses {target()[1]}; with NUMBA_CPU_NAME={level} a program uses these"
    return done(*_facts(text, imported=len(new)))


def _facts(text: str = "", *, failed: Sequence[Mapping[str, str]] = (), **counted: int) -> list[Fact]:
    """Where the folder is and what it holds, in all and for each level, and how many files were removed or carried.

    ``text`` is said instead, of what was done.
    """
    from .....base import kernel_cache
    from .....tape.numerics.engine.code_for import target

    folder, files, levels = kernel_cache.folder(), kernel_cache.files(), dict[str, list[Path]]()
    for path in files:
        if path.parent != folder:
            levels.setdefault(path.relative_to(folder).parts[0], []).append(path)
    lines = [f"{folder}: {_described(files)}", *(f"  {level}: {_described(paths)}" for level, paths in levels.items())]
    rows = [{"level": level, **_size(paths)} for level, paths in levels.items()]
    counts = {"removed": 0, "exported": 0, "imported": 0, **counted}
    return [
        Fact("folder", str(folder), text or "\n".join(lines)),
        *untold(level=target()[1], **_size(files), levels=rows, **counts, failed=failed),
    ]


def _size(files: Sequence[Path]) -> dict[str, int]:
    """How many, of how many bytes."""
    return {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}


def _described(files: Sequence[Path]) -> str:
    """``133 files of compiled kernels, 9.2 MB``."""
    from rich.filesize import decimal

    return f"{len(files)} file{'' if len(files) == 1 else 's'} of compiled kernels, {decimal(_size(files)['bytes'])}"
