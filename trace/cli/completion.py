"""What completes a command line in a shell: commands, options, their words and files."""

import argparse
from collections.abc import Iterator
from typing import Any, cast

import shtab

from .arguments import path


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The program in the language of a shell that completes what a parser parses."""
    for action in _actions(parser):
        if action.type is path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # what shtab looks for
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        choices: Any = action.choices
        if isinstance(choices, dict):  # of commands
            for command in cast(dict[str, argparse.ArgumentParser], choices).values():
                yield from _actions(command)
