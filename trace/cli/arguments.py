"""Parsing a command line: numbers and paths as people write them, what several commands take, errors as exceptions."""

import argparse
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from ...base.errors import DgrrError

TRACE = "trace.dgrr"
"""The trace of version 1's commands where none is named."""

FUNCTION = "MODULE:FUNCTION"
"""What a function of the user's is named by."""

DEFAULT = "default: %(default)s"
# The format's limits; the trace modules that own them load numba.
UINT32 = 2**32 - 1
UINT64 = 2**64 - 1
INT64 = 2**63 - 1
MAX_STEPS = (INT64 - 64) // 72


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

    def trace(self, help: str = "trace file") -> None:
        """The trace by its place."""
        self.add_argument("path", type=path, metavar="PATH", help=help)

    def trace_or_option(self, step: str, *, required: bool = False) -> None:
        """The trace, by its place or by the option of version 1, and a step of it."""
        self.add_argument("path", type=path, nargs="?", metavar="PATH", help=f"trace file; default: {TRACE}")
        self.step(step, "S", required=required)
        self.add_argument("--trace", type=path, metavar="PATH", help="same as PATH")
        self.set_defaults(paths_of=_one_path)

    def require_model(self, args: argparse.Namespace) -> None:
        """Refuse what says of a model how it is run, without one."""
        for option in ("rule", "mode"):
            if getattr(args, option):
                self.error(f"argument --{option}: it requires --model")

    def two_traces(self) -> None:
        """Both traces, or one where the other is computed."""
        traces = "two traces, the reference first; only one with --model"
        self.add_argument("paths", type=path, nargs="*", metavar="PATH", help=traces)
        self.set_defaults(paths_of=_two_paths, a=None, b=None, train_b=None)

    def trains(self) -> None:
        """The functions of the user's that train two runs of PyTorch again."""
        for letter, whose in (("a", "the first run"), ("b", "the second run, of which no trace is needed")):
            train = f"function that trains {whose}, recorded with record_torch where it is told"
            self.add_argument(f"--train-{letter}", metavar=FUNCTION, help=train)

    def number(self, option: str, low: int, high: int, metavar: str, help: str, **more: Any) -> None:
        """A whole number."""
        self.add_argument(option, type=integer(low, high), metavar=metavar, help=help, **more)

    def step(self, help: str, metavar: str = "K", **more: Any) -> None:
        """A step of the trace."""
        self.number("--step", 0, UINT64, metavar, help, **more)

    def new_file(self, help: str, metavar: str = "NEW", **more: Any) -> None:
        """The file that is written."""
        self.add_argument("-o", "--out", type=path, metavar=metavar, help=help, **more)

    def model(self, help: str = "function that returns (loss_fn, batches)", **more: Any) -> None:
        """The function of the user's that returns a loss function and batches, in all commands."""
        self.add_argument("--model", metavar=FUNCTION, help=help, **more)

    def captured_step(self, help: str) -> None:
        """The function of the user's that returns a captured step, by its place."""
        self.add_argument("function", nargs="?", metavar=FUNCTION, help=help)

    def rules(self) -> None:
        """The user's own rules."""
        rule = "class of an optimizer rule that is not built in; can be given several times"
        self.add_argument("--rule", metavar="MODULE:NAME", action="append", default=[], help=rule)

    def mode(self) -> None:
        """How steps are done again."""
        mode = "how to recompute steps: captured if there are many (replay, the default), or op by op (eager)"
        self.add_argument("--mode", choices=("replay", "eager"), help=mode)

    def edits(self, when: str) -> None:
        """What is changed in a step."""
        edit = f"{when}: a parameter, a state, a gradient or a node, such as 'h = h * 0.5'; can be given several times"
        self.add_argument("--edit", metavar="NAME=VALUE", action="append", default=[], help=edit)

    def policy(self) -> None:
        """How close is the same."""
        words = "how close values must be: bitwise, ulp=N, or rtol=X,atol=Y; default: bitwise"
        self.add_argument("--policy", type=policy, metavar="POLICY", help=words)

    def ulp_tolerance(self) -> None:
        """The same in version 1's words."""
        tolerance = "tolerance in units in the last place; default: %(default)s, to the bit"
        self.number("--ulp-tol", 0, UINT64, "N", tolerance, default=0)

    def record(self, whose: str) -> None:
        """What is recorded of each step."""
        held = f"what {whose} records of each step: digests only, or gradients too; {DEFAULT}"
        self.add_argument("--record", choices=("digest", "grads"), default="grads", help=held)

    def seed_and_numerics(self) -> None:
        """What a model depends on, and a trace cannot vouch for."""
        seed = "known seed of the run; default: the one in the trace"
        self.number("--seed", 0, UINT64, "UINT64", seed)
        numerics = "known numerics version of the run; default: the one in the trace"
        self.number("--numerics", 0, UINT32, "N", numerics)

    def expectations(self) -> None:
        """What else a run is known to have."""
        root = "known last digest of the trace, published or signed: 64 hexadecimal digits of SHA-256"
        self.add_argument("--expect-root", type=sha256, metavar="HEX", help=root)
        self.number("--steps", 0, UINT64, "N", "known number of steps")
        start = "known state root before step 0: 32 or 64 hexadecimal digits"
        self.add_argument("--expect-start", type=state_root, metavar="HEX", help=start)
        rule = "known rule of the run, such as adam@1; once for each group of parameters, in order"
        self.add_argument("--expect-rule", metavar="RULE", action="append", default=[], help=rule)


def paths_of(args: argparse.Namespace) -> list[str]:
    """The files that a command is about: those by their places."""
    return [args.path] if "path" in args else args.paths


def _one_path(args: argparse.Namespace) -> list[str]:
    if args.path is not None and args.trace is not None:
        args.parser.error(f"argument --trace: not allowed with PATH {args.path!r}")
    return [args.path or args.trace or TRACE]


def _two_paths(args: argparse.Namespace) -> list[str]:
    given = {"--a": args.a, "--b": args.b}
    if not args.paths and any(given.values()):
        missing = [option for option, value in given.items() if value is None]
        if missing:
            args.parser.error(f"the following arguments are required: {', '.join(missing)}")
        return [args.a, args.b]
    expected = "two traces, PATH_A and PATH_B" if args.model is None else "one trace with --model"
    alone = args.train_b is not None and len(args.paths) == 1
    if any(given.values()) or (not alone and len(args.paths) != (2 if args.model is None else 1)):
        count = len(args.paths) + sum(value is not None for value in given.values())
        args.parser.error(f"expected {expected}, got {count}")
    return list(args.paths)


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
    from ..replaying.expected import root_digits  # these know traces, and so are loaded only where they are given

    try:
        return root_digits(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def state_root(text: str) -> str:
    """The state root of a trace."""
    from ..replaying.expected import start_digits

    try:
        return start_digits(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def policy(text: str) -> str:
    """How close two traces must be, as `dgrr.trace.compare` takes it."""
    from ..comparing.policy import Policy

    try:
        Policy.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
