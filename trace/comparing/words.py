"""What a comparison says of the first step that differs, in words."""

from ..v2.format.constants import TensorRole
from .causes import state_known
from .ops import LEAF, OpDifference
from .result import Cause
from .settings import shown
from .steps import Pair, StepDifference
from .tensors import TensorDifference

_NEAR = 32
"""How many steps before and behind a step are looked through for its batch."""

_OTHER_NUMBERS = "from equal gradients the rule makes other bias corrections, or clipping another scale"
_NAMED = (Cause.MODEL, Cause.DATA, Cause.GRADIENT, Cause.ENVIRONMENT)
"""The causes that an op can show."""


def sentence(pair: Pair, step: int, cause: Cause, found: StepDifference, op: OpDifference | None) -> str:
    """What differs first, and the first op of it, in a sentence."""
    first = f"; first {op.short}" if op is not None and cause in _NAMED else ""
    return f"{opening(pair.first, step)}: {_in_words(pair, step, cause, found, op)}{first}"


def opening(first: int, step: int) -> str:
    """How a sentence about the first different step begins, where the steps from `first` on were compared.

    >>> opening(0, 7), opening(4, 7)
    ('step 7 is the first that differs', 'from step 4 on, step 7 is the first that differs')
    """
    return f"{f'from step {first} on, ' if first else ''}step {step} is the first that differs"


def _in_words(pair: Pair, step: int, cause: Cause, found: StepDifference, op: OpDifference | None) -> str:
    if cause is Cause.DATA:
        parts = found.told.get("micro_batches")
        return "it was given another batch" + (f", of {parts[1]} parts, not {parts[0]}" if parts else "")
    if cause is Cause.RULE:
        key, (x, y) = next(iter(found.told.items()))
        return f"it has another {key}: {shown(x)} -> {shown(y)}"
    if cause is Cause.START and op is not None and op.node.op == LEAF and found.forward:
        return f"{op.node.name!r} starts from another value; from there it computes another {found.forward[0].title}"
    if cause is Cause.START:
        return f"it draws with another seed: {pair.a.header.seed} -> {pair.b.header.seed}"
    if cause is Cause.MODEL:
        return "it runs other ops"
    tensors = found.forward + found.after
    if not tensors:
        return _OTHER_NUMBERS
    allowed = "" if pair.policy.bitwise else f" than {pair.policy} allows"
    if found.forward and cause is Cause.UPDATE and op is not None:  # a parameter differs before anything is computed
        behind = pair.policy.bitwise and _known(pair, step)
        changed = f"was changed after step {step - 1}, outside of its update" if behind else "was another before"
        return f"{op.node.name!r} {changed}; from there it computes another {tensors[0].title}{allowed}"
    made = f"{_origin(pair, step, op)} it computes" if found.forward else "from equal gradients the rule makes"
    return f"{made} another {tensors[0].title}{allowed}"


def _origin(pair: Pair, step: int, op: OpDifference | None) -> str:
    """What is known to be equal before the step: the state, where it is its start, recorded, or shown by the ops."""
    if step == 0 or _all_read(pair, step):
        return "from equal state and data"
    if _known(pair, step):
        return f"from equal data{f' and the equal state of step {step - 1}' if pair.policy.bitwise else ''}"
    by_itself = op is not None and op.node.op != LEAF  # whatever the state was: the op had equal inputs
    return "from equal data" if by_itself else "from equal data, and a state that is not known to be equal,"


def _known(pair: Pair, step: int) -> bool:
    return state_known(pair.a, step) and state_known(pair.b, step)


def update_sentence(pair: Pair, step: int, name: str) -> tuple[int, str] | None:
    """Of a tensor that is another before a step: the step that is named, and how its update is told.

    None where it was not the update: the state behind the step before is recorded, and equal.
    """
    if not pair.policy.bitwise or _known(pair, step):
        return None
    since = next(k for k in range(step - 1, pair.first - 1, -1) if k == pair.first or _begins_equal(pair, k, name))
    seen = f"step {step}, which begins from it, computes another loss or gradient"
    if since == step - 1:
        made = f"from equal gradients the rule makes another {name!r} after the step"
        return since, f"{opening(pair.first, since)}: {made}; {seen}"
    return step, (
        f"{opening(pair.first, step)} that is recorded: {name!r} was another before it, made by an update of steps "
        f"{since} to {step - 1}, from equal gradients"
    )


def _begins_equal(pair: Pair, step: int, name: str) -> bool:
    """Whether a tensor is known to be equal before a step, whose link is."""
    return _known(pair, step) or _named_leaves(pair, step).get(name) is True


def _named_leaves(pair: Pair, step: int) -> dict[str, bool]:
    """Of every tensor of the state that ops of a step read, whether it was equal; empty where it is not recorded."""
    a, b = pair.ops(step)
    if a is None or b is None or not pair.one_digest_on_the_way:
        return {}
    read = [
        {node.name: value for node, value in zip(ops.nodes, ops.values, strict=True) if node.op == LEAF}
        for ops in (a, b)
    ]
    known = pair.a.schema.position.keys() & read[0].keys() & read[1].keys()
    return {name: read[0][name] == read[1][name] for name in known}


def _all_read(pair: Pair, step: int) -> bool:
    """Whether the ops of a step read every param that was updated in it, and found all equal."""
    leaves = _named_leaves(pair, step)
    view = pair.views(step)[0]
    params = {t.name for t in pair.a.schema.tensors if t.role is TensorRole.PARAM} & view.grad_digests.keys()
    return params <= leaves.keys() and all(leaves.values())


def notes(pair: Pair, step: int, cause: Cause, found: StepDifference, op: OpDifference | None) -> list[str]:
    """What the reader of that sentence must know besides: whose batch it is, and what was not recorded."""
    if cause is Cause.DATA:
        return _whose_batch(pair, step) or _same_results(pair, found)
    if cause is not Cause.GRADIENT:
        return []
    missing = [side for side, ops in zip("ab", pair.ops(step), strict=True) if ops is None]
    said: list[str] = []
    if missing and pair.calls(step) is None:
        said.append(f"which op: not recorded in {' and '.join(missing)} at step {step} (Keep.ops)")
    elif not missing and op is None and pair.one_digest_on_the_way:
        said.append(
            "every op agrees: what differs is computed from their results (means of micro-batches, clipping, the rule)"
        )
    unsure = missing or (op is None and not _all_read(pair, step)) or (op is not None and op.node.op == LEAF)
    if unsure and not _known(pair, step):
        said.append(_state_note(pair, step))
    return said


def _whose_batch(pair: Pair, step: int) -> list[str]:
    """Whether the batch is one that `a` had a little earlier or later, as where two were swapped."""
    batch = pair.views(step)[1].input_digest
    near = range(max(step - _NEAR, 0), min(step + _NEAR, len(pair.a)))
    found = next((k for k in near if pair.a[k].input_digest == batch), None)
    return [] if found is None else [f"the batch that a was given at step {found}"]


def _same_results(pair: Pair, found: StepDifference) -> list[str]:
    """Whether the batch alone differs, as where int32 was recorded as int64: of element types only digests know."""
    if not pair.policy.bitwise or found != StepDifference(data=True, told={}, forward=[], after=[]):
        return []
    return [
        "all that the step computes is the same: the batch has the same numbers in another dtype, as labels of int32 "
        "and of int64, or differs in what nothing depends on; replay with the batches says which dtype was recorded"
    ]


def _state_note(pair: Pair, step: int) -> str:
    every = max(pair.a.header.state_every, pair.b.header.state_every)
    since = step // every * every
    return f"or an update since step {since}: the state before step {step} is not recorded (state_every {every})"


def counted(tensors: list[TensorDifference]) -> str:
    """How many tensors differ, and the first.

    >>> counted([TensorDifference("w", "before", (2,), "f32")])
    "a tensor differs, first 'w' before step 0"
    """
    count = "a tensor differs" if len(tensors) == 1 else f"{len(tensors)} tensors differ"
    return f"{count}, first {tensors[0].title}"
