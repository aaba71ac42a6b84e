"""From a graph to a plan: passes over the graph, lowering, passes over the program, memory.

No pass changes a bit of any result, and each can be switched off by its name.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from ...base.arrays import Array
from ...tape.errors import DomainError
from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.engine.launch import parts_for
from ..ir.bodies import bodies_of, inputs_of, step_outputs
from ..ir.graph import IRGraph, IRNode
from ..ir.passes import eliminate_common_subexpressions, eliminate_dead_code
from ..ir.verify import checked
from .choice import ChoicePlan
from .loop import LoopPlan, loop_plan, with_own_outputs
from .lower import Lowering
from .passes.addends import join_addends, join_addends_on_gpu
from .passes.appends import read_through_appends
from .passes.chains import fuse_chains
from .passes.cross_entropy import fuse_cross_entropy
from .passes.epilogues import fuse_epilogues
from .passes.grouped_updates import group_updates
from .passes.joined_slices import join_slices
from .passes.loop_panels import pack_for_loops
from .passes.shared_steps import share_steps
from .passes.summed_products import sum_products
from .passes.unit_factors import drop_unit_factors
from .passes.wide_chains import join_elementwise
from .plan import BindingPlan, Split, alone, plan
from .program import Program, RepeatedCalls

GRAPH_PASSES: dict[str, Callable[[IRGraph], IRGraph]] = {
    "common-subexpressions": eliminate_common_subexpressions,
    "dead-code": eliminate_dead_code,
}
PROGRAM_PASSES: dict[str, Callable[[Program], Program]] = {
    "shared-steps": share_steps,
    "unit-factors": drop_unit_factors,
    "joined-slices": join_slices,
    "appends": read_through_appends,
    "cross-entropy": fuse_cross_entropy,
    "epilogues": fuse_epilogues,
    "addends": join_addends,
    "chains": fuse_chains,
    "summed-products": sum_products,
    "loop-panels": pack_for_loops,
    "grouped-updates": group_updates,
}

ON_GPU: dict[str, Callable[[Program], Program]] = {
    "addends": join_addends_on_gpu,
    "chains": join_elementwise,
    "summed-products": lambda program: program,
    "loop-panels": lambda program: program,
}
"""What takes the place of a pass on a GPU, which has other kernels."""

REST_ON_GPU = 8
"""Ops for which free memory rests on a GPU: what takes it waits for those that read it, and could run beside them."""

CHOICES = {
    "aliases": "a view in row-major order shares the memory of what it views, as saved activations do",
    "strides": "a transposed operand of a product is read in place by its strides",
    "in-place": "an op overwrites an input that no one reads after it",
}
PASSES: dict[str, str] = {
    **{name: (run.__doc__ or "").strip() for name, run in {**GRAPH_PASSES, **PROGRAM_PASSES}.items()},
    **CHOICES,
}
"""Every pass by name, and what it does."""


def without(names: Collection[str]) -> frozenset[str]:
    """All passes but those named. Raises DomainError for a name that is no pass."""
    for name in names:
        if name not in PASSES:
            raise DomainError(f"passes: expected names among {', '.join(PASSES)}, got {name!r}")
    return frozenset(PASSES) - set(names)


def compile_graph(
    graph: IRGraph,
    constants: Mapping[int, Array],
    passes: Collection[str] = PASSES,
    kernels: Mapping[Kernel, Kernel] | None = None,
    *,
    on_gpu: bool = False,
) -> BindingPlan:
    """The plan of a graph; ``kernels`` puts other kernels in the place of some."""
    program = _lowered(checked(graph), constants, passes, parts_for, ON_GPU if on_gpu else {})
    return plan(program.with_kernels(kernels or {}), in_place="in-place" in passes, rest=REST_ON_GPU if on_gpu else 0)


def compile_alone(
    graph: IRGraph,
    constants: Mapping[int, Array],
    passes: Collection[str] = PASSES,
    kernels: Mapping[Kernel, Kernel] | None = None,
) -> BindingPlan:
    """The plan of a graph for one thread, its outputs in row-major order, each in storage of its own."""
    program = with_own_outputs(_lowered(checked(graph), constants, passes, alone))
    return plan(program.with_kernels(kernels or {}), in_place="in-place" in passes, split=alone)


def _lowered(
    graph: IRGraph,
    constants: Mapping[int, Array],
    passes: Collection[str],
    split: Split,
    other: Mapping[str, Callable[[Program], Program]] = MappingProxyType({}),
) -> Program:
    """The program of a graph after all passes, ``other`` ones for some; ``split`` is for the bodies of its loops."""
    for name, graph_pass in GRAPH_PASSES.items():
        if name in passes:
            graph = checked(graph_pass(graph))
    repeated = partial(_repeated, passes=passes, split=split)
    program = Lowering(graph, constants, repeated, aliases="aliases" in passes, strides="strides" in passes).run()
    for name, program_pass in {**PROGRAM_PASSES, **other}.items():
        if name in passes:
            program = program_pass(program)
    return program


def _repeated(node: IRNode, passes: Collection[str], split: Split) -> RepeatedCalls:
    """The plan of a node with bodies, each of which is a graph like others."""
    plans = list[LoopPlan]()
    for body in bodies_of(node):
        program = _lowered(replace(body, outputs=step_outputs(node, body)), {}, passes, split)
        plans.append(loop_plan(node, program, inputs_of(body), in_place="in-place" in passes, split=split))
    return ChoicePlan(*plans) if node.op == "cond" else plans[0]
