"""The exit codes of the command line, shared by both versions of the format."""

from enum import IntEnum

from ..base.interruption import INTERRUPTED as CTRL_C


class Exit(IntEnum):
    """What a command answers to the shell.

    Where a file breaks several rules, the first in file order decides.
    """

    OK = 0
    USAGE = 1
    """The command line is wrong; nothing was touched."""
    IO = 2
    """A file cannot be opened, read or written, or is no regular file."""
    VALIDATION = 3
    """The file is not a valid trace."""
    DIVERGED = 4
    """Two traces differ, or training met a value that is not finite."""
    REPLAY = 5
    """A recorded step is not what its rule makes of the recorded inputs, or a captured step fails a check."""
    UNPROVEN = 6
    """Nothing is wrong, but not everything could be checked."""
    LOSSY = 7
    """A recovery lost steps."""
    DRIFT = 8
    """Two traces differ as another machine or library makes them differ; the code is the same."""
    SKIPPED = 125
    """What `git bisect run` takes for a commit that cannot be tested."""
    INTERRUPTED = CTRL_C
    """Ctrl-C."""
