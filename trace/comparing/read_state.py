"""What the ops of a step show of the state that it began from: they read it, and their digests are recorded."""

from ..v2.format.constants import TensorRole
from .ops import LEAF
from .steps import Pair


def named_leaves(pair: Pair, step: int) -> dict[str, bool]:
    """Of every tensor of the state that ops of a step read, whether it was equal; empty where it is not recorded."""
    a, b = pair.ops(step)
    if a is None or b is None or not pair.one_digest:
        return {}
    read = [
        {node.name: value for node, value in zip(ops.nodes, ops.values, strict=True) if node.op == LEAF}
        for ops in (a, b)
    ]
    known = pair.a.schema.position.keys() & read[0].keys() & read[1].keys()
    return {name: read[0][name] == read[1][name] for name in known}


def all_read(pair: Pair, step: int) -> bool:
    """Whether the ops of a step read every param that was updated in it, and found all equal."""
    leaves = named_leaves(pair, step)
    view = pair.views(step)[0]
    params = {t.name for t in pair.a.schema.tensors if t.role is TensorRole.PARAM} & view.grad_digests.keys()
    return params <= leaves.keys() and all(leaves.values())
