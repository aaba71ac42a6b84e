"""Faults that raise no error: which tool finds each of them, and what it says.

The faults are mutations of the golden runs, which hold cause, step, tensor and op. Here each faulty run is recorded
once more, as training records it, and held against an honest run and against the code as it should be.
"""

from dataclasses import dataclass

from ..golden.mutations import MUTATIONS, Mutation


@dataclass(frozen=True)
class Fault:
    """A fault, and the word of each tool for it; no word: the tool does not find it.

    Args:
        what: the mutation.
        compare: the cause, by comparison with an honest run, both recorded with digests and without ops.
        replay: the verdict of `replay` with the right model, batches and seed; `diff_with_model` has the same as cause.
        tensor: that replay names.
    """

    what: str
    compare: str
    replay: str = ""
    tensor: str = ""

    @property
    def mutation(self) -> Mutation:
        """What makes the fault, and what a golden trace says of it."""
        return next(mutation for mutation in MUTATIONS if mutation.what == self.what)


TOLD = [
    Fault(what, "rule")
    for what in (
        "Adam's `beta1` one ULP off",
        "Adam's `beta2` one ULP off",
        "Adam's `beta2` in float32",
        "Adam's `eps` one ULP off",
        "the rate one ULP off",
        "a schedule of 101 steps, not 100",
        "a schedule one step ahead",
        "no weight decay",
        "another bound of the norm",
        "no bound of the norm",
        "AdamW, not Adam",
    )
] + [
    Fault("every micro-batch a step", "data"),
    Fault("another seed of the parameters", "start"),
    Fault("one initial weight one ULP off", "start"),
]
"""What the run was told otherwise, or began from: the trace says so truly, and so agrees with itself."""

UPDATES = [
    Fault("an update of a weight one ULP off", "update", "update", "4.weight"),
    Fault("an update of a buffer one ULP off", "update", "update", "m/0.bias"),
    Fault("a bias correction one ULP off", "update", "update"),
    Fault("an update applied twice", "update", "update"),
    Fault("an update left out", "update", "update"),
    Fault("first moments begun anew", "update", "update", "0.weight"),
]

DATA = [
    Fault("two batches swapped", "data", "data"),
    Fault("one label changed", "data", "data"),
    Fault("one input one ULP off", "data", "data"),
    Fault("another seed of the shuffling", "data", "data"),
]

SEED = Fault("another seed of the run: other dropout", "gradient", "data")
"""Replay finds it by the seed that it is told; a comparison without ops sees the first draw."""

MODEL = [
    Fault("two layers in another order", "gradient", "gradient", "loss"),
    Fault("another activation", "gradient", "gradient", "loss"),
    Fault("another share of dropout", "gradient", "gradient", "loss"),
    Fault("another key of dropout", "gradient", "gradient", "loss"),
    Fault("another momentum of batch norm", "gradient", "gradient", "1.running_mean"),
    Fault("another `eps` of batch norm", "gradient", "gradient", "loss"),
    Fault("a frozen bias", "gradient", "gradient", "0.bias"),
    Fault("a dropped micro-batch", "gradient", "gradient", "loss"),
    Fault("a batch that the loss changes in place", "gradient", "gradient", "0.weight"),
    Fault("gradients of the parameters one update before", "gradient", "gradient", "loss"),
]

KERNELS = [
    Fault("`tanh` one ULP off", "gradient", "gradient", "0.weight"),
    Fault("`tanh` one ULP off at every step", "gradient", "gradient", "0.weight"),
    Fault("`cross_entropy` one ULP off", "gradient", "gradient", "loss"),
    Fault("`reduce_mean` one ULP off", "gradient", "gradient", "1.running_mean"),
    Fault("`mul` one ULP off", "gradient", "gradient", "0.weight"),
    Fault("`mul` one ULP off at every step", "gradient", "gradient", "0.weight"),
    Fault("`normalize_grad` one ULP off", "gradient", "gradient", "0.bias"),
]
"""Forward and backward: one element, once and always."""

ABSORBED = [
    Fault("`batch_norm` one ULP off", ""),
    Fault("`var` one ULP off", ""),
    Fault("`transpose2d` one ULP off", ""),
]
"""The next op rounds them away: no result of any step differs."""

FAULTS = [*TOLD, *UPDATES, *DATA, SEED, *MODEL, *KERNELS, *ABSORBED]


def table() -> str:
    """The faults as the documentation shows them."""
    head = [
        "| fault | step | first tensor | first op | `golden_trace` | `compare` | `replay`, `diff` with the model |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *map(_row, FAULTS)]) + "\n"


def _row(fault: Fault) -> str:
    found = fault.mutation
    step = "before 0" if found.step is None else str(found.step)
    tensor = found.tensor.replace("'", "`").replace(" after", " after the step")
    op = f"`{found.op}`" if found.op else ""
    replayed = f"{fault.replay} (`{fault.tensor}`)" if fault.tensor else fault.replay or "no"
    return f"| {fault.what} | {step} | {tensor} | {op} | {found.cause} | {fault.compare or 'no'} | {replayed} |"
