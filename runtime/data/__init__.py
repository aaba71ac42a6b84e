"""Data sets in memory, their batches, and a small real one: the UCI handwritten digits."""

from .dataset import Batches, Dataset
from .uci_digits import digits

__all__ = ["Batches", "Dataset", "digits"]
