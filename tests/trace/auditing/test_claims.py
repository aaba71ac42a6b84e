"""What a sample proves: the probabilities are exact, and no placement of forged steps does better."""

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest

from dgrr.trace.auditing.claims import claims, passing
from dgrr.trace.auditing.units import Units


@pytest.mark.parametrize(("units", "forged", "sample"), [(10, 2, 3), (10_000, 100, 32), (300, 30, 299), (5, 5, 5)])
def test_the_probability_is_hypergeometric(units: int, forged: int, sample: int) -> None:
    exact = Fraction(comb(units - forged, sample), comb(units, sample))
    assert passing(units, forged, sample) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_no_placement_of_forged_steps_passes_more_often(length: int) -> None:
    """Of every set of forged steps of a run of seven, in every sample: the worst is what is stated, and it is met."""
    units = Units(7, length)
    for forged in range(1, 8):
        for size in range(1, len(units) + 1):
            worst = 0
            for steps in combinations(range(7), forged):
                held = {step // length for step in steps}
                passed = sum(held.isdisjoint(sample) for sample in combinations(range(len(units)), size))
                worst = max(worst, passed)
            stated = passing(len(units), units.fewest(forged), size)
            assert worst / comb(len(units), size) == pytest.approx(stated), (forged, size)


def test_shares_are_rounded_up_to_steps() -> None:
    found = claims(Units(1005, 4), 8)
    assert [(claim.share, claim.steps, claim.units) for claim in found] == [
        (None, 1, 1),
        (0.001, 2, 1),
        (0.01, 11, 3),
        (0.1, 101, 26),
    ]
    assert claims(Units(0, 1), 0) == []


def test_a_sample_of_all_lets_nothing_pass() -> None:
    assert [claim.passes for claim in claims(Units(50, 1), 50)] == [0.0] * 4
