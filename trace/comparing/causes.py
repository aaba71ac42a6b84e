"""Why two runs part at a step: the first thing that differs, in the order in which a step does them."""

from typing import Any

from ...base.runs.completed_step import is_compiled
from ..v2.format.constants import TensorRole
from ..v2.format.schema import CLIPPING, Schema, TensorSpec
from ..v2.read.reader import TraceReader
from .calls.call_difference import CallDifference, first_call
from .calls.drift import elsewhere, first_change, is_drift
from .ops import LEAF, OpDifference, first_op, graph_difference, same_but_for_seed
from .result import Cause
from .settings import SOURCES, Differing, framework_of
from .steps import Pair, StepDifference

_CLIPPING = ("clip_norm", *CLIPPING.hyperparameters)
"""What is told to a step and changes the gradients that it records."""

_MACHINE = ("cpu", "system", "python", "numpy", "numba", "llvmlite")
"""The keys of an environment that may change what the same sources compute."""


def schema_cause(a: Schema, b: Schema) -> tuple[Cause, str] | None:
    """Why two schemas differ, and a sentence; None if they are the same."""
    if a == b:
        return None
    own = [[t for t in schema.tensors if t.role is not TensorRole.STATE] for schema in (a, b)]
    if own[0] != own[1]:
        return Cause.MODEL, f"the models differ: {_first_tensor(*own)}"
    left, right = (", ".join(group.rule for group in schema.groups) for schema in (a, b))
    if left != right:
        return Cause.RULE, f"the rules differ: {left} and {right}"
    return Cause.RULE, "the rules differ in their hyperparameters or in their state"


def _first_tensor(a: list[TensorSpec], b: list[TensorSpec]) -> str:
    """The first tensor that one schema has otherwise, and how many more."""
    left, right = ({t.name: t for t in tensors} for tensors in (a, b))
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    if not names:
        return "they have the same tensors in a different order"
    one, other = left.get(names[0]), right.get(names[0])
    more = f"; {len(names) - 1} more differ" if len(names) > 1 else ""
    if one is not None and other is not None:
        return f"{one} became {other}{more}"
    return f"{one or other} is in {'b' if one is None else 'a'} only{more}"


def first_op_of(pair: Pair, step: int) -> OpDifference | None:
    """The first op that differs in a step; None if all agree or one trace has no digests of them.

    Of traces with digests of two kinds nothing is said but that they run other ops; and of two of which one was
    compiled, where layers cannot be seen, nothing at all.
    """
    a, b = pair.ops(step)
    if a is None or b is None:
        return None
    if len({is_compiled(ops.nodes) for ops in (a, b)}) > 1:
        pair.compiled.add(step)
        return None
    return first_op(a, b) if pair.one_digest_on_the_way else graph_difference(a.nodes, b.nodes)


def first_call_of(pair: Pair, step: int, environment: Differing) -> CallDifference | None:
    """The first call of an op inside a step that differs; None if all agree or one trace has none of them.

    On another machine or library it is the first that other code makes, if one is: the values before it drift.
    """
    both = pair.calls(step)
    found = None if both is None else first_call(*both)
    if both is None or found is None or not _drifts(pair, found, environment):
        return found
    return first_change(*both) or found


def hidden_call_of(pair: Pair, step: int, environment: Differing) -> CallDifference | None:
    """The first call of an op in the forward pass of a step that differs, where results agree; drift is none.

    Behind it, wrappers may have calls of their own, as to send gradients. Of two runs of which one was compiled, where
    no calls can be seen, nothing is said.
    """
    both = pair.calls(step)
    if both is None:
        return None
    if len({ops is not None and is_compiled(ops.nodes) for ops in pair.ops(step)}) > 1:
        pair.compiled.add(step)
        return None
    a, b = ([call for call in calls if call.phase == "forward"] for calls in both)
    found = first_call(a, b)
    return first_change(a, b) if found is not None and _drifts(pair, found, environment) else found


def _drifts(pair: Pair, call: CallDifference, environment: Differing) -> bool:
    return is_drift(call) and bool(elsewhere(environment, framework_of(pair.a)))


def step_cause(
    pair: Pair,
    step: int,
    found: StepDifference,
    op: OpDifference | None,
    call: CallDifference | None,
    environment: dict[str, tuple[Any, Any]],
    told: dict[str, Any],
) -> Cause:
    """Why a step differs. `told`: the environment of `a`, which says whether the sources are known.

    Of a run of another framework it is the environment only where a call of an op shows it: layers may be anybody's.
    """
    loss = any(tensor.what == "loss" for tensor in found.forward)
    if found.data:
        return Cause.DATA
    if op is not None and op.what in ("added", "removed", "changed"):
        seeds = pair.a.header.seed, pair.b.header.seed
        return Cause.START if same_but_for_seed(op, seeds) else Cause.MODEL
    if {"micro_batches", "order"} & found.told.keys():
        return Cause.RULE
    if not loss and op is None and any(key in found.told for key in _CLIPPING):
        return Cause.RULE
    framework = framework_of(pair.a)
    if framework and call is not None and _drifts(pair, call, environment):
        return Cause.ENVIRONMENT
    moved = not framework and _elsewhere(environment, told)
    if found.forward:
        if op is not None and op.node.op == LEAF and op.node.name in pair.a.schema.position:
            return Cause.START if step == 0 else Cause.UPDATE
        return Cause.ENVIRONMENT if moved and op is not None and op.node.op != LEAF else Cause.GRADIENT
    if found.told:
        return Cause.RULE
    return Cause.ENVIRONMENT if moved else Cause.UPDATE


def _elsewhere(environment: Differing, told: dict[str, Any]) -> bool:
    """Whether both runs are known to have used the same sources of dgrr, and another machine or library."""
    known = told.get(SOURCES, "unknown") != "unknown" and SOURCES not in environment
    return known and any(key in environment for key in _MACHINE)


def state_known(trace: TraceReader, step: int) -> bool:
    """Whether the state before a step is digested."""
    return step == 0 or trace.layout.due(step - 1)
