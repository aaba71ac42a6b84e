"""What two runs were told and where they ran: only keys that differ."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import open_trace
from dgrr.trace.comparing.settings import differing, environment_of, shown, step_of, table
from dgrr.trace.v2.format.frames import EventRecord
from dgrr.trace.v2.format.schema import Group

Write = Callable[..., Path]


def test_only_keys_that_differ() -> None:
    a, b = {"x": 1, "y": 0.0, "z": float("nan"), "only": 1}, {"x": 1, "y": -0.0, "z": float("nan"), "w": 2}
    assert str(differing(a, b)) == "{'y': (0.0, -0.0), 'only': (1, None), 'w': (None, 2)}"


def test_a_table_of_so_many_lines() -> None:
    rows = {f"k{i}": (i, None) for i in range(5)}
    assert table("title", {}, 9) == []
    assert table("title", rows, 6) == ["title:", *(f"  k{i}: {i} -> none" for i in range(5))]
    assert table("title", rows, 5) == ["title:", *(f"  k{i}: {i} -> none" for i in range(3)), "  2 more keys differ"]
    assert table("title", rows, 0) == ["title:", "  k0: 0 -> none", "  4 more keys differ"]
    assert len(shown("x" * 41)) == 40


def test_hyperparameters_of_several_rules_are_told_apart(write: Write) -> None:
    with open_trace(write("a")) as trace:
        view = trace[0]
        assert step_of(trace, view) == {
            "lr": 0.125,
            "momentum": 0.5,
            "clip_norm": None,
            "micro_batches": 1,
            "order": "chain",
        }
        groups = (Group("sgd@1", ("lr",), 0, ()), Group("sgd@1", ("lr",), 0, ()))
        trace.schema = replace(trace.schema, groups=groups)
        assert list(step_of(trace, view))[:2] == ["lr of group 0", "lr of group 1"]


@pytest.mark.parametrize("text", ["not json", "[1]", "[" * 9999])
def test_an_environment_of_another_kind(write: Write, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with open_trace(write("a")) as trace:
        monkeypatch.setattr(trace, "events", lambda: iter([(0, EventRecord("environment", text))]))
        assert environment_of(trace) == {"environment": text}


def test_an_environment_that_is_not_recorded_is_not_looked_for(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def events() -> Any:
        raise AssertionError("the whole file is read")

    with open_trace(write("a")) as trace:
        monkeypatch.setattr(trace, "events", events)
        trace.header = replace(trace.header, environment=bytes(32))
        assert environment_of(trace) == {}
