"""Random steps give the bits of eager steps and pass their verification; ``tests/bench/random_graphs.py`` runs more."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import dgrr.runtime.lower.plan as plan
from dgrr.runtime.lower.compile import PASSES

BENCH = Path(__file__).parents[2] / "bench"
FIXED = settings(derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(3, 12)
DTYPES = st.sampled_from(["float32", "float64"])


@pytest.fixture(scope="module")
def graphs() -> Any:
    """The program of the long version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        return import_module("random_graphs")


@given(seed=SEEDS, size=SIZES, dtype=DTYPES, off=st.sampled_from([(), (), *[(name,) for name in PASSES]]))
@settings(FIXED, max_examples=40)
def test_random_graphs(graphs: Any, seed: int, size: int, dtype: str, off: tuple[str, ...]) -> None:
    graph = graphs.random_graph(seed, size, dtype, graphs.FEW_KERNELS)
    assert graphs.faults(graph, off) == [], str(graph)


@pytest.mark.parametrize("number", [1012, 1190, 1550, 3191, 4116, 6755, 7122, 7129, 13632])
def test_graphs_that_were_wrong_once(graphs: Any, number: int) -> None:
    """Pieces of joined arrays, also empty ones, products with 1, and copies that several ops read."""
    assert graphs.faults(graphs.numbered(number, graphs.FEW_KERNELS)) == []


def test_the_graphs_find_a_wrong_compiler(graphs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that is given away before its last reader is found, by bits or by the verification."""
    right = plan._last_reads
    monkeypatch.setattr(plan, "_last_reads", lambda program: dict.fromkeys(right(program), 0))
    found = [graphs.faults(graphs.random_graph(seed, 12, "float32", graphs.FEW_KERNELS)) for seed in range(25)]
    assert any(found)


def test_the_graphs_are_of_many_kinds(graphs: Any) -> None:
    """Values used twice, unused inputs, parameters without gradient, constants, both ways of averaging."""
    made = [graphs.random_graph(seed, 8, "float32", graphs.FEW_KERNELS) for seed in range(30)]
    reads = [[i for call in graph.calls for i in call.inputs] for graph in made]
    assert any(len(set(read)) < len(read) for read in reads)
    assert any(set(range(len(g.given))) - set(read) for g, read in zip(made, reads, strict=True))
    assert {kind for graph in made for kind, _ in graph.given} == {"param", "batch", "const"}
    assert {graph.accumulate for graph in made} == {1, 2}
    assert len({call.op for graph in made for call in graph.calls}) > 8
    assert str(made[0]) == str(graphs.random_graph(0, 8, "float32", graphs.FEW_KERNELS))
