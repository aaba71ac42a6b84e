"""The plans of a captured step for batches of one signature."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...base.arrays import Array
from ...base.collector import collector_paused
from ...base.runs.completed_step import StepNumbers, StepTape, TapeNode
from ...tape import AnyTensor, DgrrError, DomainError
from ...tape.graph.backward import DenseGrads
from ...tape.record import lowering
from ...tape.transforms.symbolic_tape import SymbolicTape
from ..ir.graph import IRGraph, gradient_name
from ..ir.record import LossRecording, Recording, record, record_loss
from ..ir.recorded_graphs import (
    gradients_graph,
    loss_graph,
    metric_name,
    step_graph,
    tape_graph,
    value_name,
    values_graph,
)
from ..ir.same import follows_from_loss, same_recording
from ..ir.step_tape import Choice, Choose, Chosen, Listed, listed
from ..lower.bind import Bound, BoundPlan, Fault
from ..lower.plan import BindingPlan
from ..step.batch import BatchSignature
from ..step.training_step import SeveralSteps, TrainingStep
from .buffers import InputBuffers, bound_on
from .held import hold, hold_alike
from .purity import ArraysChanged, PurityLooks, require_equal
from .reads import Reads
from .shown_metrics import ShownMetrics

if TYPE_CHECKING:
    from ..cuda.mirror import Mirror

Compiler = Callable[[IRGraph, Mapping[int, Array]], BindingPlan]

Kind = Literal["step", "gradients", "dense", "tape"]


class Plans(InputBuffers):
    """One recording of the loss function, and what is made of it: the step, its gradients, its dense gradients.

    All share the parameters, the state and the input buffers; each has an arena of its own.
    """

    @collector_paused()
    def __init__(
        self,
        step: TrainingStep,
        example: Any,
        signature: BatchSignature,
        compile: Compiler,
        mirror: "Mirror | None",
    ) -> None:
        super().__init__(example, signature, mirror)
        self._step, self._compile, self._mirror = step, compile, mirror
        self.recording = self._record()
        reads = Reads(step.loss_fn)
        again = self._record_loss() if follows_from_loss(self.recording) else self._record()
        arrays = hold(self.recording, again, _arrays(step), here=mirror is None)
        self._require_same(again, "the second time", arrays=True)
        self.looks = PurityLooks(reads, arrays, self._look)
        self._arenas = 0
        self._chosen: dict[Choose, tuple[Sequence[Choice], Executable]] = {}
        self.ready: dict[Kind | Choose, Executable] = {}
        """What `executable` has given."""

    @property
    def nbytes(self) -> int:
        """Of the input buffers, and of the arenas of what has been compiled."""
        return super().nbytes + self._arenas

    def _record(self) -> Recording:
        step = self._step
        given = (step.loss_fn, step.params, self.bound, step.recipe, step.model_state, step.seed)
        return record(*given, unrolls=self._unrolls)

    def _record_loss(self) -> LossRecording:
        """Up to the loss of the first micro-batch, in a fifth of the time."""
        step = self._step
        given = (step.loss_fn, step.params, self.bound, step.recipe, step.model_state, step.seed)
        return record_loss(*given, unrolls=self._unrolls)

    @property
    def _unrolls(self) -> bool:
        """Whether loops are written out: on a GPU, which has no kernel for them."""
        return self._mirror is not None

    @cached_property
    @collector_paused()
    def recorded(self) -> tuple[IRGraph, dict[int, Array]]:
        """The whole step, and the data of its constants."""
        return step_graph(self.recording, self._step.recipe, self._step.state)

    @property
    def graph(self) -> IRGraph:
        """The whole step, as recorded."""
        return self.recorded[0]

    def require_same(self, when: str) -> None:
        """Raise CaptureError if the loss function, recorded once more, is not what the plans run."""
        again = self._record()
        hold_alike(self.recording, again)
        try:
            self._require_same(again, when, arrays=not self.looks.changed)
        except ArraysChanged:
            return  # since the last run: before the next one all is recorded anew

    def _require_same(self, again: LossRecording, when: str, *, arrays: bool) -> None:
        """Raise CaptureError, or ArraysChanged, if it is another recording, as far as it goes."""
        if same_recording(self.recording, again, None if isinstance(again, Recording) else self.recording.forward):
            return
        if isinstance(again, Recording):
            graph, other = self.graph, step_graph(again, self._step.recipe, self._step.state)[0]
        else:
            graph, other = loss_graph(self.recording, self.recording.forward), loss_graph(again, len(again.tape))
        require_equal("loss_fn", graph, other, again, when, arrays=arrays)

    def _look(self, when: str) -> None:
        again = self._record_loss()
        hold_alike(self.recording, again)
        self._require_same(again, when, arrays=False)

    def executable(self, kind: Kind | Choose) -> "Executable":
        """One of the plans, or that of some values, compiled at its first use."""
        found = self.ready.get(kind)
        if found is None:
            found = self._choice(kind)[1] if callable(kind) else getattr(self, kind)
            self.ready[kind] = found
        return found

    @cached_property
    def step(self) -> "Executable":
        """Forward, loss, backward, optimizer."""
        return self._bound(*self.recorded)

    @cached_property
    def gradients(self) -> "Executable":
        """Loss and the gradients of the parameters, without an update."""
        return self._bound(*gradients_graph(self.recording, dense=False))

    @cached_property
    def dense(self) -> "Executable":
        """Loss and the gradient of every value that depends on a parameter, without an update."""
        return self._bound(*gradients_graph(self.recording, dense=True))

    @cached_property
    def tape(self) -> "Executable":
        """Every value of the forward passes and its gradient, without an update."""
        return self._bound(*tape_graph(self.recording))

    @property
    def step_tape(self) -> StepTape:
        """What the plan of the tape leaves in its arena; of leaves and their views, which a step overwrites, copies."""
        value, made, nodes = self.tape.value, self.tape.makes, self._listed
        return StepTape(
            self._rows,
            [value(node.id) if made(node.id) else value(node.id).copy() for node in nodes],
            [None if node.grad is None else value(node.grad) for node in nodes],
        )

    def chosen(self, choose: Choose) -> Chosen:
        """What the plan of some values leaves in its arena, and of leaves the arrays."""
        wanted, executable = self._choice(choose)
        return [(one, None if (id := self._id(one)) is None else executable.value(id)) for one in wanted]

    def _choice(self, choose: Choose) -> "tuple[Sequence[Choice], Executable]":
        if choose not in self._chosen:
            wanted = choose(self._listed)
            ids = dict.fromkeys(id for one in wanted if (id := self._id(one)) is not None)
            self._chosen[choose] = wanted, self._bound(*values_graph(self.recording, ids))
        return self._chosen[choose]

    def _id(self, one: Choice) -> int | None:
        node = self._listed[one.node]
        return node.grad if one.gradient else node.id

    @cached_property
    def _listed(self) -> list[Listed]:
        return listed(self.recording.passes)

    @cached_property
    def _rows(self) -> tuple[TapeNode, ...]:
        return tuple([node.row for node in self._listed])

    @collector_paused()
    def _bound(self, graph: IRGraph, constants: dict[int, Array]) -> "Executable":
        plan = self._compile(graph, constants)
        self._arenas += plan.arena_bytes
        bound = bound_on(self._mirror, plan, self.recording, self.inputs, constants, self._step.arrays)
        return Executable(bound, self.recording)

    @property
    def dense_gradients(self) -> DenseGrads[AnyTensor]:
        """The gradients that the dense plan leaves in its arena, by name or id of the recorded tape."""
        self.dense.bound.fetch()
        return self._dense_gradients

    @cached_property
    def _dense_gradients(self) -> DenseGrads[AnyTensor]:
        tape, outputs = self.recording.tape, self.dense.bound.plan.program.graph.outputs
        found: list[AnyTensor | None] = [None] * len(tape)
        for id in self.recording.dense:
            found[id] = AnyTensor(self.dense.bound.value(outputs[gradient_name(id)]))
        return DenseGrads(list(tape), found, tape.node)


def _arrays(step: TrainingStep) -> Iterator[Array]:
    return (array for part in step.arrays.values() for array in part.values())


class Executable:
    """A bound plan with its loss, its gradients and its metrics as arrays at fixed addresses."""

    def __init__(self, bound: BoundPlan, recording: Recording) -> None:
        params = recording.params
        self.bound, self.tape = bound, recording.tape
        outputs = bound.plan.program.graph.outputs
        self.loss = bound.value(outputs["loss"])
        self._grads = {n: bound.value(outputs[g]) for n, id in params.items() if (g := gradient_name(id)) in outputs}
        self._clip = bound.value(outputs["clip"]) if "clip" in outputs else None
        self._shown = ShownMetrics(
            [
                {name: bound.value(outputs[o]) for name in made if (o := metric_name(name, k)) in outputs}
                for k, made in enumerate(recording.metrics)
            ]
        )
        for array in (self.loss, *self._grads.values()):
            array.flags.writeable = False

    def value(self, id: int) -> Array:
        """A value of the tape, of which this is a plan."""
        return self.bound.value(self.bound.plan.program.graph.outputs[value_name(id)])

    def makes(self, id: int) -> bool:
        """Whether a value lies in the arena, and not in an array that other plans may overwrite."""
        program = self.bound.plan.program
        return program.is_static(program.root(program.graph.outputs[value_name(id)]))

    @property
    def on_cpu(self) -> Bound:
        """The plan as it is bound to this machine's memory. Raises DomainError where it runs elsewhere."""
        if not isinstance(self.bound, Bound):
            raise DomainError("step: expected one on the CPU, the only device that can be inspected, got device='cuda'")
        return self.bound

    @property
    def grads(self) -> dict[str, Array]:
        """The gradients of the parameters, by name."""
        self.bound.fetch(*self._grads.values())
        return self._grads

    @property
    def clip(self) -> Array | None:
        """The norm of all gradients and what they were multiplied by, where they are clipped by norm."""
        if self._clip is not None:
            self.bound.fetch(self._clip)
        return self._clip

    @property
    def numbers(self) -> StepNumbers:
        """Where a run leaves the scale of clipping, and a launch the metrics of each step."""
        return StepNumbers(None if self._clip is None else self._clip[1:].reshape(()), self._shown.places)

    def run_many(
        self, sources: Array, n: int, values: Sequence[Array], behind: Sequence[Array] = ()
    ) -> tuple[list[Array], Fault | None]:
        """So many steps on the batches of ``sources``: copies of values of all that ran whole, and what ended them.

        ``behind`` are rows that are run behind each step.
        """
        kept = [(value, np.empty((n, *value.shape), value.dtype)) for value in values]
        bound = self.on_cpu.with_rows(behind) if behind else self.bound
        done, fault = bound.run_many(sources, kept, n)
        return [copies[:done] for _, copies in kept], fault

    def several(
        self, sources: Array, n: int, rows: int, behind: Array | None = None
    ) -> tuple[SeveralSteps, Fault | None]:
        """The same with all that a step has to show."""
        clips = [] if self._clip is None else [self._clip]
        every = [each for each in (self._shown.rows, behind) if each is not None]
        (losses, metrics, *more), fault = self.run_many(sources, n, [self.loss, self._shown.values, *clips], every)
        norms: list[float] = more[0][:, 0].tolist() if clips else []
        return SeveralSteps(rows, losses, self._shown.of_steps(metrics), norms), fault

    @property
    def metrics(self) -> dict[str, float]:
        """What the loss function gave to be shown in the last run: the means over its micro-batches."""
        self.bound.fetch(*self._shown.made)
        return self._shown.of_run()


def refused(bound: BoundPlan, fault: Fault, tape: SymbolicTape) -> DgrrError:
    """The error that a kernel's status stands for; of a call of bodies with what `BodyFault` says of it."""
    op = fault.op
    if fault.inside is not None:
        made = next(node for node in bound.plan.program.graph.nodes if node.id == op.source)
        return fault.inside.error(tape.node(made.outputs[0]).loop)
    return lowering.refused(op.refusal, [bound.value(x) for x in op.inputs], fault.status - 1)
