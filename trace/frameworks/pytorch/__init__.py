"""Runs of PyTorch: what is read of a model, of its layers and of an optimizer, and written down."""

from .recording import TorchRun, record_torch

__all__ = ["TorchRun", "record_torch"]
