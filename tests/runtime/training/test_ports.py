"""What people train elsewhere, written with the public API: eager and captured alike, recorded and proven.

Larger ones are the programs of docs/examples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from dgrr.runtime import Adam, Dataset, Trainer
from dgrr.tape import Context, Random, Tape, grad, nn, ops
from dgrr.trace import replay

# ------------------------------------------------------------------ a critic with a gradient penalty

CRITIC = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))


def slopes(p: Any, x: Any) -> Any:
    """The length of the critic's gradient by each of its inputs; they do not touch each other, so their sum will do."""
    return (grad(lambda points: CRITIC(p, points).sum())(x) ** 2).sum(1).sqrt()


def critic_loss(p: Any, batch: Any, ctx: Context) -> Any:
    """Gulrajani and others (2017): slopes between real and made points are held to 1."""
    real, made = batch
    share = ctx.random.uniform((real.shape[0], 1))
    between = share * real + (1 - share) * made
    return (CRITIC(p, made) - CRITIC(p, real)).mean() + 10 * ((slopes(p, between) - 1) ** 2).mean()


def clouds() -> Dataset:
    """Points around (2, 0), and around the origin."""
    random = Random(Tape().const(0), seed=1)
    around = [random.normal((512, 2), std=0.3).numpy() for _ in range(2)]
    return Dataset(around[0] + np.array([2, 0], np.float32), around[1])


# ------------------------------------------------------------------ a table that reads and writes


@dataclass(frozen=True)
class Tied(nn.Layer):
    """What follows each symbol; the rows that symbols are read by are those that the answer is held against."""

    embedding: nn.Embedding
    between: nn.Layer

    def __call__(self, p: Any, x: Any, ctx: Context | None = None) -> Any:
        """(batch) symbols to (batch, symbols) logits."""
        return self.part("between", p, self.part("embedding", p, x, ctx), ctx) @ p["embedding.weight"].T


TIED = Tied(nn.Embedding(10, 8), nn.Linear(8, 8))


def tied_loss(p: Any, batch: Any) -> Any:
    """Mean cross entropy of the symbol after each."""
    symbols, following = batch
    return ops.cross_entropy(TIED(p, symbols), following)


def following() -> Dataset:
    """Every symbol of ten, and one that follows from it."""
    symbols = np.arange(640) % 10
    return Dataset(symbols, (3 * symbols + 1) % 10)


# ------------------------------------------------------------------ all of them

PORTS: dict[str, tuple[Any, nn.Layer, Callable[[], Dataset], float]] = {
    "gradient penalty": (critic_loss, CRITIC, clouds, -1.8),  # the clouds are 2 apart, and slopes about 1
    "weight tying": (tied_loss, TIED, following, 0.01),
}


@pytest.mark.parametrize("name", PORTS)
def test_a_port_learns_and_is_proven(name: str, tmp_path: Path) -> None:
    loss_fn, model, samples_of, reached = PORTS[name]
    samples = samples_of()
    trainer = Trainer(loss_fn, model.init(0), Adam(1e-2), trace=tmp_path / "t.dgrr", record="digest")
    losses = trainer.fit(samples.batches(64, seed=0), epochs=20, progress=False).losses
    assert losses[:10].mean() - losses[-10:].mean() > 2
    assert losses[-10:].mean() < reached
    assert replay(tmp_path / "t.dgrr", loss_fn=loss_fn, batches=samples.batches(64, seed=0)).ok


@pytest.mark.parametrize("name", PORTS)
def test_a_port_has_the_same_bits_in_every_mode(name: str) -> None:
    loss_fn, model, samples_of, _ = PORTS[name]
    samples = samples_of()
    digests = []
    modes: tuple[Literal["eager"], Literal["replay"]] = ("eager", "replay")
    for mode in modes:
        trainer = Trainer(loss_fn, model.init(0), Adam(1e-2), mode=mode)
        digests.append(trainer.fit(samples.batches(64, seed=0), progress=False).state_digest)
    assert digests[0] == digests[1]


def test_slopes_of_a_critic_that_has_learned_are_about_one() -> None:
    loss_fn, model, samples_of, _ = PORTS["gradient penalty"]
    samples = samples_of()
    trainer = Trainer(loss_fn, model.init(0), Adam(1e-2))
    trainer.fit(samples.batches(64, seed=0), epochs=20, progress=False)
    tape: Tape[Any] = Tape()
    real, made = samples.arrays
    found = slopes(tape.params(trainer.params), tape.const((real + made) / 2)).numpy()
    assert abs(found.mean() - 1) < 0.1


def test_a_tied_table_is_one_parameter_whose_gradients_add_up() -> None:
    assert sorted(TIED.init(0)) == ["between.bias", "between.weight", "embedding.weight"]
    tape: Tape[Any] = Tape()
    p = tape.params(TIED.init(0))
    symbols, after = [tape.const(array[:64]) for array in following().arrays]
    untied = tape.params({"read": TIED.init(0)["embedding.weight"], "write": TIED.init(0)["embedding.weight"]})
    rows = TIED.between(
        {"weight": p["between.weight"], "bias": p["between.bias"]}, ops.embedding(untied["read"], symbols)
    )
    separate = tape.backward_dense(ops.cross_entropy(rows @ untied["write"].T, after))
    tied = tape.backward_dense(tied_loss(p, (symbols, after)))["embedding.weight"].numpy()
    expected = separate["read"].numpy() + separate["write"].numpy()
    np.testing.assert_allclose(tied, expected, rtol=1e-5, atol=1e-7)
