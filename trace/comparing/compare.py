"""Two traces held against each other: the first step at which they differ, why, and by how much."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from ..exit_codes import Exit
from ..file_version import TraceFileError
from ..v2.check.validate import validate_v2
from ..v2.errors import InvalidTraceError
from ..v2.read.op_digests import OpDigests
from ..v2.read.reader import TraceLike, TraceReader, reading
from ..v2.verdict import Verdict
from .calls.call_difference import COMPUTED
from .causes import first_call_of, first_op_of, hidden_call_of, schema_cause, step_cause
from .judged_drift import tell_drift
from .losses import loss_curves
from .policy import Policy, PolicyLike
from .result import Cause, Comparison
from .search import first_divergent
from .settings import differing, environment_of, header_of, rule_of
from .several.folders import compare_folders
from .steps import Pair, StepDifference
from .tensors import TensorDifference
from .words import counted, notes, sentence, update_sentence

_HIDDEN = "its results are equal, but not what they are made of"
_PROVEN = (Verdict.OK, Verdict.UNSEALED, Verdict.TORN_TAIL)


def compare(a: TraceLike, b: TraceLike, *, policy: PolicyLike = "bitwise", proven: bool = False) -> Comparison:
    """Compare two traces: the first step at which they differ, why, and by how much.

    Comparing two sealed traces of the same kind takes O(log N) reads and trusts the digests in the files. A tolerance
    is applied to every recorded value, step by step.

    Args:
        a: the reference: a path, an open trace, or a folder with a trace for each process of a run.
        b: the trace to compare with it, or a folder if `a` is one.
        policy: "bitwise", "ulp=4", "rtol=1e-5,atol=1e-8", or a dict of tensor patterns to these, of which the first
            that matches counts: ``{"*.bias": "ulp=4", "*": "bitwise"}``. "drift" asks, for runs of another framework,
            whether only the machine or a library differs, as their calls of ops show.
        proven: whether to validate both files first, from the first byte to the last, so that damage the links do not
            show does not pass as equality. Bitwise, recorded ops must then agree too, even if their results do: the
            first step that differs is the first in either.

    The content of the files raises nothing: the verdict says it. Raises DomainError for another policy.

    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> with TemporaryDirectory() as folder:
    ...     for name, lr in (("a", 0.1), ("b", 0.2)):
    ...         run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(lr), trace=f"{folder}/{name}")
    ...         _ = run.fit([np.ones(2)], steps=1)
    ...     found = compare(f"{folder}/a", f"{folder}/b")
    >>> found.same, found.cause.value, found.step, found.settings
    (False, 'rule', 0, {'lr': (0.1, 0.2)})
    """
    wanted = Policy.parse(policy)
    names = [_path(trace) for trace in (a, b)]
    if all(map(os.path.isdir, names)):
        each = partial(compare, policy=wanted, proven=proven)
        return compare_folders(Path(names[0]), Path(names[1]), each, _damage, proven=proven, bitwise=wanted.bitwise)
    try:
        with ExitStack() as stack:
            traces = [_opened(stack, trace) for trace in (a, b)]
            damaged = _damage([trace.path for trace in traces]) if proven else None
            if damaged is not None:
                return damaged
            return _Comparing(Pair(traces[0], traces[1], wanted), proven=proven).result()
    except TraceFileError as error:
        return unreadable(names, error)


def assert_same(a: TraceLike, b: TraceLike, *, policy: PolicyLike = "bitwise") -> None:
    """Raise AssertionError, with what differs as its text, unless two traces are the same.

    The arguments are those of `compare`.

    >>> assert_same("none.dgrr", "none.dgrr")
    Traceback (most recent call last):
        ...
    AssertionError: io: cannot open none.dgrr: No such file or directory
      a: none.dgrr
      b: none.dgrr
    """
    __tracebackhide__ = True
    comparison = compare(a, b, policy=policy)
    if not comparison:
        raise AssertionError(str(comparison))


def compare_from(first: int, a: TraceReader, b: TraceReader) -> Comparison:
    """`a` from step `first` on, held to the bit against `b`, whose step 0 that is.

    Steps have the numbers of `a`. Raises TraceFileError where a file cannot be read.
    """
    return _Comparing(Pair(a, b, Policy.parse("bitwise"), first=first), proven=False).result()


def _path(trace: TraceLike) -> str:
    return trace.path if isinstance(trace, TraceReader) else os.fspath(trace)


def _opened(stack: ExitStack, given: TraceLike) -> TraceReader:
    try:
        trace = stack.enter_context(reading(given))
    except InvalidTraceError as error:
        raise InvalidTraceError(error.verdict, f"{_path(given)}: {error.text}", error.offset) from error
    if trace.salvaged and trace.damage is not None:
        text = f"{trace.path}: read in mode 'salvage', which proves nothing: {trace.damage.text}"
        raise InvalidTraceError(trace.damage.verdict, text, trace.damage.offset)
    if not trace.has_keyframe(0):
        raise InvalidTraceError(
            Verdict.TORN_TAIL, f"{trace.path}: it ends before KEYFRAME 0, the beginning of the run: nothing to compare"
        )
    return trace


def file_notes(side: str, trace: TraceReader) -> list[str]:
    """How a file is not whole that can be read nevertheless."""
    if trace.damage is not None:
        return [f"{side} is damaged after step {len(trace) - 1}: {trace.damage.text}"]
    return [] if trace.sealed else [f"{side} is not sealed: its run was not finished"]


def _damage(paths: Sequence[str]) -> Comparison | None:
    """What is wrong with the first file that is not whole; None if all are."""
    for path in paths:
        report = validate_v2(path)
        if report.verdict not in _PROVEN:
            return Comparison(paths[0], paths[1], report.verdict, f"{path}: {report.findings[0].text}")
    return None


def unreadable(names: list[str], error: TraceFileError) -> Comparison:
    """The answer where a file, or a frame that was met on the way, cannot be read."""
    if not isinstance(error, InvalidTraceError):
        verdict = Verdict.IO if error.exit == Exit.IO else Verdict.CORRUPT
        return Comparison(names[0], names[1], verdict, str(error))
    found = None if any(name in error.text for name in names) else _damage(names)  # a frame has no path: look for it
    return Comparison(names[0], names[1], error.verdict, error.text) if found is None else found


class _Comparing:
    """One comparison of two open traces."""

    def __init__(self, pair: Pair, *, proven: bool) -> None:
        self.pair, self.proven = pair, proven
        self.a, self.b = pair.a, pair.b
        self.told = environment_of(self.a)
        self.environment = differing(self.told, environment_of(self.b))
        self.settings = differing(header_of(self.a), header_of(self.b))

    def result(self) -> Comparison:
        result = self._first_of_all(self._found()) if self.proven else self._found()
        if result.same and self.pair.compiled:
            steps = len(self.pair.compiled)
            result.sentence += f"; not compared, as one run is compiled: the layers of {steps} steps"
        if "numerics" in self.settings and self.pair.policy.bitwise:
            self._refuse_numerics(result)
        if result.verdict is not Verdict.OK:
            result.settings = {**self.settings, **result.settings}
            result.environment = self.environment
            result.losses = None if self.pair.first else loss_curves(self.a, self.b, result.step)
            result.ops = self._ops(self.pair.first if result.step is None else result.step)
        result.notes += self._notes(result)
        return result

    def _ops(self, step: int) -> tuple[OpDigests, OpDigests] | None:
        """Those of a step; None where they cannot be held against each other."""
        if step not in self.pair.steps or not self.pair.one_digest_on_the_way:
            return None
        with suppress(InvalidTraceError):  # the answer is found already
            a, b = self.pair.ops(step)
            return None if a is None or b is None else (a, b)
        return None

    def _found(self) -> Comparison:
        schema = schema_cause(self.a.schema, self.b.schema)
        if schema is not None:
            result = self._diverged(schema[0], schema[1])
            told = bool(self.pair.steps)
            result.settings = differing(rule_of(self.a, told=told), rule_of(self.b, told=told))
            if schema[0] is Cause.MODEL and self.pair.steps:
                result.op = first_op_of(self.pair, self.pair.first)
            return result
        start = self.pair.start()
        if start:
            text = f"they start from different values: {counted(start)}"
            return self._diverged(Cause.START, text, tensors=start)
        found = first_divergent(self.pair)
        return self._equal() if found is None else self._parted(*found)

    def _diverged(
        self, cause: Cause, text: str, *, step: int | None = None, tensors: list[TensorDifference] | None = None
    ) -> Comparison:
        return Comparison(self.a.path, self.b.path, Verdict.DIVERGED, text, cause, step, tensors or [])

    def _first_of_all(self, result: Comparison) -> Comparison:
        """The result, or an op that differs in a step before it, whose results agree; as far as ops are recorded.

        Bits alone are held: digests have no tolerance. A run that begins otherwise differs before its first op.
        """
        begun = result.same or result.step is not None
        if not (begun and self.pair.policy.bitwise and self.pair.one_digest):
            return result
        hidden = self._on_the_way(self.pair.steps if result.step is None else self._before(result.step))
        if hidden is None:
            return result
        if not result.same:
            hidden.notes.append(f"of the results, {result.sentence}")
        return hidden

    def _before(self, step: int) -> range:
        """The steps whose results agree, where `step` is named: also that one, if only the state behind it differs."""
        steps = self.pair.steps
        return range(steps.start, step) if step in steps and self.pair.step(step) else steps

    def _on_the_way(self, steps: range) -> Comparison | None:
        """What differs in the ops of steps whose results agree; None if nothing does."""
        for step in steps:
            op, begun = first_op_of(self.pair, step), f"step {step} is the first that differs: {_HIDDEN}"
            call = hidden_call_of(self.pair, step, self.environment) if op is None else None
            if op is not None:
                cause = Cause.GRADIENT if op.inputs_agree else Cause.MODEL
                result = self._diverged(cause, f"{begun}; first {op.short}", step=step)
                result.op = op
                return result
            if call is not None:
                cause = Cause.GRADIENT if call.change in COMPUTED else Cause.MODEL
                result = self._diverged(cause, f"{begun}; earliest {call.short}", step=step)
                result.call = call
                return result
        return None

    def _parted(self, step: int, found: StepDifference) -> Comparison:
        if not found:
            text = f"the links of step {step} differ, but not what they link: one of the files is not what it says"
            return Comparison(self.a.path, self.b.path, Verdict.CHAIN, f"{text}; validate them")
        op = first_op_of(self.pair, step)
        call = first_call_of(self.pair, step, self.environment)
        cause = step_cause(self.pair, step, found, op, call, self.environment, self.told)
        text = sentence(self.pair, step, cause, found, op)
        made = (
            update_sentence(self.pair, step, op.node.name) if cause is Cause.UPDATE and found.forward and op else None
        )
        if made is not None:
            named, text = made
            result = self._diverged(cause, text, step=named, tensors=found.forward)
            result.settings = found.told
            return result
        result = self._diverged(cause, text, step=step, tensors=found.forward + found.after)
        result.op, result.settings = op, found.told
        result.call = call
        if call is not None:
            result.sentence += f"; earliest {call.short}"
        tell_drift(self.pair, self.environment, result)
        result.notes += notes(self.pair, step, cause, found, op)
        return result

    def _equal(self) -> Comparison:
        pair, length = self.pair, len(self.pair.steps)
        final = pair.final()
        if final:
            steps = pair.first + length
            text = f"all {steps} steps are equal, but not the final state: {counted(final)}"
            return self._diverged(Cause.UPDATE, text, step=steps - 1, tensors=final)
        how = "to the bit" if pair.policy.bitwise else f"within {pair.policy}"
        lengths = len(self.a), pair.first + len(self.b)
        if lengths[0] != lengths[1]:
            longer = "a" if lengths[0] > lengths[1] else "b"
            text = f"equal {how} for {length} steps; then {longer} goes on, to {max(lengths)}"
            return self._diverged(Cause.LENGTH, text, step=pair.first + length)
        undecided = sorted(pair.unknown - pair.known)
        if undecided or not pair.one_digest:
            return Comparison(self.a.path, self.b.path, Verdict.UNPROVEN, self._undecided(undecided))
        text = f"equal {how}: {length} steps{self._left_out()}"
        return Comparison(self.a.path, self.b.path, Verdict.OK, text, uncompared=pair.skipped)

    def _left_out(self) -> str:
        """What may differ and was not compared: it does not pass in silence."""
        count = self.pair.skipped
        what = f"{count} digest{'' if count == 1 else 's'} that differ{'s' if count == 1 else ''}"
        return f"; not compared, as no values are recorded there: {what}" if count else ""

    def _undecided(self, names: list[str]) -> str:
        if not self.pair.one_digest:
            return "nothing that is recorded in both differs, but their digests are of different kinds; record with one"
        text = f"digests have no tolerance, and those of {names[0]} differ, of which no values are recorded"
        more = f" ({len(names) - 1} more are alike)" if len(names) > 1 else ""
        return f"{text}{more}; record with record='grads', or compare bitwise"

    def _refuse_numerics(self, result: Comparison) -> None:
        """Bits are promised within one numerics version; what arithmetic cannot explain stays as it was found."""
        if result.cause not in (None, Cause.GRADIENT, Cause.UPDATE, Cause.ENVIRONMENT):
            return
        versions = f"numerics versions {self.a.header.numerics} and {self.b.header.numerics}"
        cure = "promise no equal bits: compare with a tolerance, or record again"
        result.sentence = f"{versions} {cure}; {result.sentence}"
        result.verdict, result.cause = Verdict.NUMERICS, Cause.NUMERICS
        last = self.pair.steps.stop - 1
        if result.step is not None and last > result.step:
            end = self.pair.step(last)
            moved = [t for t in end.forward + end.after if t.max_rel is not None]
            if moved:
                most = max(moved, key=lambda t: t.max_rel or 0)
                result.notes.append(
                    f"at the last step, {last}, the greatest relative difference: {most.title}: {most.figures()}"
                )

    def _notes(self, result: Comparison) -> list[str]:
        notes = [*file_notes("a", self.a), *file_notes("b", self.b)]
        if self.pair.skipped and not result.same:
            notes.append(f"not recorded, so not compared: the values of {self.pair.skipped} tensors over all steps")
        if self.pair.one_digest and not self.pair.one_digest_on_the_way:
            notes.append("not compared: what layers and ops computed, of which one has additive digests (additive=)")
        if result.same and self.proven:
            notes.append("both files are proven from their first byte to their last")
        elif result.same:
            notes.append(self._unread())
        return notes

    def _unread(self) -> str:
        if self.pair.policy.bitwise and self.a.header.state_every == self.b.header.state_every:
            return "by the last links of both; not read: earlier links and recorded values (proven=True reads them)"
        return "step by step; not read: values whose digests agree (proven=True reads them)"
