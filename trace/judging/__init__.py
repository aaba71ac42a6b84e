"""Programs in C that recompute a recorded run without this library."""

from .write import Judge, JudgeError, write_judge

__all__ = ["Judge", "JudgeError", "write_judge"]
