"""Updates that another framework made, computed again by the kernels of this package: how far apart the two are."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.printed import Printed
from ...base.system import FilePath
from ...base.ulp import ulp_distances
from ...runtime.optim import Rule
from ...tape.errors import DgrrError
from ..comparing.policy import Policy, PolicyLike, Tolerance
from ..comparing.tensors import histogram_line, ulp_histogram
from ..file_version import TraceFileError
from ..v2.check.difference import Difference
from ..v2.check.report import Finding
from ..v2.errors import InvalidTraceError, NotRecordedError
from ..v2.format.constants import COMPUTED, FRAMEWORK_EVENT, RecordMode, TensorRole
from ..v2.read.reader import TraceReader, open_reader
from ..v2.read.recorded import What
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .laws import law_of, parted
from .shared import Framework

OF_VALUES, OF_CHANGE = 8, 4096
"""How many times the epsilon of its dtype an element may be away by default: of the largest element of its tensor, for
the roundings of one step, and of the largest change, for constants that were rounded to the dtype on the way."""


@dataclass(slots=True)
class Distance:
    """How far a tensor is from what the law makes of it, over all steps.

    Args:
        tensor: its name; a buffer of the optimizer has the law's name for it, such as ``m/0.weight``.
        arithmetic: the dtype in which the updates were computed again, and from which the result was rounded.
        worst: step → greatest distance in ULP, of the steps after which the tensor is recorded.
        histogram: how many elements are 0, 1, 2 to 3, 4 to 7, … ULP away, by the first of these numbers.
        max_abs: greatest absolute difference.
    """

    tensor: str
    arithmetic: str
    worst: dict[int, int] = field(default_factory=dict[int, int])
    histogram: dict[int, int] = field(default_factory=dict[int, int])
    max_abs: float = 0.0

    def add(self, step: int, recorded: Array, found: Array) -> None:
        """Count the elements after one step."""
        distances = ulp_distances(recorded, found)
        self.worst[step] = int(distances.max(initial=0))
        for first, count in ulp_histogram(distances.reshape(-1)):
            self.histogram[first] = self.histogram.get(first, 0) + count
        with np.errstate(all="ignore"):
            apart = np.abs(recorded.astype(np.float64) - found.astype(np.float64))
        self.max_abs = max(self.max_abs, float(np.nan_to_num(apart, posinf=0.0).max(initial=0.0)))

    def __str__(self) -> str:
        step = max(self.worst, key=self.worst.__getitem__)
        equal, rest = self.histogram.get(0, 0), [(n, count) for n, count in sorted(self.histogram.items()) if n]
        apart = f"   ULP {histogram_line(rest)}" if rest else ""
        worst = (
            f"at most {self.worst[step]} ULP, at step {step}; {self.max_abs:.2g} absolute" if rest else "the same bits"
        )
        return f"{self.tensor} in {self.arithmetic}: {worst}   equal: {equal}{apart}"

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return {
            "tensor": self.tensor,
            "arithmetic": self.arithmetic,
            "worst": {str(step): ulp for step, ulp in self.worst.items()},
            "ulp_histogram": {str(first): count for first, count in sorted(self.histogram.items())},
            "max_abs": self.max_abs,
        }


@dataclass(slots=True)
class Recomputation(Printed):
    """What was computed again, and how far it is from what is recorded. It is true if all is within the policy.

    Args:
        path: of the trace.
        computed_by: the framework and its version.
        rule: as the trace names it.
        policy: how close the updates had to come; None: `recompute` says it.
        steps: how many steps the trace has.
        checked: after how many of them something could be compared.
        distances: tensor by tensor, in each arithmetic.
        findings: the first thing outside the policy of each tensor, or what could not be computed again.
    """

    path: str
    computed_by: str
    rule: str
    policy: Policy | None
    steps: int
    checked: int = 0
    distances: list[Distance] = field(default_factory=list[Distance])
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def verdict(self) -> Verdict:
        """ok; update: one is further away than the policy allows; unproven: something could not be computed again."""
        return self.findings[0].verdict if self.findings else Verdict.OK

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        begun = f"{self.path}: {self.verdict.value}: {self.rule} of {self.computed_by}"
        lines = [f"{begun}, {self.checked} of {self.steps} updates computed again"]
        return "\n".join(lines + [f"  {line}" for line in (*self.findings, *self.distances)])

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return {
            "path": self.path,
            "verdict": self.verdict.value,
            "computed_by": self.computed_by,
            "rule": self.rule,
            "policy": None if self.policy is None else str(self.policy),
            "steps": self.steps,
            "checked": self.checked,
            "distances": [distance.to_dict() for distance in self.distances],
            "findings": [str(finding) for finding in self.findings],
        }


def recompute(path: FilePath, *, policy: "PolicyLike | None" = None) -> Recomputation:
    """Compute every update of a trace of another framework again, and say how far it is from what was recorded.

    From the recorded state before a step and the recorded gradients, the law that the trace names makes the state after
    it: by this package's kernels, in float32 (for params of float32) and in float64, rounded to the dtype of the
    tensor. Each is compared with the recorded state; what was not recorded after a step is carried on. A param counts
    its own updates, as PyTorch's optimizers do.

    Args:
        path: the trace, recorded with ``record="full"``; in the other modes little or nothing can be compared.
        policy: how close an update must come, as for `compare`. Default: within 8 epsilons of the largest element of
            its tensor, and 4096 of the largest change. Of elements that nearly cancel, as they do where a param crosses
            0, a distance in ULP or relative to the element says little.

    Raises:
        InvalidTraceError, TraceFileError: the trace cannot be read, or was not recorded from another framework.
        DomainError: no policy.
    """
    parsed = None if policy is None else Policy.parse(policy)
    with open_reader(path, mode="tolerate_tail") as trace:
        framework = framework_of(trace)
        rule = trace.schema.groups[-1].rule
        report = Recomputation(trace.path, f"{framework.name} {framework.version}", rule, parsed, len(trace))
        law = law_of(rule)
        if law is None:
            text = f"the rule {rule!r} is none of sgd, adam and adamw: its updates cannot be computed again"
            report.findings.append(Finding(Verdict.UNPROVEN, text))
        elif not all(spec.dtype in COMPUTED for spec in trace.schema.tensors[: trace.schema.params]):
            text = "params of other types than float32 and float64 are rounded in ways that no law says"
            report.findings.append(Finding(Verdict.UNPROVEN, text))
        else:
            _Recomputing(trace, framework, law, report).run()
    return report


def framework_of(trace: TraceReader) -> Framework:
    """Which framework computed a trace. Raises InvalidTraceError if it does not say."""
    text = next((event.text for _, event in trace.events() if event.kind == FRAMEWORK_EVENT), None)
    if text is None:
        said = (
            f"expected a run of another framework, which an EVENT {FRAMEWORK_EVENT!r} names; got one of dgrr: replay it"
        )
        raise InvalidTraceError(Verdict.UNSUPPORTED, f"{trace.path}: {said}")
    try:
        return Framework.decode(text)
    except ValueError as error:
        raise InvalidTraceError(Verdict.CORRUPT, f"{trace.path}: {error}") from None


class _Chain:
    """Params and buffers as the law makes them in one arithmetic, from the last values that were recorded.

    `recorded` are those values.
    """

    def __init__(self, arithmetic: str) -> None:
        self.arithmetic = arithmetic
        self.values: dict[str, Array] = {}
        self.recorded: dict[str, Array] = {}

    def take(self, recorded: Mapping[str, Array]) -> None:
        """Go on from recorded values; those of float64 are no matter of float32."""
        for name, value in recorded.items():
            if self.arithmetic == "float64" or value.dtype == np.float32:
                self.values[name], self.recorded[name] = value.astype(self.arithmetic), value

    def update(self, rules: Mapping[str, Rule], grads: Mapping[str, Array], counts: Mapping[str, int]) -> None:
        """Apply one step, to each param by itself."""
        for name in grads.keys() & self.values.keys():
            rule, param = rules[name], self.values[name]
            buffers = [f"{buffer}/{name}" for buffer in rule.law.buffers]
            kept = {key: self.values.setdefault(key, np.zeros_like(param)) for key in buffers}
            scalars = {key: np.zeros(shape, dtype) for key, (shape, dtype) in rule.scalars.items()}
            scalars["step"][...] = counts[name]
            rule.step({name: param}, {name: grads[name].astype(self.arithmetic)}, {**scalars, **kept})

    def forget(self, params: Iterable[str]) -> None:
        """Leave out params that were updated from gradients that are not recorded, and their buffers."""
        gone = set(params)
        self.values = {key: value for key, value in self.values.items() if gone.isdisjoint(_owners(key))}


class _Recomputing:
    """One pass over a trace."""

    def __init__(self, trace: TraceReader, framework: Framework, law: type[Rule], report: Recomputation) -> None:
        self._trace, self._law, self._report = trace, law, report
        self._chains = (_Chain("float32"), _Chain("float64"))
        self._distances: dict[tuple[str, str], Distance] = {}
        params = [spec.name for spec in trace.schema.tensors if spec.role is TensorRole.PARAM]
        buffers = {f"{buffer}/{name}" for buffer in ("momentum", "m", "v") for name in params}
        self._followed = buffers.union(params)
        groups = framework.groups or (tuple(range(len(params))),)
        self._groups = [[params[place] for place in group] for group in groups]
        start = _keyframe(trace, 0)
        self._counts = {name: framework.counts.get(i, int(start.get("step", 0))) for i, name in enumerate(params)}
        self._take(start)

    def run(self) -> None:
        """Compute step after step again; say in the report how far apart they are."""
        for view in self._trace:
            try:
                self._step(view)
            except (TraceFileError, NotRecordedError):  # of what cannot be read the law says nothing
                raise
            except DgrrError as error:
                text = f"the law refuses the recorded step: {error}"
                self._report.findings.append(Finding(Verdict.UPDATE, text, view.step))
                break
        self._report.distances = list(self._distances.values())
        if self._report.checked < len(self._trace) and not self._report.findings:
            text = "values are not recorded after every step: record with record='full'"
            self._report.findings.append(Finding(Verdict.UNPROVEN, text))

    def _step(self, view: StepView) -> None:
        grads = _gradients(self._trace, view)
        hyper = parted(view.hyper, self._law.names, len(self._groups))
        rules = [self._law.from_hyperparameters(given) for given in hyper]
        by_name = {name: rule for rule, names in zip(rules, self._groups, strict=True) for name in names}
        for chain in self._chains:
            chain.forget(view.grad_digests.keys() - grads.keys())
            chain.update(by_name, grads, self._counts)
        for name in view.grad_digests:
            self._counts[name] += 1
        after = {name: value for name, value in _after(self._trace, view).items() if name in self._followed}
        self._compare(view.step, {name: after[name] for name in after if not grads.keys().isdisjoint(_owners(name))})
        self._take(after)

    def _compare(self, step: int, recorded: Mapping[str, Array]) -> None:
        """Measure what was updated, in every arithmetic, and hold it to the policy."""
        compared = [self._measure(step, chain, name, recorded) for chain in self._chains for name in recorded]
        self._report.checked += any(compared)

    def _measure(self, step: int, chain: _Chain, name: str, recorded: Mapping[str, Array]) -> bool:
        if name not in chain.values:
            return False
        value = recorded[name]
        with np.errstate(over="ignore"):
            found = chain.values[name].astype(value.dtype)
        distance = self._distances.setdefault((name, chain.arithmetic), Distance(name, chain.arithmetic))
        distance.add(step, value, found)
        tolerance = self._tolerance(chain, name, value)
        differs = tolerance.differs(value, found)
        if differs.any() and name not in {finding.tensor for finding in self._report.findings}:
            text = f"not within {tolerance} of what {self._law.rule} makes in {chain.arithmetic}"
            finding = Finding(Verdict.UPDATE, f"{text}; {_first(value, found, differs)}", step, name)
            self._report.findings.append(finding)
        return True

    def _tolerance(self, chain: _Chain, name: str, value: Array) -> Tolerance:
        if self._report.policy is not None:
            return self._report.policy.of(name)
        change = value - chain.recorded[name] if name in chain.recorded else value
        values, changes = (float(np.nan_to_num(abs(a), posinf=0).max(initial=0)) for a in (value, change))
        allowed = OF_VALUES * values + OF_CHANGE * changes
        return Tolerance(atol=float(np.finfo(value.dtype).eps) * allowed)

    def _take(self, recorded: Mapping[str, Array]) -> None:
        for chain in self._chains:
            chain.take({name: value for name, value in recorded.items() if name in self._followed})


def _owners(name: str) -> tuple[str, str]:
    """The param that a tensor is or belongs to: its own name, or what follows the name of the buffer."""
    return name, name.partition("/")[2]


def _first(recorded: Array, found: Array, differs: Array) -> str:
    """The first element that differs."""
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return str(Difference(place, recorded[place], found[place], int(ulp_distances(recorded, found)[place])))


def _keyframe(trace: TraceReader, step: int) -> dict[str, Array]:
    """The state before a step; empty where there is no keyframe or it has no values."""
    try:
        return trace.keyframe(step)
    except NotRecordedError:
        return {}


def _after(trace: TraceReader, view: StepView) -> Mapping[str, Array]:
    """What is recorded after a step."""
    return view.after() or _keyframe(trace, view.step + 1) or _one_by_one(trace, view, trace.schema.position, "after")


def _gradients(trace: TraceReader, view: StepView) -> Mapping[str, Array]:
    """The recorded gradients of a step."""
    if trace.header.mode in (RecordMode.GRADS, RecordMode.FULL):
        return view.gradients()
    return _one_by_one(trace, view, view.grad_digests, "grad")


def _one_by_one(trace: TraceReader, view: StepView, names: Iterable[str], what: What) -> dict[str, Array]:
    """What is recorded of the first and of the last step where the others hold digests alone."""
    found: dict[str, Array] = {}
    for name in names if view.step in (0, len(trace) - 1) else ():
        with suppress(NotRecordedError):
            found[name] = trace.tensor(name, step=view.step, what=what)
    return found
