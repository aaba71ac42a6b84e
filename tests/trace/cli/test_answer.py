"""What results are as JSON: numbers that it does not have, and their plain types."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dgrr.trace import Verdict
from dgrr.trace.cli.answer import Answer
from dgrr.trace.exit_codes import Exit
from dgrr.trace.json_value import Plain, json_value


def test_numbers_that_json_does_not_have() -> None:
    given: dict[str, Any] = {
        "list": [math.nan, math.inf, -math.inf, -0.0, 2**64 - 1],
        "numpy": (np.float32("nan"), np.float32(0.1), np.int64(3), np.bool_(True), np.float64(0.1)),
        "more": {"bytes": b"\x01\xff", "path": Path("a/b"), "verdict": Verdict.OK, "code": Exit.IO, "none": None},
    }
    made = json.loads(Answer(Exit.OK, "ok", given).to_json("validate", ["x\udcff"]))
    assert made["result"] == {
        "list": ["nan", "inf", "-inf", 0.0, 2**64 - 1],
        "numpy": ["nan", float(np.float32(0.1)), 3, True, 0.1],
        "more": {"bytes": "01ff", "path": "a/b", "verdict": "ok", "code": 2, "none": None},
    }
    assert math.copysign(1, made["result"]["list"][3]) == -1
    assert [float(text) for text in made["result"]["list"][1:3]] == [math.inf, -math.inf]
    assert made["paths"] == ["x\udcff"]
    assert json_value([]) == []


@dataclass(frozen=True, slots=True)
class Inner:
    names: frozenset[str]
    loss: float


@dataclass(frozen=True, slots=True)
class Outer(Plain):
    _keys: ClassVar = ("twice", "inner", "verdict")

    inner: Inner
    count: int
    verdict: Verdict = Verdict.OK

    @property
    def twice(self) -> int:
        return 2 * self.count


@dataclass(frozen=True, slots=True)
class Fields(Plain):
    outer: Outer
    pair: tuple[int, int] = (1, 2)


def test_results_give_their_plain_types() -> None:
    """Fields, or the attributes that are named, through whatever they hold."""
    outer = Outer(Inner(frozenset("ba"), math.nan), 3)
    plain = {"twice": 6, "inner": {"names": ["a", "b"], "loss": "nan"}, "verdict": "ok"}
    assert list(outer.to_dict().items()) == list(plain.items())
    assert Fields(outer).to_dict() == {"outer": plain, "pair": [1, 2]}
    answer = json.loads(Answer(Exit.OK, "ok", {"many": [Fields(outer)]}).to_json("validate", []))
    assert answer["result"] == {"many": [{"outer": plain, "pair": [1, 2]}]}
