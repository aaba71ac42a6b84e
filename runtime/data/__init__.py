"""Data sets of arrays, streams of samples, their batches, and a small real set: the UCI handwritten digits."""

from .bucketed import Buckets, buckets
from .dataset import Batches, Dataset
from .epochs import Epochs, LengthError, Prefetch
from .random import SampleRandom
from .samples import Batch
from .stream import Stream, StreamBatches
from .uci_digits import digits

__all__ = [
    "Batch",
    "Batches",
    "Buckets",
    "Dataset",
    "Epochs",
    "LengthError",
    "Prefetch",
    "SampleRandom",
    "Stream",
    "StreamBatches",
    "buckets",
    "digits",
]
