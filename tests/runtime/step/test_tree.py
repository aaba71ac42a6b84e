"""The order of a tree: what its sums are, which of them a rank makes whole, and that folding these is the same sum."""

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from dgrr.runtime.step.tree import Sums, range_of, spans_of
from dgrr.tape import DomainError

pytestmark = pytest.mark.quick


def level_by_level(terms: Sequence[str]) -> str:
    """The tree as its definition says it, with no regard to what it costs."""
    level = list(terms)
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [f"({pair[0]}+{pair[1]})" if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def text_sum(a: str, b: str) -> str:
    return f"({a}+{b})"


def leaves(count: int) -> list[str]:
    return [str(i) for i in range(count)]


def test_small_trees_are_what_one_would_draw() -> None:
    drawn = {1: "0", 2: "(0+1)", 3: "((0+1)+2)", 5: "(((0+1)+(2+3))+4)", 6: "(((0+1)+(2+3))+(4+5))"}
    assert {count: level_by_level(leaves(count)) for count in drawn} == drawn


@given(st.integers(1, 300))
def test_terms_given_one_by_one_are_added_as_the_levels_say_in_little_room(count: int) -> None:
    sums, most = Sums("tree", count, add=text_sum), 0
    for leaf in leaves(count):
        sums.put(leaf)
        most = max(most, len(sums.partials))
    assert sums.total == level_by_level(leaves(count))
    assert most <= count.bit_length()


@given(st.integers(1, 300))
def test_a_chain_adds_one_after_the_other_and_keeps_one(count: int) -> None:
    sums = Sums("chain", count, add=text_sum)
    for leaf in leaves(count):
        sums.put(leaf)
        assert len(sums.partials) == 1
    expected = "0"
    for leaf in leaves(count)[1:]:
        expected = f"({expected}+{leaf})"
    assert sums.total == expected


@given(st.integers(1, 200).flatmap(lambda count: st.tuples(st.just(count), st.integers(1, count))))
def test_sums_of_any_number_of_ranks_fold_to_the_tree(counts: tuple[int, int]) -> None:
    count, size = counts
    folded = Sums("tree", count, add=text_sum)
    seen = list[int]()
    for rank in range(size):
        own = range_of(count, rank, size)
        seen += own
        shares = Sums("tree", count, own.start, text_sum)
        for i in own:
            shares.put(str(i))
        assert shares.spans == spans_of(count, own)
        assert len(shares.spans) <= 2 * len(own).bit_length()
        for partial, span in zip(shares.partials, shares.spans, strict=True):
            folded.put(partial, span.stop)
    assert seen == list(range(count)), "each micro-batch is of one rank"
    assert folded.total == level_by_level(leaves(count))


@given(st.integers(1, 60), st.data())
def test_the_sums_of_a_range_are_the_largest_of_the_tree_in_it(count: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, count - 1))
    own = range(start, data.draw(st.integers(start + 1, count)))
    of_tree = [range(i, min(i + w, count)) for w in (1, 2, 4, 8, 16, 32, 64) for i in range(0, count, w)]
    inside = {(r.start, r.stop) for r in of_tree if own.start <= r.start and r.stop <= own.stop}
    largest = [(a, b) for a, b in sorted(inside) if not any(c <= a and b <= d and (a, b) != (c, d) for c, d in inside)]
    assert [(span.start, span.stop) for span in spans_of(count, own)] == largest


@pytest.mark.parametrize(("count", "size"), [(3, 4), (3, 0)])
def test_more_ranks_than_micro_batches_are_refused(count: int, size: int) -> None:
    with pytest.raises(DomainError) as error:
        range_of(count, 0, size)
    assert str(error.value) == f"ranks: expected 1 to 3 of them, one for each of accumulate=3, got {size}"
