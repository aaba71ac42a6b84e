"""A captured step can replace its loss function only if that does the same at every call: recording again checks it.

Capturing freezes what a loss function reads besides its arguments: a counter, ``np.random``, the clock. Eagerly each
step would see the new value, captured all see the first. What it reads by name is compared before each run, arrays are
read where they lie, and for all else it is recorded again now and then.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...base.arrays import Array
from ...tape import DgrrError
from ..ir.difference import first_difference
from ..ir.graph import IRGraph, Role, Value
from ..ir.record import Recorded
from .reads import Reads


class CaptureError(DgrrError, RuntimeError):
    """A loss function that behaves differently when it is called again: no captured step can replace it."""


CURE = (
    "a captured step keeps the first for ever; take what changes from ctx.step (the count of steps), from ctx.random "
    'or from an array of the batch, or run the step with mode="eager"'
)


class ArraysChanged(DgrrError):  # noqa: N818
    """What was captured took other arrays than the function would take now, and is the same otherwise."""


class PurityLooks:
    """Counts runs, and has a captured function recorded again where it may do another thing now.

    That is before a run for which something that it reads has changed, and before the runs 2, 4, 8, …, whatever is
    seen: n runs cost log2(n) looks, and what changes is found before there are twice as many runs.

    Args:
        reads: what it reads, held before it was recorded the second time.
        arrays: arrays that must not change unseen, besides those that are found by name.
        look: records it again. Raises CaptureError, or ArraysChanged.
    """

    def __init__(self, reads: Reads, arrays: Mapping[str, Array], look: Callable[[str], None]) -> None:
        self.runs, self._next, self._look = 0, 2, look
        self._reads = reads
        reads.after_recording(arrays)

    def count(self, runs: int = 1) -> bool:
        """Count runs that are about to be; whether what was captured stands, or is to be captured anew.

        Raises CaptureError.
        """
        self.runs += runs
        if self.runs < self._next and not self._reads.differ():
            return True
        return self._looked()

    def ahead(self, most: int) -> int:
        """Of so many runs about to be, how many come before the next look: one launch may have them, counted as one."""
        return 0 if self._reads.differ() else min(most, self._next - 1 - self.runs)

    @property
    def changed(self) -> bool:
        """Whether anything that is seen at once has changed since the last run."""
        return bool(self._reads.changed())

    def _looked(self) -> bool:
        changed = self._reads.changed()
        if self.runs >= self._next:
            self._next = 1 << self.runs.bit_length()
        elif not changed:
            self._reads.take()
            return True
        after = f", after a change of {', '.join(changed)}," if changed else ""
        try:
            self._look(f"at run {self.runs} of what was captured{after}")
        except ArraysChanged as error:
            if changed:
                return False
            raise CaptureError(str(error)) from None
        self._reads.note_without_effect(changed)
        self._reads.take()
        return True


def require_equal(
    what: str, graph: IRGraph, again: IRGraph, recording: Recorded, when: str, *, arrays: bool = True
) -> None:
    """Raise CaptureError if a function, recorded again as ``recording``, gave another graph.

    Without ``arrays`` it is ArraysChanged if they differ in nothing but the arrays that are constants.
    """
    found = None if graph == again else first_difference(graph, again)
    if found is None:
        return
    same_but_arrays = not arrays and first_difference(_any_arrays(graph), _any_arrays(again)) is None
    kind = ArraysChanged if same_but_arrays else CaptureError
    node = recording.tape.node(found.value) if found.value < len(recording.tape) else None
    place = f" at {node.location}" if node is not None and node.location is not None else ""
    name = f" of {node.scope!r}" if node is not None and node.scope else ""
    raise kind(
        f"capture: {what} behaves differently when it is called again{place}: value %{found.value}{name} was recorded "
        f"as {found.first}, but {when} as {found.second}; {CURE}"
    )


def _any_arrays(graph: IRGraph) -> IRGraph:
    """The graph without what is in its constants, numbers excepted."""
    return replace(graph, values={id: _any_array(value) for id, value in graph.values.items()})


def _any_array(value: Value) -> Value:
    is_array = value.role is Role.CONST and value.content.startswith(("sha256:", "array "))
    return replace(value, content="array") if is_array else value
