"""Calls of PyTorch's ops: what is known of one before, what it is told, takes and gives."""

from .op_calls import WHOLE_STEP, OpCalls

__all__ = ["WHOLE_STEP", "OpCalls"]
