"""``dgrr cache``: the folder of compiled kernels, its size, filling and emptying it."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from ....exit_codes import Exit
from ....file_version import TraceFileError
from ...answer import Answer, Fact, done, ended, listed, untold
from ...arguments import FUNCTION, Parser
from ...loading import load_step

HELP = """
Show, fill or clear the folder of compiled kernels.

Modules are those of the current folder and the installed ones.

examples:
  dgrr cache                    where it is, and its size
  dgrr cache warm train:make    compile what the step of make() of train.py runs
"""


def add_arguments(parser: Parser) -> None:
    action = "what to do: show the folder, clear it, or warm it, which compiles ahead; default: %(default)s"
    parser.add_argument("action", nargs="?", choices=("show", "clear", "warm"), default="show", help=action)
    parser.captured_step(
        "with warm: what returns a captured step, to compile what that runs; default: every op in float32"
    )


def run(args: argparse.Namespace) -> Answer:
    """``show`` says where the folder is and what it holds, ``clear`` removes its files, ``warm`` fills it."""
    if args.action == "warm":
        return _warmed(args.function)
    if args.function is not None:
        args.parser.error(f"argument {FUNCTION}: it goes with warm, not with {args.action}")
    from .....base import kernel_cache

    held = _contents()
    if args.action == "show":
        return done(*_facts(held, _described(held)))
    try:
        kernel_cache.clear()
    except OSError as error:
        raise TraceFileError(f"{error.filename}: cannot be removed: {error.strerror}", Exit.IO) from None
    return done(*_facts(_contents(), f"removed {_described(held)}", removed=held["files"]))


def _warmed(function: str | None) -> Answer:
    """Compile, and say what the folder then holds, and what could not be compiled."""
    from ... import warm

    failures = warm.compiled(warm.tasks()) if function is None else []
    if function is not None:
        load_step(function)
    facts = _facts(held := _contents(), _described(held), failures=failures)
    if not failures:
        return done(*facts)
    lines = listed(f"{failure['task']}: {failure['error']}" for failure in failures)
    return ended(Exit.IO, "failed", *facts, error=f"not everything was compiled:\n{lines}")


def _facts(
    held: dict[str, Any], text: str, *, removed: int = 0, failures: Sequence[Mapping[str, str]] = ()
) -> list[Fact]:
    folder, *rest = untold(**held, removed=removed, failed=failures)
    return [folder._replace(text=f"{folder.value}: {text}"), *rest]


def _contents() -> dict[str, Any]:
    """The folder, and how many files of how many bytes it holds."""
    from .....base import kernel_cache

    files = kernel_cache.files()
    size = sum(path.stat().st_size for path in files)
    return {"folder": str(kernel_cache.folder()), "files": len(files), "bytes": size}


def _described(held: dict[str, Any]) -> str:
    """``133 files of compiled kernels, 9.2 MB``."""
    from rich.filesize import decimal

    return f"{held['files']} file{'' if held['files'] == 1 else 's'} of compiled kernels, {decimal(held['bytes'])}"
