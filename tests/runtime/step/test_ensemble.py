"""Several models in one step: each member has the parameters, state, losses and draws that it has alone."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Dataset, Trainer, ensemble, joined, parted
from dgrr.tape import DomainError, nn, ops

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(0)
DATA = Dataset(RNG.standard_normal((24, 4)).astype(np.float32), RNG.integers(0, 3, 24))
MODEL = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm(8), nn.Dropout(0.5), nn.Linear(8, 3))
SEEDS = [3, 5]


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    out = MODEL(p, batch[0], ctx)
    return ops.cross_entropy(out, batch[1]), ctx.state, {"largest": out.max()}


def trained(loss: Any, params: Any, state: Any, seed: int, mode: Any) -> Any:
    trainer = Trainer(loss, params, Adam(0.01), model_state=state, seed=seed, mode=mode)
    return trainer, trainer.fit(DATA.batches(8, seed=0), steps=5)


@pytest.mark.parametrize("mode", ["eager", "capture"])
def test_members_are_trained_as_alone(mode: str) -> None:
    starts = [(MODEL.init(seed), MODEL.init_state()) for seed in SEEDS]
    together, result = trained(
        ensemble(loss_fn, SEEDS), joined([p for p, _ in starts]), joined([s for _, s in starts]), 0, mode
    )
    for k, (seed, (params, state)) in enumerate(zip(SEEDS, starts, strict=True)):
        alone, expected = trained(loss_fn, params, state, seed, mode)
        for mine, theirs in ((together.params, alone.params), (together.model_state, alone.model_state)):
            found = parted(mine, k)
            assert found.keys() == theirs.keys()
            assert all(found[name].tobytes() == theirs[name].tobytes() for name in theirs)
        assert list(result.history[f"loss {k}"]) == list(expected.history["loss"])
        assert list(result.history[f"largest {k}"]) == list(expected.history["largest"])


def test_members_of_one_seed_draw_alike() -> None:
    params, state = MODEL.init(0), MODEL.init_state()
    together, _ = trained(ensemble(loss_fn, [7, 7]), joined([params] * 2), joined([state] * 2), 0, "capture")
    first, second = (parted(together.params, k) for k in range(2))
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_what_is_refused() -> None:
    with pytest.raises(DomainError, match="argument 'seeds': expected a seed for each member, got none"):
        ensemble(loss_fn, [])
    with pytest.raises(DomainError, match=r"argument 'member': expected one with names 2\.\*, got 0\.w"):
        parted({"0.w": np.zeros(1)}, 2)
