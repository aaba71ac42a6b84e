"""Models of layers in training: captured as eager, to the bit, with state and dropout, and the state that is saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Trainer
from dgrr.tape import nn, ops

IMAGES = nn.Sequential(
    nn.Conv2d(2, 4, 3, padding="same"),
    nn.BatchNorm(4),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Residual(nn.Sequential(nn.GroupNorm(2, 4), nn.Conv(4, 4, (1, 1)))),
    nn.UpsampleNearest((2, 2)),
    nn.ConvTranspose2d(4, 3, 3, stride=2),
    nn.BatchNorm(3, affine=False),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.25),
    nn.Linear(12, 5),
)
WORDS = nn.Sequential(
    nn.Embedding(11, 8),
    nn.TransformerBlock(8, 2, 12, dropout=0.1, causal=True),
    nn.TransformerBlock(8, 4, 6, dropout=0.2, pre_norm=False),
    nn.RMSNorm(8),
    nn.Linear(8, 5),
)
rng = np.random.default_rng(0)
BATCHES: dict[str, list[tuple[Any, Any]]] = {
    "images": [(rng.standard_normal((6, 2, 8, 8)).astype(np.float32), rng.integers(0, 5, 6)) for _ in range(6)],
    "words": [(rng.integers(0, 11, (3, 7)), rng.integers(0, 5, (3, 7))) for _ in range(6)],
}
MODELS = {"images": IMAGES, "words": WORDS}


def trained(name: str, **options: Any) -> Trainer:
    model = MODELS[name]

    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        inputs, labels = batch
        logits, labels = ops.reshape(model(p, inputs, ctx), (-1, 5)), ops.flatten(labels)
        return ops.cross_entropy(logits, labels), ctx.state

    trainer = Trainer(loss_fn, model.init(0), Adam(1e-2), model_state=model.init_state(), **options)
    trainer.fit(BATCHES[name], epochs=2)
    return trainer


@pytest.mark.parametrize("name", MODELS)
def test_captured_steps_are_eager_ones_to_the_bit(name: str) -> None:
    eager, captured, other = (trained(name, seed=s, mode=m) for s, m in ((3, "eager"), (3, "replay"), (4, "replay")))
    for part in ("params", "model_state"):
        one, same = getattr(eager, part), getattr(captured, part)
        assert {n: x.tobytes() for n, x in one.items()} == {n: x.tobytes() for n, x in same.items()}
    assert any(x.tobytes() != other.params[n].tobytes() for n, x in eager.params.items())
    assert all(np.isfinite(x).all() and x.any() for x in eager.params.values())


def test_a_trained_model_comes_back_from_its_file(tmp_path: Path) -> None:
    trainer = trained("images")
    assert all(x.tobytes() != IMAGES.init_state()[n].tobytes() for n, x in trainer.model_state.items())
    nn.save(tmp_path / "model", trainer.params, trainer.model_state)
    params, state = nn.load_state_dict(IMAGES, nn.load(tmp_path / "model"))
    assert list(params) == list(trainer.params)
    for name, x in {**params, **state}.items():
        assert x.tobytes() == {**trainer.params, **trainer.model_state}[name].tobytes()
