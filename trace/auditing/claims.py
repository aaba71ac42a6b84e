"""What a sample says of the steps that are not in it: with which probability a forged run would have passed."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..json_value import Plain
from .units import Units

SHARES = ((1, 1000), (1, 100), (1, 10))
"""Shares of forged steps for which probabilities are stated, as fractions."""


@dataclass(frozen=True, slots=True)
class AuditClaim(Plain):
    """A trace with at least so many forged steps would have passed with at most the probability `passes`.

    `share` of all steps; None stands for a single step. `units`: the fewest that can hold these steps.
    """

    share: float | None
    steps: int
    units: int
    passes: float


def claims(units: Units, sample: int) -> list[AuditClaim]:
    """What a sample of so many units says: of a single forged step, and of 0.1 %, 1 % and 10 % of all steps.

    >>> [f"{claim.passes:.3f}" for claim in claims(Units(10_000, 1), 32)]
    ['0.997', '0.968', '0.725', '0.034']
    >>> [f"{claim.passes:.3f}" for claim in claims(Units(10_000, 16), 32)]
    ['0.949', '0.949', '0.691', '0.030']
    """
    return list(_claims(units, sample))


def _claims(units: Units, sample: int) -> Iterator[AuditClaim]:
    if not len(units):
        return
    shares = [(None, 1), *((n / d, -(-units.steps * n // d)) for n, d in SHARES)]
    for share, steps in shares:
        forged = units.fewest(steps)
        yield AuditClaim(share, steps, forged, passing(len(units), forged, sample))


def passing(units: int, forged: int, sample: int) -> float:
    """The probability that a sample of units, drawn without replacement, has none of the forged ones.

    ``C(units - forged, sample) / C(units, sample)``, the hypergeometric distribution at 0, as a product of
    ``min(forged, sample)`` factors. Each is rounded to the nearest float64, so the bits are those of any machine.

    Source: W. Feller, An Introduction to Probability Theory and Its Applications, vol. 1, 3rd edition (1968), II.6.

    >>> passing(10, 2, 3)  # C(8, 3) / C(10, 3) = 56 / 120
    0.4666666666666666
    >>> passing(10, 8, 3)
    0.0
    """
    fewer, more = sorted((forged, sample))
    product = 1.0
    for i in range(fewer):
        product *= max(units - more - i, 0) / (units - i)
    return product
