"""A run held against its golden file: what is compared."""

from pathlib import Path

from ..comparing.compare import compare
from ..comparing.ops import OpDifference, first_op
from ..comparing.policy import Policy
from ..comparing.result import Cause, Comparison
from ..v2.read.reader import open_trace
from ..v2.verdict import Verdict


def compare_golden(golden: Path, present: Path, policy: Policy) -> Comparison:
    """Compare a run with its golden file, which is read from its first byte to its last.

    To the bit, every value on the way must agree too, where its digest is recorded: also one that differs by so little
    that the next operation rounds it away, which nothing else in the file would show.
    """
    comparison = compare(golden, present, policy=policy, proven=True)
    if not comparison.same or not policy.bitwise:
        return comparison
    found = _first_op(golden, present)
    return comparison if found is None else _on_the_way(golden, present, *found)


def _first_op(golden: Path, present: Path) -> tuple[int, OpDifference] | None:
    """The first step and op with another digest, of those that both have."""
    with open_trace(golden) as a, open_trace(present) as b:
        for step in range(len(a)):
            x, y = a.ops(step), b.ops(step)
            if x is not None and y is not None and (op := first_op(x, y)) is not None:
                return step, op
    return None


def _on_the_way(golden: Path, present: Path, step: int, op: OpDifference) -> Comparison:
    cause = Cause.GRADIENT if op.inputs_agree else Cause.MODEL
    text = f"step {step} is the first that differs: its results are equal, but not all that they are made of; first "
    text += op.short
    return Comparison(str(golden), str(present), Verdict.DIVERGED, text, cause, step, op=op)
