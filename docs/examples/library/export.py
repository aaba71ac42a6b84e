"""Train a convolutional network on the digits, and write `predict` as libraries: for ARM, and for a page."""

from typing import Any

import numpy as np

from dgrr.runtime import Adam, Trainer, capture_function, data, export_library
from dgrr.tape import nn, ops

model = nn.Sequential(
    *(nn.Conv(1, 16, (3, 3), padding=1, bias=False), nn.BatchNorm(16), nn.ReLU(), nn.MaxPool((2, 2))),
    *(nn.Conv(16, 32, (3, 3), padding=1, bias=False), nn.BatchNorm(32), nn.ReLU(), nn.MaxPool((2, 2))),
    *(nn.Flatten(), nn.Linear(128, 10)),
)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Mean cross entropy, and the running statistics after this step."""
    images, labels = batch
    return ops.cross_entropy(model(p, images.reshape(-1, 1, 8, 8), ctx), labels), ctx.state


train, test = data.digits()
trainer = Trainer(loss_fn, model.init(seed=0), Adam(2e-3), model_state=model.init_state())
trainer.fit(train.batches(32, seed=0), epochs=2)
arrays = trainer.params | trainer.model_state
predict = capture_function(lambda image: model(arrays, image), np.zeros((1, 1, 8, 8), np.float32))
export_library(predict, "library", target=("aarch64", "wasm32"), name="digits")
