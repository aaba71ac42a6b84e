"""Twenty questions about the run of docs/examples/digits_cnn.py, answered by `when` and by a plain loop."""

from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dgrr.runtime import Adam, Keep, Trainer, data
from dgrr.runtime.step.evaluate import evaluate
from dgrr.runtime.step.loss_call import RunPoint
from dgrr.tape import ops
from dgrr.trace import when

from .noted import float64

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "digits_cnn.py"
SEED = 0


class Step(NamedTuple):
    """All of one step, as the plain loop has it."""

    loss: float
    before: dict[str, Any]
    after: dict[str, Any]
    grads: dict[str, Any]
    layers: list[Any]
    """What each layer gives."""
    layer_grads: list[Any]


QUESTIONS: dict[str, Callable[[Step], Any]] = {
    "loss": lambda s: s.loss,
    "-loss": lambda s: -s.loss,
    'absmax("0.weight")': lambda s: np.abs(s.before["0.weight"]).max(),
    'norm("10.weight")': lambda s: np.sqrt((float64(s.before["10.weight"]) ** 2).sum()),
    '-min("10.bias")': lambda s: -s.before["10.bias"].min(),
    'mean("4.weight")': lambda s: float64(s.before["4.weight"]).mean(),
    'max("1.running_mean")': lambda s: s.before["1.running_mean"].max(),
    'max("5.running_var")': lambda s: s.before["5.running_var"].max(),
    'max("v/10.weight")': lambda s: s.before["v/10.weight"].max(),
    'norm(grad("10.weight"))': lambda s: np.sqrt((float64(s.grads["10.weight"]) ** 2).sum()),
    'absmax(grad("0.weight"))': lambda s: np.abs(s.grads["0.weight"]).max(),
    'absmax(update("10.weight"))': lambda s: np.abs(
        float64(s.after["10.weight"]) - float64(s.before["10.weight"])
    ).max(),
    'absmax("6")': lambda s: np.abs(s.layers[6]).max(),
    'norm("10")': lambda s: np.sqrt((float64(s.layers[10]) ** 2).sum()),
    'zeros("2")': lambda s: (s.layers[2] == 0).sum(),
    'mean("7")': lambda s: float64(s.layers[7]).mean(),
    'max(node("max_pool*"))': lambda s: max(s.layers[3].max(), s.layers[7].max()),
    'norm(grad("6"))': lambda s: np.sqrt((float64(s.layer_grads[6]) ** 2).sum()),
    'absmax(grad("10")) * 2': lambda s: 2 * np.abs(float64(s.layer_grads[10])).max(),
    'max("10") - min("10")': lambda s: float64(s.layers[10]).max() - float64(s.layers[10]).min(),
}
"""A condition's left side, and what it is by numpy."""


def example() -> Any:
    """The example as a module."""
    spec = spec_from_file_location("digits_cnn", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batches(module: Any) -> Any:
    """Those of the example."""
    return module.as_images(data.digits()[0]).batches(module.BATCH, seed=SEED)


def record(module: Any, path: Path, steps: int) -> str:
    """Train as the example does, and record digests; the digest of what training ends with."""
    trainer = Trainer(
        module.loss_fn,
        module.MODEL.init(SEED),
        Adam(lr=2e-3),
        model_state=module.MODEL.init_state(),
        seed=SEED,
        trace=Keep(path, record="digest"),
    )
    return trainer.fit(batches(module), steps=steps, progress=False).state_digest


def plain_loop(module: Any, steps: int) -> Iterator[Step]:
    """The run again, op by op, layer by layer, updated by the rule: nothing of traces."""
    model, rule, place = module.MODEL, Adam(lr=2e-3), list[Any]()

    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        x, labels = batch
        place.clear()
        for i in range(11):
            x = model.part(str(i), p, x, ctx)
            place.append(x)
        return ops.cross_entropy(x, labels), ctx.state

    params, buffers = model.init(SEED), model.init_state()
    state, epochs, number = rule.init(params), 0, 0
    given = batches(module)
    while True:
        for batch in given.epoch(epochs):
            if number == steps:
                return
            made = evaluate(loss_fn, params, batch, RunPoint(number, SEED, buffers))
            before = {name: array.copy() for name, array in {**params, **state, **buffers}.items()}
            grads = [made.dense[var] for var in place]
            rule.step(params, made.grads, state)
            buffers = made.model_state
            after = {name: array.copy() for name, array in {**params, **state, **buffers}.items()}
            layers = [var.numpy() for var in place]
            yield Step(float(made.loss), before, after, made.grads, layers, [g.numpy() for g in grads])  # type: ignore[union-attr]
            number += 1
        epochs += 1


class Answered(NamedTuple):
    """A question, the step that the plain loop found, the step that `when` found, and how long that took."""

    condition: str
    expected: int
    found: int | None
    seconds: float


def answers(folder: Path, steps: int) -> Iterator[Answered | str]:
    """Every question about a run of so many steps; before them, what was done in which time."""
    module, path, began = example(), folder / "digits.dgrr", perf_counter()
    record(module, path, steps)
    yield f"trained in {perf_counter() - began:.0f} s"
    began = perf_counter()
    series = {name: np.empty(steps) for name in QUESTIONS}
    for number, step in enumerate(plain_loop(module, steps)):
        for name, figure in QUESTIONS.items():
            series[name][number] = figure(step)
    yield f"computed by a plain loop in {perf_counter() - began:.0f} s"
    for name, values in series.items():
        rises = bool((values[1:] > values[0]).any())
        expected, threshold = last_record(values if rises else -values)
        condition, began = f"{name} > {threshold!r}" if rises else f"{name} < {-threshold!r}", perf_counter()
        found = when(path, condition, module.loss_fn, batches(module)).step
        yield Answered(condition, expected, found, perf_counter() - began)


def last_record(values: Any) -> tuple[int, float]:
    """The last place at which a value is greater than all before, and a number between it and the one before."""
    highest = np.maximum.accumulate(values)
    place = int(np.flatnonzero(highest[1:] > highest[:-1])[-1]) + 1
    return place, float((highest[place - 1] + highest[place]) / 2)
