"""A trace bisected against the model as it is now: parts of the run computed from the states that begin them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import DomainError
from ...base.runs.run import Run
from ...base.system import FilePath
from ...tape import NUMERICS
from ..file_version import TraceFileError
from ..replaying.execution import Batches, CannotExecuteError, Execution, LossFn
from ..replaying.recomputed import RunMode, require_mode
from ..replaying.replay_state import Rules, by_name
from ..v2.errors import NotRecordedError
from ..v2.read.reader import TraceReader, open_reader
from ..v2.verdict import Verdict
from .compare import compare, file_notes, unreadable
from .computed import Anew, called, named_part, record_anew, recorded_run
from .result import Cause, Comparison
from .words import opening


def bisect_with_model(
    path: FilePath,
    loss_fn: LossFn,
    batches: Batches,
    *,
    mode: RunMode = "replay",
    rules: Rules = (),
) -> Comparison:
    """Find a step of a recorded run that the current model computes differently, to the bit, in few computed steps.

    The keyframes of a trace cut its run into P parts. Each begins at a recorded state, so it is computed without those
    before it, up to its first step that differs. The first part is computed, then the last, the one in the middle, the
    quarters, and so on until one differs; from there it is bisected towards the next part before that agrees. What
    changes every step is found at step 0; what differs from some step on, in log2(P) + 2 parts; what differs at single
    steps, in P parts at most.

    That one part differs says nothing of another. The answer calls a step the first of the run only if every step
    before it was computed; else `uncomputed` and a note say which were not. `diff_with_model` computes all, in order.
    The answer ok means that all were computed.

    Args:
        path: the trace.
        loss_fn: the function the run was trained with, as it is now.
        batches: the batches of the run, from its beginning; iterated again for each part that is computed.
        mode: how to recompute steps, as for `replay`.
        rules: classes of rules that are not built in.

    Raises:
        NotRecordedError: the trace holds no states to start from.
        DomainError: another mode; `batches` can be iterated but once; or no class of rules.

    What `loss_fn` raises is not caught. The content of the file raises nothing: the verdict says it, as for
    `diff_with_model`. Under another numerics version, nothing is computed.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> with TemporaryDirectory() as folder:
    ...     path, batches = f"{folder}/run", [np.ones(2)]
    ...     run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), trace=path)
    ...     _ = run.fit(batches, steps=3)
    ...     found = bisect_with_model(path, lambda p, x: (p["w"] * x).sum() * 2, batches)
    >>> found.cause.value, found.step, found.uncomputed
    ('gradient', 0, [])
    """
    if isinstance(batches, Iterator):
        kind = type(batches).__name__
        raise DomainError(
            f"bisect_with_model: batches: expected an iterable for several passes, such as a list, got a {kind}"
        )
    require_mode("bisect_with_model", mode)
    by_name(rules)
    readable = compare(path, path)
    if not readable:
        return readable
    name = called(loss_fn)
    with open_reader(path, mode="tolerate_tail") as trace, TemporaryDirectory() as folder:
        if not len(trace):
            readable.notes.append("no step is recorded: nothing was computed")
            return readable
        if trace.header.numerics != NUMERICS:
            return _other_numerics(trace, name)
        try:
            return _Search(trace, loss_fn, batches, mode, rules, Path(folder) / "anew.dgrr").answer(name)
        except CannotExecuteError as error:
            return Comparison(trace.path, name, Verdict.UNPROVEN, str(error))
        except TraceFileError as error:
            return unreadable([trace.path, name], error)


def _other_numerics(trace: TraceReader, name: str) -> Comparison:
    versions = f"numerics versions {trace.header.numerics} and {NUMERICS}"
    text = f"{versions} promise no equal bits: compare with a tolerance, or record again; nothing was computed"
    return Comparison(trace.path, name, Verdict.NUMERICS, text, Cause.NUMERICS)


class _Search:
    """The parts of a run, and what is known of those that were computed."""

    def __init__(
        self, trace: TraceReader, loss_fn: LossFn, batches: Batches, mode: RunMode, rules: Rules, anew: Path
    ) -> None:
        self._trace, self._loss_fn, self._batches, self._rules = trace, loss_fn, batches, rules
        self._mode: RunMode = mode
        self._path = anew
        self._parts = parts_of(trace)
        self._computed: dict[int, Anew] = {}

    def answer(self, name: str) -> Comparison:
        """What the search finds."""
        trace, number = self._trace, search(len(self._parts), self._agrees)
        if number is None:
            text = f"equal to the bit: {len(trace)} steps"
            how = f"every step was computed, in parts from {len(self._parts)} recorded states"
            return Comparison(trace.path, name, Verdict.OK, text, notes=[*file_notes("a", trace), how])
        part, made = self._parts[number], self._computed[number]
        found = named_part(trace, self._path, made, name, part.start)
        return self._with_uncomputed(found, number) if found.step is not None else found

    def _agrees(self, number: int) -> bool:
        """Compute a part; of one that differs its trace is kept, in the place of the last such."""
        part = self._parts[number]
        execution = Execution(self._trace, self._loss_fn, self._batches)
        if part.start:
            execution.pass_over(part.start)
        start = self._start(part.start)
        made = self._path.with_name("part.dgrr")
        anew = record_anew(self._trace, part, made, start, execution, self._rules, mode=self._mode)
        self._computed[number] = anew
        if anew.agrees:
            made.unlink(missing_ok=True)
        else:
            made.replace(self._path)
        return anew.agrees

    def _start(self, step: int) -> Run:
        try:
            return recorded_run(self._trace, step)
        except NotRecordedError:
            cure = "use diff_with_model(…, params=…), which computes all steps"
            raise NotRecordedError(f"bisect_with_model: the trace holds no states to start from: {cure}") from None

    def _with_uncomputed(self, found: Comparison, number: int) -> Comparison:
        """An answer that says which steps before the one it names were computed."""
        left = [part for i, part in enumerate(self._parts[:number]) if i not in self._computed]
        found.uncomputed = list(_joined(left))
        since = found.uncomputed[-1][1] + 1 if left else 0
        step = found.step or 0
        begun = opening(self._parts[number].start, step)
        found.sentence = found.sentence.replace(begun, opening(since, step), 1)
        if left:
            steps = ", ".join(f"{first} to {last}" for first, last in found.uncomputed)
            found.notes.append(
                f"not computed, and so perhaps different too: steps {steps} (diff_with_model computes all)"
            )
        else:
            found.notes.append("every step before it was computed, and agrees")
        return found


def parts_of(trace: TraceReader) -> list[range]:
    """The steps of a trace from each KEYFRAME, at which a state was digested, up to the next."""
    stop, parts = len(trace), list[range]()
    last = stop
    while last:
        start = trace.last_keyframe(last - 1)
        if start % trace.header.state_every == 0:
            parts.append(range(start, stop))
            stop = start
        last = start
    return parts[::-1]


def search(count: int, agrees: Callable[[int], bool]) -> int | None:
    """A number below `count` that does not agree; none was asked for and disagreed that is less. None: all agree.

    No number is asked for twice. The one before the number that is found was asked for, and agrees.

    >>> search(100, lambda i: i < 37), search(100, lambda i: i != 37), search(100, lambda i: True)
    (37, 37, None)
    """
    order = list(spread(count))
    found = next((place for place, i in enumerate(order) if not agrees(i)), None)
    if found is None:
        return None
    high = order[found]
    low = max((i for i in order[:found] if i < high), default=-1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if agrees(middle) else (low, middle)
    return high


def spread(count: int) -> Iterator[int]:
    """Every number below `count` once: the ends, then what halves the gaps, again and again.

    >>> list(spread(6))
    [0, 5, 4, 2, 1, 3]
    """
    digits = max(count - 1, 0).bit_length()
    halving = (int(f"{i:0{digits}b}"[::-1], 2) for i in range(1 << digits))
    return (i for i in dict.fromkeys((0, count - 1, *halving)) if i in range(count))


def _joined(parts: list[range]) -> Iterator[tuple[int, int]]:
    """Parts as their first and last step, those that touch as one."""
    starts, stops = [part.start for part in parts], [part.stop for part in parts]
    firsts = [start for start in starts if start not in stops]
    lasts = [stop - 1 for stop in stops if stop not in starts]
    return zip(firsts, lasts, strict=True)
