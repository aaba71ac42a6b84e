"""Replays: determined by state and batch alone, equal to eager steps, and recorded without being run."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from ....lower.compile import compile_graph
from ....step.batch import map_batch
from ....step.evaluate import NonFiniteError
from ...purity import CaptureError
from ..report import CheckError
from ..subject import Subject
from .trace import JUNK


def check_finite(subject: Subject) -> str:
    """How far the bound batch can be trained on: what the checks that replay several steps have to go by."""
    finite, error = subject.finite
    if not finite:
        raise CheckError(f"the first step already leaves the finite numbers, so replays cannot be checked: {error}")
    if not error:
        return f"{finite} replays"
    return f"{finite} of {subject.wanted} replays, and no more are checked; the next one would meet: {error}"


def check_determinism(subject: Subject) -> str:
    """Two runs from a full restore and over different junk, and eager steps, have equal state digests at each step."""
    first, second = (_digests(subject, junk) for junk in JUNK)
    eager, expected = subject.eager(), list[str]()
    for _ in range(subject.replays):
        eager(subject.batch)
        expected.append(eager.digest())
    _require_equal(first, second, "two runs of replays from the same state")
    _require_equal(expected, first, "replays and eager steps from the same state")
    return f"2 runs of {subject.replays} replays and as many eager steps, state {first[-1][:16]}"


def _digests(subject: Subject, junk: int) -> list[str]:
    """The state digest after each replay, from the beginning."""
    subject.restore()
    subject.plans.step.bound.fill(junk)
    found: list[str] = []
    for _ in range(subject.replays):
        subject.step.replay(1)
        found.append(subject.step.digest())
    return found


def _require_equal(a: list[str], b: list[str], what: str) -> None:
    for k, (one, other) in enumerate(zip(a, b, strict=True)):
        if one != other:
            raise CheckError(f"{what} differ first after step {k}: state {one[:16]} and {other[:16]}")


def check_steps_at_once(subject: Subject) -> str:
    """One launch of several steps, each on its batch, is to the bit as many single steps, losses included."""
    step = subject.step
    given = _two_batches(subject)
    batches = [given[k % 2] for k in range(subject.replays)]
    losses = np.array(_losses(subject, batches))
    single = step.digest()
    subject.restore()
    at_once = step.steps(batches[: len(losses)])
    if step.digest() != single or losses.tobytes() != at_once.astype(losses.dtype).tobytes():
        wrong = [k for k, (a, b) in enumerate(zip(losses, at_once, strict=True)) if a != b]
        where = f"the loss of step {wrong[0]} differs first" if wrong else "all losses are equal, the states are not"
        raise CheckError(f"{len(losses)} steps at once are not {len(losses)} single steps: {where}")
    return f"{len(losses)} steps in one launch"


def _losses(subject: Subject, batches: Sequence[Any]) -> list[Any]:
    """The losses of single steps, as long as they stay finite: a batch that was put together here may end that."""
    losses = [subject.step(batches[0])]
    for batch in batches[1:]:
        try:
            losses.append(subject.step(batch))
        except NonFiniteError:
            break
    return losses


def _two_batches(subject: Subject) -> list[Any]:
    """Copies of the batch that is bound: as it is, and with every other array in reverse order of its first axis."""
    given = map_batch(lambda where, array: array.copy(), subject.batch)
    reverse = cycle((True, False))
    return [given, map_batch(lambda where, array: array[::-1].copy() if next(reverse) and array.ndim else array, given)]


def check_recording(subject: Subject) -> str:
    """Recording and compiling the step anew changes no bit of its state, and gives the same graph."""
    step = subject.step
    before = step.digest()
    try:
        subject.plans.require_same("in the verification")
    except CaptureError as error:
        raise CheckError(str(error)) from None
    part = subject.parts[0]
    compile_graph(part.graph, part.constants)
    if step.digest() != before:
        raise CheckError("recording the step changed its parameters or state: it must not run anything")
    return f"graph {part.graph.digest()[:16]}, state unchanged"
