"""The one word that says how a check of a trace ended, and its exit code."""

from enum import Enum
from typing import Self

from ..exit_codes import Exit


class Verdict(Enum):
    """How a check ended, in a word of `docs/trace_format.md`; `exit_code` is that of a command that ends so."""

    _value_: str
    exit_code: Exit

    def __new__(cls, word: str, exit_code: Exit = Exit.VALIDATION) -> Self:
        """Make a member; called with its word alone, an enum gives the member that there is."""
        made = object.__new__(cls)
        made._value_, made.exit_code = word, exit_code
        return made

    OK = "ok", Exit.OK
    IO = "io", Exit.IO
    CORRUPT = "corrupt"
    TORN_TAIL = "torn-tail"
    UNSEALED = "unsealed"
    CHAIN = "chain"
    UNSUPPORTED = "unsupported"
    DIVERGED = "diverged", Exit.DIVERGED
    UPDATE = "update", Exit.REPLAY
    GRADIENT = "gradient", Exit.REPLAY
    DATA = "data", Exit.REPLAY
    NUMERICS = "numerics", Exit.UNPROVEN
    UNPROVEN = "unproven", Exit.UNPROVEN
    LOSSY = "lossy", Exit.LOSSY
    DRIFT = "drift", Exit.DRIFT
