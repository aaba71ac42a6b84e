"""Resuming an unfinished trace: what of `PATH.partial` is kept, and the writer behind it.

Everything is read and compared before the file is touched, so a refusal leaves it as it was.
"""

from collections.abc import Sequence
from itertools import zip_longest
from types import TracebackType
from typing import Any, Self

from ....base.errors import DomainError
from ....base.system import FilePath
from ...file_version import TraceFileError
from ..check.validate import checked
from ..errors import DamageError, InvalidTraceError, TraceWriteError
from ..format.constants import STEPS_PER_INDEX, RecordMode
from ..format.frames import KeyframeRecord, SealRecord
from ..format.limits import Limits
from ..format.schema import Schema
from ..format.step import StepRecord
from ..read.damage import judge
from ..read.reader import TraceReader
from ..read.scan import Walk
from ..read.source import FrameSource, Source
from ..read.whole_frames import WholeFrames
from ..verdict import Verdict
from .partial_file import PartialFile
from .repeated import Repeated
from .writer import TraceWriter


class Unfinished:
    """A `PATH.partial`, locked and read up to the step from which a run resumes; nothing is changed yet.

    Where there is none, a copy of the finished `PATH`, which is removed again if nothing comes of it.

    `walk` has met the frames that are kept; `digests` are those of each tensor after its last step, or empty where
    the trace does not hold them; `surplus` is how many bytes stand behind, and `repeated` the steps that were recorded
    there or in what was cut off before. A `with` block closes the file, unless `go_on` has handed it to a writer.
    """

    def __init__(self, path: FilePath, steps: int) -> None:
        """Read the file and choose what is kept.

        Raises:
            DomainError: `steps` is negative.
            TraceWriteError: there is no such file, another process writes it, it cannot be read, or it does not
                hold `steps` whole steps.
        """
        if steps < 0:
            raise DomainError(f"resume: steps: expected at least 0, got {steps}")
        self._handed_over = False
        self._file = PartialFile.reopen(path)
        try:
            self.walk, self.digests, self.surplus, self.repeated = _read(self._file, steps)
            self.header = self.walk.frames.header
            self._require_no_less()
        except BaseException:
            self._file.give_up()
            raise

    def _require_no_less(self) -> None:
        """Refuse to go on with fewer steps than the finished file has, which the longer one is to replace."""
        path = self._file.path
        if not path.exists():
            return
        with TraceReader(str(path), Limits(), "strict") as finished:
            steps = len(finished) if finished.header == self.header else 0
        if self.walk.steps < steps:
            raise TraceWriteError(
                f"trace: cannot resume {path} after {self.walk.steps} steps: it is finished, with {steps} steps, and "
                f"none of them is cut off. Load a checkpoint of step {steps} to continue; to train on from step "
                f"{self.walk.steps}, use dgrr fork, or a trace of another name"
            )

    def require(self, mode: RecordMode, numerics: int, seed: int) -> None:
        """Hold options of the run against the header. Raises DomainError that names the first that differs."""
        header = self.header
        options = {
            "record": (header.mode.name.lower(), mode.name.lower()),
            "numerics": (header.numerics, numerics),
            "seed": (header.seed, seed),
        }
        for name, (recorded, given) in options.items():
            if recorded != given:
                raise DomainError(
                    f"resume: {name}: the trace was begun with {recorded!r}, got {given!r}; resume with the "
                    f"arguments of its beginning, or begin a new trace"
                )

    def require_schema(self, given: Schema) -> None:
        """Hold the tensors and the rule of the run against the SCHEMA.

        Raises:
            DomainError: they differ; the text names the first difference.
        """
        difference = _schema_difference(self.walk.schema, given)
        if difference:
            raise DomainError(f"resume: {difference}; resume the run that began the trace, or begin a new trace")

    def require_state(self, given: Sequence[bytes]) -> None:
        """Hold the digest of each tensor now against what the trace says of it, if it does.

        Raises:
            DomainError: a tensor is not what it was; the text names the first.
        """
        for spec, digest, recorded in zip(self.walk.schema.tensors, given, self.digests, strict=False):
            if digest != recorded:
                raise DomainError(
                    f"resume: '{spec.name}' is not what the trace says it was after {self.walk.steps} steps: expected "
                    f"the digest {recorded.hex()}, got {digest.hex()}; load the checkpoint of that step of this run, "
                    f"or record another run under another name"
                )

    def go_on(self, commit_every: int | None, note: str) -> TraceWriter:
        """Cut the file behind what is kept, and append an EVENT `resume` and the marks that are missing.

        What is cut off is kept beside it before that: it may tell why the run died, and the steps in it are compared
        with those that replace them.

        Raises:
            TraceWriteError: the file cannot be cut or written, or what is cut off not be kept.
        """
        if self.surplus and not self._file.is_copy:
            self._file.keep_tail(*_beginning_and_end(self.walk))
        self._file.cut(self.walk.end)
        writer = TraceWriter.behind(self.walk, self._file, commit_every)
        writer.event("resume", note)
        writer.marks(self.walk.committed)
        self._handed_over = True
        return writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._handed_over:
            self._file.give_up()


class _Prefix:
    """What is kept: every whole frame before step `steps`, apart from a SEAL and the INDEX that precedes one.

    `steps`: how many steps are kept (-1: not even KEYFRAME 0 is whole); `end`: where they end; `digests`: of each
    tensor after them, or empty; `damage`: what kept the reading from its aim.
    """

    def __init__(self, source: Source, steps: int) -> None:
        self.end = 0
        self.steps = -1
        self.digests: tuple[bytes, ...] = ()
        self.damage: InvalidTraceError | None = None
        try:
            self._take(FrameSource(source), steps)
        except InvalidTraceError as error:
            if error.verdict is Verdict.IO:
                raise
            self.damage = error

    def _take(self, frames: FrameSource, steps: int) -> None:
        try:
            self._walk(Walk(frames), steps)
        except DamageError as damage:
            if self.steps < steps:
                raise judge(frames, damage) from damage

    def _walk(self, walk: Walk, steps: int) -> None:
        finished = False
        for frame, record in checked(walk):
            if walk.steps > steps:
                return
            finished = finished or isinstance(record, SealRecord) or _is_last_index(walk)
            if not finished:
                self.end = frame.end
            self.steps = walk.steps if walk.keyframes else -1
            self.digests = _digests(walk, record, self.digests)


def _is_last_index(walk: Walk) -> bool:
    """Whether the walk has met an INDEX that is written only before a SEAL."""
    return len(walk.indexes) > walk.steps // STEPS_PER_INDEX


def _digests(walk: Walk, record: Any, before: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The digest of each tensor at this place of the file."""
    match record:
        case KeyframeRecord():
            return record.digests
        case StepRecord():
            return record.state_in_order(walk.layout) if record.root is not None else ()
        case SealRecord(final=final):
            return final[:-1] or before
        case _:
            return before


def _read(file: PartialFile, steps: int) -> tuple[Walk, tuple[bytes, ...], int, Repeated]:
    """The walk over what is kept, the digests of the state behind it, how many bytes follow, and the steps in them."""
    source = Source(file.descriptor, Limits())
    try:
        prefix = _Prefix(source, steps)
        if prefix.steps < steps:
            raise TraceWriteError(f"trace: cannot resume {file.partial} after {steps} steps: {_shortage(prefix)}")
        behind, surplus = WholeFrames(FrameSource(Source(file.descriptor, Limits()))), source.size - prefix.end
        source.size = prefix.end
        walk = Walk(FrameSource(source))
        for _ in walk:
            pass
        beginning, start = _beginning_and_end(walk)
        repeated = Repeated(file.path, walk, behind, moved=beginning - start)
    except TraceFileError as error:
        raise TraceWriteError(f"trace: cannot resume {file.partial}: {error}") from error
    return walk, prefix.digests, surplus, repeated


def _beginning_and_end(kept: Walk) -> tuple[int, int]:
    """Of what is cut off, the bytes of header and SCHEMA, and the offset of the chain digest that its frames follow."""
    return kept.prologue.frame.end, kept.end - kept.layout.digest_size


def _shortage(prefix: _Prefix) -> str:
    """Why there are not enough steps, and what to do."""
    if prefix.steps < 0:
        return f"its beginning cannot be read ({prefix.damage}); start again with overwrite=True"
    then = f", then {prefix.damage}" if prefix.damage else ""
    return (
        f"it holds {prefix.steps} whole steps{then}. Resume from a checkpoint at or before step {prefix.steps}, "
        f"or start again with overwrite=True"
    )


def _schema_difference(recorded: Schema, given: Schema) -> str:
    """The first difference in words, or nothing."""
    for left, right in zip_longest(map(str, recorded.tensors), map(str, given.tensors), fillvalue="no more tensors"):
        if left != right:
            return f"the trace was begun with {left}, got {right}"
    for name in ("rule", "hyperparameters"):
        left, right = (str([getattr(group, name) for group in s.groups]) for s in (recorded, given))
        if left != right:
            return f"{name}: the trace was begun with {left}, got {right}"
    return "" if recorded == given else f"groups: the trace was begun with {recorded.groups}, got {given.groups}"
