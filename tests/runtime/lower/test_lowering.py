"""Lowering: which nodes become calls, which views, and what is copied."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep
from dgrr.runtime.lower.compile import PASSES, PROGRAM_PASSES
from dgrr.runtime.lower.lower import stored
from dgrr.runtime.lower.program import Program
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import ops

from .models import history

Loss = Callable[[Any, Any], Any]
X = np.linspace(-2, 2, 30, dtype=np.float32).reshape(5, 6)
PARAMS = {"w": X.T.copy() @ X, "v": X + 1, "s": np.ones((), np.float32)}


def lowered(loss: Loss, *on: str, **recipe: Any) -> Program:
    """The program with some passes only, whose results are the eager ones."""
    made = Recipe(recipe.pop("rule", SGD(0.1)), **recipe)
    step = CapturedStep(loss, PARAMS, made, without_passes=set(PASSES) - set(on))
    assert history(step, [X, X]) == history(EagerStep(loss, PARAMS, made), [X, X])
    return step.lowered


def copies(loss: Loss, *on: str) -> int:
    return Counter(op.kernel.name for op in lowered(loss, *on).ops)["copy"]


@pytest.mark.parametrize("view", [lambda v: v.reshape(6, 5), lambda v: v[1:3]], ids=["reshaped", "rows"])
def test_without_aliases_a_view_in_row_major_order_is_copied(view: Callable[[Any], Any]) -> None:
    def loss(p: Any, x: Any) -> Any:
        return ops.neg(view(p["v"])).sum()

    assert copies(loss, "strides") > copies(loss, "strides", "aliases")


def test_without_strides_a_transposed_operand_is_copied() -> None:
    def loss(p: Any, x: Any) -> Any:
        return ops.neg(x @ p["w"].T).sum()

    assert copies(loss, "aliases") > copies(loss, "aliases", "strides")
    assert copies(loss, "aliases", "strides") == 2  # the cotangent of the sum; the gradient, which is a transpose


def test_what_needs_row_major_order_is_copied_once() -> None:
    def loss(p: Any, x: Any) -> Any:
        turned = p["v"].T
        return (ops.neg(turned) + ops.exp(turned) + ops.tanh(turned)).sum()

    made = lowered(loss, "aliases", "strides", "common-subexpressions")
    sources = [made.root(op.inputs[0]) for op in made.ops if op.kernel.name == "copy"]
    v = next(value.id for value in made.graph.values.values() if value.name == "v")
    assert sources.count(v) == 1


@pytest.mark.parametrize(
    "view",
    [
        lambda v: v[::-1], lambda v: v[:, ::-2], lambda v: v[1:, 2:4], lambda v: v.T[::-1], lambda v: v[None, 2],
        lambda v: v[2, 3], lambda v: v[-1, -1], lambda v: v[3:1], lambda v: v[2:2].T, lambda v: v.reshape(2, 15).T,
        lambda v: v.T.reshape(30), lambda v: v[::2].reshape(-1), lambda v: v[1:2, 1:2].reshape(()),
        lambda v: v[0].broadcast_to((3, 6)), lambda v: v[:, :1].broadcast_to((5, 4)).T, lambda v: v[:0].sum(),
        lambda v: v[2:].broadcast_to((2, 3, 6))[1, ::-1], lambda v: v[1, 1].broadcast_to((2,)),
        lambda v: v[:0].broadcast_to((2, 0, 6)),
        lambda v: v.reshape(5, 6, 1)[..., 0], lambda v: ops.permute(v.reshape(5, 2, 3), (2, 0, 1))[::-1, 1:],
    ],
)  # fmt: skip
@pytest.mark.parametrize("on", [("aliases", "strides"), ("aliases",), ("strides",), (), tuple(PASSES)], ids=str)
def test_views_of_all_kinds(view: Callable[[Any], Any], on: tuple[str, ...]) -> None:
    """Read by an elementwise op, a sum and, where they are matrices, a product."""

    def loss(p: Any, x: Any) -> Any:
        y = view(p["v"])
        total = ops.tanh(y).sum() * 2.0 + (y * y).sum() + p["s"]
        if len(y.shape) == 2:
            total = total + (y @ ops.tanh(y).T).sum()
        return total

    lowered(loss, *on)


def test_every_node_has_its_calls_or_is_a_view() -> None:
    def loss(p: Any, x: Any) -> Any:
        return ops.mse_loss(ops.relu(x @ p["w"].T).reshape(6, 5).T, p["v"])

    made = lowered(loss, "aliases", "strides", rule=Adam(0.1), clip_norm=1.0)
    called = {op.source for op in made.ops}
    assert called | made.views == {node.id for node in made.graph.nodes}
    assert not called & made.views
    assert {made.graph.nodes[i].op for i in made.views} <= {"reshape", "transpose2d", "permute", "broadcast_to", "cast"}


def test_calls_come_in_the_order_of_nodes_and_of_definition() -> None:
    made = lowered(lambda p, x: (ops.relu(x @ p["w"]) * p["v"]).mean(), "aliases", "strides", rule=Adam(0.1))
    assert [op.source for op in made.ops] == sorted(op.source for op in made.ops)
    known = {value.id for value in made.graph.values.values() if value.role != "static"}
    for op in made.ops:
        assert {made.root(v) for v in op.inputs} <= known
        known.update(made.root(v) for v in op.outputs)


def test_norms_lie_side_by_side() -> None:
    made = lowered(lambda p, x: (ops.relu(x @ p["w"]) * p["v"]).mean() * p["s"], *PASSES, clip_norm=1.0)
    norms = [op for op in made.ops if op.kernel.name == "tensor_norm"]
    places = [made.places[op.outputs[0]] for op in norms]
    assert len({place.root for place in places}) == 1
    assert [place.layout.offset for place in places] == [0, 8, 16]
    scale = next(op for op in made.ops if op.kernel.name == "norm_scale")
    assert made.root(scale.inputs[0]) == places[0].root


def test_a_number_that_is_repeated_is_kept_once() -> None:
    kept, layout = stored(np.broadcast_to(np.float32(1.5), (100, 100)))
    assert kept.tolist() == [1.5]
    assert (layout.shape, layout.strides) == ((100, 100), (0, 0))
    kept, layout = stored(X.T)
    assert kept.tobytes() == X.T.tobytes()
    assert layout.is_dense


def test_readers_and_kernels_of_a_program() -> None:
    made = lowered(lambda p, x: (ops.relu(h := x @ p["w"]) * h).mean(), "aliases", "strides")
    product = next(op.outputs[0] for op in made.ops if op.kernel.name == "gemm")
    assert [op.kernel.name for op in made.readers[product]][:2] == ["relu", "mul"]
    loss = made.graph.outputs["loss"]
    assert made.root(loss) in made.kept


def test_what_is_known_of_a_program_is_not_taken_for_that_of_another() -> None:
    made = lowered(lambda p, x: ops.relu(x @ p["w"]).mean(), "aliases", "strides")
    of_product = next(made.root(op.outputs[0]) for op in made.ops if op.kernel.name == "gemm")
    assert of_product in made.readers
    fewer = made.with_ops([op for op in made.ops if op.kernel.name != "relu"])
    assert {kernel.name for kernel in made.called - fewer.called} == {"relu"}
    assert "relu" not in {op.kernel.name for ops in fewer.readers.values() for op in ops}
    assert made.with_ops(list(made.ops)) is made


@pytest.mark.parametrize("name", PROGRAM_PASSES)
def test_a_pass_with_nothing_to_do_gives_the_program_itself(name: str) -> None:
    made = lowered(lambda p, x: (ops.tanh(p["w"]) * p["s"]).sum(), *PASSES)
    assert PROGRAM_PASSES[name](made) is made


def test_products_are_counted_by_their_multiplications_and_additions_also_in_loops() -> None:
    def loss(p: Any, x: Any) -> Any:
        def body(carry: Any, _: Any) -> tuple[Any, Any]:
            return carry @ p["w"], carry

        kernel = ops.reshape(p["v"], (1, 1, 5, 6))
        last, _ = ops.scan(body, x, length=4)
        return last.sum() + ops.conv(ops.reshape(x, (1, 1, 5, 6)), kernel, padding=(4, 5)).sum()

    found = {op.kernel.name: op.flops for op in lowered(loss, "strides", "aliases").ops}
    assert found["convolve"] == 2 * 9 * 11 * 30
    assert 4 * 2 * 5 * 6 * 6 <= found["loop"] < 2 * 4 * 2 * 5 * 6 * 6 + 4 * 100
