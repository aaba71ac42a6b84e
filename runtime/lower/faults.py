"""What ended a run early within a call of bodies."""

from ctypes import c_char
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...tape.loops.call import BodyCall, where
from ...tape.numerics.engine.launch import Words
from ...tape.numerics.prepared.choice import ChoiceWords
from ...tape.numerics.prepared.loop import LoopWords
from ...tape.record import lowering
from .array_layout import ArrayLayout
from .choice import ChoicePlan
from .loop import LoopPlan
from .program import LoweredOp, RepeatedCalls


@dataclass(frozen=True)
class BodyFault:
    """What ended a call of bodies early: an op of a body, or a call in it."""

    op: LoweredOp
    status: int
    inputs: list[Array]
    body: int
    """Which of the bodies it is of."""
    value: int
    """What the op makes, by its id in the body."""
    where: str
    """What an error begins with."""
    inside: "BodyFault | None"

    def error(self, call: BodyCall) -> DgrrError:
        """The error that the status stands for, with the line of the user's that called the op."""
        node = list(call.bodies.values())[self.body].tape.node(self.value)
        if self.inside is not None:
            inner = self.inside.error(node.loop)
            return type(inner)(f"{self.where}{inner}")
        inner = lowering.refused(self.op.refusal, self.inputs, self.status - 1)
        at = "" if node.location is None else f"; at {node.location}"
        return type(inner)(f"{self.where}{inner}{at}")


def body_fault(calls: RepeatedCalls, words: Words) -> BodyFault:
    """What ended the last run of a call of bodies early."""
    if isinstance(calls, ChoicePlan):
        assert isinstance(words, ChoiceWords), "the words of a choice are these"
        return _of_side(calls.sides[words.ran], words.inner[words.ran], words.ran)
    return _of_side(calls, words, 0)


def _of_side(loop: RepeatedCalls, words: Words, side: int) -> BodyFault:
    assert isinstance(loop, LoopPlan), "calls are loops and choices of two"
    assert isinstance(words, LoopWords), "the words of a loop are these"
    status, row, step = words.failed
    program = loop.body.program
    op, inner = program.ops[row], words.inner[row]
    start = sum(len(o.table) + (k in loop.body.scratch) for k, o in enumerate(program.ops[:row])) + len(op.outputs)
    layouts = [replace(program.layout(v), offset=0) for v in op.inputs]
    inputs = [_array_at(int(words.pointers[start + k]), layout) for k, layout in enumerate(layouts)]
    inside = body_fault(op.words, inner) if isinstance(op.words, RepeatedCalls) else None
    made = next(node for node in program.graph.nodes if node.id == op.source)
    return BodyFault(op, status, inputs, side, made.outputs[0], where(loop.op, step, len(loop.places), side), inside)


def _array_at(address: int, layout: ArrayLayout) -> Array:
    """A copy of what a kernel that takes arrays in row-major order was given."""
    memory: Any = (c_char * max(1, layout.nbytes)).from_address(address)
    return layout.array(np.frombuffer(memory, np.uint8)).copy()
