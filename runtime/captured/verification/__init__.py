"""Is a captured step what it claims to be? Independent checks, from its graph to its memory."""

from .report import Check, VerifyReport
from .verify import verify_step

__all__ = ["Check", "VerifyReport", "verify_step"]
