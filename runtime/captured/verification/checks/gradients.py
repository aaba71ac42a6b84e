"""Gradients: against eager execution to the bit, and against finite differences of the loss in float64."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.math.random import uniform
from .....tape.record.op import OPS
from ....ir.graph import IRNode, gradient_name
from ....step.eager import eager_gradients
from ....step.evaluate import evaluate as run_eagerly
from ..bits import copied, difference, require_same
from ..report import CheckError
from ..subject import Subject
from .evaluate import Apply, affordable, by_references_of, evaluate, needed_nodes

STEP = 2.0**-20
"""How far parameters are moved along a direction whose elements are below 1: near the cube root of an ULP."""

BESIDE = 2.0**-10
"""How far gradients are taken beside the parameters."""

TOLERANCES = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-5}
"""How far a slope may be from its difference, relative to the sum of its terms' sizes and to `LOSS_SHARE`."""

LOSS_SHARE = 1e-3
"""The part of the loss that counts as a term: below it a difference is noise."""


def check_against_eager(subject: Subject) -> str:
    """Loss and gradients of all three plans are those of a fresh tape, to the bit."""
    step, batch = subject.step, subject.batch
    loss, grads, *_ = eager_gradients(step.loss_fn, step.params, batch, step.recipe, step.point)
    require_same(grads, copied(step.gradients(batch)), "gradients")
    require_same({"loss": loss}, {"loss": subject.plans.gradients.loss}, "gradients")
    dense = _check_dense(subject, grads)
    eager = subject.eager()
    eager(batch)
    step.replay(1)
    require_same({"loss": eager.loss, **eager.consumed}, {"loss": step.loss, **step.consumed}, "step")
    return f"{len(grads)} gradients of parameters, {dense} dense ones, {len(eager.consumed)} as consumed"


def _check_dense(subject: Subject, grads: Mapping[str, Array]) -> int:
    """The dense gradients: by name for parameters, node by node for a step of one micro-batch."""
    step = subject.step
    dense = step.grads(subject.batch)
    found = {name: g.array for name in grads if (g := dense[name]) is not None}
    require_same(grads, found, "dense gradients")
    if step.recipe.accumulate != 1:
        return len(found)
    tape = run_eagerly(step.loss_fn, step.params, subject.batch, step.point, step.groups.frozen)
    expected = {f"%{id}": g.array for id, g in tape.dense.reached().items()}
    require_same(expected, {f"%{id}": g.array for id, g in dense.reached().items()}, "dense gradients")
    return len(expected)


@dataclass(frozen=True)
class _Slope:
    """A derivative along a direction, and how far the one-sided differences may leave it."""

    analytic: float
    left: float
    right: float
    bound: float

    @property
    def known(self) -> bool:
        """Whether the loss is finite on both sides: beside a root or a logarithm of little it may end."""
        return isfinite(self.left) and isfinite(self.right)

    @property
    def ok(self) -> bool:
        """Whether it lies between the differences from the left and from the right, which differ at a kink."""
        low, high = sorted((self.left, self.right))
        return low - self.bound <= self.analytic <= high + self.bound


def check_differences(subject: Subject) -> str:
    """Along a random direction of each parameter, the gradient gives the slope of the loss in float64.

    That is by the references, and by kernels where those would take too long for all directions together. Both are
    taken a little beside the parameters, so that values that are equal, or 0, do not lie on a kink.
    """
    for i, array in enumerate(subject.step.params.values()):
        array += _random(array.shape, i, BESIDE).astype(array.dtype)
    loss, worst, unknown = _Loss(subject), 0.0, 0
    grads = copied(subject.step.gradients(subject.batch))
    for i, (name, gradient) in enumerate(grads.items()):
        direction = _random(gradient.shape, len(subject.step.params) + i, 1.0)
        slope = _slope(loss, name, gradient, direction)
        if not slope.known:
            unknown += 1
            continue
        if not slope.ok and not _is_rounding(subject, name, gradient, direction, slope):
            raise CheckError(
                f"the gradient of {name!r}: along a random direction it gives {slope.analytic:.6g}, the loss "
                f"{slope.left:.6g} from the left and {slope.right:.6g} from the right (bound {slope.bound:.2g})"
            )
        worst = max(worst, abs(slope.analytic - (slope.left + slope.right) / 2) / (slope.bound or 1.0))
    left_out = f"; {unknown} of them left out, along which the loss is not finite" if unknown else ""
    return f"{len(grads)} directions, at worst {worst:.2g} of the tolerance{left_out}{loss.by_kernels}"


def _is_rounding(subject: Subject, name: str, gradient: Array, direction: Array, slope: _Slope) -> bool:
    """Whether a slope is off by rounding alone, as where float32 terms cancel each other.

    Then the gradient is to the bit that of the references, and that of the references in float64 has the slope.
    """
    part = subject.parts[1]
    id = part.graph.outputs[gradient_name(subject.plans.recording.params[name])]
    nodes, declared = needed_nodes(part.graph, [id]), subject.declared(part)
    apply = by_references_of(affordable(part.graph, nodes, subject.reference_work))
    if difference(evaluate(nodes, declared, apply)[id], gradient) is not None:
        return False
    wide = {key: _float64(array) for key, array in declared.items()}
    exact = evaluate([_widened(node) for node in nodes], wide, _in_float64(apply))[id]
    share = TOLERANCES[np.dtype(np.float64)] / TOLERANCES[gradient.dtype]
    return replace(slope, analytic=float((exact * direction).sum()), bound=slope.bound * share).ok


def _random(shape: tuple[int, ...], ordinal: int, scale: float) -> Array:
    """Numbers between ``-scale`` and ``scale``."""
    return scale * (uniform(shape, np.float64, seed=0, ordinal=ordinal) * 2 - 1)


def _slope(loss: "_Loss", name: str, gradient: Array, direction: Array) -> _Slope:
    terms = gradient.astype(np.float64) * direction
    left = (loss.middle - loss.at(name, -STEP * direction)) / STEP
    right = (loss.at(name, STEP * direction) - loss.middle) / STEP
    size = float(np.abs(terms).sum()) + LOSS_SHARE * max(1.0, abs(loss.middle))
    return _Slope(float(terms.sum()), left, right, TOLERANCES[gradient.dtype] * size)


class _Loss:
    """The recorded loss as a function of parameters, in float64."""

    def __init__(self, subject: Subject) -> None:
        part = subject.parts[0]
        self._params = subject.plans.recording.params
        self._loss = part.graph.outputs["loss"]
        nodes = needed_nodes(part.graph, [self._loss])
        cheap = affordable(part.graph, nodes, subject.reference_work // (1 + 2 * len(self._params)))
        self._apply = _in_float64(by_references_of(cheap))
        self.by_kernels = f"; {len(nodes) - len(cheap)} of {len(nodes)} nodes by kernels" if nodes[len(cheap) :] else ""
        declared = {id: _float64(array) for id, array in subject.declared(part).items()}
        values = evaluate(nodes, declared, self._apply)
        constant = [
            node for node in nodes if node.op in OPS and "slope" in OPS[node.op].excused
        ]  # what is a constant to gradients
        self._nodes = [node for node in nodes if node not in constant]
        self._declared = declared | {id: values[id] for node in constant for id in node.outputs}
        self.middle = self._evaluate({})

    def at(self, name: str, by: Array) -> float:
        """The loss with one parameter moved."""
        id = self._params[name]
        return self._evaluate({id: self._declared[id] + by})

    def _evaluate(self, moved: Mapping[int, Array]) -> float:
        return float(evaluate(self._nodes, {**self._declared, **moved}, self._apply)[self._loss])


def _float64(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _in_float64(apply: Apply) -> Apply:
    return lambda node, inputs: _float64(apply(_widened(node), inputs))


def _widened(node: IRNode) -> IRNode:
    """A node whose attributes speak of float64 where they spoke of float32; what is drawn keeps its precision."""
    if not any(OPS[node.op].smooth):
        return node
    wide = {key: np.dtype(np.float64) if value == np.dtype(np.float32) else value for key, value in node.attrs.items()}
    return replace(node, attrs=wide)
