"""Captured is eager, to the bit: an op's values, gradients and errors inside a compiled training step."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from dgrr.runtime import SGD, CapturedStep, EagerStep, evaluate
from dgrr.runtime.ir.verify import SWITCH
from dgrr.runtime.lower.compile import PASSES
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DgrrError, ops
from dgrr.tape.record.op import Op
from dgrr.tape.var.op_table import OPS

from .cases import FLOAT_TYPES, Array, Case, Record, assert_same_bits, cases

RULE = SGD(0.125, momentum=0.5)
WEIGHTS, BESIDE = "weights", "beside"
FORMS: dict[str, tuple[bool, tuple[str, ...]]] = {
    "all passes": (False, ()),
    "no pass": (False, tuple(PASSES)),
    "all passes, inputs transposed": (True, ()),
}
"""Whether inputs come to the op through a transposing view, and the passes that are switched off."""

EVERYWHERE = "all passes"
"""The form that every sample is captured in; the others take one sample per dtype, for what they add is not per op."""

TRAINED = 4
"""Each sample's gradients are compared; of so many one is trained on too, its dense gradients compared."""


@dataclass(frozen=True)
class Step:
    """A loss made of one op or composed function: its float inputs are parameters, its other inputs the batch.

    Where an output is wanted, it is added up under weights that are a parameter too, so that their gradient is
    the output itself. An op that has no float inputs and is to be refused stands beside a parameter.
    """

    op: Record
    arrays: Sequence[Any]
    attrs: Mapping[str, Any]
    output: Array | None
    transposed: bool = False

    @property
    def floats(self) -> dict[str, Array]:
        """The inputs that become parameters."""
        return {f"{i}": a for i, a in enumerate(self.arrays) if a is not None and a.dtype.kind == "f"}

    @property
    def params(self) -> dict[str, Array]:
        """The parameters, transposed if they come to the op that way."""
        made = {name: a.T if self.transposed else a for name, a in self.floats.items()}
        if self.output is None:
            return made or {BESIDE: np.zeros(())}
        rng = np.random.default_rng(7)
        dtype = self.output.dtype if self.output.dtype.kind == "f" else np.dtype(np.float64)
        return {**made, WEIGHTS: np.asarray(rng.standard_normal(self.output.shape)).astype(dtype)}

    @property
    def batch(self) -> dict[str, Array]:
        """The inputs that are no floats."""
        return {f"{i}": a for i, a in enumerate(self.arrays) if a is not None and a.dtype.kind != "f"}

    def loss(self, p: Any, batch: Any) -> Any:
        """The weighted sum of the op's output."""
        given = {**{name: self._straight(p[name]) for name in self.floats}, **batch}
        out = self.op(*[given.get(f"{i}") for i in range(len(self.arrays))], **self.attrs)
        if out.dtype.kind != "f":
            out = ops.cast(out, np.float64)
        if WEIGHTS in p:
            out = ops.mul(out, p[WEIGHTS])
        total = ops.reduce_sum(out)
        return ops.cast(total, np.float64) + p[BESIDE] if BESIDE in p else total

    def _straight(self, x: Any) -> Any:
        return ops.permute(x, tuple(reversed(range(len(x.shape))))) if self.transposed else x


def check_captured(op: Record) -> None:
    """Loss, gradients, dense gradients, updates and refusals are those of the eager step, whatever the passes."""
    verified = patch.dict(os.environ, {SWITCH: "1"})
    listed = patch.dict(OPS, {op.name: op} if isinstance(op, Op) else {})
    with verified, listed, np.errstate(all="ignore"):
        for dtype in FLOAT_TYPES:
            for number, case in enumerate(cases(op, dtype)):
                for form in FORMS if number == 0 else (EVERYWHERE,):
                    _check_case(case, form, trained=number % TRAINED == 0)
        for refused in _refused(op):
            for off in ((), tuple(PASSES)):
                assert _outcome(captured(refused, off), refused) == _outcome(eager(refused), refused)


def _check_case(case: Case, form: str, trained: bool) -> None:
    transposed, off = FORMS[form]
    step, label = Step(case.op, case.arrays, case.attrs, case.result, transposed), f"{case.label}, captured with {form}"
    made, expected = captured(step, off)(), evaluate(step.loss, step.params, step.batch)
    for attempt in ("first", "second"):  # a run leaves nothing behind that another could see
        got = made.gradients(step.batch)
        assert list(got) == list(expected.grads), f"{label}: gradients of {list(got)}"
        for name, gradient in expected.grads.items():
            assert_same_bits(got[name], gradient, f"{label}, {attempt} run: gradient of {name}")
    if trained and not off:
        _check_dense(made, step, expected.dense.reached(), label)
    if trained:
        _check_training(made, step, label)


def _check_training(made: CapturedStep, step: Step, label: str) -> None:
    beside = eager(step)()
    for number in range(2):
        assert _run(made, step) == _run(beside, step), f"{label}: step {number}"
        assert made.digest() == beside.digest(), f"{label}: state after step {number}"
    assert not made.plan.overlaps(), f"{label}: blocks of the arena overlap"


def _check_dense(made: CapturedStep, step: Step, expected: Mapping[int, Any], label: str) -> None:
    got = made.grads(step.batch).reached()
    assert list(got) == list(expected), f"{label}: dense gradients of {list(got)}"
    for id, gradient in expected.items():
        assert_same_bits(got[id].numpy(), gradient.numpy(), f"{label}: gradient of node {id}")


def captured(step: Step, off: Sequence[str]) -> Callable[[], CapturedStep]:
    """What captures the step without some passes."""
    return lambda: CapturedStep(step.loss, step.params, Recipe(RULE), without_passes=off)


def eager(step: Step) -> Callable[[], EagerStep]:
    """What makes the eager step."""
    return lambda: EagerStep(step.loss, step.params, Recipe(RULE))


def _outcome(make: Callable[[], Any], step: Step) -> Any:
    return _run(make(), step)


def _run(made: Any, step: Step) -> Any:
    """The bits of the loss, or the error and its text."""
    try:
        return made(step.batch).tobytes()
    except DgrrError as error:
        return type(error), str(error)


def _refused(op: Record) -> Iterator[Step]:
    """The bad inputs that can be parameters and batches."""
    for bad in op.errors:
        if all(isinstance(a, np.ndarray) and a.dtype.name in ("float32", "float64", "int64") for a in bad.arrays):
            yield Step(op, bad.arrays, bad.attrs, None)


CAPTURED: dict[str, Callable[[Any], None]] = {"captured": check_captured}
