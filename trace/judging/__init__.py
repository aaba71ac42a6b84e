"""Programs in C that recompute a recorded run without this library."""

from .write import Judge, JudgeError, command, write_judge

__all__ = ["Judge", "JudgeError", "command", "write_judge"]
