"""What one rank computes of a step: sums over consecutive micro-batches, op by op or from a captured plan."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from ...base.arrays import Array
from ...tape import AnyTensor
from ..captured.buffers import InputBuffers, bound_on, bound_to
from ..captured.held import hold
from ..captured.plans import refused
from ..captured.purity import PurityLooks, require_equal
from ..captured.reads import Reads
from ..ir.graph import Role
from ..ir.record import SharedRecording, record_share
from ..ir.recorded_graphs import metric_name, partial_name, share_graph
from ..ir.same import same_recording
from ..lower.bind import Bound, BoundPlan, Fault
from ..lower.compile import compile_graph
from ..lower.program import Program
from ..step.accumulate import Accumulation
from ..step.batch import BatchSignature
from ..step.eager import tensors
from ..step.evaluate import evaluations
from ..step.training_step import TrainingStep
from .gathered import Arena

PARAM, MODEL_STATE = "param ", "model state "
"""What stands before names in the arena."""


@dataclass(frozen=True)
class Share:
    """The sums that the micro-batches of a rank make whole, each with as many arrays as there are such sums."""

    losses: list[Array]
    grads: dict[str, list[Array]]
    state: dict[str, list[Array]]
    """Of what entries of the model's state become, for those that change."""
    metrics: list[dict[str, float]]
    """What the loss function gave to be shown, of each micro-batch."""

    @property
    def sums(self) -> dict[str, list[Array]]:
        """Gradients and state by the names that the arena has for them."""
        grads = {PARAM + name: each for name, each in self.grads.items()}
        return grads | {MODEL_STATE + name: each for name, each in self.state.items()}


Ready: TypeAlias = Callable[[int, Mapping[str, Sequence[Array]]], None]
"""Is told the number of a segment of the arena as soon as its sums are there, and the sums."""


def eager_share(step: TrainingStep, batch: tuple[Any, ...], first: int) -> Share:
    """The share of the micro-batches ``batch``, of which the first is number ``first``, op by op."""
    recipe = step.recipe
    sums, metrics = Accumulation[AnyTensor](recipe.order, recipe.accumulate, first), list[dict[str, float]]()
    point = replace(step.point, micro_batch=first)
    for made in evaluations(step.loss_fn, step.params, batch, point, step.groups.frozen, recipe.order):
        sums.put(AnyTensor(made.loss), tensors(made.grads), tensors(made.updated))
        metrics.append(made.metrics)
    losses = [tensor.array for tensor in sums.losses.partials]
    grads, state = (
        {name: [t.array for t in each.partials] for name, each in every.items()} for every in (sums.grads, sums.state)
    )
    return Share(losses, grads, state, metrics)


class SharePlan(InputBuffers):
    """The recording of a share for batches of one signature, compiled and bound.

    Args:
        first: the number of the first micro-batch.
        arena: the rows in which the sums are to lie, where a plan can put them there; else they are copied.
        early: whether the exchange of a segment may begin before all are there. The last one begins, as in backward.
    """

    def __init__(
        self,
        step: TrainingStep,
        example: tuple[Any, ...],
        signature: BatchSignature,
        first: int,
        arena: Arena,
        *,
        early: bool,
    ) -> None:
        super().__init__(example, signature, step.mirror)
        self._step, self._first, self._mirror = step, first, step.mirror
        recording = self._recorded()
        self._graph, constants = share_graph(recording)
        plan = compile_graph(self._graph, constants, on_gpu=self._mirror is not None)
        self._share_of = recording
        self._bound: BoundPlan
        self._in_rows = dict[int, Array]()
        if self._mirror is None:
            self._in_rows = _results(plan.program, self._outputs(plan.program), arena)
            self._bound = here = bound_to(plan, recording, self.inputs, constants, step.arrays, self._in_rows)
            stops = self._stretches(arena.names, plan.program) if early else [here.count] * len(arena.names)
            self._run = partial(_in_stretches, here, stops)
        else:
            self._mirror.train(step.state[value.name] for value in self._graph.with_role(Role.STATE))
            self._bound = bound_on(self._mirror, plan, recording, self.inputs, constants, step.arrays)
            self._run = partial(self._elsewhere, len(arena.names))
        self._sums = self._share([])
        reads = Reads(step.loss_fn)
        again = self._recorded()
        self._require_same(again, "the second time")
        self._looks = PurityLooks(reads, hold(recording, again, (), here=False), self.require_same)

    @property
    def nbytes(self) -> int:
        """Of the input buffers and the arena."""
        return super().nbytes + self._bound.plan.arena_bytes

    def _recorded(self) -> SharedRecording:
        step = self._step
        given = (step.loss_fn, step.params, self.bound, step.recipe, step.model_state, step.seed, self._first)
        return record_share(*given, unrolls=self._mirror is not None)

    def require_same(self, when: str) -> None:
        """Raise CaptureError if the loss function, recorded once more, is not what the plan runs."""
        self._require_same(self._recorded(), when)

    def _require_same(self, again: SharedRecording, when: str) -> None:
        if not same_recording(self._share_of, again):
            require_equal("loss_fn", self._graph, share_graph(again)[0], again, when)

    def _stretches(self, segments: Sequence[Sequence[str]], program: Program) -> list[int]:
        """Up to which op the plan is to be run until the sums of each segment are there, and of those behind it."""
        sums = self._outputs(program)
        ends = {program.root(v): i + 1 for i, op in enumerate(program.ops) for v in op.outputs}
        stops, last = [0] * len(segments), 0
        for number in reversed(range(len(segments))):
            ids = [id for name in segments[number] for id in sums.get(name, ())]
            stops[number] = last = max([last, *(ends.get(program.root(id), 0) for id in ids)])
        return stops

    def _outputs(self, program: Program) -> dict[str, list[int]]:
        """The ids of the sums by the names that the arena has for them."""
        outputs, made = program.graph.outputs, self._share_of
        every = {PARAM + name: (f"gradient {name}", ids) for name, ids in made.gradients.items()}
        every |= {MODEL_STATE + name: (f"state {name}", ids) for name, ids in made.state.items()}
        return {name: [outputs[partial_name(what, k)] for k in range(len(ids))] for name, (what, ids) in every.items()}

    def __call__(self, batch: tuple[Any, ...], ready: Ready) -> Share:
        """The share of a batch of this signature: views that are valid until the next call.

        ``ready`` is told of each segment as soon as its sums are there, of the last one first.

        Raises BoundsError for an index out of range, CaptureError as `require_same` does.
        """
        self._looks.count()
        self.feed(batch)
        try:
            sums = self._sums.sums
            self._run(lambda segment: ready(segment, sums))
        except Fault as fault:
            raise refused(self._bound, fault, self._share_of.tape) from None
        shown = self._share_of.metrics
        metrics = [{name: float(self._value(metric_name(name, k))[()]) for name in own} for k, own in enumerate(shown)]
        return replace(self._sums, metrics=metrics)

    def _elsewhere(self, segments: int, ready: Callable[[int], None]) -> None:
        """Run the plan on a GPU, which is given what all ranks have made of the parameters, and bring its sums."""
        self._step.settle()
        self._bound.run()
        self._bound.fetch()
        for number in reversed(range(segments)):
            ready(number)

    def _share(self, metrics: list[dict[str, float]]) -> Share:
        made = self._share_of
        return Share(
            self._values("loss", made.losses),
            self._every("gradient", made.gradients),
            self._every("state", made.state),
            metrics,
        )

    def _every(self, what: str, ids: Mapping[str, list[int]]) -> dict[str, list[Array]]:
        return {name: self._values(f"{what} {name}", each) for name, each in ids.items()}

    def _values(self, what: str, ids: list[int]) -> list[Array]:
        return [self._value(partial_name(what, k)) for k in range(len(ids))]

    def _value(self, output: str) -> Array:
        program = self._bound.plan.program
        id = program.graph.outputs[output]
        return self._in_rows[program.root(id)] if program.root(id) in self._in_rows else self._bound.value(id)


def _in_stretches(bound: Bound, stops: Sequence[int], ready: Callable[[int], None]) -> None:
    """Run a plan in stretches, each up to where a segment is whole."""
    done = 0
    for number, stop in reversed([*enumerate(stops)]):
        bound.run(done, stop)
        ready(number)
        done = stop
    bound.run(done)


def _results(program: Program, sums: Mapping[str, Sequence[int]], arena: Arena) -> dict[int, Array]:
    """The arrays of the arena in which sums can lie: those that are the only output of their root, and all of it."""
    outputs = Counter(program.root(id) for id in {*program.graph.outputs.values()})
    found: dict[int, Array] = {}
    for name, ids in sums.items():
        for id, array in zip(ids, arena.rows(name), strict=True):
            root, layout = program.root(id), program.layout(id)
            whole = layout.is_dense and layout.offset == 0 and layout.nbytes == program.layout(root).nbytes > 0
            if program.is_static(root) and whole and outputs[root] == 1 and root not in found:
                found[root] = array
    return found
