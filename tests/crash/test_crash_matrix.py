"""A short run of each command of the crash matrix, in processes of their own; without options they do all of it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parent


def answer(command: str, *options: str) -> str:
    """What a command prints, if it finds nothing."""
    run = [sys.executable, str(FOLDER / command), *options]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()[-1]


def test_killed_training_goes_on_as_if_nobody_had_killed_it() -> None:
    assert " findings; left " in answer("kill.py", "--kills", "40")


def test_a_fault_of_any_call_is_an_error_or_nothing() -> None:
    assert answer("faults.py", "--every", "13").endswith("0 findings, 0 places not reached")


def test_a_power_cut_keeps_what_was_committed() -> None:
    assert answer("power_cut.py", "--samples", "2").endswith("0 findings")


def test_one_writer_of_many_processes_and_none_in_a_forked_child(tmp_path: Path) -> None:
    program = [sys.executable, str(FOLDER / "writers.py"), str(tmp_path)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr


WRITER = "from dgrr.trace.v2.write.writer import TraceWriter\n"
SYSTEM = "from contextlib import suppress\nfrom dgrr.base import system\n"
FILE = SYSTEM + "from dgrr.trace.v2.write.partial_file import PartialFile\n"

BREAKS = {
    "a COMMIT before its fsync": (
        "power_cut.py begin",
        WRITER + "TraceWriter._synced = TraceWriter.flush",
        "t.partial: corrupt",
    ),
    "a new checkpoint that is not on the disk yet": (
        "power_cut.py train",
        """
import dgrr.base.atomic_file
class Forgetful:
    fsync = staticmethod(lambda descriptor: None)
    def __getattr__(self, name):
        return getattr(dgrr.base.system, name)
dgrr.base.atomic_file.system = Forgetful()
""",
        "is damaged or no checkpoint",
    ),
    "a failed fsync that nobody hears of": (
        "faults.py record --every 9",
        FILE
        + """
sync = PartialFile.sync
def quiet(file):
    with suppress(Exception):
        sync(file)
PartialFile.sync = quiet
""",
        "nothing was raised",
    ),
    "a short write that is not continued": (
        "faults.py record --every 3",
        FILE + "PartialFile._write_some = lambda file, views: [system.write(file.descriptor, views)][1:]",
        "(write): InvalidTraceError: corrupt",
    ),
    "a checkpoint before the trace": (
        "power_cut.py train",
        "from dgrr.runtime.training.fitting.journal import Journal\nJournal.commit = lambda journal: None",
        "the trace is behind",
    ),
}
"""What is broken on purpose: the command that must find it, the break, and words of what is found."""


@pytest.mark.parametrize("title", BREAKS)
def test_what_is_broken_on_purpose_is_found(title: str) -> None:
    """Else the matrix would prove nothing."""
    call, program, words = BREAKS[title]
    command, *options = call.split()
    runner = f"import sys, runpy; sys.path.insert(0, {str(FOLDER)!r}); sys.argv[1:] = {options!r}\n{program}\n"
    runner += f"runpy.run_path({str(FOLDER / command)!r}, run_name='__main__')"
    ended = subprocess.run([sys.executable, "-c", runner], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert words in ended.stdout, ended.stdout
