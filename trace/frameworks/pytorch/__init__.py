"""Runs of PyTorch: what is read of a model, of its layers and of an optimizer, and written down."""

from .callbacks import lightning_callback, transformers_callback
from .recording import record_torch
from .torch_run import TorchRun

__all__ = ["TorchRun", "lightning_callback", "record_torch", "transformers_callback"]
