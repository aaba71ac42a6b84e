"""A thousand forgeries pass as often as is stated; real ones are found where the simulation says."""

from pathlib import Path

import pytest

from dgrr.trace import audit
from dgrr.trace.auditing.claims import claims
from dgrr.trace.auditing.units import Units

from .forgeries import hidden, is_found, passed, scattered
from .runs import BATCHES, loss_fn, record

STEPS, KEYFRAMES, SAMPLE, FORGERIES = 10_000, 100, 32, 1000


@pytest.mark.parametrize("claim", claims(Units(STEPS, 1), SAMPLE), ids=lambda claim: str(claim.steps))
def test_forgeries_that_are_hidden_best_pass_as_often_as_is_stated(claim: object) -> None:
    """Of 1,000, but for four standard deviations of a binomial count: with other nonces 1 of 16,000 runs would fail.
    These nonces are fixed."""
    count, stated = claim.steps, claim.passes  # type: ignore[attr-defined]
    found = passed(b"root", STEPS, count, SAMPLE, KEYFRAMES, FORGERIES, hides=True)
    assert abs(found - FORGERIES * stated) <= 4 * (FORGERIES * stated * (1 - stated)) ** 0.5, found


def test_the_bound_is_narrow_enough_to_see_another_rate() -> None:
    """A sample of 20 units, not 32, in a trace of 1 % of forged steps is seen."""
    stated = claims(Units(STEPS, 1), SAMPLE)[2].passes
    found = passed(b"root", STEPS, 100, 20, KEYFRAMES, FORGERIES, hides=True)
    assert abs(found - FORGERIES * stated) > 4 * (FORGERIES * stated * (1 - stated)) ** 0.5


def test_forgeries_that_are_not_hidden_pass_less_often() -> None:
    stated = claims(Units(STEPS, 1), SAMPLE)[1].passes
    found = passed(b"root", STEPS, 10, SAMPLE, KEYFRAMES, FORGERIES, hides=False)
    assert found < FORGERIES * stated - 4 * (FORGERIES * stated * (1 - stated)) ** 0.5


def test_a_forger_hides_before_keyframes() -> None:
    assert hidden(10, 3, 4) == [3, 7, 9]
    assert sorted(hidden(10, 10, 4)) == list(range(10))
    assert is_found([5], [6], 4) and not is_found([5], [4, 8], 4)


@pytest.mark.parametrize("seed", range(6))
def test_real_forgeries_are_found_where_the_simulation_says(tmp_path: Path, seed: int) -> None:
    forged = hidden(12, 2, 4) if seed % 2 else scattered(12, 2, seed)
    path = record(tmp_path / "run", 12, state=forged, record="digest", keyframe_every=4, state_every=1)
    for nonce in range(5):
        found = audit(path, loss_fn, BATCHES, sample=3, nonce=bytes([seed, nonce]))
        assert found.ok is not is_found(forged, found.sample, 4), (forged, found.sample)
