"""How long launches are: bounded by time, by those who look, and by what ended the ones before."""

from typing import Any

import pytest

from dgrr.runtime.training.fitting import pace


class Unwatched:
    """A `Watch` that looks at nothing."""

    room = 99


def rhythm(room: int = 99, **options: Any) -> pace.Pace:
    watch: Any = Unwatched()
    watch.room = room
    return pace.Pace(watch, **{"alone": False, "periods": [], **options})


def launch(made: pace.Pace, seconds: float) -> int:
    """The length of the next launch, of which each step takes so long."""
    n = made.room(0)
    made.took(seconds * n, n, n)
    return n


def test_a_launch_is_bounded_by_time_and_by_those_who_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS", 0.05)
    made = rhythm(periods=[10])
    assert [launch(made, 1e-6) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert [made.room(steps) for steps in (7, 9, 10)] == [3, 1, 10]
    made = rhythm(room=12)
    assert [launch(made, 1e-6) for _ in range(6)] == [1, 2, 4, 8, 12, 12]
    made = rhythm()
    assert [launch(made, 0.006) for _ in range(6)] == [1, 2, 4, 8, 8, 8]
    assert [launch(made, 1.0) for _ in range(2)] == [8, 1]
    assert [launch(made, 1e-6) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert [launch(rhythm(alone=True), 1e-6) for _ in range(3)] == [1, 1, 1]


def test_where_launches_end_early_little_is_asked_for() -> None:
    made = rhythm()
    for _ in range(10):
        launch(made, 1e-6)
    made.took(1e-6, 10, 64)
    assert made.room(0) == 20
    made.took(1e-6, 1, 20)
    assert [launch(made, 1e-6) for _ in range(8)] == [1, 1, 1, 1, 1, 2, 4, 8]
