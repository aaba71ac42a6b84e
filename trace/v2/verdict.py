"""The one word that says how a check of a trace ended, and its exit code."""

from enum import Enum

from ..exit_codes import Exit


class Verdict(Enum):
    """How a check ended: its words are those of `docs/trace_format.md`."""

    OK = "ok"
    IO = "io"
    CORRUPT = "corrupt"
    TORN_TAIL = "torn-tail"
    UNSEALED = "unsealed"
    CHAIN = "chain"
    UNSUPPORTED = "unsupported"
    DIVERGED = "diverged"
    UPDATE = "update"
    GRADIENT = "gradient"
    DATA = "data"
    NUMERICS = "numerics"
    UNPROVEN = "unproven"
    LOSSY = "lossy"
    DRIFT = "drift"

    @property
    def exit_code(self) -> Exit:
        """The exit code of a command that ends in this verdict."""
        return _EXIT[self]


_EXIT = {
    Verdict.OK: Exit.OK,
    Verdict.IO: Exit.IO,
    Verdict.CORRUPT: Exit.VALIDATION,
    Verdict.TORN_TAIL: Exit.VALIDATION,
    Verdict.UNSEALED: Exit.VALIDATION,
    Verdict.CHAIN: Exit.VALIDATION,
    Verdict.UNSUPPORTED: Exit.VALIDATION,
    Verdict.DIVERGED: Exit.DIVERGED,
    Verdict.UPDATE: Exit.REPLAY,
    Verdict.GRADIENT: Exit.REPLAY,
    Verdict.DATA: Exit.REPLAY,
    Verdict.NUMERICS: Exit.UNPROVEN,
    Verdict.UNPROVEN: Exit.UNPROVEN,
    Verdict.LOSSY: Exit.LOSSY,
    Verdict.DRIFT: Exit.DRIFT,
}
