"""The commands of `dgrr`: one file each, with its arguments, its run, what it prints and its JSON.

A file has ``HELP``, its page: what the command is for, a blank line, and what else there is to know, with examples;
``add_arguments(parser)``; ``run(args)``, which gives an `Answer`; and ``ALIASES``, if it has other names. What computes
is imported inside functions, for it loads numba and machine code: so ``dgrr --help`` and a usage error come at once.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from .... import __version__
from ...exit_codes import Exit
from ..answer import Answer, listed
from ..arguments import Parser, UsageError, paths_of

PLACES = (
    "making.demo",
    "proving.validate",
    "proving.replay",
    "looking.inspect",
    "looking.show",
    "looking.ls",
    "making.rollback",
    "making.recover",
    "proving.compare",
    "proving.spread",
    "looking.at",
    "looking.when",
    "making.fork",
    "looking.export",
    "proving.audit",
    "proving.bisect",
    "looking.report",
    "proving.test",
    "proving.verify_step",
    "making.cache",
    "making.train",
)
"""Where each command is, in the order of ``dgrr --help``; the last part is its name."""


class Command(NamedTuple):
    """A command as its file says it."""

    name: str
    help: str
    add_arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], Answer]
    aliases: Sequence[str]


def commands(argv: Sequence[str] = ()) -> list[Command]:
    """All of them; the one alone whose name a command line begins with, so that no other is loaded."""
    names = {place.split(".")[-1].replace("_", "-"): place for place in PLACES}
    asked = [name for name in names if argv[:1] == [name]] or names
    return [_command(name, import_module(f".{names[name]}", __package__)) for name in asked]


def _command(name: str, file: ModuleType) -> Command:
    return Command(name, file.HELP, file.add_arguments, file.run, getattr(file, "ALIASES", ()))


def parse(argv: Sequence[str], args: argparse.Namespace) -> None:
    """Take a command line apart: the command, its arguments, and the files it is about as `paths`.

    Raises UsageError; SystemExit where help or the version was asked for, which is then printed.
    """
    known = commands(argv)
    _require_known(argv, [name for command in known for name in (command.name, *command.aliases)])
    _, rest = _parser(known).parse_known_args(argv, args)
    if rest:
        late = args.paths and not any(text.startswith("-") for text in rest)  # a second path behind an option
        if not late:
            args.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        args.paths += rest
    args.paths = args.paths_of(args)


def _require_known(argv: Sequence[str], names: Sequence[str]) -> None:
    """Raise UsageError for a first word that is no command, with the one that may be meant."""
    if not argv or argv[0].startswith("-") or argv[0] in names:
        return
    from ....base.suggest import did_you_mean

    advice = did_you_mean(argv[0], names) or "; `dgrr --help` lists them"
    shown = argv[0] if argv[0].isprintable() and argv[0].split() == [argv[0]] else repr(argv[0])
    raise UsageError(f"{shown}: no such command{advice}", "dgrr ")


class _PrintCompletion(argparse.Action):
    """Print what completes the command line in a shell, and end."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, shell: object, option: object = None
    ) -> None:
        from ..completion import script

        print(script(parser, str(shell)))
        parser.exit()


def command_name(argv: Sequence[str]) -> str | None:
    """The full name of the command that a command line begins with."""
    return next((c.name for c in commands(argv) for text in argv[:1] if text in (c.name, *c.aliases)), None)


def _parser(known: Iterable[Command]) -> Parser:
    made = Parser(
        prog="dgrr",
        description="Record, replay and verify training to the last bit.",
        epilog="`dgrr COMMAND --help` shows the arguments of a command, with examples.\n\nexit codes:\n"
        + listed(f"{code:3}  {code.about}" for code in Exit),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"dgrr {__version__}", help="show the version and exit")
    completes = "print a shell completion script and exit"
    made.add_argument(
        "--print-completion", action=_PrintCompletion, choices=("bash", "zsh", "fish"), metavar="SHELL", help=completes
    )
    places = made.add_subparsers(required=True, metavar="COMMAND")
    for command in known:
        _add(places.add_parser, command)
    return made


def _add(add_parser: Callable[..., Parser], command: Command) -> None:
    summary, _, more = command.help.strip().partition("\n\n")
    made = add_parser(
        command.name,
        aliases=command.aliases,
        help=f"{summary[0].lower()}{summary[1:-1]}",
        description=summary,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.set_defaults(command=command, parser=made, paths_of=paths_of)
    command.add_arguments(made)
    made.add_argument("--json", action="store_true", help="print one JSON object to standard output")
