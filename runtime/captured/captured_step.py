"""A captured training step: recorded once, then replayed from a fixed table, to the bit what an eager step computes."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from ...base.arrays import Arrays
from ...base.collector import collector_paused
from ...base.printed import facts, panel, text
from ...base.runs.completed_step import Order
from ...screen.panels import folded
from ...screen.showing import counted, size
from ...tape import DomainError
from ...tape.numerics.engine.kernel import Kernel
from ..ir.graph import IRGraph, Role
from ..ir.recorded_graphs import metric_name
from ..library.source import LibrarySource, Weights, names_of
from ..lower.compile import compile_alone, without
from ..lower.plan import BindingPlan
from ..lower.program import Program
from ..optim.groups import Optimizer
from ..optim.patterns import Pattern
from ..step.loss_call import LossFn
from ..step.recipe import Recipe
from .kept import PLAN_BYTES
from .profile import Profile, profile
from .replayed_step import Device, OnShapeChange, ReplayedStep
from .verification import REFERENCE_WORK, VerifyReport, verify_step

PARTS = {"params": Role.PARAM, "state": Role.STATE, "model_state": Role.MODEL_STATE}
"""What values are that training changes."""


class CapturedStep(ReplayedStep):
    """One training step. ``step(batch)`` updates ``step.params`` and ``step.state`` and returns the loss.

    Batches of another shape are captured once and kept, or refused if you ask for that. If the plans of all shapes
    exceed ``plan_bytes``, only those used last are kept. A step is for one thread at a time; different steps may run at
    once.
    """

    def about(self) -> dict[str, object]:
        """A summary for people; graph, kernel calls and memory are those for the bound batch."""
        found, plans = super().about(), self._plans
        if plans is None:
            return {**found, "captured": "not yet"}
        program, plan = self.lowered, self.plan
        return {
            **found,
            "captured": f"for {counted(len(self._known), 'signature')} of batches",
            "graph": f"{counted(len(plans.graph.nodes), 'node')}, {counted(len(plans.graph.values), 'value')}",
            "kernel calls": f"{len(program.ops):,} of {counted(len(program.kernels()), 'kernel')}",
            "arena": f"{size(plan.arena_bytes)} for {size(plan.static_bytes)} of values",
        }

    def _repr_html_(self) -> str:
        """What it is, and behind it its graph, its kernel calls and its memory, in a notebook."""
        parts = [facts(self.about())]
        if self._plans is not None:
            parts.append(folded("graph", text(str(self.graph))))
            parts.append(folded("kernel calls", self.lowered.table().to_html()))
            parts.append(folded("memory", self.plan.table().to_html()))
        return panel(self._title(), *parts)

    @property
    def graph(self) -> IRGraph:
        """The step as it was recorded, in SSA form."""
        return self.bound_plans("graph").graph

    @property
    def lowered(self) -> Program:
        """The kernel calls of the step, after all passes."""
        return self.plan.program

    @property
    def plan(self) -> BindingPlan:
        """Where every value lies."""
        return self.bound_plans("plan").step.bound.plan

    def with_kernel(self, name: str, kernel: str | Kernel) -> "CapturedStep":
        """A step with the same state, batch and plan, one kernel replaced: to compare two kernels and nothing else.

        ``kernel`` is the name of a variant (of "gemm": "reference") or a kernel for the same table and words.
        Raises DomainError if the plan calls no kernel of that name, or it has no such variant.
        """
        own = {called.name: called for called in self.lowered.kernels()}
        if name not in own:
            raise DomainError(f"with_kernel: argument 'name': expected one of {', '.join(own)}, got {name!r}")
        other = own[name].variants.get(kernel) if isinstance(kernel, str) else kernel
        if other is None:
            has = ", ".join(own[name].variants) or "none"
            raise DomainError(f"with_kernel: argument 'kernel': expected a variant of {name} ({has}), got {kernel!r}")
        bound = self.bound_plans("with_kernel").bound
        return self._like(bound, kernels={**self._kernels, own[name]: other}, device=self.device)

    def on(self, device: Device) -> "CapturedStep":
        """A step with the same state and batch on "cpu" or "cuda". Raises DomainError, CudaError."""
        return self._like(self.bound_plans("on").bound, kernels=self._kernels, device=device)

    def _like(self, batch: Any, *, kernels: Mapping[Kernel, Kernel], device: Device) -> "CapturedStep":
        step = CapturedStep(
            self.loss_fn,
            self.params,
            self.recipe,
            model_state=self.model_state,
            seed=self.seed,
            on_shape_change=self._on_shape_change,
            without_passes=self._without,
            kernels=kernels,
            device=device,
            plan_bytes=self._known.most_bytes,
        )
        step.load_state_dict(self.state_dict())
        step.bind(batch)
        return step

    def library_source(self, weights: Weights) -> LibrarySource:
        """What `export_library` makes a library of: the step with all that training changes, for the batch bound.

        It hands out the loss, each metric, of several micro-batches that of each, and norm and scale of clipping.
        """
        plans = self.bound_plans("export_library")
        graph, constants = plans.recorded
        inputs = names_of([where for where, _, _ in plans.signature], "in", "in0")
        held = {
            value.id: (value.name, self.arrays[part][value.name])
            for part, role in PARTS.items()
            for value in graph.with_role(role)
        }
        return LibrarySource(
            "step",
            graph,
            constants,
            dict(zip(inputs, plans.recording.inputs, strict=True)),
            _shown(plans.recording.metrics, graph),
            held,
            partial(compile_alone, passes=without(self._without), kernels=self._kernels),
        )

    def verify(self, replays: int = 20, *, reference_work: int = REFERENCE_WORK) -> VerifyReport:
        """Check the step on the batch that is bound, from its graph to its memory; it stays as it is, to the bit.

        Every value, gradient and update is compared with the slow reference of its op. ``reference_work`` bounds what
        these may do in one check, in elements and in the work of kernels: mostly a few microseconds each. The line
        ``references`` names the nodes beyond it, which are not compared. A step on a GPU runs there; the checks of this
        machine's table and memory are left out then.
        Raises DomainError if ``replays`` is below 1, or ``reference_work`` below 0.
        """
        return verify_step(self, self.bound_plans("verify"), replays, reference_work)

    def profile(self, batch: Any) -> Profile:
        """Where the time of a step on this batch goes, kernel by kernel. Trains nothing."""
        before = self.state_dict()
        try:
            return profile(self._run("step", batch).bound)
        finally:
            self.load_state_dict(before)


def _shown(metrics: Sequence[Mapping[str, int]], graph: IRGraph) -> dict[str, str]:
    """What a library hands out of a step by its name in C, and the output of the graph that it is."""
    every = [(name, k) for k, made in enumerate(metrics) for name in made]
    places = [f"metric[{name!r}]" + (f"[{k}]" if len(metrics) > 1 else "") for name, k in every]
    outputs = [metric_name(name, k) for name, k in every]
    clip = {"clip": "clip"} if "clip" in graph.outputs else {}
    return {"loss": "loss", **clip, **dict(zip(names_of(places, "metric", "metric"), outputs, strict=True))}


@collector_paused()
def capture(
    loss_fn: LossFn,
    params: Arrays,
    optimizer: Optimizer,
    example_batch: Any,
    *,
    model_state: Arrays | None = None,
    seed: int = 0,
    accumulate: int = 1,
    order: Order = "chain",
    clip_norm: float | None = None,
    clip_value: float | None = None,
    frozen: Sequence[Pattern] = (),
    ema: float | None = None,
    on_shape_change: OnShapeChange = "recapture",
    without_passes: Collection[str] = (),
    device: Device = "cpu",
    plan_bytes: int = PLAN_BYTES,
) -> CapturedStep:
    """A training step on copies of ``params``, recorded and compiled; nothing runs, nothing is trained.

    ``model_state`` is what ``model.init_state()`` gives, copied too, and ``seed`` that of ``ctx.random``.
    With ``accumulate`` of n a batch is a tuple of n micro-batches, whose gradients are added by ``order``;
    ``clip_norm`` and ``clip_value`` bound the gradients before the update; ``order``, ``optimizer``, ``frozen`` and
    ``ema`` are as for `Trainer`; ``on_shape_change`` says whether a batch of another shape is captured too or is an
    error; ``without_passes`` switches compiler passes off by name, with the same bits. ``device`` "cuda" runs the step
    on an NVIDIA GPU, with the same bits. ``plan_bytes`` is how much memory the plans for batches of all shapes
    may take, arenas and input buffers; beyond it, the least recently used are dropped. Raises what the model raises;
    TapeError if it reads a value, which does not exist yet; DomainError; CudaError where there is no GPU, or a kernel
    has no form for it.
    """
    recipe = Recipe(optimizer, accumulate, clip_norm, clip_value, frozen=frozen, ema=ema, order=order)
    step = CapturedStep(
        loss_fn,
        params,
        recipe,
        model_state=model_state,
        seed=seed,
        on_shape_change=on_shape_change,
        without_passes=without_passes,
        device=device,
        plan_bytes=plan_bytes,
    )
    plans = step.record(example_batch)
    plans.feed(example_batch)
    _ = plans.step
    return step
