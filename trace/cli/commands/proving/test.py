"""``dgrr test``: a golden trace without a test runner."""

import argparse
from typing import TYPE_CHECKING

from ....exit_codes import Exit
from ....file_version import version_of
from ...answer import Answer, Fact, done, failed, judged
from ...arguments import FUNCTION, Parser
from ...loading import guarded, load_function

if TYPE_CHECKING:
    from ....golden.commands import Train
    from ....golden.recording import GoldenRecording

HELP = """
Record a golden trace, or check a run against it.

FUNCTION is called with one argument: def run(trace): Trainer(…, trace=trace).fit(…)
Modules are those of the current folder and the installed ones.

examples:
  dgrr test record golden/digits.dgrr --train train:run    once; both files are committed
  dgrr test check golden/digits.dgrr --train train:run     in CI: 0 the same, 4 another run
"""

_SAID = {
    "written": "written",
    "updated": "updated: the run is another",
    "verified": "unchanged: the run is the same",
    "verified in part": "unchanged: the run is the same in all that was compared; other digests differ",
}


def add_arguments(parser: Parser) -> None:
    action = "record the run as the golden one, or compare it with the golden one"
    parser.add_argument("action", choices=("record", "check"), help=action)
    parser.trace("the golden file; a text file of the same name stands beside it")
    train = "function that trains once; it passes its argument to the trainer as trace="
    parser.add_argument("--train", metavar=FUNCTION, required=True, help=train)
    parser.policy()


def run(args: argparse.Namespace) -> Answer:
    """``record`` makes what a function trains the golden file, ``check`` holds it against that file."""
    from .....base.atomic_file import require_replaceable

    train = _training(args.train)
    if args.action == "record":
        require_replaceable(args.path)  # before anything is trained
        return _recorded(args.path, train, args.policy)
    version_of(args.path)
    return _checked(args, train)


def _training(spec: str) -> "Train":
    """The user's function, which records one run."""
    function = load_function("--train", spec)

    def trained(recording: "GoldenRecording") -> None:
        function(recording)
        recording.require_sealed()

    return lambda recording: guarded(f"argument --train: {spec}: while training", lambda: trained(recording))


def _recorded(path: str, train: "Train", policy: str | None) -> Answer:
    from ....golden.commands import record
    from ....golden.errors import GoldenError

    try:
        outcome = record(path, train, policy=policy)
    except GoldenError as error:
        return failed(Exit.IO, f"{path}: {error}")
    return done(Fact("outcome", outcome, f"{path}: {_SAID[outcome]}"), Fact("comparison", None))


def _checked(args: argparse.Namespace, train: "Train") -> Answer:
    from ....golden.commands import check
    from ....golden.errors import GoldenError

    try:
        found = check(args.path, train, policy=args.policy)
    except GoldenError as error:  # what is wrong is the text beside the file
        return failed(Exit.VALIDATION, f"{args.path}: {error}")
    found.b = f"{args.train}, computed now"  # its file is gone
    if found.same:
        return done(Fact("outcome", "verified", f"{args.path}: verified: {found.sentence}"), Fact("comparison", found))
    return judged(found, Fact("outcome", "different"), Fact("comparison", found), answers=found.cause is not None)
