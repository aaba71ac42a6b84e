"""Orders and cuts of a data set: fixed shuffles, shares, folds."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from ...tape.errors import DomainError, ShapeError
from ...tape.numerics.math.random import permutation
from .samples import as_array

Indices = npt.NDArray[np.int64]

FIXED = 1
"""The ordinal of permutations that do not change from epoch to epoch; the shuffles of epochs have 0."""

ROUNDING = Fraction(1, 10**9)
"""By how much less than 1 shares may come to and still mean all, as three times 1/3 does."""


def fixed_order(n: int, seed: int) -> Indices:
    """The permutation of ``n`` samples that a seed stands for. Raises DomainError for a seed out of range."""
    return permutation(n, seed=seed, ordinal=FIXED)


def order_to_cut(op: str, n: int, seed: int | None, stratify: npt.ArrayLike | None) -> Indices:
    """The order that is cut into parts: shuffled if there is a seed; any stretch has each class in proportion.

    Raises ShapeError for classes of another number.
    """
    order = np.arange(n) if seed is None else fixed_order(n, seed)
    if stratify is None:
        return order
    classes = as_array(stratify, f"{op}: argument 'stratify'")
    if classes.shape != (n,):
        expected = f"expected a class for each of the {n} samples, shape ({n},)"
        raise ShapeError(f"{op}: argument 'stratify': {expected}, got {classes.shape}")
    return _stratified(order, classes)


def _stratified(order: Indices, classes: npt.NDArray[np.generic]) -> Indices:
    """The order with the members of each class spread evenly: member j of m comes at (j + ½) / m of the way."""
    codes = np.unique(classes, return_inverse=True)[1]
    by_class = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    sizes = np.repeat(counts, counts)
    member = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return by_class[np.argsort((member + 0.5) / sizes, kind="stable")]


def cut(order: Indices, sizes: Sequence[int]) -> list[Indices]:
    """Stretches of an order, each sorted: samples keep their order in every part."""
    edges = [0, *accumulate(sizes)]
    return [np.sort(order[start:end]) for start, end in pairwise(edges)]


def part_sizes(n: int, shares: Sequence[float]) -> list[int]:
    """Whole sizes for shares of ``n`` samples, or for counts; what they leave is one more part.

    Raises DomainError for shares that are neither, come to more than there is, or leave a part empty.
    """
    if not shares:
        raise DomainError("split: expected at least one share or count, got none")
    edges = _edges(n, shares)
    if edges[-1] > n:
        raise DomainError(f"split: expected no more than all {n} samples, got {_shown(shares)}")
    sizes = [end - start for start, end in pairwise([0, *edges])]
    if min(sizes) == 0:
        raise DomainError(f"split: expected at least one sample in every part, got parts of {sizes}")
    return sizes


def _edges(n: int, shares: Sequence[float]) -> list[int]:
    """Where each part ends. A share means the decimal number that is written, so 0.7 + 0.2 + 0.1 is all."""
    if all(isinstance(share, Integral) and share >= 1 for share in shares):
        totals, whole = [Fraction(int(total)) for total in accumulate(shares)], Fraction(n)
    elif all(isinstance(share, Real) and not isinstance(share, Integral) and 0 < share < 1 for share in shares):
        totals, whole = [*accumulate(Fraction(repr(float(share))) for share in shares)], Fraction(1)
    else:
        expected = "expected shares between 0 and 1, or counts of at least 1"
        raise DomainError(f"split: argument 'shares': {expected}, got {_shown(shares)}")
    if len(shares) == 1 or totals[-1] < whole - ROUNDING:
        totals.append(whole)
    return [round(total / whole * n) for total in totals]


def _shown(shares: Sequence[float]) -> str:
    return ", ".join(map(str, shares))


def fold_sizes(n: int, k: int) -> list[int]:
    """Sizes of ``k`` folds, the larger ones first. Raises DomainError unless ``2 <= k <= n``."""
    if not isinstance(k, Integral) or not 2 <= k <= n:
        raise DomainError(f"kfold: argument 'k': expected a whole number from 2 to the {n} samples, got {k!r}")
    least, rest = divmod(n, k)
    return [least + (fold < rest) for fold in range(k)]
