"""Parsing a command line: numbers and paths as people write them, errors as exceptions."""

import argparse
import math
import re
from collections.abc import Callable
from typing import NoReturn

from ...base.errors import DgrrError
from ..comparing.policy import Policy
from ..replaying.expected import root_digits, start_digits


class UsageError(DgrrError):
    """A wrong command line, with the text for people.

    `before` is what people are shown before it: where the parser has found it, how the command is used.
    """

    def __init__(self, message: str, before: str = "dgrr: ") -> None:
        super().__init__(message)
        self.before = before


class Parser(argparse.ArgumentParser):
    """A parser that raises where argparse would end the process with code 2, which means "IO error" here."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(message, f"{self.format_usage()}{self.prog}: error: ")


def _plain(text: str) -> str:
    """Pass a number's text on unless it has what only a program would write: underscores or spaces."""
    if "_" in text or any(character.isspace() for character in text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a plain number")
    return text


def integer(low: int, high: int) -> Callable[[str], int]:
    """The parser of a whole number from ``low`` to ``high``."""

    def parse(text: str) -> int:
        try:
            value = int(_plain(text))
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected an integer, got {text!r}") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"expected {low} to {high}, got {value}")
        return value

    return parse


def learning_rate(text: str) -> float:
    """A finite number above 0."""
    try:
        value = float(_plain(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r}")
    return value


def setting(text: str) -> tuple[str, float]:
    """A hyperparameter and its value."""
    name, _, value = text.partition("=")
    try:
        return name, float(_plain(value))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, such as lr=0.01, got {text!r}") from None


def nonce_bytes(text: str) -> bytes:
    """1 to 64 bytes, in hexadecimal digits."""
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2}){1,64}", text):
        raise argparse.ArgumentTypeError(f"expected 1 to 64 bytes in hexadecimal digits, got {text!r}")
    return bytes.fromhex(text)


def path(text: str) -> str:
    """A path that the system could know."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a path")
    return text


def sha256(text: str) -> str:
    """The last digest of a trace."""
    try:
        return root_digits(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def state_root(text: str) -> str:
    """The state root of a trace."""
    try:
        return start_digits(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def policy(text: str) -> str:
    """How close two traces must be, as `dgrr.trace.compare` takes it."""
    try:
        Policy.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
