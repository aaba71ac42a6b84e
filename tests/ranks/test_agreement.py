"""What ranks must have alike: a difference names what it is in and who has what, on all ranks."""

from collections.abc import Callable
from threading import local
from typing import Any

import numpy as np
import pytest

from dgrr.base.computing import versions
from dgrr.runtime import SGD, Adam, Dataset, Trainer
from dgrr.runtime.ranks.agreement import AgreementError, digests, require_agreement
from dgrr.runtime.ranks.texts import texts_of_all
from dgrr.tape import ops

from ..runtime.fake_ranks import FakeRank, run_ranks

X = np.random.default_rng(0).standard_normal((24, 3))
Y = X @ np.array([[1.0], [-2.0], [0.5]])


def loss_fn(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"], p["b"]), batch[1])


def other_loss(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"], p["b"]) * 1.0, batch[1])


def params(b: float = 0.0) -> dict[str, Any]:
    return {"w": np.zeros((1, 3)), "b": np.array([b])}


def said(size: int, run: Callable[[FakeRank], Any]) -> str:
    """The one text of the AgreementError that all ranks raise."""

    def one(rank: FakeRank) -> str:
        with pytest.raises(AgreementError) as found:
            run(rank)
        return str(found.value)

    (text,) = set(run_ranks(size, one))
    return text


def fit(rank: FakeRank, **odd: Any) -> Any:
    """Train on a rank; the last of the ranks has something of its own."""
    own = odd if rank.rank == rank.size - 1 else {}
    made: dict[str, Any] = {"params": params(), "optimizer": SGD(0.1), "loss_fn": loss_fn, "size": 2, "x": X, "seed": 0}
    made |= own
    trainer = Trainer(
        made["loss_fn"], made["params"], made["optimizer"], accumulate=4, order="tree", ranks=rank, seed=made["seed"]
    )
    return trainer.fit(Dataset(made["x"], Y).batches(made["size"]), steps=own.get("steps", 2))


def test_texts_of_any_length_reach_every_rank() -> None:
    texts = [b"", b"one", b"a longer one"]
    assert run_ranks(3, lambda rank: texts_of_all(rank, texts[rank.rank])) == [texts] * 3


def test_what_is_alike_costs_one_gather_and_says_nothing() -> None:
    def run(rank: FakeRank) -> int:
        require_agreement(rank, "before step 0", digests(params(), "parameter"))
        return rank.sent

    assert run_ranks(3, run) == [64] * 3


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "a parameter": (
        {"params": params(0.5)},
        "before step 0: parameter 'b': expected the same on all ranks, got ranks 0, 1 have float64[1] ",
    ),
    "the rule": ({"optimizer": Adam(0.1)}, "before step 0: recipe: rule: expected the same on all ranks, got "),
    "the seed": ({"seed": 7}, "recipe: seed: expected the same on all ranks, got ranks 0, 1 have 0; rank 2 has 7"),
    "the steps": ({"steps": 3}, "fit: steps: expected the same on all ranks, got ranks 0, 1 have 2; rank 2 has 3"),
    "the data": ({"x": X + 1}, "before step 0: batches: expected the same on all ranks, got ranks 0, 1 have "),
    "the size of batches": ({"size": 3}, "before step 0: batches: expected the same on all ranks, got "),
    "the program": ({"loss_fn": other_loss}, "before step 0: program: expected the same on all ranks, got ranks 0, 1 "),
}


@pytest.mark.parametrize("what", ODD)
def test_a_rank_that_has_something_else_is_found_before_the_first_step(what: str) -> None:
    odd, text = ODD[what]
    assert text in said(3, lambda rank: fit(rank, **odd))


@pytest.mark.parametrize("what", ["sources", "dgrr", "numpy", "numba", "llvmlite"])
def test_a_rank_of_other_sources_or_versions(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where one machine has an edited or an older installation: the same program would give it other bits."""
    own, last = versions(), local()

    def of_rank() -> dict[str, str]:
        return {**own, what: "another"} if getattr(last, "rank", 0) == 2 else own

    def run(rank: FakeRank) -> Any:
        last.rank = rank.rank
        return fit(rank)

    monkeypatch.setattr("dgrr.runtime.ranks.same_run.versions", of_rank)
    expected = f"ranks 0, 1 have {what} {own[what]}; rank 2 has {what} another"
    assert said(3, run) == f"ranks: before step 0: {what}: expected the same on all ranks, got {expected}"


def test_a_parameter_that_one_rank_lacks_is_named() -> None:
    some = [params(), params(), {"w": np.zeros((1, 3))}]
    text = said(3, lambda rank: require_agreement(rank, "before step 0", digests(some[rank.rank], "parameter")))
    assert text.endswith("; rank 2 has nothing") and "parameter 'b'" in text


def test_parameters_that_part_on_the_way_are_found() -> None:
    """A rank of which memory was changed: at the next step that is looked at, all ranks say so."""

    def run(rank: FakeRank) -> None:
        def spoil(trainer: Any, step: int, loss: float) -> None:
            if rank.rank == 1 and step == 0:
                trainer.params["w"][0, 2] += 1e-9

        rank.check_every = 1
        trainer = Trainer(
            loss_fn, params(), SGD(0.0), accumulate=4, order="tree", ranks=rank, callbacks=[Spoiled(spoil)]
        )
        trainer.fit(Dataset(X, Y).batches(2), steps=3)

    text = said(2, run)
    assert text.startswith("ranks: in step 1: parameter 'w': expected the same on all ranks, got rank 0 has ")


class Spoiled:
    """A callback that is told of steps."""

    def __init__(self, tell: Callable[[Any, int, float], None]) -> None:
        self.on_step = tell
