"""The simulation of many ranks: what it says where the answer is known."""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module("ranks_simulation")


def test_a_machine_without_costs_shares_the_work_evenly(simulation: Any) -> None:
    free = simulation.Machine("free", 0.0, float("inf"), float("inf"), float("inf"), 0.0, 0.0)
    work = simulation.Work("any", 1 << 20, 0.25)
    assert simulation.efficiencies(work, free, 64, (1, 2, 8, 64)) == pytest.approx([1, 1, 1, 1])
    assert simulation.efficiencies(work, free, 64, (3,)) == pytest.approx([64 / (3 * 22)])  # one has 22 of them


def test_messages_take_their_latency_and_their_bytes(simulation: Any) -> None:
    """Of 4 ranks: three rounds of a quarter of the sums, then of the parameters, and the small gathers."""
    machine = simulation.Machine("", 1e-3, 1e6, float("inf"), float("inf"), 0.0, 0.0)
    work = simulation.Work("", 4_000_000, 0.0)
    took = simulation.step_time(work, machine, 4, 4)
    assert took == pytest.approx(2 * 3 * (1e-3 + 1.0) + simulation.SMALL * 2 * 1e-3)
    slower = replace(machine, overhead=0.5)
    assert simulation.step_time(work, slower, 4, 4) == pytest.approx(took + 0.5)


def test_a_rank_sends_as_much_as_in_a_ring_where_it_makes_one_sum(simulation: Any) -> None:
    work = simulation.Work("", 1 << 20, 0.0)
    assert simulation.sent_bytes(work, 8, 64) == 2 * 7 * (1 << 20) // 8
    assert simulation.sent_bytes(work, 3, 64) > 2 * (1 << 20)  # who has [21, 42) makes six


def test_it_is_held_to_what_was_measured(simulation: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measured by itself, it predicts what it measured."""
    machine = simulation.Machine("", 1e-5, 5e9, overhead=0.0, jitter=0.0)
    sizes = (1 << 12, 1 << 20, 1 << 24)
    exchanges = [{"ranks": 2, "bytes": n, "seconds": simulation.exchange_time(n, machine)} for n in sizes]
    row: dict[str, Any] = {"model": "any", "parameters": 1 << 20, "micro_batches": 4, "gradients_seconds": 1e-2}
    measured = {"exchange": exchanges, "steps": [{**row, "two_ranks_seconds": simulation.step_of(machine, row)}]}
    file = tmp_path / "measured.json"
    file.write_text(json.dumps(measured))
    simulation.check(file)
    assert capsys.readouterr().out.count("1.00") >= 3
