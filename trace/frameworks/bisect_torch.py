"""Two runs of PyTorch that part somewhere: each is trained again up to that step, whose calls of ops say why."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from ...base.arrays import Array
from ...base.errors import DomainError
from ...base.runs.completed_step import CompletedStep
from ...base.runs.keep import Keep
from ...base.runs.run import Run
from ...base.system import FilePath
from ..comparing.compare import compare, compare_from, unreadable
from ..comparing.result import Cause, Comparison
from ..file_version import TraceFileError
from ..v2.read.reader import TraceReader, open_reader
from ..v2.verdict import Verdict
from ..v2.write.open_recorder import open_recorder
from ..v2.write.recorder import TraceRecorder
from .pytorch.restart import Restart
from .renumbered import Renumbered

Train: TypeAlias = Callable[[Any], object]
"""Builds a model and trains it from its first step, recorded with `record_torch` where it is told."""

_COMPUTED = (Cause.MODEL, Cause.GRADIENT, Cause.UPDATE, Cause.ENVIRONMENT)
"""What a call of an op may explain; everything else is told to a run."""


def bisect_torch(
    a: FilePath, b: FilePath | None = None, *, train_a: Train | None = None, train_b: Train | None = None
) -> Comparison:
    """Find the first op by which two runs of PyTorch part: its name, options, layer and line.

    The digests in the two traces name the first step that differs, to the bit. Each run is then trained again as far as
    that step, of which every call of an op is recorded, and left; the answer is the comparison of these two. A trace
    that holds the calls of that step is used as it is, and a run whose batch or hyperparameters differ there is not
    trained again. Training begins from the last state before it that both traces hold, where the loop asks
    ``TorchRun.skips``, and else from the first step.

    The answer is unproven where a run that is trained again is not the recorded one: other code, another machine, or
    something that is not determined by its beginning.

    Args:
        a: the trace of the run that is right.
        b: the trace of the run that moved. None: what `train_b` trains now. It is then trained once more, up to the
            first loss that differs from that of `a`.
        train_a: trains the run of `a`: it sets its seeds, builds the model and its batches, and hands its argument to
            `record_torch` as the trace, without ``record``, ``state_every`` and ``level``. An exception that is no
            ``Exception`` ends it early, so that its ``finally`` blocks run. It may be called a second time, if it
            cannot begin from a recorded state.
        train_b: trains the run of `b`.

    Raises DomainError where there is nothing to compare, a path is a folder, or a function does not record one run.
    What the functions raise is not caught. The content of the files raises nothing: the verdict says it.

    >>> import torch
    >>> from dgrr.trace import record_torch
    >>> def train(trace, scale=1.0):
    ...     model = torch.nn.Linear(2, 1)
    ...     torch.nn.init.ones_(model.weight), torch.nn.init.zeros_(model.bias)
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ...     with record_torch(model, optimizer, trace) as run:
    ...         for k in range(4):
    ...             optimizer.zero_grad()
    ...             run.loss((model(torch.ones(2)) * (scale if k == 2 else 1.0)).sum()).backward()
    ...             optimizer.step()
    >>> with TemporaryDirectory() as folder:
    ...     train(f"{folder}/a")
    ...     found = bisect_torch(f"{folder}/a", train_a=train, train_b=lambda trace: train(trace, 0.5))
    >>> found.step, found.call.call.name, found.call.was.options, found.call.call.options
    (2, 'aten.mul.Tensor', 'other=1.0', 'other=0.5')
    """
    if b is None and train_b is None:
        raise DomainError("bisect_torch: expected the trace 'b' or the function 'train_b', got neither")
    for letter, path in (("a", a), ("b", b)):
        if path is not None and os.path.isdir(path):
            cure = "give the file of the process that `compare` names first"
            raise DomainError(f"bisect_torch: argument {letter!r}: expected a file, got the folder {path}; {cure}")
    with TemporaryDirectory() as folder:
        left = _Side("a", os.fspath(a), train_a, Path(folder))
        if b is not None:
            return _parted(left, _Side("b", os.fspath(b), train_b, Path(folder)))
        readable = compare(a, a)
        if not readable:
            return readable
        return _parted(left, _trained_beside(left, cast(Train, train_b), Path(folder)))


class _Left(BaseException):
    """The step that was asked for is recorded; no loop is to take it for an error of its own."""


class _Side:
    """One of the two runs: the trace that tells of it, and what trains it again."""

    def __init__(self, letter: str, path: str, train: Train | None, folder: Path, name: str = "") -> None:
        self.letter, self.path, self.name = letter, path, name or path
        self.held, self.first = path, 0
        """The trace that holds the calls of the step that was asked for last, and which step its first is."""
        self.again = 0
        """How many steps were trained again."""
        self._train, self._folder = train, folder

    def keyframes(self, step: int) -> set[int]:
        """The steps up to one before which the trace has a state to begin from."""
        with open_reader(self.path, mode="tolerate_tail") as trace:
            return {k for k in trace.keyframes if 0 < k <= step and trace.generators(k)}

    def hold(self, step: int, begin: int) -> Comparison | None:
        """See to it that calls of a step are held; gives what stands against that.

        The run is trained again from the state before step `begin`; from its beginning if that is another run.
        """
        if self._holds(step):
            self.held, self.first = self.path, 0
            return None
        if self._train is None:
            text = f"{self.name} holds no calls of ops of step {step}: give train_{self.letter}=…"
            return Comparison(self.path, self.path, Verdict.UNPROVEN, text)
        if begin and self._trained(self._train, step, begin) is None:
            return None
        return self._trained(self._train, step, 0)

    def _holds(self, step: int) -> bool:
        with open_reader(self.path, mode="tolerate_tail") as trace:
            return step < len(trace) and bool(trace.calls(step))

    def _trained(self, train: Train, step: int, begin: int) -> Comparison | None:
        """Train the run from step `begin` to `step`, whose calls are recorded; gives how it is not the recorded one."""
        made = self._folder / f"{self.letter}{begin}-{step}.dgrr"
        with open_reader(self.path, mode="tolerate_tail") as trace:
            keep = Keep(made, record="bare", ops=(step - begin,), digest=trace.header.algorithm.word)
            restart = Restart.read(trace, begin) if begin else None
            losses = [_bits(trace[k].record.loss) for k in range(begin, step + 1)] if begin else [None] * (step + 1)
        _train_up_to(keep, train, f"train_{self.letter}", _Parting(losses), restart)
        self.held, self.first = os.fspath(made), begin
        with open_reader(made, mode="tolerate_tail") as trace:
            ended = begin + len(trace)
        self.again += ended - begin
        return self._other(step, ended)

    def _other(self, step: int, ended: int) -> Comparison | None:
        """How the run that was trained again is not the one that is recorded."""
        found = _compared(self.path, 0, self.held, self.first)
        if ended > step and (found.same or found.cause is Cause.LENGTH):
            return None
        why = found.sentence if ended > step else f"it ended after {ended} steps, before step {step}"
        text = f"train_{self.letter} does not train {self.name} again: {why}"
        return Comparison(
            self.path, self.held, Verdict.UNPROVEN, text, tensors=found.tensors, environment=found.environment
        )


def _compared(a: str, first_a: int, b: str, first_b: int) -> Comparison:
    """Two traces from the first step that both have, where their first steps are these of their runs."""
    first = max(first_a, first_b)
    if not first:
        return compare(a, b)
    try:
        with open_reader(a, mode="tolerate_tail") as left, open_reader(b, mode="tolerate_tail") as right:
            sides = Renumbered(left, first_a), Renumbered(right, first_b - first)
            return compare_from(first, *(cast(TraceReader, side) for side in sides))
    except TraceFileError as error:
        return unreadable([a, b], error)


def _trained_beside(left: _Side, train: Train, folder: Path) -> _Side:
    """What a function trains now, up to the first loss that is not that of the other run, or the last.

    States are kept where the other has them.
    """
    with open_reader(left.path, mode="tolerate_tail") as trace:
        losses = [_bits(view.record.loss) for view in map(trace.__getitem__, range(len(trace)))]
        every = min(left.keyframes(len(trace)), default=None)
        kept = Keep(folder / "b.dgrr", record="bare", digest=trace.header.algorithm.word)
    keep = kept if every is None else replace(kept, record="digest", state_every=1, keyframe_every=every)
    _train_up_to(keep, train, "train_b", _Parting([*losses[:-1], None]))
    name = f"{getattr(train, '__qualname__', type(train).__name__)}, trained now"
    return _Side("b", os.fspath(keep.path), train, folder, name)


class _Parting:
    """Whether a step is the last to train: its loss is not the one that is expected, or none is behind it."""

    def __init__(self, losses: Sequence[bytes | None]) -> None:
        self._losses = losses

    def __call__(self, done: CompletedStep) -> bool:
        expected = self._losses[done.step]
        return done.step + 1 >= len(self._losses) or expected not in (None, _bits(done.loss))


def _bits(loss: Any) -> bytes:
    array: Array = loss
    return array.dtype.str.encode() + array.tobytes()


def _parted(left: _Side, right: _Side) -> Comparison:
    """The comparison of two runs, with the calls of the step where they part."""
    first = compare(left.path, right.path)
    step, asked = first.step, set[int]()
    if step is None or first.cause not in _COMPUTED:
        if not first.same and first.compared:
            first.notes.append("nothing was trained again: no op makes that differ")
        return _named(first, left, right)
    found = first
    while step is not None and step not in asked:  # those trained again digest each state, and may part before it
        asked.add(step)
        begin = max(left.keyframes(step) & right.keyframes(step), default=0)
        for side in (left, right):
            against = side.hold(step, begin)
            if against is not None:
                return _unexplained(_named(first, left, right), against)
        found = _compared(left.held, left.first, right.held, right.first)
        step = found.step
    if found.step == first.step:
        found.tensors, found.losses = first.tensors or found.tensors, first.losses
    if found.call is None:
        found.notes.append("no call of an op that was recorded differs; torch.compile hides those of its code")
    found.settings = first.settings
    found.notes += [f"trained again, {side.again} steps: {side.letter}" for side in (left, right) if side.again]
    return _named(found, left, right)


def _unexplained(first: Comparison, against: Comparison) -> Comparison:
    """What the traces say, where the op cannot be told."""
    first.notes.append(f"which op it was is unproven: {against.sentence}")
    return first


def _named(found: Comparison, left: _Side, right: _Side) -> Comparison:
    found.a, found.b = left.name, right.name
    return found


def _train_up_to(keep: Keep, train: Train, argument: str, is_last: _Parting, restart: Restart | None = None) -> None:
    """Record what a function trains, up to a step that is the last; the trace is sealed. It may end before.

    Raises DomainError where it records nothing, or two runs.
    """
    target = _Target(keep, argument, is_last, restart)
    with suppress(_Left):
        train(target)
    if not target.begun:
        raise DomainError(
            f"bisect_torch: argument {argument!r}: expected it to record its run where it is told, got "
            "none; hand its argument to record_torch as the trace"
        )


class _Target:
    """Where a function records its run: opens one recorder."""

    def __init__(self, keep: Keep, argument: str, is_last: _Parting, restart: Restart | None) -> None:
        self.begun = False
        self.level = "layer" if keep.ops is None else "op"
        self.restart = restart
        self._keep, self._argument, self._is_last = keep, argument, is_last

    def open_recorder(self, run: Run) -> TraceRecorder:
        """The recorder of the run; raises DomainError for a second one."""
        if self.begun:
            raise DomainError(f"bisect_torch: argument {self._argument!r}: expected one run, got a second record_torch")
        self.begun = True
        return cast(TraceRecorder, _LeavingRecorder(open_recorder(self._keep, run), self._is_last))


class _LeavingRecorder:
    """A recorder that ends the training behind the last step that is asked for."""

    def __init__(self, recorder: TraceRecorder, is_last: _Parting) -> None:
        self._recorder, self._is_last = recorder, is_last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def step(self, done: CompletedStep) -> None:
        """Record a step, and end the training if it is the last."""
        self._recorder.step(done)
        if self._is_last(done):
            self._recorder.seal()
            raise _Left
