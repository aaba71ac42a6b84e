"""Edges of a graph of launches."""

from hypothesis import given, strategies as st

from dgrr.runtime.cuda.order import MARK, READ, WRITE, Touch, waits

TOUCHES = st.builds(
    lambda begin, length, way: Touch(begin, begin + length, way),
    st.integers(0, 20), st.integers(1, 6), st.sampled_from([READ, WRITE, MARK]),
)  # fmt: skip


def conflict(a: Touch, b: Touch) -> bool:
    """Whether two touches may not change places."""
    return a.begin < b.end and b.begin < a.end and (a.way != b.way or a.way == WRITE)


@given(st.lists(st.lists(TOUCHES, max_size=3), max_size=12))
def test_two_launches_are_ordered_exactly_if_a_chain_of_conflicts_joins_them(touches: list[list[Touch]]) -> None:
    found = waits(touches)
    behind: list[set[int]] = []
    for after in found:
        behind.append(set(after).union(*(behind[i] for i in after)))
    wanted: list[set[int]] = []
    for i, own in enumerate(touches):
        direct = {j for j in range(i) if any(conflict(a, b) for a in touches[j] for b in own)}
        wanted.append(direct.union(*(wanted[j] for j in direct)))
    assert behind == wanted


def test_no_edge_says_what_others_say() -> None:
    write = [Touch(0, 8, WRITE)]
    assert waits([write, write, write]) == [(), (0,), (1,)]


def test_marks_commute_and_come_before_reads() -> None:
    mark, read = [Touch(0, 8, MARK)], [Touch(0, 8, READ)]
    assert waits([mark, mark, read, read]) == [(), (), (1, 0), (1, 0)]
