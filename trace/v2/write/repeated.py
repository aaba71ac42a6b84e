"""Steps that a resumed run computes once more, and what was recorded of them before it was killed.

They stand in the file behind the checkpoint, and in what earlier resumptions cut off. Only those are taken whose links
go on behind what is kept: steps of a life that had parted from this one before would differ for that reason alone.
"""

from collections.abc import Iterator
from json import dumps
from typing import NamedTuple

from ....base import system
from ....base.system import FilePath
from ...file_version import TraceFileError, open_regular
from ..errors import InvalidTraceError
from ..format.layout import FrameLayout
from ..format.limits import Limits
from ..format.step import STEP, StepRecord, step_link
from ..read.scan import Walk
from ..read.source import Frame, FrameSource, Source
from ..read.whole_frames import Hole, WholeFrames
from ..verdict import Verdict
from .torn import torn_files


class RepeatedDifference(NamedTuple):
    """A step that was computed otherwise once more: `what` of it, and of which `tensor`, if it is one.

    `file` is where the old one is kept.
    """

    step: int
    what: str
    tensor: str | None
    file: str

    def told(self, path: str) -> str:
        """The warning: what is known of it, and what to do."""
        return (
            f"trace: {path}: step {self.step} differs from the one before the run was resumed: {self.what} differs. "
            f"The run continues with the new step; the old one is kept in {self.file}. Batches, code, settings or "
            "machine have changed since: check the new step with dgrr replay --model, or undo the change and resume "
            "again"
        )

    @property
    def note(self) -> str:
        """The text of the EVENT: a JSON object."""
        return dumps({"step": self.step, "tensor": self.tensor, "what": self.what}, sort_keys=True)


class _Place(NamedTuple):
    """Where a STEP stands, and its link."""

    link: bytes
    file: str
    offset: int


class Repeated:
    """The steps from the last one of `kept` on, as they were recorded before.

    They are read from `behind`, the frames that are to be cut off and will stand in a file of their own, `moved` bytes
    further on; then from the tails that were cut off before. A step is held in memory by its link and its place.

    Raises:
        TraceFileError: a file that was cut off from this one cannot be read.
    """

    def __init__(self, path: FilePath, kept: Walk, behind: WholeFrames, moved: int) -> None:
        self._kept, self._layout = kept, kept.layout
        self._places: dict[int, _Place] = {}
        tails = torn_files(path)
        self._take(behind.behind(kept.end), tails.next, moved)
        for name in reversed(tails.there):
            self._take_tail(name)

    def __len__(self) -> int:
        return len(self._places)

    def difference(self, step: int, front: bytes) -> RepeatedDifference | None:
        """What differs first in a step whose new front is given, in the order in which it is computed.

        None where nothing does, or where nothing is known of the step. Links hold all before them: after the first
        different step nothing is compared any more.
        """
        before = self._places.pop(step, None)
        if before is None or before.link == front[: self._layout.digest_size]:
            return None
        self._places.clear()
        return RepeatedDifference(step, *self._first_other(step, before, front), before.file)

    def _first_other(self, step: int, before: _Place, front: bytes) -> tuple[str, str | None]:
        try:
            old = self._front(before)
            decode = STEP.front(self._layout).decode
            records = decode(step, old), decode(step, front)
        except TraceFileError:  # somebody has removed it, and the link says enough
            return "something", None
        return next(_differences(self._layout, (old, front), records), ("something", None))

    def _front(self, place: _Place) -> bytes:
        descriptor = open_regular(place.file)
        try:
            return WholeFrames(FrameSource(Source(descriptor, Limits(), place.file))).frame(place.offset).front
        finally:
            system.release(descriptor)

    def _take_tail(self, name: str) -> None:
        descriptor = open_regular(name)
        try:
            frames = FrameSource(Source(descriptor, Limits(), name))
            if frames.header == self._kept.frames.header:  # else it is of a trace that had the name before
                self._take(iter(WholeFrames(frames, tail=True)), name, 0)
        except InvalidTraceError as error:  # a tail is a help, no condition, unless the disk fails
            if error.verdict is Verdict.IO:
                raise
        finally:
            system.release(descriptor)

    def _take(self, found: Iterator[Frame | Hole], name: str, moved: int) -> None:
        for met in found:
            if not isinstance(met, Hole) and met.type == STEP.code and met.step not in self._places:
                self._take_step(met, name, moved)

    def _take_step(self, frame: Frame, name: str, moved: int) -> None:
        layout = self._layout
        before = self._kept.link if frame.step == self._kept.steps else b""
        if frame.step - 1 in self._places:
            before = self._places[frame.step - 1].link
        link = frame.front[: layout.digest_size]
        if before and link == step_link(layout, before, frame.step, frame.front):
            self._places[frame.step] = _Place(link, name, frame.offset + moved)


def _differences(
    layout: FrameLayout, fronts: tuple[bytes, bytes], records: tuple[StepRecord, StepRecord]
) -> Iterator[tuple[str, str | None]]:
    """What differs in two fronts of one step, in the order in which it is computed."""
    tensors, (a, b) = layout.schema.tensors, records
    if a.input_digest != b.input_digest or a.micro_batches != b.micro_batches:
        yield "the batch", None
    declared = STEP.front(layout)
    hyper = slice(declared.at["hyper"], declared.at["corrections"])
    if fronts[0][hyper] != fronts[1][hyper]:
        yield "a hyperparameter", None
    if a.loss.tobytes() != b.loss.tobytes():
        yield "the loss", None
    grads = a.grad_digests(), b.grad_digests()
    for i in sorted({*grads[0], *grads[1]}, reverse=True):
        if grads[0].get(i) != grads[1].get(i):
            yield f"the gradient of '{tensors[i].name}'", tensors[i].name
    order = [*range(layout.states, len(tensors)), *range(layout.states)]
    for i, old, new in zip(order, a.digests[len(a.grads) :], b.digests[len(b.grads) :], strict=False):
        if old != new:
            yield f"'{tensors[i].name}' after the step", tensors[i].name
    if declared.chained(fronts[0]) != declared.chained(fronts[1]):
        yield "the scale of clipping or a bias correction", None
