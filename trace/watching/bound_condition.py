"""What the names of a condition are in a trace: which it records, and what has to be computed for the others."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from ...base.arrays import Array
from ...base.suggest import listing
from ..v2.errors import NotRecordedError
from ..v2.format.constants import RecordMode, TensorRole
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from .condition import Clause, Condition
from .expression import ConditionError, Reference

Found = dict[Reference, Array]


class BoundCondition:
    """A condition with what its names are in a trace.

    In their order: figures of a step (``step``, ``loss``, hyperparameters, metrics), tensors of the run (parameters,
    state of the optimizer and of the model, as they are before the step), and nodes of the step's tape.

    Args:
        first: a step of which the metrics are known.

    Raises:
        ConditionError: a gradient or an update of what has none.
    """

    def __init__(self, condition: Condition, trace: TraceReader, first: StepView) -> None:
        self.condition, self._trace = condition, trace
        self.figures = ("step", "loss", *first.metrics(), *trace.hyperparameters)
        self.roles = {t.name: t.role for t in trace.schema.tensors}
        references = condition.references
        self._of_step = [r for r in references if self._is_figure(r)]
        self._tensors = [r for r in references if self._is_tensor(r) and not self._is_figure(r)]
        self.nodes = [r for r in references if r not in (*self._of_step, *self._tensors)]
        for reference in self.nodes:
            self._require_node(reference)
        for reference in self._tensors:
            self._require_tensor(reference)

    @property
    def known(self) -> list[str]:
        """Names that need no tape."""
        told = self._trace.hyperparameters
        return [*(name for name in self.figures if name not in told), *self.roles, *told]

    @cached_property
    def cheap(self) -> list[Clause]:
        """The clauses of the condition that figures of the step decide, before anything is computed."""
        return [clause for clause in self.condition.clauses if set(clause.references) <= set(self._of_step)]

    # ------------------------------------------------------------------ what has to be computed

    @property
    def reads(self) -> bool:
        """Whether the trace records all that is named."""
        return not self.nodes and all(self._is_recorded(r) for r in self._tensors)

    @property
    def executes(self) -> bool:
        """Whether steps have to be computed with the model; else the recorded gradients are applied."""
        return bool(self.nodes) or not (self.reads or self._trace.header.mode.has_gradients)

    def _is_recorded(self, reference: Reference) -> bool:
        mode, role = self._trace.header.mode, self.roles[reference.name]
        if reference.what == "grad":
            return mode.has_gradients
        return mode is RecordMode.FULL or (mode.has_gradients and role is TensorRole.BUFFER)

    def without_model(self) -> ConditionError:
        """What is to be said where steps have to be computed, and there is no model."""
        mode, model = self._trace.header.mode, "give the model: loss_fn and batches, or --model of the command"
        if self.nodes:
            there = listing(self.nodes[0].name, self.known)
            return self.condition.error(
                self.nodes[0],
                f"{self._trace.path} records no {self.nodes[0].name!r}: it has {there}; "
                f"if it is a value of the tape, {model}",
            )
        reference = next(r for r in self._tensors if not self._is_recorded(r))
        text = f"{reference} is not recorded in record mode {mode.name.lower()!r}; {model}"
        return self.condition.error(reference, text)

    # ------------------------------------------------------------------ values

    def of_step(self, view: StepView) -> Found:
        """The figures of a step."""
        told = {"step": view.step, "loss": view.loss, **view.hyper, **self._metrics(view)}
        return {r: np.asarray(told[r.name], np.float64) for r in self._of_step if r.name in told}

    def _metrics(self, view: StepView) -> Mapping[str, float]:
        asked = any(r.name not in ("step", "loss", *self._trace.hyperparameters) for r in self._of_step)
        return view.metrics() if asked else {}

    def recorded(self, view: StepView) -> Found:
        """The tensors, as a trace that records them has them. Those that a step has not are left out."""
        found = Found()
        for reference in self._tensors:
            try:
                found[reference] = float64(self._read(view, reference))
            except NotRecordedError:
                continue
        return found

    def _read(self, view: StepView, reference: Reference) -> Array:
        name, step = reference.name, view.step
        if reference.what == "grad":
            return self._trace.tensor(name, step=step, what="grad")
        before = self._trace.tensor(name, step=step, what="before")
        if reference.what == "value":
            return before
        return float64(self._trace.tensor(name, step=step, what="after")) - float64(before)

    def before(self, values: Mapping[str, Array]) -> Found:
        """Copies of what is named of the state before a step."""
        return {r: float64(values[r.name]) for r in self._tensors if r.what != "grad"}

    def after(self, before: Found, grads: Mapping[str, Array], values: Mapping[str, Array]) -> Found:
        """The tensors of a step that was done, from copies of before, its gradients and the state behind it."""
        found = Found()
        for r in self._tensors:
            if r.what == "value":
                found[r] = before[r]
            elif r.what == "update":
                found[r] = float64(values[r.name]) - before[r]
            elif r.name in grads:
                found[r] = float64(grads[r.name])
        return found

    # ------------------------------------------------------------------ names

    def _is_figure(self, reference: Reference) -> bool:
        return reference.what == "value" and not reference.pattern and reference.name in self.figures

    def _is_tensor(self, reference: Reference) -> bool:
        return not reference.pattern and reference.name in self.roles

    def _require_node(self, reference: Reference) -> None:
        if reference.what == "update":
            expected = f"expected a tensor of the run: {listing(reference.name, list(self.roles))}"
            raise self.condition.error(reference, f"update: {expected}")

    def _require_tensor(self, reference: Reference) -> None:
        if reference.what != "grad":
            return
        params = [name for name, role in self.roles.items() if role is TensorRole.PARAM]
        trained = [name for name in params if name not in self._trace.schema.frozen]
        if reference.name not in trained:
            kind = "is frozen" if reference.name in params else "is no parameter"
            text = f"grad: {reference.name!r} {kind}; expected {listing(reference.name, trained)}"
            raise self.condition.error(reference, text)


def float64(array: Array) -> Array:
    """A copy, as conditions compute with it."""
    return np.array(array, np.float64)
