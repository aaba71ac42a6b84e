"""Is a captured step what it claims to be? Independent checks, from its graph to its memory."""

from .report import Check, VerifyReport
from .subject import REFERENCE_WORK
from .verify import verify_step

__all__ = ["REFERENCE_WORK", "Check", "VerifyReport", "verify_step"]
