"""Elements of the first and of the last step, and sketches, for modes that record digests alone."""

from dataclasses import dataclass

from ....base.arrays import Array
from ....base.runs.completed_step import CompletedStep
from ..format.constants import FLOATS, TensorRole
from ..format.digest import Algorithm, canonical, tensor_digest
from ..format.layout import FrameLayout
from ..format.of_step import Sketches, recordable
from ..format.sketch import sketch
from ..format.step import StepRecord


@dataclass(frozen=True, slots=True)
class Kept:
    """One tensor to be written: gradient or tensor after the step, its position, its canonical array."""

    what: str
    position: int
    array: Array


def kept_values(
    layout: FrameLayout, algorithm: Algorithm, record: StepRecord, done: CompletedStep, budget: int
) -> list[Kept]:
    """Tensors of a step that its own frame leaves out, in so many bytes: gradients, then what stands after the step.

    An array that is not any more what the step recorded is left out.
    """
    inside = {(e.what, e.tensor) for e in layout.step_body(record.step, record.grads, record.digests)}
    kept: list[Kept] = []
    for (what, position), digest in recordable(layout, record).items():
        spec = layout.schema.tensors[position]
        if (what, position) in inside or spec.nbytes > budget or not spec.nbytes:
            continue
        array = canonical(_arrays(done, what, spec.role)[spec.name])
        if tensor_digest(algorithm, array) == digest:
            kept.append(Kept(what, position, array))
            budget -= spec.nbytes
    return kept


def sketches_of(layout: FrameLayout, record: StepRecord, done: CompletedStep) -> Sketches:
    """Sketches of every tensor after a step, and of its gradients where no state is kept of them, that are floats."""
    state = [t for t in layout.schema.tensors if t.role is TensorRole.STATE and t.dtype in FLOATS and t.shape]
    grads = [("grad", layout.schema.tensors[i], i) for i in record.grads if len(state) < len(record.grads)]
    after = [("after", spec, i) for i, spec in enumerate(layout.schema.tensors)]
    floats = [(what, spec, i) for what, spec, i in (*grads, *after) if spec.dtype in FLOATS]
    return {(i, what): sketch(_arrays(done, what, spec.role)[spec.name]) for what, spec, i in floats}


def _arrays(done: CompletedStep, what: str, role: TensorRole) -> dict[str, Array]:
    if what == "grad":
        return dict(done.grads)
    return dict({TensorRole.PARAM: done.params, TensorRole.STATE: done.state}.get(role, done.model_state))
