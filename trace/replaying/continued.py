"""What if: a run that goes on from a past step of another, by another rule, loss function or batches."""

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from json import dumps
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.errors import DomainError
from ...base.runs.completed_step import EMA, FROZEN, of_group
from ...base.runs.keep import Digest, Keep, Mode
from ...base.runs.run import OnNonfinite, Parent
from ...base.system import FilePath
from ...runtime.optim.groups import Groups, Optimizer
from ...runtime.step.completed import completed
from ...runtime.step.evaluate import NonFiniteError
from ...runtime.step.recipe import Recipe
from ...runtime.step.state_digest import state_digest
from ...runtime.step.training_step import StateDict, TrainingStep
from ...runtime.training.step_runner import StepMode, StepOptions, StepRunner
from ...screen.curves import sparkline
from ...screen.panels import ShownAsPanel
from ...screen.showing import counted
from ...tape import Tape
from ..v2.format.digest import Batch
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.write.open_recorder import open_recorder
from ..v2.write.recorder import TraceRecorder
from .edited import EditedStep, Edits
from .execution import Batches, LossFn, epochs
from .recorded_recipe import recorded_recipe, settings_of
from .replay_state import Rules, UnknownRuleError, by_name, recorded_groups


@dataclass(frozen=True, eq=False, repr=False)
class Continuation(ShownAsPanel):
    """A run continued from a past step: what it computed, and where it was recorded."""

    trace: str | None
    """The path of its trace, whose step 0 is step `first` of the run."""
    first: int
    """The step of the parent that it began before."""
    losses: Array
    params: dict[str, Array]
    state: dict[str, Array]
    """Of the optimizer."""
    model_state: dict[str, Array]

    def _title(self) -> str:
        return f"Continuation: {counted(len(self.losses), 'step')} from step {self.first} on"

    def about(self) -> dict[str, object]:
        """What is to be said of it to people."""
        found: dict[str, object] = {} if self.trace is None else {"trace": self.trace}
        if len(self.losses):
            found["loss"] = f"{self.losses[0]:.6g} to {self.losses[-1]:.6g}  {sparkline(self.losses)}"
        return found | {"state digest": self.state_digest}

    @property
    def state_digest(self) -> str:
        """SHA-256 over parameters, optimizer state and the model's state at the end."""
        return state_digest(self.params, self.state, self.model_state)


class Origin:
    """The run that a past step is of: what a run that goes on from there has from it."""

    def __init__(
        self, trace: TraceReader, view: StepView, loss_fn: LossFn, ahead: Iterator[tuple[Batch, ...]], rules: Rules
    ) -> None:
        self.loss_fn, self.step, self.seed = loss_fn, view.step, trace.header.seed
        self.digest: Digest = trace.header.algorithm.word
        self.parent = Parent(trace.root, view.step)
        self.notes = trace.notes if trace.noted() else None
        self._trace, self._view, self._ahead, self._rules = trace, view, ahead, rules
        self._groups = [group for group in trace.schema.rules if group.rule not in (EMA, FROZEN)]
        self._together = view.micro_batches

    def recipe(self, rule: Optimizer | None, hyper: Mapping[str, float] | None, on_nonfinite: OnNonfinite) -> Recipe:
        """How gradients become updates: by the given rule, or as in the step, with some hyperparameters changed."""
        if rule is not None and hyper is not None:
            raise DomainError(
                "trace.continue_with: argument 'hyper': it changes the run's own rule: pass no other 'rule'"
            )
        if rule is not None:
            return Recipe(rule, **settings_of(self._trace, self._view), on_nonfinite=on_nonfinite)
        return recorded_recipe(self._trace, self._view, self._made(hyper or {}), on_nonfinite)

    def state_for(self, groups: Groups, state: dict[str, Array], fresh: dict[str, Array]) -> dict[str, Array]:
        """The optimizer's state before the step; for another rule a fresh one, but for the number of steps."""
        rules = [group.rule.rule for group in groups.groups]
        if [group.rule for group in self._groups] == rules and state.keys() == fresh.keys():
            return state
        return {name: state["step"] if name.partition("#")[0] == "step" else a for name, a in fresh.items()}

    def batches(self, given: Batches | None) -> Iterator[Any]:
        """What each step is trained on: as given, or those of the run from the step on."""
        for together in copy(self._ahead) if given is None else epochs(given, self._together):
            yield together if self._together > 1 else together[0]

    def _made(self, hyper: Mapping[str, float]) -> Groups:
        """The rules of the run, with the hyperparameters of the step but for those that are given."""
        what = "trace.continue_with: argument"
        known = [of_group(name, i) for i, group in enumerate(self._groups) for name in group.hyperparameters]
        for name in hyper:
            if name not in known:
                raise DomainError(f"{what} 'hyper': expected names among {', '.join(known)}, got {name!r}")
        try:
            return recorded_groups(self._trace, self._view, by_name(self._rules), hyper)
        except UnknownRuleError:
            rules = ", ".join(repr(group.rule) for group in self._groups)
            raise DomainError(
                f"{what} 'rule': a rule of the run is not known to this library ({rules}): pass one to continue with"
            ) from None


def continue_from(
    origin: Origin,
    before: StateDict,
    rule: Optimizer | None,
    *,
    hyper: Mapping[str, float] | None,
    steps: int,
    trace: FilePath | None,
    loss_fn: LossFn | None,
    batches: Batches | None,
    mode: StepMode,
    record: Mode,
    on_nonfinite: OnNonfinite,
    edits: Edits,
    tapes: Sequence[Tape[Any]],
) -> Continuation:
    """Train from a state on. See `PastStep.continue_with`."""
    if steps != int(steps) or steps < 1:
        raise DomainError(
            f"trace.continue_with: argument 'steps': expected a whole number of at least 1, got {steps!r}"
        )
    recipe = origin.recipe(rule, hyper, on_nonfinite)
    chosen = origin.loss_fn if loss_fn is None else loss_fn
    runner = StepRunner(
        chosen, before["params"], recipe, StepOptions(mode), model_state=before["model_state"], seed=origin.seed
    )
    state = origin.state_for(runner.step.groups, before["state"], runner.step.state)
    runner.step.load_state_dict(edits.state({**before, "state": state}))
    first = EditedStep.of(runner.step, edits, tapes) if edits.in_step else None
    every = _exactly(origin.batches(batches), steps)
    if trace is None:
        losses = [loss for _, loss, _ in _trained(runner, first, every)]
    else:
        run = replace(runner.step.as_run(), parent=origin.parent)
        recorder = open_recorder(Keep(trace, record=record, digest=origin.digest, notes=origin.notes), run)
        losses = _recorded(_trained(runner, first, every), recorder, origin.step, edits)
    runner.finish()
    ended = runner.step.state_dict()
    path = None if trace is None else os.fspath(trace)
    return Continuation(path, origin.step, np.array(losses), ended["params"], ended["state"], ended["model_state"])


def _exactly(batches: Iterator[Any], steps: int) -> Iterator[Any]:
    """So many of the batches. Raises DomainError where there are fewer."""
    done = 0
    for batch in islice(batches, steps):
        yield batch
        done += 1
    if done < steps:
        raise DomainError(f"trace.continue_with: argument 'batches': expected those of {steps} steps, got {done}")


def _trained(
    runner: StepRunner, first: EditedStep | None, batches: Iterator[Any]
) -> Iterator[tuple[TrainingStep, np.floating[Any], Any]]:
    """Each step when it is done, with its loss and its batch; the first is another one where that is edited."""
    for batch in batches:
        step: TrainingStep | None = first
        loss = runner(batch) if step is None else step(batch)
        yield step or runner.step, loss, batch
        first = None


def _recorded(
    steps: Iterator[tuple[TrainingStep, np.floating[Any], Any]], recorder: TraceRecorder, first: int, edits: Edits
) -> list[Any]:
    """Record each step; the losses. A value that is not finite ends the trace before its step."""
    losses: list[Any] = []
    with recorder:
        recorder.event("continue", dumps({"step": first} | ({"edited": edits.names} if edits.names else {})))
        try:
            for number, (step, loss, batch) in enumerate(steps):
                losses.append(loss)
                recorder.step(replace(completed(step, first + number, batch), step=number))
        except NonFiniteError:
            recorder.seal()
            raise
    return losses
