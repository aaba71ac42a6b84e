"""The passes that join ops into one, each by itself: products with what follows them, chains of neighbours."""

from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep
from dgrr.runtime.lower.passes.addends import _changed
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import ops
from dgrr.tape.numerics.engine.chain import Chain
from dgrr.tape.ops.linear.kernels.product import Product
from dgrr.tape.var.op_table import OPS

from .programs import BATCH, PARAMS, Loss, kernels, normal, programs

BIG = normal(50, 60)
ANY: Mapping[str, Any] = {"big": BIG, "c": normal(60), "s": normal()}


# ------------------------------------------------------------------ epilogues


def epilogues(loss: Loss) -> Counter[str]:
    """How many products have which epilogue."""
    _, after = programs(loss, "epilogues")
    found = [op.words for op in after.ops if isinstance(op.words, Product)]
    return Counter({name: n for name in ("bias", "relu", "mask") if (n := sum(getattr(w, name) for w in found))})


FUSED: dict[str, tuple[Loss, dict[str, int]]] = {
    "bias": (lambda p, x: ops.tanh(x @ p["w"] + p["b"]).sum(), {"bias": 1}),
    "bias first": (lambda p, x: ops.tanh(p["b"] + x @ p["w"]).sum(), {"bias": 1}),
    "bias of one row": (lambda p, x: ops.tanh(x @ p["w"] + p["flat"]).sum(), {"bias": 1}),
    "relu": (lambda p, x: (ops.relu(x @ p["w"]) * x).sum(), {"relu": 1}),
    "layer": (lambda p, x: (ops.relu(ops.linear(x, p["w"], p["b"])) * x).sum(), {"bias": 1, "relu": 1}),
    "reshaped": (lambda p, x: (ops.relu((x @ p["w"]).reshape(30)) * x.reshape(30)).sum(), {"relu": 1}),
    "two layers": (
        lambda p, x: (ops.relu(ops.relu(ops.tanh(p["v"]) @ p["w"] + p["b"]) @ p["w"].T) * x).sum(),
        {"bias": 1, "relu": 2, "mask": 1},
    ),
    "relu once": (lambda p, x: (ops.relu(ops.relu(x @ p["w"])) * x).sum(), {"relu": 1}),
    "bias after relu": (lambda p, x: (ops.relu(x @ p["w"]) + p["b"]).mean(), {"relu": 1}),
    "one bias of two": (lambda p, x: ops.tanh(x @ p["w"] + p["b"] + p["flat"]).sum(), {"bias": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_what_follows_a_product_joins_it(name: str) -> None:
    loss, expected = FUSED[name]
    assert epilogues(loss) == expected


NOT_FUSED: dict[str, Loss] = {
    "another reader of the product": lambda p, x: (ops.relu(h := x @ p["w"]) * h).sum(),
    "a reader of a part of the product": lambda p, x: (ops.relu(h := x @ p["w"]) * x).sum() + h[0].sum(),
    "a part": lambda p, x: ops.relu((x @ p["w"])[1:3]).sum(),
    "reversed": lambda p, x: ops.relu((x @ p["w"])[::-1]).sum(),
    "transposed": lambda p, x: ops.relu((x @ p["w"]).T).sum(),
    "bias down the columns": lambda p, x: ops.tanh(x @ p["w"] + p["v"][:, :1]).sum(),
    "a number": lambda p, x: ops.tanh(x @ p["w"] + p["s"]).sum(),
    "a whole matrix": lambda p, x: ops.tanh(x @ p["w"] + p["v"]).sum(),
    "part of a longer row": lambda p, x: ops.tanh(x @ p["w"] + p["long"][:6]).sum(),
    "a later part of a row": lambda p, x: ops.tanh(x @ p["w"] + p["long"][3:]).sum(),
    "a row of a matrix": lambda p, x: ops.tanh(x @ p["w"] + p["w"][2]).sum(),
    "a row reversed": lambda p, x: ops.tanh(x @ p["w"] + p["b"][::-1]).sum(),
    "the product itself": lambda p, x: ops.tanh((h := x @ p["w"]) + h).sum(),
    "a bias made later": lambda p, x: ops.tanh(x @ p["w"] + ops.exp(p["b"])).sum(),
    "a mask made later": lambda p, x: OPS["where_positive"](x @ p["w"], ops.tanh(p["v"])).sum(),
    "the product is the mask": lambda p, x: OPS["where_positive"](x, (x @ p["w"])).sum() + p["s"],
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_FUSED)
def test_what_does_not_fit_stays_apart(name: str) -> None:
    assert epilogues(NOT_FUSED[name]) == {}


def test_a_mask_that_is_ready_joins() -> None:
    def loss(p: Any, x: Any) -> Any:
        mask = ops.tanh(p["v"])
        return OPS["where_positive"](x @ p["w"], mask).sum()

    assert epilogues(loss) == {"mask": 1}


def test_a_product_that_is_an_output_stays() -> None:
    """With all gradients asked for, that of a hidden layer is an output before and after its mask."""

    def loss(p: Any, x: Any) -> Any:
        return (ops.relu(x @ p["w"]) @ p["w"]).sum()

    step = CapturedStep(loss, PARAMS, Recipe(SGD(0.1)))
    step(BATCH)
    plans = step.record(BATCH)
    masks = {
        kind: [isinstance(op.words, Product) and op.words.mask for op in plans.executable(kind).bound.plan.program.ops]
        for kind in ("step", "dense")
    }
    assert (sum(masks["step"]), sum(masks["dense"])) == (1, 0)


# ------------------------------------------------------------------ addends

ADDED: dict[str, tuple[Loss, list[int]]] = {
    "behind": (lambda p, x: ops.tanh(x @ p["w"] + p["v"]).sum(), [24]),
    "before": (lambda p, x: ops.tanh(p["v"] + x @ p["w"]).sum(), [24]),
    "made later": (lambda p, x: ops.tanh(x @ p["w"] + ops.exp(p["v"])).sum(), [24]),
    "rows of another": (lambda p, x: ops.tanh(x[:, :4] @ p["w"][:4, :4] + p["v"][:, 2:]).sum(), [24]),
    "two products, and their gradients": (lambda p, x: ops.tanh(x @ p["w"] + p["v"] @ p["w"]).sum(), [24, 24]),
    "down the columns": (lambda p, x: ops.tanh(x @ p["w"] + p["v"][:, :1]).sum(), [24]),
    "one of two": (lambda p, x: ops.tanh(x @ p["w"] + p["v"] + x).sum(), [24]),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_joins_the_product(name: str) -> None:
    loss, expected = ADDED[name]
    _, after = programs(loss, "addends", params={n: PARAMS[n] for n in ("w", "v")})
    assert [op.words.added for op in after.ops if isinstance(op.words, Product) and op.words.added] == expected


NOT_ADDED: dict[str, Loss] = {
    "another reader of the product": lambda p, x: ((h := x @ p["w"]) + p["v"]).sum() + (h * h).sum(),
    "the product itself": lambda p, x: ops.tanh((h := x @ p["w"]) + h).sum(),
    "a part": lambda p, x: ops.tanh((x @ p["w"])[1:3] + p["v"][1:3]).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_ADDED)
def test_what_cannot_be_added_stays_apart(name: str) -> None:
    _, after = programs(NOT_ADDED[name], "addends", params={n: PARAMS[n] for n in ("w", "v")})
    assert [op.words.added for op in after.ops if isinstance(op.words, Product) and op.words.added] == []


@pytest.mark.parametrize(("terms", "takes"), [(256, True), (257, False)])
def test_a_product_of_one_block_takes_the_memory_of_its_addend(terms: int, takes: bool) -> None:
    params = {"w": normal(terms, 6), "v": normal(5, 6)}
    _, after = programs(
        lambda p, x: ops.tanh(x @ p["w"] + ops.exp(p["v"])).sum(), "addends", params=params, batch=normal(5, terms)
    )
    (grown,) = [op for op in after.ops if isinstance(op.words, Product) and op.words.added]
    assert grown.aliases == ((len(grown.inputs) - 1,) if takes else ())


def test_a_product_does_not_move_behind_what_writes_its_operands() -> None:
    program: Any = SimpleNamespace(root=lambda value: value // 10)
    maker: Any = SimpleNamespace(inputs=(10, 20))
    writes: list[Any] = [SimpleNamespace(outputs=(out,)) for out in (25, 30)]
    assert _changed(program, maker, writes)
    assert not _changed(program, maker, writes[1:])


# ------------------------------------------------------------------ chains


def chains(loss: Loss, **options: Any) -> list[list[str]]:
    """The kernels of each chain."""
    _, after = programs(loss, "chains", params=ANY, **options)
    return [[link.kernel.name for link in op.words.links] for op in after.ops if isinstance(op.words, Chain)]


def test_neighbours_over_many_elements_become_one_op() -> None:
    found = chains(lambda p, x: ops.tanh(ops.sigmoid(p["big"] * x) - x).mean(), batch=BIG)
    assert found[0] == ["mul", "sigmoid", "sub", "tanh"]


def test_what_only_a_chain_reads_has_no_memory_of_its_own() -> None:
    _, after = programs(lambda p, x: ops.relu(ops.neg(ops.neg(p["big"]))).mean(), "chains", params=ANY, batch=BIG)
    made = next(op for op in after.ops if isinstance(op.words, Chain))
    assert isinstance(made.words, Chain)
    assert (len(made.outputs), made.words.local) == (1, 2)


def test_what_others_read_is_an_output_of_the_chain() -> None:
    _, after = programs(
        lambda p, x: ops.exp(h := ops.tanh(p["big"])).mean() + h.mean(), "chains", params=ANY, batch=BIG
    )
    made = next(op for op in after.ops if isinstance(op.words, Chain))
    assert isinstance(made.words, Chain)
    assert (len(made.outputs), made.words.local) == (2, 0)


def test_few_elements_make_no_chain() -> None:
    params = {"big": normal(32, 64), "s": normal()}
    before, after = programs(lambda p, x: ops.tanh(ops.exp(p["big"])).mean(), "chains", params=params, batch=BIG)
    assert kernels(before) == kernels(after)


def test_a_chain_ends_at_what_is_no_neighbour() -> None:
    found = chains(
        lambda p, x: ops.exp(ops.tanh(p["big"]) - ops.tanh(p["big"]).sum(1, keepdims=True)).mean(), batch=BIG
    )
    assert not any("sum_rows" in chain for chain in found)
    assert not any("tanh" in chain and "exp" in chain for chain in found)


@pytest.mark.parametrize("at", [(0, 0), (49, 59), (25, 3)])
def test_an_element_of_what_a_chain_makes_is_read_behind_it(at: tuple[int, int]) -> None:
    """Its block may come after the block that reads it."""

    def loss(p: Any, x: Any) -> Any:
        y = ops.tanh(p["big"] * x)
        return (y * y[at].broadcast_to((50, 60))).mean()

    for chain in chains(loss, batch=BIG):
        assert not {"tanh", "copy"} <= set(chain)


def test_an_element_made_before_is_repeated_in_a_chain() -> None:
    found = chains(lambda p, x: ops.exp(p["big"] * p["s"].broadcast_to((50, 60))).mean(), batch=BIG)
    assert ["copy", "mul", "exp"] in [chain[:3] for chain in found]


def test_types_are_mixed_in_a_chain() -> None:
    def loss(p: Any, x: Any) -> Any:
        wide = ops.where(p["big"] > x, ops.cast(p["big"], np.float64), ops.cast(x, np.float64))
        return ops.cast(ops.exp(wide), np.float32).mean()

    assert chains(loss, batch=BIG)[0] == ["less", "to_float64", "to_float64", "where", "exp", "to_float32"]
