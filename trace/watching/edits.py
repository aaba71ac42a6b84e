"""Edits of a past step, as texts say them: ``"0.weight" = 0``, ``h3 = h3 * 0.5``, ``grad("0.weight") = 0``."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...base.arrays import Array
from ...base.suggest import listing
from ...runtime.ir.step_tape import Listed, chosen_of
from ..replaying.edited import Edits
from ..replaying.travel import PastStep
from .bound_condition import Found, float64
from .expression import ConditionError, Evaluate, Expression, Reference
from .nodes import NodesOf, Trial

_EXAMPLE = "h3 = h3 * 0.5"
_PARTS = re.compile(r"""^((?:"[^"]*"|'[^']*'|[^="'])*)=(?!=)(.*)$""", re.DOTALL)
"""What stands before the first equals sign outside of quotes, and what behind it."""


class Numbers(Expression):
    """A side of an edit: numbers.

    Raises:
        ConditionError: it cannot be read; the error says where.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, "edit", _EXAMPLE)

    def _read(self, tree: ast.expr) -> None:
        self.evaluate: Evaluate = self._of_kind(tree, truth=False)
        self.is_name = self._names(tree)
        """Whether it is a name, ``grad(…)``, ``update(…)`` or ``node(…)``, and no more."""


class Edit(NamedTuple):
    """One edit: what is changed, and what it becomes."""

    target: Numbers
    value: Numbers

    @property
    def changed(self) -> Reference:
        """What is changed."""
        return self.target.references[0]

    def error(self, reference: Reference, text: str) -> ConditionError:
        """What is wrong with a name on either side."""
        return (self.target if reference == self.changed else self.value).error(reference, text)

    def array(self, values: Mapping[Reference, Array], old: Array) -> Array:
        """The new value, as large as the old one. Raises ConditionError where it does not fit."""
        with np.errstate(all="ignore"):
            made = self.value.evaluate(values)
        try:
            return np.broadcast_to(made, old.shape)
        except ValueError:
            text = f"expected shape {old.shape}, or what fits it, got {np.shape(made)}"
            raise self.error(self.changed, text) from None


def read_edit(text: str) -> Edit:
    """An edit that was read.

    Raises ConditionError for a text that is none.

    >>> read_edit('grad("0.weight") = 0').changed
    Reference(what='grad', name='0.weight', pattern=False)
    """
    parts = _PARTS.match(text)
    if parts is None:
        raise ConditionError(f"edit: expected NAME = VALUE, such as {_EXAMPLE!r}, got {text!r}")
    target, value = map(Numbers, parts.groups())
    if not target.is_name:
        raise ConditionError(f"edit: expected a name, grad(…) or node(…) before the =, got {target.text!r}")
    if target.references[0].what == "update":
        raise target.error(target.references[0], "an update follows from the gradient: set grad(…)")
    return Edit(target, value)


def edits_of(edits: Sequence[Edit], past: PastStep) -> Edits:
    """What edits change in a past step, all of them by its values as they were.

    Raises ConditionError for a name that the step has not, or a value that does not fit.
    """
    known = {**past.params, **past.state, **past.model_state}
    values, grads, nodes = dict[str, Array](), dict[str, Array](), dict[tuple[int, int], Array]()
    for edit in edits:
        changed = edit.changed
        if changed.what == "value" and (changed.pattern or changed.name not in known):
            nodes |= _nodes(edit, past, known)
        elif changed.what == "value":
            values[changed.name] = edit.array(_values(edit, past, known), known[changed.name])
        elif changed.pattern or changed.name not in past.consumed:
            there = listing(changed.name, list(past.consumed))
            raise edit.error(changed, f"only gradients of parameters can be set: expected {there}")
        else:
            grads[changed.name] = edit.array(_values(edit, past, known), past.consumed[changed.name])
    return Edits(values, grads, nodes)


def _values(edit: Edit, past: PastStep, known: Mapping[str, Array]) -> Found:
    """What stands behind the equals sign of an edit that is of no node."""
    found = Found()
    for reference in edit.value.references:
        array = _of_step(reference, past, known)
        if array is None:
            there = listing(reference.name, [*known, *[f"grad({name})" for name in past.consumed]])
            raise edit.error(reference, f"step {past.step} has no {str(reference)!r} here: it has {there}")
        found[reference] = array
    return found


def _of_step(reference: Reference, past: PastStep, known: Mapping[str, Array]) -> Array | None:
    if reference.pattern or reference.what == "update":
        return None
    found = (known if reference.what == "value" else past.consumed).get(reference.name)
    return None if found is None else float64(found)


def _nodes(edit: Edit, past: PastStep, known: Mapping[str, Array]) -> dict[tuple[int, int], Array]:
    """The new values of the nodes that an edit names."""
    shared = {r: a for r in edit.value.references if (a := _of_step(r, past, known)) is not None}
    rest = [r for r in edit.value.references if r not in shared and r != edit.changed]
    if any(r.what == "update" for r in rest):
        raise edit.error(rest[0], "an update is not known before the step is done")
    choose, listed = NodesOf(edit.error, [edit.changed, *rest], list(known)), list[Listed]()

    def noting(nodes: Sequence[Listed]) -> list[Trial]:
        listed[:] = nodes
        return choose(nodes)

    trials: dict[int, tuple[Trial, Found]] = {}
    for one, array in chosen_of(past.passes, past.params, noting):
        assert isinstance(one, Trial)
        # The first of a trial is the node that is changed.
        _, values = trials.setdefault(one.trial, (one, dict(shared)))
        if array is not None:
            values[one.reference] = float64(array)
    nodes = [(one.about.micro_batch, listed[one.node], values) for one, values in trials.values()]
    return {(micro, node.id): edit.array(values, node.of.tape[node.id].value.array) for micro, node, values in nodes}
