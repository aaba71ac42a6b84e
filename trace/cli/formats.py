"""Which version of the format a file has, and what that version answers."""

import argparse
from collections.abc import Mapping
from typing import Protocol

from ..exit_codes import Exit
from ..file_version import TraceFileError, version_of
from ..v2.errors import InvalidTraceError
from ..v2.verdict import Verdict
from .answer import Answer

_LACKS = {
    **dict.fromkeys(("at", "export", "report", "show", "when"), "whose steps dgrr inspect shows"),
    "fork": "whose model is fixed",
    "audit": "all of which dgrr validate computes again",
}
"""Commands that version 1 has no answer to, and why."""

_EXPECTED = {
    "expect_root": "{path} is of version 1, which has no root",
    **dict.fromkeys(("steps", "expect_start", "expect_rule", "html"), "it is not for {path}, which is of version 1"),
}
_FIXED = {name: f"{{path}} is of version 1, whose {name} is fixed" for name in ("model", "mode", "rule", "numerics")}
"""Options of the others that it does not take, and why."""


class Format(Protocol):
    """What the commands ask of either version; each answers in its own words."""

    def validate(self, args: argparse.Namespace) -> Answer:
        """Check every rule of the format over the whole file."""
        ...

    def replay(self, args: argparse.Namespace) -> Answer:
        """Recompute every update, and show a step."""
        ...

    def inspect(self, args: argparse.Namespace) -> Answer:
        """Show what is recorded."""
        ...

    def rollback(self, args: argparse.Namespace) -> Answer:
        """Show the state before a step; write the steps before it to a new trace."""
        ...

    def compare(self, args: argparse.Namespace, policy: str) -> Answer:
        """Show where two traces part first, and by how much."""
        ...


def format_of(args: argparse.Namespace) -> Format:
    """The format of the traces that a command is about. Raises as `require_answer`, and where they are of two."""
    versions = [require_answer(args, path) for path in args.paths]
    if len(set(versions)) > 1:
        (a, b), (left, right) = args.paths, versions
        text = f"{a} is of version {left} and {b} of version {right}: they cannot be compared"
        raise TraceFileError(text, Exit.VALIDATION)
    if versions[0] == 1:
        from . import v1  # compiled, and so loaded only for a trace of version 1

        return v1
    from . import v2

    return v2


def require_answer(args: argparse.Namespace, path: str) -> int:
    """The version of a file, which can answer a command line.

    Raises:
        TraceFileError: it is of no version that is known.
        UsageError: it is of version 1, which has no such thing.
    """
    version = version_of(path)
    if version not in (1, 2):
        raise InvalidTraceError(Verdict.UNSUPPORTED, f"{path}: unsupported version {version}, expected 1 or 2")
    if version == 1:
        _require_version_1(args)
    return version


def lacking(command: str, path: str) -> str:
    """Why a command has no answer of a file of version 1; nothing where it has one."""
    return f"{path} is of version 1, {_LACKS[command]}" if command in _LACKS else ""


def _require_version_1(args: argparse.Namespace) -> None:
    """Refuse what version 1 does not have; of its steps one must be named."""
    if why := lacking(args.command.name, args.paths[0]):
        args.parser.error(f"argument PATH: {why}")
    _refuse(args, _EXPECTED)
    if "step" in args and args.step is None:
        args.parser.error(f"argument --step is required: {args.paths[0]} is of version 1")
    _refuse(args, _FIXED)


def _refuse(args: argparse.Namespace, options: Mapping[str, str]) -> None:
    for option, why in options.items():
        if getattr(args, option, None) not in (None, []):
            args.parser.error(f"argument --{option.replace('_', '-')}: {why.format(path=args.paths[0])}")
