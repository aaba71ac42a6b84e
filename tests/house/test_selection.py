"""Which tests run, and which go together."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ..batches import BATCH, Batches
from ..conftest import COMPILES, TESTS, pytest_collection_modifyitems, pytest_ignore_collect


class Item(SimpleNamespace):
    """A test with marks."""

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks


@pytest.mark.parametrize(("long", "left"), [(False, ["compiles", "plain"]), (True, ["compiles", "plain", "long"])])
def test_what_is_left_out_where_nothing_is_chosen(long: bool, left: list[str]) -> None:
    told = list[str]()
    hook = SimpleNamespace(pytest_deselected=lambda items: told.extend(item.name for item in items))
    config: Any = SimpleNamespace(option=SimpleNamespace(long=long, share="0/1"), hook=hook)
    items: Any = [
        Item(name="plain", nodeid="plain", marks=["quick"], path=TESTS / "test_a.py"),
        Item(name="long", nodeid="long", marks=["long"], path=TESTS / "test_a.py"),
        Item(name="compiles", nodeid="compiles", marks=[], path=TESTS / COMPILES),
    ]
    pytest_collection_modifyitems(config, items)
    assert [item.name for item in items] == left
    assert told == ([] if long else ["long"])


def test_the_shares_are_all_of_the_long_ones() -> None:
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    found = list[str]()
    for k in range(8):
        config: Any = SimpleNamespace(option=SimpleNamespace(long=True, share=f"{k}/8"), hook=hook)
        items: Any = [Item(nodeid=str(i), marks=["long"], path=TESTS / "test_a.py") for i in range(200)]
        items.append(Item(nodeid="plain", marks=[], path=TESTS / "test_a.py"))
        pytest_collection_modifyitems(config, items)
        assert items.pop().nodeid == "plain"
        assert 10 < len(items) < 40
        found += [item.nodeid for item in items]
    assert sorted(found, key=int) == [str(i) for i in range(200)]


def test_a_file_without_quick_tests_is_not_read_for_them(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_a.py").write_text("pytestmark = pytest.mark.quick")
    (tmp_path / "test_b.py").write_text("")
    monkeypatch.setattr(pytestconfig.option, "markexpr", "quick")
    assert [pytest_ignore_collect(tmp_path / f"test_{name}.py", pytestconfig) for name in "ab"] == [None, True]


def test_groups_stay_together_and_others_go_by_batches() -> None:
    scheduler = Batches.__new__(Batches)
    scheduler._names = {}
    names = [f"test_x.py::test_y[{i}]" for i in range(2 * BATCH)]
    names[3:3] = ["test_x.py::test_y[a]@own", "test_z.py::test_y[b]@own"]
    found = [scheduler._split_scope(name) for name in names]
    assert [name for name, unit in zip(names, found, strict=True) if unit == "own"] == names[3:5]
    assert sorted(Counter(found).values()) == [2, 2, BATCH - 2, BATCH]
    assert [scheduler._split_scope(name) for name in names] == found
