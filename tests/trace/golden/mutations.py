"""Changes to one run that a golden trace must name: what each is, and what the comparison says of it.

The run is small and has one of everything: batch norm with its state, dropout, two micro-batches a step, a schedule,
a clipped norm. It runs op by op, so that a single call of a single op can be changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, Dataset, Trainer
from dgrr.runtime.optim import Constant, Cosine, Rule
from dgrr.runtime.step.evaluate import evaluations
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import NUMERICS, AnyTensor, AnyVar, Tape, nn, ops
from dgrr.tape.record.op import Op
from dgrr.trace.golden.runs import record_step

STEPS = 4
LATE = 2
"""The step at which changes happen that happen at one step."""

_RANDOM = np.random.default_rng(0)
X = _RANDOM.standard_normal((2 * STEPS, 4, 4)).astype(np.float32)
Y = (X.sum(-1) > 0).astype(np.int64)


def layers(width: int = 4, *, bias: bool = True, **other: nn.Layer) -> nn.Layer:
    """The layers of the run, with others in the places that are named."""
    own: dict[str, nn.Layer] = {"norm": nn.BatchNorm(width), "act": nn.Tanh(), "drop": nn.Dropout(0.5)}
    return nn.Sequential(nn.Linear(4, width, bias=bias), *{**own, **other}.values(), nn.Linear(width, 2))


def cross_entropy(p: Any, batch: Any, ctx: Any, model: nn.Layer) -> Any:
    """The loss of the run."""
    images, labels = batch
    return ops.cross_entropy(model(p, images, ctx), labels), ctx.state


def batches() -> list[tuple[Any, Any]]:
    """The batches of the run."""
    return list(zip(X, Y, strict=True))


@dataclass
class Run:
    """All that a run is made of. A mutation changes some of it."""

    model: nn.Layer = field(default_factory=layers)
    loss: Callable[..., Any] = cross_entropy
    init: int = 0
    optimizer: Rule = field(default_factory=lambda: Adam(lr=Cosine(0.01, steps=100)))
    batches: list[Any] = field(default_factory=batches)
    dtype: Any = np.float32
    more: dict[str, Any] = field(default_factory=lambda: {"seed": 3, "accumulate": 2, "clip_norm": 0.5})
    step: int = 0
    """The step that is being done."""

    def train(self, trace: Any) -> None:
        """Train as `dgrr test record` would have it."""

        def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
            return self.loss(p, batch, ctx, self.model)

        params = {name: array.astype(self.dtype) for name, array in self.model.init(self.init).items()}
        state = {name: array.astype(self.dtype) for name, array in self.model.init_state().items()}
        told: dict[str, Any] = {"mode": "eager", "model_state": state, "trace": trace, "callbacks": [self], **self.more}
        Trainer(loss_fn, params, self.optimizer, **told).fit(self.batches, epochs=1, progress=False)

    def on_step(self, trainer: Any, step: int, loss: float) -> None:
        """Told by the trainer."""
        self.step = step + 1


Change = Callable[[Run, pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Mutation:
    """A change of the run, and what the comparison must say.

    Args:
        what: the change in words, for the table of the documentation.
        change: makes it.
        cause: why the runs part.
        step: the first step that differs; None: before the first.
        tensor: the first tensor that differs, as the comparison calls it.
        op: the first op that differs; for a gradient, the op whose backward made it.
        told: what the run was told otherwise.
        of: the run that is changed.
    """

    what: str
    change: Change
    cause: str
    step: int | None
    tensor: str = ""
    op: str = ""
    told: str = ""
    of: type[Run] = Run


def ulp(array: Any) -> Any:
    """A copy whose first element that is not zero is the next number above."""
    made = np.array(array)
    place = np.flatnonzero(made)[0]
    made.flat[place] = np.nextafter(made.flat[place], np.array(np.inf, made.dtype))
    return made


def op_off(name: str, *, always: bool = False) -> Change:
    """One element of what an op gives is one ULP off, in one step or in all."""

    def change(run: Run, patch: pytest.MonkeyPatch) -> None:
        compute = Op.compute

        def off(record: Op, values: Any, attrs: Any) -> AnyTensor:
            made = compute(record, values, attrs)
            return (
                AnyTensor(ulp(made.array), made.spec) if record.name == name and (always or run.step == LATE) else made
            )

        patch.setattr(Op, "compute", off)
        patch.setattr(Tape, "_result", staticmethod(off))

    return change


def rule_does(update: Callable[..., object]) -> Change:
    """At one step the rule does something else: `update` is given its step, params, gradients and state."""

    def change(run: Run, patch: pytest.MonkeyPatch) -> None:
        step = type(run.optimizer).step

        def off(rule: Rule, params: Any, grads: Any, state: Any) -> None:
            if run.step == LATE:
                update(lambda: step(rule, params, grads, state), params, state)
            else:
                step(rule, params, grads, state)

        patch.setattr(type(run.optimizer), "step", off)

    return change


def rule_off(part: str, name: str) -> Change:
    """What the rule makes of one tensor is one ULP off at one step."""

    def off(step: Callable[[], object], params: Any, state: Any) -> None:
        step()
        array = {"params": params, "state": state}[part][name]
        array[...] = ulp(array)

    return rule_does(off)


def twice(step: Callable[[], object], params: Any, state: Any) -> None:
    """The update is applied again."""
    step()
    step()


def never(step: Callable[[], object], params: Any, state: Any) -> None:
    """The update is left out."""


def without_momentum(step: Callable[[], object], params: Any, state: Any) -> None:
    """The first moments begin anew."""
    for name, array in state.items():
        array[...] = 0 if name.startswith("m/") else array
    step()


def one_ahead(run: Run, patch: pytest.MonkeyPatch) -> None:
    """The schedule is asked for the rate of the next step."""
    hyper = Cosine.hyper
    patch.setattr(Cosine, "hyper", lambda self, base, step: hyper(self, base, np.array(step + 1)))


def stale(run: Run, patch: pytest.MonkeyPatch) -> None:
    """Gradients are those of the parameters before the last update."""
    before = list[dict[str, Any]]()

    def off(loss_fn: Any, params: Any, *rest: Any) -> Any:
        if len(before) == run.step:
            before.append({name: array.copy() for name, array in params.items()})
        return evaluations(loss_fn, before[max(run.step - 1, 0)], *rest)

    patch.setattr("dgrr.runtime.step.eager.evaluations", off)


def nudged_start(run: Run, patch: pytest.MonkeyPatch) -> None:
    """One initial weight is one ULP off."""
    init = type(run.model).init

    def off(layer: Any, seed: int) -> Any:
        made = init(layer, seed)
        return {**made, "4.weight": ulp(made["4.weight"])}

    patch.setattr(type(run.model), "init", off)


def in_place(p: Any, batch: Any, ctx: Any, model: nn.Layer) -> Any:
    """What the loss is given is changed by it."""
    made = cross_entropy(p, batch, ctx, model)
    images = batch[0].value.array
    images.flags.writeable = True
    images *= 0.5
    return made


def has(**values: Any) -> Change:
    """The run has something else."""

    def change(run: Run, patch: pytest.MonkeyPatch) -> None:
        for name, value in values.items():
            setattr(run, name, value)

    return change


def numerics(run: Run, patch: pytest.MonkeyPatch) -> None:
    """The arithmetic has another version."""
    patch.setattr("dgrr.runtime.step.training_step.NUMERICS", NUMERICS + 1)


def trainer(**values: Any) -> Change:
    """The trainer is told something else."""
    return lambda run, patch: run.more.update(values)


def optimizer(**values: Any) -> Change:
    """The rule has another constant."""
    return lambda run, patch: setattr(run, "optimizer", replace(run.optimizer, **values))


def data(edit: Callable[[list[Any]], object]) -> Change:
    """The batches are others."""
    return lambda run, patch: edit(run.batches)


def swap(batches: list[Any]) -> None:
    """Two batches of different steps change places."""
    batches[2 * LATE], batches[2 * LATE + 2] = batches[2 * LATE + 2], batches[2 * LATE]


def relabel(batches: list[Any]) -> None:
    """One label is another."""
    images, labels = batches[2 * LATE]
    batches[2 * LATE] = images, np.where(np.arange(4) == 1, 1 - labels, labels)


def shorten(batches: list[Any]) -> None:
    """Every batch lacks a sample."""
    batches[:] = [(images[:3], labels[:3]) for images, labels in batches]


def nudge(batches: list[Any]) -> None:
    """One input is one ULP off."""
    images, labels = batches[2 * LATE]
    batches[2 * LATE] = ulp(images), labels


def frozen(p: Any, batch: Any, ctx: Any, model: nn.Layer) -> Any:
    """The first layer's bias is taken as a constant."""
    return cross_entropy({**p, "0.bias": p["0.bias"].tape.const(p["0.bias"].numpy())}, batch, ctx, model)


def next_up(number: float) -> float:
    """The next float64 above."""
    return float(np.nextafter(number, np.inf))


def first_micro_batch(run: Run, patch: pytest.MonkeyPatch) -> None:
    """The second micro-batch of a step is never computed, though the step has the same batch."""
    patch.setattr(Recipe, "micro_batches", lambda self, batch: batch[:1])


class Shuffled(Run):
    """The same run, shuffled, with a rule that decays weights."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(optimizer=AdamW(lr=0.01, weight_decay=0.01), batches=shuffled(seed))


def shuffled(seed: int) -> list[Any]:
    """The batches of the run in an order that a seed gives."""
    return list(Dataset(X.reshape(-1, 4), Y.reshape(-1)).batches(4, seed=seed))


class Spatial(Run):
    """One step, without an update, of the kernels that the first run has not: of planes, of windows, of attention."""

    def train(self, trace: Any) -> None:
        """As `golden_trace.check_step` does it."""
        self.step = LATE
        batch = _RANDOM_IMAGES, np.array([1, 0])
        record_step(trace, spatial_loss, SPATIAL.init(0), batch, model_state={}, seed=0)


_RANDOM_IMAGES = _RANDOM.standard_normal((2, 1, 6, 6)).astype(np.float32)
SPATIAL = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.AvgPool2d(1), nn.Flatten(2), nn.LayerNorm(4), nn.MultiHeadAttention(4, 2)
)


def spatial_loss(p: Any, batch: Any) -> AnyVar:
    """A loss of the tokens that a small convolutional network makes."""
    x, labels = batch
    tokens = SPATIAL(p, x)
    picked = ops.concat([tokens[:, 0], ops.softmax(tokens[:, 1])], axis=1)
    return ops.cross_entropy(ops.exp(picked), labels)


def model(width: int = 4, *, bias: bool = True, **other: nn.Layer) -> Change:
    """The model has other layers."""
    return has(model=layers(width, bias=bias, **other))


def drawn_before(p: Any, batch: Any, ctx: Any, model: nn.Layer) -> Any:
    """What the model draws has the key of a second draw."""
    ctx.random._drawn = 1
    return cross_entropy(p, batch, ctx, model)


DOUBLED = [(x.astype(np.float64), y) for x, y in batches()]

MEAN, FIRST, SUMS = "'1.running_mean' after", "'0.weight' after", "'corrections' after"
"""Tensors as comparisons call them: the first of the state of the model, of its parameters, of Adam's."""


LAST, GAIN = "gradient of '4.bias'", "gradient of '1.bias'"
SINGLE = float(np.float32(0.999))
ADAM = "Adam's `{}` one ULP off"

RULE = [
    Mutation(ADAM.format("beta1"), optimizer(betas=(next_up(0.9), 0.999)), "rule", 0, SUMS, told="beta1"),
    Mutation(ADAM.format("beta2"), optimizer(betas=(0.9, next_up(0.999))), "rule", 0, SUMS, told="beta2"),
    Mutation(ADAM.format("eps"), optimizer(eps=next_up(1e-8)), "rule", 0, told="eps"),
    Mutation("the rate one ULP off", optimizer(lr=Cosine(next_up(0.01), steps=100)), "rule", 0, told="lr"),
    Mutation("a constant rate, not a schedule", optimizer(lr=Constant(0.01)), "rule", 1, FIRST, told="lr"),
    Mutation("a schedule of 101 steps, not 100", optimizer(lr=Cosine(0.01, steps=101)), "rule", 1, FIRST, told="lr"),
    Mutation("weight decay", optimizer(weight_decay=1e-4), "rule", 0, FIRST, told="weight_decay"),
    Mutation("AdamW, not Adam", has(optimizer=AdamW(lr=Cosine(0.01, steps=100))), "rule", None, told="rule"),
    Mutation("SGD, not Adam", has(optimizer=SGD(lr=0.01)), "rule", None, told="rule"),
    Mutation("another bound of the norm", trainer(clip_norm=0.25), "rule", 0, "gradient of '4.bias'", told="clip_norm"),
    Mutation("no bound of the norm", trainer(clip_norm=None), "rule", 0, "gradient of '4.bias'", told="clip_norm"),
    Mutation("a bound of every element", trainer(clip_value=0.1), "rule", None, told="clip_value"),
    Mutation("a schedule one step ahead", one_ahead, "rule", 0, FIRST, told="lr"),
    Mutation("Adam's `beta2` in float32", optimizer(betas=(0.9, SINGLE)), "rule", 0, FIRST, told="beta2"),
    Mutation("no weight decay", optimizer(weight_decay=0.0), "rule", 0, FIRST, told="weight_decay", of=Shuffled),
    Mutation("an update of a weight one ULP off", rule_off("params", "4.weight"), "update", LATE, "'4.weight' after"),
    Mutation("an update of a buffer one ULP off", rule_off("state", "m/0.bias"), "update", LATE, "'m/0.bias' after"),
    Mutation("a bias correction one ULP off", rule_off("state", "corrections"), "update", LATE, SUMS),
    Mutation("an update applied twice", rule_does(twice), "update", LATE, FIRST),
    Mutation("an update left out", rule_does(never), "update", LATE, FIRST),
    Mutation("first moments begun anew", rule_does(without_momentum), "update", LATE, FIRST),
]

DATA = [
    Mutation("two batches swapped", data(swap), "data", LATE, "loss", "leaf"),
    Mutation("one label changed", data(relabel), "data", LATE, "loss", "leaf"),
    Mutation("one input one ULP off", data(nudge), "data", LATE, "gradient of '0.weight'", "leaf"),
    Mutation("another seed of the shuffling", has(batches=shuffled(1)), "data", 0, "loss", "leaf", of=Shuffled),
    Mutation("batches of three samples, not four", data(shorten), "data", 0, "loss", "leaf"),
    Mutation("every micro-batch a step", trainer(accumulate=1), "data", 0, "loss", "leaf", told="micro_batches"),
    Mutation("one batch fewer", data(lambda all: all.__delitem__(slice(-2, None))), "length", STEPS - 1, told="steps"),
]

START = [
    Mutation("another seed of the parameters", has(init=1), "start", None, "'0.weight' before step 0"),
    Mutation("one initial weight one ULP off", nudged_start, "start", None, "'4.weight' before step 0"),
    Mutation("another seed of the run: other dropout", trainer(seed=4), "start", 0, "loss", "dropout", told="seed"),
]

MODEL = [
    Mutation("two layers in another order", model(act=nn.Dropout(0.5), drop=nn.Tanh()), "model", 0, "loss", "tanh"),
    Mutation("another activation", model(act=nn.Sigmoid()), "model", 0, "loss", "sigmoid"),
    Mutation("another share of dropout", model(drop=nn.Dropout(0.25)), "model", 0, "loss", "dropout"),
    Mutation("another key of dropout", has(loss=drawn_before), "model", 0, "loss", "dropout"),
    Mutation("another momentum of batch norm", model(norm=nn.BatchNorm(4, momentum=0.2)), "model", 0, MEAN, "scale"),
    Mutation("another `eps` of batch norm", model(norm=nn.BatchNorm(4, eps=1e-6)), "model", 0, "loss", "batch_norm"),
    Mutation("a wider layer", model(5), "model", None, op="leaf"),
    Mutation("a layer without bias", model(bias=False), "model", None, op="leaf"),
    Mutation("a frozen bias", has(loss=frozen), "model", 0, "gradient of '0.bias'", "leaf"),
    Mutation("float64, not float32", has(dtype=np.float64, batches=DOUBLED), "model", None, op="leaf"),
    Mutation("a dropped micro-batch", first_micro_batch, "model", 0, "loss", "leaf"),
]


def off(*rows: tuple[str, str, str], step: int, of: type[Run] = Run) -> list[Mutation]:
    """A mutation for each op: the tensor and the op that are named."""
    return [
        Mutation(f"`{op}` one ULP off", op_off(op), "gradient", step, tensor, named, of=of)
        for op, tensor, named in rows
    ]


KERNELS = off(
    ("linear", MEAN, "linear"),
    ("batch_norm", "", "batch_norm"),
    ("tanh", "gradient of '4.bias'", "tanh"),
    ("dropout", "gradient of '4.bias'", "dropout"),
    ("cross_entropy", "loss", "cross_entropy"),
    ("reduce_mean", MEAN, "reduce_mean"),
    ("var", "", "var"),
    ("scale", MEAN, "scale"),
    ("add", "loss", "add"),
    ("cross_entropy_grad", "gradient of '1.bias'", "cross_entropy"),
    ("matmul", "gradient of '4.weight'", "linear"),
    ("transpose2d", "", "linear"),
    ("reduce_sum", "gradient of '4.bias'", "linear"),
    ("mul", "gradient of '1.bias'", "tanh"),
    ("normalize_grad", "gradient of '0.bias'", "batch_norm"),
    ("normalize_weight_grad", "gradient of '1.weight'", "batch_norm"),
    step=LATE,
)

SPATIAL_KERNELS = off(
    ("conv", "", "conv"),
    ("max_pool", "gradient of '5.bk'", "max_pool"),
    ("avg_pool", "gradient of '5.bk'", "avg_pool"),
    ("layer_norm", "gradient of '5.bk'", "layer_norm"),
    ("attention_weights", "gradient of '5.bk'", "attention_weights"),
    ("getitem", "gradient of '5.bo'", "getitem"),
    ("softmax", "", "softmax"),
    ("append", "gradient of '5.bo'", "append"),
    ("exp", "gradient of '5.bo'", "exp"),
    ("permute", "gradient of '5.bv'", "matmul"),
    ("scaled_softmax_grad", "gradient of '5.bk'", "attention_weights"),
    ("avg_pool_grad", "gradient of '0.weight'", "avg_pool"),
    ("max_pool_grad", "gradient of '0.weight'", "max_pool"),
    ("conv_weight_grad", "gradient of '0.weight'", "conv"),
    step=0,
    of=Spatial,
)

ALWAYS = [
    Mutation("a batch that the loss changes in place", has(loss=in_place), "gradient", 0, LAST, "leaf"),
    Mutation("`tanh` one ULP off at every step", op_off("tanh", always=True), "gradient", 0, LAST, "tanh"),
    Mutation(
        "`mul` one ULP off at every step", op_off("mul", always=True), "gradient", 1, "gradient of '1.bias'", "tanh"
    ),
    Mutation("gradients of the parameters one update before", stale, "gradient", 1, "loss"),
]

NUMBERS = [Mutation("another numerics version", numerics, "numerics", None, told="numerics")]

MUTATIONS = [*RULE, *DATA, *START, *MODEL, *NUMBERS, *ALWAYS, *KERNELS, *SPATIAL_KERNELS]


def table() -> str:
    """The mutations as the documentation shows them."""
    head = ["| what is changed | cause | step | first tensor | first op |", "|---|---|---|---|---|"]
    return "\n".join([*head, *map(_row, MUTATIONS)]) + "\n"


def _row(mutation: Mutation) -> str:
    told = f" (`{mutation.told}`)" if mutation.told else ""
    step = "before 0" if mutation.step is None else str(mutation.step)
    tensor = mutation.tensor.replace("'", "`").replace(" after", " after the step")
    op = f"`{mutation.op}`" if mutation.op else ""
    return f"| {mutation.what} | {mutation.cause}{told} | {step} | {tensor} | {op} |"
