"""Notes of a run: plain values are copied, and what JSON has no form for is refused by its name."""

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Keep
from dgrr.tape import DomainError


class Kind(IntEnum):
    FIRST = 1


def test_plain_values_are_copied() -> None:
    given: dict[str, Any] = {"lr": 0.1, "layers": (64, 10), "model": {"bias": True, "init": None}, "größe": "klein"}
    keep = Keep("t", notes=given)
    given["model"]["bias"] = False
    assert keep.notes == {
        "lr": 0.1,
        "layers": [64, 10],
        "model": {"bias": True, "init": None},
        "größe": "klein",
    }
    assert (Keep("t").notes, Keep("t", notes={}).notes) == (None, {})


KINDS = "expected a text, a finite number, a boolean, None, or a list or a mapping of these by names"


@pytest.mark.parametrize(
    ("notes", "text"),
    [
        ([("lr", 0.1)], "expected a mapping by names, got [('lr', 0.1)]"),
        ({1: "a"}, "names are texts, got 1; write it as a text"),
        ({"a": {2: "b"}}, "names of 'a' are texts, got 2; write it as a text"),
        ({"lr": np.float32(0.5)}, f"'lr': {KINDS}, got np.float32(0.5) (float32); convert it, or leave it out"),
        ({"lr": float("nan")}, f"'lr': {KINDS}, got nan (float); convert it, or leave it out"),
        ({"a": {"b": [1, {1}]}}, f"'a.b[1]': {KINDS}, got {{1}} (set); convert it, or leave it out"),
        ({"seed": 1 << 64}, f"'seed': {KINDS}, got {1 << 64} (int); convert it, or leave it out"),
        ({"kind": Kind.FIRST}, f"'kind': {KINDS}, got <Kind.FIRST: 1> (Kind); convert it, or leave it out"),
        ({"text": "\ud800"}, f"'text': {KINDS}, got '\\ud800' (str); convert it, or leave it out"),
        ({"\ud800": 1}, "names are texts, got '\\ud800'; write it as a text"),
        (
            {"a": [[[[[[]]]]]]},
            "'a[0][0][0][0][0]': expected at most 6 levels of mappings and lists, got more",
        ),
        ({"text": "é" * 40_000}, "expected at most 65536 bytes as JSON, got 80011; note less"),
    ],
)
def test_what_is_refused(notes: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        Keep("t", notes=notes)
    assert str(caught.value) == f"Keep: argument 'notes': {text}"


def test_what_holds_itself_is_refused() -> None:
    notes: dict[str, Any] = {}
    notes["self"] = notes
    with pytest.raises(DomainError, match="'self.self.self.self.self.self': expected at most 6 levels"):
        Keep("t", notes=notes)
