"""A trace held against the model as it is now: the run is trained anew up to the first step that differs."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ...base.arrays import Arrays
from ...base.errors import DgrrError
from ...base.runs.run import Run
from ...base.system import FilePath
from ..replaying.execution import Batches, CannotExecuteError, Execution, LossFn
from ..replaying.recomputed import RunMode, require_mode
from ..replaying.replay_state import Rules, by_name, recorded_groups
from ..v2.errors import NotRecordedError
from ..v2.read.reader import TraceReader, open_reader
from ..v2.verdict import Verdict
from .compare import compare, file_notes
from .computed import called, named, named_part, record_anew, recorded_run, run_from
from .policy import Policy, PolicyLike
from .result import Comparison


def diff_with_model(
    path: FilePath,
    loss_fn: LossFn,
    batches: Batches,
    *,
    params: Arrays | None = None,
    model_state: Arrays | None = None,
    mode: RunMode = "replay",
    rules: Rules = (),
    policy: PolicyLike = "bitwise",
) -> Comparison:
    """Train a recorded run again with the current model, and compare the two.

    The run is computed from its beginning, with the recorded rule and hyperparameters; under "bitwise" it ends at the
    first step that differs. In the answer, `a` is the trace and `b` the run computed now. `b` has the settings of `a`,
    so causes are data, model, start, gradient, update, numerics or environment.

    Args:
        path: the trace.
        loss_fn: the function the run was trained with, as it is now.
        batches: the batches of the run, from its beginning; iterated again when they end, epoch after epoch.
        params: the start values, for a trace that holds only their digests.
        model_state: the start of the model's state, for such a trace.
        mode: how to recompute steps under "bitwise", as for `replay`; else op by op.
        rules: classes of rules that are not built in.
        policy: as of `compare`.

    Raises:
        NotRecordedError: the trace does not hold its start values, and `params` are not given.
        DomainError: another mode, another policy, or no class of rules.

    What `loss_fn` raises is not caught. The content of the file raises nothing: the verdict says it; unproven if a rule
    is neither built in nor given, or a step cannot be computed from the record.

    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Keep, Trainer
    >>> with TemporaryDirectory() as folder:
    ...     path, batches = f"{folder}/run", [np.ones(2)]
    ...     run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), trace=Keep(path, ops="first"))
    ...     _ = run.fit(batches, steps=3)
    ...     found = diff_with_model(path, lambda p, x: (p["w"] - x).sum(), batches)
    >>> found.cause.value, found.step, found.op.node.op, found.op.was.op
    ('model', 0, 'sub', 'mul')
    """
    require_mode("diff_with_model", mode)
    readable = compare(path, path, policy=policy)
    if not readable:
        return readable
    by_name(rules)
    name = called(loss_fn)
    with open_reader(path, mode="tolerate_tail") as trace, TemporaryDirectory() as folder:
        if not len(trace):
            readable.notes.append("no step is recorded: nothing was computed")
            return readable
        anew = Path(folder) / "anew.dgrr"
        try:
            start, execution = _start(trace, params, model_state, rules), Execution(trace, loss_fn, batches)
            steps, whole = range(len(trace)), not Policy.parse(policy).bitwise
            made = record_anew(trace, steps, anew, start, execution, rules, mode=mode, whole=whole)
        except CannotExecuteError as error:
            return Comparison(trace.path, name, Verdict.UNPROVEN, str(error))
        if made.agrees and not anew.exists():
            notes = [*file_notes("a", trace), "every step was computed"]
            return Comparison(trace.path, name, Verdict.OK, f"equal to the bit: {len(trace)} steps", notes=notes)
        if made.first:
            return named_part(trace, anew, made, name)
        return named(compare(trace, anew, policy=policy), name, made)


def _start(trace: TraceReader, params: Arrays | None, model_state: Arrays | None, rules: Rules) -> Run:
    """The beginning as recorded; or as given, with the state that the rule begins with."""
    if params is None:
        return _recorded_start(trace)
    given = {name: np.array(value) for name, value in params.items()}
    first = trace[0]  # read outside: what is wrong with the file is said as such
    try:
        groups = recorded_groups(trace, first, by_name(rules))
    except DgrrError as error:
        raise CannotExecuteError(f"the start cannot be made: {error}") from error
    names = [name for group in groups.groups for name in group.names]
    state = groups.init(given) if given.keys() >= {*names} else {}  # another model, as the schemas will say
    return run_from(trace, given, state, {name: np.array(value) for name, value in (model_state or {}).items()})


def _recorded_start(trace: TraceReader) -> Run:
    try:
        return recorded_run(trace, 0)
    except NotRecordedError:
        cure = "give params=…, and model_state=… if the model has one"
        raise NotRecordedError(f"diff_with_model: the trace holds no values of its beginning: {cure}") from None
