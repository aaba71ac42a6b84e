"""``dgrr test``: a golden trace without a test runner."""

from typing import Any

from ...base.atomic_file import require_replaceable
from ..exit_codes import Exit
from ..file_version import version_of
from ..golden.commands import Train, check, record
from ..golden.errors import GoldenError
from ..golden.keeping import Outcome
from ..golden.recording import GoldenRecording
from .answer import Answer, done, failed
from .loading import guarded, load_function

_SAID: dict[Outcome, str] = {
    "written": "written",
    "updated": "updated: the run is another",
    "verified": "unchanged: the run is the same",
}


def run(action: str, path: str, model: str, policy: str | None) -> Answer:
    """``record`` makes what a function trains the golden file, ``check`` holds it against that file."""
    train = _training(model)
    if action == "record":
        require_replaceable(path)  # before anything is trained
        return _recorded(path, train, policy)
    version_of(path)
    return _checked(path, model, train, policy)


def _training(model: str) -> Train:
    """The user's function, which records one run."""
    function = load_function("--model", model)

    def trained(recording: GoldenRecording) -> None:
        function(recording)
        recording.require_sealed()

    return lambda recording: guarded(f"argument --model: {model}: while training", lambda: trained(recording))


def _recorded(path: str, train: Train, policy: str | None) -> Answer:
    try:
        outcome = record(path, train, policy=policy)
    except GoldenError as error:
        return failed(Exit.IO, f"{path}: {error}")
    return done({"outcome": outcome, "comparison": None}, f"{path}: {_SAID[outcome]}")


def _checked(path: str, model: str, train: Train, policy: str | None) -> Answer:
    try:
        found = check(path, train, policy=policy)
    except GoldenError as error:  # what is wrong is the text beside the file
        return failed(Exit.VALIDATION, f"{path}: {error}")
    found.b = f"{model}, computed now"  # its file is gone
    result: dict[str, Any] = {"outcome": "verified" if found.same else "different", "comparison": found.to_dict()}
    if found.same:
        return done(result, f"{path}: verified: {found.sentence}")
    stream = {"text" if found.cause is not None else "error": str(found)}
    return Answer(found.verdict.exit_code, found.verdict.value, result, **stream, before="")
