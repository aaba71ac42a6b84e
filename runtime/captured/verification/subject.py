"""The step under verification: its plans, its state before, and the way back to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....base.arrays import Array
from ...ir.graph import IRGraph, IRNode, Role
from ...ir.recorded_graphs import gradients_graph, step_graph
from ...lower.bind import Bound
from ...lower.plan import BindingPlan
from ...lower.program import Program
from ...step.eager import EagerStep
from ...step.evaluate import NonFiniteError
from ..plans import Executable, Plans
from ..replayed_step import ReplayedStep
from .bits import copied, owner_of

REFERENCE_WORK = 1 << 20
"""How much the references of one check may do, in elements and in work of kernels: a few seconds, mostly."""


@dataclass(frozen=True)
class Part:
    """One of the plans of a step: its graph as recorded, the data of its constants, and what runs."""

    graph: IRGraph
    constants: Mapping[int, Array]
    executable: Executable

    @property
    def bound(self) -> Bound:
        """The table that the machine runs, and its memory. Raises DomainError where it runs elsewhere."""
        return self.executable.on_cpu

    @property
    def plan(self) -> BindingPlan:
        """Where every value lies."""
        return self.executable.bound.plan

    @property
    def program(self) -> Program:
        """The lowered ops; its graph is the one after the passes."""
        return self.plan.program

    def op_name(self, i: int) -> str:
        """How messages name an op: ``op 3 (gemm, node 0)``."""
        op = self.program.ops[i]
        return f"{self.graph.name}: op {i} ({op.kernel.name}, node {op.source})"

    def node_name(self, node: IRNode) -> str:
        """How messages name a node: ``node 3 (mse_loss)``."""
        return f"{self.graph.name}: node {node.id} ({node.op})"


class Subject:
    """A captured step with the batch that is bound. `restore` brings all back to the bit.

    A verification trains for longer than its caller may have meant to, on one batch: steps that would leave the
    finite numbers are no fault of the plan, and are left out.
    """

    def __init__(self, step: ReplayedStep, plans: Plans, replays: int, reference_work: int = REFERENCE_WORK) -> None:
        self.step, self.plans, self.wanted, self.reference_work = step, plans, replays, reference_work
        self._arrays = {part: dict(arrays) for part, arrays in step.arrays.items()}
        self.before = step.state_dict()
        self._memory = [(array, array.copy()) for array in self._owned()]
        self.finite = self._finite_replays()
        """How many of the replays wanted stay among the finite numbers, and what the one after them meets."""

    def _owned(self) -> list[Array]:
        """All memory of this machine that a step writes, and the input buffers: each array once."""
        own = [array for arrays in self._arrays.values() for array in arrays.values()] + self.plans.inputs
        if not self.is_here:
            return own
        bound = self.plans.step.on_cpu
        own += [owner_of(bound.memory[root]) for root in list(bound.plan.slots)[:1]]
        own += [bound.memory[whole] for whole in bound.plan.program.groups]
        return own

    @property
    def is_here(self) -> bool:
        """Whether the step runs in this machine's memory."""
        return self.step.mirror is None

    def restore(self) -> None:
        """Put back parameters, state, batch and results, the very arrays and every bit."""
        for part, held in self.step.arrays.items():
            held.clear()
            held.update(self._arrays[part])
        self.rewind()

    def rewind(self) -> None:
        """Put back what the arrays hold, and leave it to the checks whether they are the same arrays."""
        self.step.settle()
        for array, copy in self._memory:
            array[...] = copy

    def _finite_replays(self) -> tuple[int, str]:
        try:
            for done in range(self.wanted):
                try:
                    self.step.replay(1)
                except NonFiniteError as error:
                    return done, str(error)
        except Exception:
            pass  # a broken plan may fail in any way: its checks say how
        finally:
            self.restore()
        return self.wanted, ""

    @property
    def replays(self) -> int:
        """How many replays a check may run: as many as are wanted, if so many stay finite, but at least one."""
        return max(1, self.finite[0])

    @property
    def batch(self) -> Any:
        """The batch that is bound, nested as the loss function takes it: the very input buffers."""
        return self.plans.bound

    def eager(self) -> EagerStep:
        """A step that runs op by op on copies, from where the captured one was."""
        own = self.step
        step = EagerStep(own.loss_fn, self.before["params"], own.recipe, self.before["model_state"], own.seed)
        step.load_state_dict(self.before)
        return step

    @cached_property
    def parts(self) -> list[Part]:
        """The step, its gradients, its dense gradients."""
        plans, recording = self.plans, self.plans.recording
        return [
            Part(*step_graph(recording, self.step.recipe, self.step.state), plans.step),
            Part(*gradients_graph(recording, dense=False), plans.gradients),
            Part(*gradients_graph(recording, dense=True), plans.dense),
        ]

    def declared(self, part: Part) -> dict[int, Array]:
        """Copies of what a graph does not produce itself: parameters, state, inputs, constants, by id."""
        return {**{id: array.copy() for id, array in self.held(part.graph).items()}, **part.constants}

    def held(self, graph: IRGraph) -> dict[int, Array]:
        """The arrays of a graph's parameters, inputs and states, by id."""
        step, recording = self.step, self.plans.recording
        found = {id: step.params[name] for name, id in recording.params.items()}
        found |= dict(zip(recording.inputs, self.plans.inputs, strict=True))
        for role, arrays in ((Role.STATE, step.state), (Role.MODEL_STATE, step.model_state)):
            found |= {value.id: arrays[value.name] for value in graph.with_role(role)}
        return found

    def state_copies(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Copies of parameters and state as they are now."""
        return copied(self.step.params), copied(self.step.state)
