"""Runs of PyTorch: what is read of a model, of its layers and of an optimizer, and written down."""

from .recording import record_torch
from .torch_run import TorchRun

__all__ = ["TorchRun", "record_torch"]
