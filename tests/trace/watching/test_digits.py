"""The questions of tests/bench/when.py, about a short run."""

from pathlib import Path

from .digits import QUESTIONS, Answered, answers


def test_every_answer_is_that_of_a_plain_loop(tmp_path: Path) -> None:
    found = [answer for answer in answers(tmp_path, steps=60) if isinstance(answer, Answered)]
    assert len(found) == len(QUESTIONS) == 20
    assert [answer.condition for answer in found if answer.found != answer.expected] == []
    assert len({answer.expected for answer in found}) > 5
