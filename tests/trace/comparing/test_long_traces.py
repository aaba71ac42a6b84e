"""The first different step of long traces, in reads that grow with the logarithm of their length."""

import os
from math import log2
from pathlib import Path

import pytest

from dgrr.trace import Comparison, Policy, compare, open_trace, validate
from dgrr.trace.comparing.search import first_divergent
from dgrr.trace.comparing.steps import Pair

from .long_traces import long_trace

CURVES = 1_000
"""Reads of a comparison that do not depend on the length: two curves of 40 losses, each by its INDEX and its STEP."""


def reads(steps: int, folder: Path) -> tuple[int, int, Comparison]:
    """How many reads finding the step takes, how many the whole comparison, and the comparison."""
    a = long_trace(folder / f"a{steps}", steps)
    b = long_trace(folder / f"b{steps}", steps, differs_from=steps * 2 // 3)
    counted: list[int] = []
    real = os.pread
    with pytest.MonkeyPatch.context() as patched, open_trace(a) as x, open_trace(b) as y:
        patched.setattr(os, "pread", lambda d, n, o: counted.append(n) or real(d, n, o))
        found = first_divergent(Pair(x, y, Policy.parse("bitwise")))
        searching = len(counted)
        result = compare(x, y)
    assert found is not None
    assert found[0] == result.step == steps * 2 // 3
    return searching, len(counted) - searching, result


def held(steps: int, folder: Path) -> str:
    """Hold the reads to the logarithm; a line that says how many they were."""
    searching, comparing, _ = reads(steps, folder)
    assert searching <= 20 * log2(steps), searching
    assert comparing <= 20 * log2(steps) + CURVES, comparing
    return f"{steps:9,} steps: {searching} reads to find the step, {comparing} for the whole comparison"


@pytest.mark.parametrize("steps", [1_000, 10_000])
def test_reads_grow_with_the_logarithm_of_the_steps(tmp_path: Path, steps: int) -> None:
    held(steps, tmp_path)


def test_the_long_traces_are_traces(tmp_path: Path) -> None:
    report = validate(long_trace(tmp_path / "t", 1_500))
    assert (report.ok, report.chain, report.steps) == (True, "proven", 1_500)
