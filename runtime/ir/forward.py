"""Recording a forward pass: a function of parameters and a batch, run once on a symbolic tape, without gradients."""

from dataclasses import dataclass
from typing import Any

from ...base.arrays import Array, Arrays
from ...tape import AnyVar, Context, Random
from ...tape.transforms.symbolic_tape import SymbolicTape
from ...tape.values.dtypes import i64
from ...tape.values.spec import Spec
from ..step.batch import map_batch
from ..step.forward import Forward, require_var
from .graph import IRGraph
from .record import Recorded, symbols
from .recorded_graphs import begun


@dataclass(frozen=True)
class ForwardRecording(Recorded):
    """A recorded forward pass."""

    result: Any
    """What it returns, with the id of a value in place of each Var."""


def record_forward(
    function: Forward, params: Arrays, example: Any, model_state: Arrays, seed: int, *, unrolls: bool = False
) -> ForwardRecording:
    """Run a function on values that have only shapes; ``unrolls`` writes loops out.

    Raises what the function raises; TapeError if it reads a value.
    """
    tape, steps = SymbolicTape(unrolls=unrolls), list[AnyVar]()
    p, state = (
        {name: tape.symbol(Spec(a.shape, a.dtype), name) for name, a in arrays.items()}
        for arrays in (params, model_state)
    )
    batch, inputs = symbols(tape, example)

    def context() -> Context:
        if not steps:
            steps.append(tape.symbol(Spec((), i64.dtype), "step"))
        return Context(False, Random(steps[0], seed), state, steps[0])

    made = function(p, batch, context)
    result = map_batch(lambda where, var: require_var(where, var).id, made, "result")
    names, before = ({name: var.id for name, var in vars.items()} for vars in (p, state))
    return ForwardRecording(tape, names, inputs, steps[0].id if steps else None, before, result)


def forward_graph(recording: ForwardRecording) -> tuple[IRGraph, dict[int, Array]]:
    """The graph of a forward pass, whose outputs are the places of its result, and the data of its constants."""
    outputs: dict[str, int] = {}
    map_batch(outputs.__setitem__, recording.result, "result")
    builder = begun(recording)
    return builder.graph("forward", outputs), builder.constants
