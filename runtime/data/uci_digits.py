"""The handwritten digits of the UCI repository, as shipped; ATTRIBUTION.md names their authors."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from .dataset import Dataset

FILE = Path(__file__).with_name("digits.npz")

CLASSES = 10

TEST_EVERY = 5
"""One in so many samples of each class is a test sample."""


def digits() -> tuple[Dataset, Dataset]:
    """The 1,797 handwritten digits of 8x8 pixels as ``(train, test)``: 1,442 and 355 samples.

    A sample is ``(image, label)``: float32 of shape (64,), the pixels 0 to 16 divided by 16 and so exact, and
    int64 in 0 to 9. The split is fixed: of each class, every fifth sample in the order of the file is a test sample.
    Both parts keep that order.

    >>> train, test = digits()
    >>> train
    Dataset(float32[1442, 64], int64[1442])
    """
    with np.load(FILE) as archive:
        pixels, labels = archive["images"], archive["labels"]
    images = pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(16)
    targets = labels.astype(np.int64)
    tested = _is_test(targets)
    return Dataset(images[~tested], targets[~tested]), Dataset(images[tested], targets[tested])


def _is_test(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Every fifth sample of each class."""
    tested = np.zeros(len(labels), np.bool_)
    for label in range(CLASSES):
        members = np.flatnonzero(labels == label)
        tested[members[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return tested
