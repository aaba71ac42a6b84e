"""What is kept of a run says itself what is none of its choices."""

from typing import Any

import pytest

from dgrr.runtime import Keep
from dgrr.tape import DomainError
from dgrr.trace import Keep as KeepOfTraces


def test_trainers_and_traces_have_one() -> None:
    assert Keep is KeepOfTraces
    assert (Keep("t").record, Keep("t").ops, Keep("t").digest, Keep("t").overwrite) == (
        "grads",
        None,
        "xxh3-128",
        False,
    )


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("path", 5, "a path"),
        ("record", "everything", "'digest', 'grads', 'full' or 'bare'"),
        ("ops", "last", "'first', 'every', the numbers of steps, a number of bytes or None"),
        ("ops", [-1], "'first', 'every', the numbers of steps, a number of bytes or None"),
        ("keyframe_every", 0, "a whole number of at least 1, or a timedelta above 0"),
        ("keyframe_budget", -1, "a whole number of bytes of at least 0 or None"),
        ("digest", "md5", "'xxh3-128' or 'sha256'"),
        ("values", -1, "a whole number of bytes of at least 0"),
        ("state_every", 0, "a whole number of at least 1 or None"),
        ("commit_every", 0.5, "a whole number of at least 1 or None"),
        ("created_at", -1, "a whole number of at least 0 or None"),
        ("salt", bytes(15), "16 bytes or None"),
        ("largest_payload", 4100, "a multiple of 8 from 4096 to 2^30"),
        ("largest_payload", 4088, "a multiple of 8 from 4096 to 2^30"),
        ("largest_payload", (1 << 30) + 8, "a multiple of 8 from 4096 to 2^30"),
    ],
)
def test_what_it_refuses(name: str, given: Any, expected: str) -> None:
    with pytest.raises(DomainError) as caught:
        Keep(**{"path": "t", name: given})
    assert str(caught.value) == f"Keep: argument {name!r}: expected {expected}, got {given!r}"
