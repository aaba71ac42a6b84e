"""Shares of elements: each element once, and every share from the beginning of a cache line on."""

from itertools import pairwise

import pytest

from dgrr.tape.numerics.basic.lines import TOGETHER, share_lines

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_shares_cover_all_elements_and_split_no_line(parts: int) -> None:
    for total in (0, 1, 15, 16, 17, 31, 32, 33, 47, 26128, 26129):
        shares = [share_lines(total, part, parts) for part in range(parts)]
        filled = [(start, start + count) for start, count in shares if count]
        assert sum(count for _, count in shares) == total
        assert [begin for begin, _ in filled[1:]] == [end for _, end in filled[:-1]]
        assert not any(start % TOGETHER for start, _ in filled)
        assert all(a < b for a, b in pairwise([0, *(end for _, end in filled)]))


def test_shares_of_many_elements_are_nearly_equal() -> None:
    counts = [share_lines(26128, part, 5)[1] for part in range(5)]
    assert max(counts) - min(counts) <= TOGETHER
