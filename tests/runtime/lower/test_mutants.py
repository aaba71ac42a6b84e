"""The tests of the tests: compilers that are wrong in one way each, and what must notice.

Each mutant is one function of the compiler replaced by a wrong one; the models are those of the other tests.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dgrr.runtime.captured.buffers as buffers
import dgrr.runtime.lower.arena as arena
import dgrr.runtime.lower.bind as bind
import dgrr.runtime.lower.passes.chains as chains
import dgrr.runtime.lower.passes.epilogues as epilogues
import dgrr.runtime.lower.passes.grouped_updates as groups
import dgrr.runtime.lower.passes.unit_factors as units
import dgrr.runtime.lower.plan as plan
from dgrr.runtime import Adam, CapturedStep, EagerStep, evaluate
from dgrr.runtime.ir import Role, passes
from dgrr.runtime.lower.array_layout import ArrayLayout
from dgrr.runtime.lower.compile import GRAPH_PASSES, PROGRAM_PASSES
from dgrr.runtime.lower.lower import Lowering
from dgrr.runtime.lower.program import Program, StoragePlace
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import ops
from dgrr.tape.ops.reduce.kernels import softmax as kernels_softmax

from .models import history

R = np.random.default_rng(0)
PARAMS = {name: R.standard_normal(shape).astype(np.float32) for name, shape in {
    "w": (60, 60), "b": (60,), "unused": (7,), "v": (50, 60), "c": (60,), "e": (60,), "d": (3,),
}.items()}  # fmt: skip
BATCH = R.standard_normal((50, 60)).astype(np.float32), R.integers(0, 60, 50)


def layers(p: Any, batch: Any) -> Any:
    """A layer, a value read twice, an elementwise chain over 3,000 elements, slices, a loss."""
    x, labels = batch
    h = ops.relu(x @ p["w"] + p["b"])
    y = ops.tanh(h * p["v"] * 1.5) + h[1] * h[2] + ops.sigmoid(h[::-1])
    z = ops.relu((y * 1.0) @ p["w"].T) + (y[1:] * 1.0)[3:4] * p["c"]
    return ops.cross_entropy(z, labels) + ops.mse_loss(h, y) + ops.tanh(p["d"]).sum()


def element(p: Any, batch: Any) -> Any:
    """An element of what is computed, repeated."""
    y = ops.tanh(p["v"] * batch[0])
    return (y * y[-1, -1].broadcast_to((50, 60))).mean()


def product(p: Any, batch: Any) -> Any:
    """Its gradients are its parameters."""
    return (p["b"] * p["c"]).sum()


def parameter(p: Any, batch: Any) -> Any:
    """A view of what the step overwrites."""
    return p["d"][1]


def two_readers(p: Any, batch: Any) -> Any:
    """A product that is read with and without its relu."""
    h = batch[0] @ p["w"]
    return (ops.relu(h) * h).mean()


def weighted(p: Any, batch: Any) -> Any:
    """A loss whose weight is known after it."""
    return ops.cross_entropy(batch[0] + p["b"], batch[1]) * ops.tanh(p["d"][0])


def shared(p: Any, batch: Any) -> Any:
    """One gradient for two parameters."""
    return ops.tanh(p["c"] + p["e"]).sum()


MODELS = [layers, element, product, parameter, two_readers, weighted, shared]


def differences() -> list[str]:
    """What the checks of the other tests see: the models that differ from the eager step, or whose memory overlaps."""
    found: list[str] = []
    for loss in MODELS:
        recipe = Recipe(Adam(0.01), clip_norm=1.0 if loss is product else None)
        expected = history(EagerStep(loss, PARAMS, recipe), [BATCH, BATCH])
        try:
            step = CapturedStep(loss, PARAMS, recipe)
            if history(step, [BATCH, BATCH]) != expected:
                found.append(f"{loss.__name__} differs")
            if step.plan.overlaps():
                found.append(f"{loss.__name__} overlaps")
            if _dense(step.grads(BATCH)) != _dense(evaluate(loss, step.params, BATCH).dense):
                found.append(f"{loss.__name__} has other gradients")
        except Exception as error:  # what a wrong compiler trips over
            found.append(f"{loss.__name__}: {error!r}")
    return found


def _dense(gradients: Any) -> dict[int, bytes]:
    return {id: gradient.numpy().tobytes() for id, gradient in gradients.reached().items()}


def test_the_healthy_compiler_is_found_healthy() -> None:
    assert differences() == []


# ------------------------------------------------------------------ mutants

Patch = tuple[Any, str, Any]


def _first_readers_only(program: Any) -> Any:
    """Only the first reader of each value is seen."""
    return {root: found[:1] for root, found in _readers(program).items()}


_readers = Program.readers.func


def last_read_ignored() -> Patch:
    def wrong(program: Any) -> Any:
        born = {program.root(v): i for i, op in enumerate(program.ops) for v in op.outputs}
        return {**born, **dict.fromkeys(program.kept, len(program.ops))}

    return plan, "_last_reads", wrong


def outputs_not_kept() -> Patch:
    def wrong(program: Any) -> Any:
        return {program.root(v): i for i, op in enumerate(program.ops) for v in op.table}

    return plan, "_last_reads", wrong


def read_again_after_overwriting() -> Patch:
    def wrong(program: Any, op: Any, i: int, root: int, lives: Any, last: Any) -> Any:
        given = [program.root(op.inputs[position]) for position in op.aliases]
        same = [g for g in given if g in lives and program.layout(g).nbytes == program.layout(root).nbytes]
        return lives[same[0]] if same else None

    return plan, "_overwritten", wrong


def blocks_freed_at_once() -> Patch:
    return plan, "place", lambda lives: arena.place([(o, n, first, first) for o, n, first, _ in lives])


def epilogue_with_another_reader() -> Patch:
    return Program, "readers", property(_first_readers_only)


def epilogue_of_an_output() -> Patch:
    def wrong(program: Any, op: Any, readers: Any, kept: Any) -> Any:
        found = readers.get(program.root(op.outputs[0]), ())
        return found[0] if found and found[0].pointwise else None

    return epilogues, "_only_reader", wrong


def bias_of_another_row() -> Patch:
    right = epilogues._repeated_row

    def wrong(program: Any, maker: Any, n: int) -> Any:
        row = right(program, maker, n)
        same = (v.id for v in program.graph.with_role(Role.PARAM) if v.name == "c")
        return None if row is None else next(same)

    return epilogues, "_repeated_row", wrong


def wrong_offset_in_a_group() -> Patch:
    right = groups._moved

    def wrong(place: StoragePlace, moved: Any) -> StoragePlace:
        made = right(place, moved)
        return replace(made, layout=replace(made.layout, offset=made.layout.offset // 128 * 128))

    return groups, "_moved", wrong


def a_group_over_a_gap() -> Patch:
    right = groups._kind
    return groups, "_kind", lambda program, rank, numbered: right(program, dict.fromkeys(rank, numbered[0]), numbered)


def gradients_of_others_in_a_group() -> Patch:
    return groups, "_separable", lambda program, found: True


def no_check_in_a_group() -> Patch:
    right = groups._rewritten

    def wrong(program: Any, found: Any, wholes: Any, places: Any) -> Any:
        return tuple(op for op in right(program, found, wholes, places) if op.inputs != (wholes[-1],))

    return groups, "_rewritten", wrong


def a_part_loses_its_offset() -> Patch:
    def wrong(place: StoragePlace, moved: Any) -> StoragePlace:
        return replace(place, root=moved[place.root].root) if place.root in moved else place

    return units, "followed", wrong


def any_factor_is_one() -> Patch:
    def wrong(program: Any, value: int) -> bool:
        constant = program.graph.values.get(program.root(value))
        return constant is not None and constant.role == "const"

    return units, "_is_one", wrong


def a_chain_over_a_repeated_element() -> Patch:
    return chains, "_spreads", lambda program, op, run: False


def a_local_value_with_other_readers() -> Patch:
    right = chains._joined
    return chains, "_joined", lambda program, size, run, readers, kept: right(program, size, run, {}, kept)


def outputs_not_held() -> Patch:
    return Lowering, "_hold", lambda self, out, source: None


def views_lose_their_offset() -> Patch:
    right = ArrayLayout.through

    def wrong(self: ArrayLayout, view: Any) -> Any:
        made = right(self, view)
        return made if made is None or min(made.strides, default=0) < 0 else replace(made, offset=self.offset)

    return ArrayLayout, "through", wrong


def a_gradient_before_its_weight() -> Patch:
    def wrong(program: Any) -> Any:
        kernel = kernels_softmax.cross_entropy_rows_with_grad
        rows = {op.inputs: op for op in program.ops if op.kernel is kernels_softmax.cross_entropy_rows}
        grads = [op for op in program.ops if op.kernel is kernels_softmax.cross_entropy_grad and op.inputs[:2] in rows]
        joined = {
            rows[op.inputs[:2]]: replace(
                rows[op.inputs[:2]], kernel=kernel, outputs=rows[op.inputs[:2]].outputs + op.outputs, inputs=op.inputs
            )
            for op in grads
        }
        return program.with_ops([joined.get(op, op) for op in program.ops if op not in grads])

    return PROGRAM_PASSES, "cross-entropy", wrong


def accumulated_gradients_overwritten() -> Patch:
    """A value's gradient is what its last reader sends, not the sum."""

    def wrong(graph: Any) -> Any:
        sums = {n.outputs[0]: n.inputs[1] for n in graph.nodes if n.op == "add" and n.id > len(graph.nodes) // 2}
        nodes = tuple(replace(n, inputs=tuple(sums.get(i, i) for i in n.inputs)) for n in graph.nodes)
        return replace(graph, nodes=nodes)

    return GRAPH_PASSES, "common-subexpressions", wrong


def attributes_not_compared() -> Patch:
    def wrong(graph: Any) -> Any:
        bare = replace(graph, nodes=tuple(replace(n, attrs={}) if n.op == "getitem" else n for n in graph.nodes))
        merged = passes.eliminate_common_subexpressions(bare)
        kept = {n.id: n for n in graph.nodes}
        return replace(merged, nodes=tuple(replace(n, attrs=kept[n.id].attrs) for n in merged.nodes))

    return GRAPH_PASSES, "common-subexpressions", wrong


def addresses_without_offsets() -> Patch:
    right = bind.bind

    def wrong(made: Any, outside: Any) -> Any:
        whole = {v: replace(p, layout=replace(p.layout, offset=0)) for v, p in made.program.places.items()}
        return right(replace(made, program=replace(made.program, places=whole)), outside)

    return buffers, "bind", wrong


MUTANTS: list[Callable[[], Patch]] = [
    last_read_ignored, outputs_not_kept, read_again_after_overwriting, blocks_freed_at_once,
    epilogue_with_another_reader, epilogue_of_an_output, bias_of_another_row, wrong_offset_in_a_group,
    a_group_over_a_gap, gradients_of_others_in_a_group, a_part_loses_its_offset, any_factor_is_one,
    a_chain_over_a_repeated_element, a_local_value_with_other_readers,
    outputs_not_held, views_lose_their_offset, a_gradient_before_its_weight,
    accumulated_gradients_overwritten, attributes_not_compared, addresses_without_offsets,
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_compiler_is_noticed(mutant: Callable[[], Patch], monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, wrong = mutant()
    if isinstance(place, dict):
        monkeypatch.setitem(place, name, wrong)
    else:
        monkeypatch.setattr(place, name, wrong)
    assert differences() != []
