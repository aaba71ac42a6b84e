"""The primitives of optimizers and clipping as ops of a step's graph.

They are no ops of the tape: they have no derivative, and most write in place. A graph names them by their
kernels; this table says what each makes of its inputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...tape.errors import DomainError, ShapeError
from ...tape.numerics.basic.finite import finite
from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.math.reference.sums import row_sum
from ...tape.values.spec import Spec
from ...tape.var.op_table import OPS
from . import kernels
from .laws.formulas import whole_power

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


# ------------------------------------------------------------------ references: numpy and formulas


def _copied(x: Array) -> list[Array]:
    return [x.copy()]


def _assigned(old: Array, new: Array) -> list[Array]:
    return [new.copy()]


def _counted(step: Array) -> list[Array]:
    return [np.asarray(step + 1)]


def _corrected(corrections: Array, step: Array, hyper: Array) -> list[Array]:
    return [np.array([1.0 - whole_power(beta, int(step)) for beta in hyper[1:3]])]


def _norm(x: Array) -> list[Array]:
    return [np.array([np.sqrt(row_sum(x * x))], np.float64)]


def _norm_and_scale(*norms_and_largest: Array) -> list[Array]:
    *norms, largest = norms_and_largest
    whole = _norm(np.concatenate(norms))[0][0]
    scale = largest[0] / (whole + 1e-6)
    return [np.array([whole, 1.0 if scale > 1 else scale])]


def _by_number(text: Callable[..., Any], place: int) -> Callable[..., list[Array]]:
    def reference(x: Array, numbers: Array) -> list[Array]:
        return [np.asarray(text(x, numbers[place]))]

    return reference


# ------------------------------------------------------------------ the primitives

NORM, NORM_AND_SCALE = Spec((1,), FLOAT64), Spec((2,), FLOAT64)

STATE_OPS: dict[str, StateOp] = {
    op.kernel.name: op
    for op in (
        StateOp(finite),
        StateOp(kernels.snapshot, fresh=first, reference=_copied),
        StateOp(kernels.assign, in_place=1, inputs=2, alike=2, reference=_assigned),
        StateOp(kernels.step_inc, in_place=1, sized=None, reference=_counted),
        StateOp(kernels.bias_corr, in_place=1, sized=None, inputs=3, reference=_corrected),
        StateOp(kernels.tensor_norm, fresh=lambda inputs: NORM, reference=_norm),
        StateOp(
            kernels.norm_scale, fresh=lambda inputs: NORM_AND_SCALE, inputs=None, gathers=True,
            reference=_norm_and_scale,
        ),
        StateOp(kernels.scale_by, fresh=first, replaces=True, inputs=2, reference=_by_number(kernels.scaled, 1)),
        StateOp(kernels.clamp_to, fresh=first, replaces=True, inputs=2, reference=_by_number(kernels.clamped, 0)),
    )
}  # fmt: skip
"""Every such primitive by name; those of laws and of rates are entered by the classes that have them."""


def admit(where: str, op: StateOp) -> None:
    """Enter a user's primitive. Raises DomainError if its name stands for something else."""
    name = op.kernel.name
    known = STATE_OPS.setdefault(name, op) if name not in OPS else None
    if known is None or replace(known, elementwise=False) != op:
        raise DomainError(
            f"{where}: expected a kernel that is used in one way, under a name of its own, got {name!r}, which stands "
            "for something else; write another kernel"
        )
