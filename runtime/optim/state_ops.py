"""The primitives of optimizers and clipping as ops of a step's graph.

They are no ops of the tape: they have no derivative, and most write in place. A graph names them by their
kernels; this table says what each makes of its inputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...base.arrays import Array
from ...tape.errors import DomainError, ShapeError
from ...tape.numerics.basic.finite import finite
from ...tape.numerics.engine.kernel import Kernel
from ...tape.values.spec import Spec
from ...tape.var.op_table import OPS
from . import kernels, reference

FLOAT64 = np.dtype(np.float64)

WORK = 4
"""Arithmetic operations that take as long as the update of one element, which memory bounds."""


@dataclass(frozen=True)
class StateOp:
    """One primitive.

    Its first ``in_place`` inputs are overwritten and come out again as its first outputs; ``fresh`` is the
    output that it makes besides, if any, and ``replaces`` says that this may take the storage of the first
    input. ``sized`` is the input whose number of elements is its first word
    (its attributes follow), ``element`` the input whose dtype its pointer table has, ``work`` the cost of an
    element in arithmetic operations. It takes ``inputs`` of them (None: any number), of which the first
    ``alike`` have one shape and dtype. One that ``gathers`` reads all but its last input as one array. One call of
    one that is ``elementwise`` may stand for several, whose arrays lie side by side. ``reference`` computes its outputs
    from all inputs and its attributes, slowly and plainly; a user's kernel has none.
    """

    kernel: Kernel
    in_place: int = 0
    fresh: Callable[[Sequence[Spec]], Spec] | None = None
    replaces: bool = False
    sized: int | None = 0
    element: int = 0
    work: int = 1
    inputs: int | None = 1
    alike: int = 0
    gathers: bool = False
    elementwise: bool = False
    reference: Callable[..., Sequence[Array]] | None = field(default=None, compare=False)

    def infer(self, inputs: Sequence[Spec]) -> list[Spec]:
        """Its outputs. Raises ShapeError for another number of inputs, or one that differs from the first."""
        name = self.kernel.name
        if self.inputs is not None and len(inputs) != self.inputs:
            raise ShapeError(f"{name}: expected {self.inputs} inputs, got {len(inputs)}")
        for i, spec in enumerate(inputs[: self.alike]):
            if spec != inputs[0]:
                raise ShapeError(f"{name}: input {i}: expected {inputs[0]} as the first, got {spec}")
        return [*inputs[: self.in_place], *([self.fresh(inputs)] if self.fresh else [])]


def first(inputs: Sequence[Spec]) -> Spec:
    """The spec of the first input."""
    return inputs[0]


STATE_OPS: dict[str, StateOp] = {
    op.kernel.name: op
    for op in (
        StateOp(finite),
        StateOp(kernels.snapshot, fresh=first, reference=reference.copied),
        StateOp(kernels.assign, in_place=1, inputs=2, alike=2, reference=reference.assigned),
        StateOp(kernels.step_inc, in_place=1, sized=None, reference=reference.counted),
        StateOp(kernels.bias_corr, in_place=1, sized=None, inputs=3, reference=reference.corrected),
        StateOp(kernels.tensor_norm, fresh=lambda inputs: Spec((1,), FLOAT64), reference=reference.norm),
        StateOp(
            kernels.norm_scale,
            fresh=lambda inputs: Spec((2,), FLOAT64),
            inputs=None,
            gathers=True,
            reference=reference.norm_and_scale,
        ),
        StateOp(kernels.scale_by, fresh=first, replaces=True, inputs=2, reference=reference.scaled),
        StateOp(kernels.clamp_to, fresh=first, replaces=True, inputs=2, reference=reference.clamped),
    )
}
"""Every such primitive by name."""


def admit(where: str, op: StateOp) -> None:
    """Enter a user's primitive. Raises DomainError if its name stands for something else."""
    name = op.kernel.name
    known = STATE_OPS.setdefault(name, op) if name not in OPS else None
    if known is None or replace(known, elementwise=False) != op:
        raise DomainError(
            f"{where}: expected a kernel that is used in one way, under a name of its own, got {name!r}, which stands "
            "for something else; write another kernel"
        )
