"""All that runs on a GPU beside what the CPU gives, to the bit: ``python tests/runtime/cuda/device_check.py``.

It ends with 1, and names what differs, if anything does. It needs a GPU; the tests beside it run the same on a GPU that
is this machine.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Trainer, capture, capture_function
from dgrr.runtime.captured.replayed_step import Device
from dgrr.runtime.cuda.driver import gpu
from dgrr.runtime.data import digits
from dgrr.tape import nn, ops

MODEL = nn.Sequential(
    nn.Conv(1, 8, (3, 3), padding=1), nn.BatchNorm(8), nn.ReLU(), nn.MaxPool((2, 2)), nn.Flatten(), nn.Dropout(0.2),
    nn.Linear(128, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 10),
)  # fmt: skip
TRAIN, TEST = digits()


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    images, labels = batch
    loss = ops.cross_entropy(MODEL(p, images.reshape((-1, 1, 8, 8)), ctx), labels)
    return loss, ctx.state, {"half": loss * 0.5}


def model(p: Any, images: Any, ctx: Any) -> Any:
    return MODEL(p, images.reshape((-1, 1, 8, 8)), ctx)


def plain(p: Any, images: Any) -> Any:
    return ops.softmax(ops.tanh(images @ p["w"]) @ p["v"])


def trainer(device: Device, **options: Any) -> Trainer:
    return Trainer(loss_fn, MODEL.init(0), Adam(1e-2), model_state=MODEL.init_state(), device=device, **options)


def trained(device: Device) -> Iterator[tuple[str, Any]]:
    made = trainer(device, clip_norm=1.0, ema=0.9)
    result = made.fit(TRAIN.batches(32, seed=0), steps=20, validation=TEST, validate_every=10)
    yield "digest of 20 steps", result.state_digest
    yield "losses", [float(loss) for loss in result.losses]
    yield "evaluate", [made.evaluate(TEST), made.evaluate(TEST, "half"), made.evaluate(TEST, "accuracy", model)]
    yield "evaluate, averages", made.evaluate(TEST, "accuracy", model, averages=True)
    yield "predict", made.predict(TEST.arrays[0], model=model, batch=100).tobytes()


def functions(device: Device) -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(0)
    params = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("w", (64, 99)), ("v", (99, 7)))}
    captured = capture_function(plain, device=device)
    for rows in (1, 33, 256):
        yield f"capture_function, {rows} rows", captured(params, TEST.arrays[0][:rows]).tobytes()


def verified(device: Device) -> Iterator[tuple[str, Any]]:
    batch = next(iter(TRAIN.batches(16, seed=0)))
    step = capture(loss_fn, MODEL.init(0), Adam(1e-2), batch, model_state=MODEL.init_state(), device=device)
    yield "verify", [] if device == "cpu" else [str(check) for check in step.verify(3).failures]


def large(device: Device) -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(0)
    batches = [tuple(rng.standard_normal((256, 2048)).astype(np.float32) for _ in range(2)) for _ in range(4)]
    params = {"w": rng.standard_normal((2048, 2048)).astype(np.float32) / 64}
    step = capture(
        lambda p, b: ops.mse_loss(ops.tanh(b[0] @ p["w"]), b[1]), params, Adam(1e-3), batches[0], device=device
    )
    yield "losses of large batches", [float(step(batches[i % 4])) for i in range(40)]
    yield "digest behind them", step.digest()


PARTS: tuple[Callable[[Device], Iterator[tuple[str, Any]]], ...] = (trained, functions, verified, large)


def main() -> int:
    print(f"on {gpu().name}")
    wrong = 0
    for part in PARTS:
        for (name, here), (_, there) in zip(part("cpu"), part("cuda"), strict=True):
            same = here == there
            wrong += not same
            print(f"{'same' if same else 'DIFFERS'}: {name}", *(() if same else (here, there)), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
