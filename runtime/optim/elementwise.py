"""Whether a rule updates each element of a parameter from the elements at its position, so that a part will do."""

from ...tape.graph.node import Node
from ...tape.values.spec import Spec
from .ops_law import OpsLaw
from .registry import RULES
from .rule import Law, Rule
from .state_ops import STATE_OPS

_FAMILY = "elementwise"
"""The room of the ops that compute each element from the elements at its position."""


def is_elementwise(rule: Rule, spec: Spec) -> bool:
    """Whether the parts of a parameter of this spec, updated apart, are to the bit what the whole becomes.

    A rule of a user's own is taken for one that needs the whole: its function may look at the shape.
    """
    if RULES.get(rule.rule) is not type(rule):
        return False
    law = rule.law
    return STATE_OPS[law.kernel.name].elementwise if isinstance(law, Law) else _is_of_elements(law, spec)


def _is_of_elements(law: OpsLaw, spec: Spec) -> bool:
    """Whether all that is computed from elements is computed by elementwise ops and keeps the shape."""
    if any(kept != spec for kept in law.kept(spec)):
        return False
    update = law.recorded(spec)
    *elements, _rates, _hyper, _step = update.inputs
    found = set(elements)
    for node in update.tape:
        if found.intersection(node.parents):
            if not _keeps_places(node, spec):
                return False
            found.add(node.id)
    return True


def _keeps_places(node: Node, spec: Spec) -> bool:
    family = "" if node.op is None else node.op.function.__module__
    return tuple(node.value.sizes) == spec.shape and _FAMILY in family.split(".")
