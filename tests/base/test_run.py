"""What is trained is said once, and a recorder takes it with what is kept of it."""

from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Run, Trainer
from dgrr.tape import DomainError
from dgrr.trace import RuleGroup, Run as RunOfTraces, open_recorder, open_trace, resume_recorder

PARAMS, STATE = {"w": np.ones(2), "b": np.zeros(3)}, {"step": np.array(0), "corrections": np.ones(2)}
GROUP = RuleGroup("sgd@1", ("lr",))


def begun(path: Path, *rules: RuleGroup) -> bytes:
    run = Run(PARAMS, STATE, rules, numerics=1)
    open_recorder(Keep(path, salt=bytes(16), created_at=0), run).seal()
    return path.read_bytes()


def test_trainers_and_traces_have_one() -> None:
    assert Run is RunOfTraces


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("clip_value", -1.0, "a number of at least 0 or None"),
        ("clip_value", nan, "a number of at least 0 or None"),
        ("on_nonfinite", "skip", "'stop' or 'record'"),
    ],
)
def test_what_it_refuses(name: str, given: Any, expected: str) -> None:
    with pytest.raises(DomainError) as caught:
        Run(PARAMS, STATE, [GROUP], numerics=1, **{name: given})
    assert str(caught.value) == f"Run: argument {name!r}: expected {expected}, got {given!r}"


def test_a_group_without_tensors_is_a_rule_for_all(tmp_path: Path) -> None:
    named = GROUP._replace(tensors=(*PARAMS, *STATE))
    assert begun(tmp_path / "a", GROUP) == begun(tmp_path / "b", named)
    with open_trace(tmp_path / "a") as trace:
        assert [group.tensors for group in trace.schema.groups] == [(0, 1, 2, 3)]
        assert trace.schema.corrections == 2


def test_a_bare_path_keeps_what_a_keep_of_it_does(tmp_path: Path) -> None:
    run = Run(PARAMS, STATE, [GROUP], numerics=1)
    open_recorder(tmp_path / "t", run).close()
    resume_recorder(tmp_path / "t", run, steps=0).seal()
    with open_trace(tmp_path / "t") as trace:
        assert trace.header.mode.name == "GRADS" == Keep("t").record.upper()


def test_equal_runs_give_equal_bytes_where_that_is_asked(tmp_path: Path) -> None:
    for name in "ab":
        keep = Keep(tmp_path / name, salt=bytes(16), created_at=0)
        Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), trace=keep).fit([np.ones(2)] * 3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
