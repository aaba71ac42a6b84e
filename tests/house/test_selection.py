"""Which tests run, and which go together."""

import re
from collections import Counter

import pytest

from ..batches import BATCH, Batches
from ..conftest import LONG, QUICK, TESTS, is_long


@pytest.mark.parametrize("name", [*QUICK, *LONG])
def test_what_is_named_is_there(name: str) -> None:
    """Else tests that have moved would no longer be quick, or be run where nothing is chosen."""
    file, _, test = name.partition("::")
    assert (TESTS / file).exists()
    function = test.partition("[")[0]
    assert not test or re.search(rf"^def {function}", (TESTS / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("tests/golden/test_bits.py::test_the_bits_are_those_of_the_file[haswell]", True),
        ("tests/golden/test_bits.py::test_the_bits_are_those_of_the_file[default]", False),
        ("tests/golden/test_bits.py::test_the_shares_are_the_whole", False),
        ("tests/base/test_system.py::test_every_call", True),
        ("tests/tape/test_tape.py::test_system", False),
    ],
)
def test_what_is_left_out_where_nothing_is_chosen(name: str, long: bool) -> None:
    assert is_long(name) is long


def test_groups_stay_together_and_others_go_by_batches() -> None:
    scheduler = Batches.__new__(Batches)
    scheduler._names = {}
    names = [f"test_x.py::test_y[{i}]" for i in range(2 * BATCH)]
    names[3:3] = ["test_x.py::test_y[a]@own", "test_z.py::test_y[b]@own"]
    found = [scheduler._split_scope(name) for name in names]
    assert [name for name, unit in zip(names, found, strict=True) if unit == "own"] == names[3:5]
    assert sorted(Counter(found).values()) == [2, 2, BATCH - 2, BATCH]
    assert [scheduler._split_scope(name) for name in names] == found
