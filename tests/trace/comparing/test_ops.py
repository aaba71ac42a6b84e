"""The first op at which two tapes part, in value, in gradient or in the graph itself."""

import json

import pytest

from dgrr.trace import OpDifference, OpDigests, TapeNode
from dgrr.trace.comparing.ops import first_op, graph_difference

F = "float32"
CHAIN = (
    TapeNode("leaf", F, (2,), name="w"),
    TapeNode("exp", F, (2,), (0,), scope="head", place="a.py:1: exp"),
    TapeNode("tanh", F, (2,), (1,)),
    TapeNode("add", F, (2,), (1, 2)),
    TapeNode("sum", F, (), (3,)),
)


def digests(values: str, grads: str, nodes: tuple[TapeNode, ...] = CHAIN) -> OpDigests:
    return OpDigests(nodes, tuple(c.encode() for c in values), tuple(None if c == "." else c.encode() for c in grads))


def named(found: OpDifference | None) -> tuple[str, int, str]:
    assert found is not None
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.lines()[0].startswith("first op that differs: #")
    return found.what, found.index, found.node.op


def test_the_same() -> None:
    assert first_op(digests("abcde", ".bcde"), digests("abcde", ".bcde")) is None


@pytest.mark.parametrize(("values", "index", "op"), [("abcdE", 4, "sum"), ("abCdE", 2, "tanh"), ("aBCDE", 1, "exp")])
def test_values_come_first_and_in_order(values: str, index: int, op: str) -> None:
    assert named(first_op(digests("abcde", "abcde"), digests(values, "ABCDE"))) == ("value", index, op)


@pytest.mark.parametrize(
    ("grads", "op", "index", "target", "others"),
    [
        ("abcdE", "sum", 4, 4, ()),  # nothing takes the loss: it is named itself
        ("abcDe", "sum", 4, 3, ()),
        ("abCde", "add", 3, 2, ()),
        ("ABCde", "add", 3, 2, ()),
        ("ABcde", "add", 3, 1, (2,)),  # two ops add to the gradient of exp
        ("Abcde", "exp", 1, 0, ()),
        (".bcde", "exp", 1, 0, ()),
    ],
)
def test_gradients_come_in_the_order_of_the_way_back(
    grads: str, op: str, index: int, target: int, others: tuple[int, ...]
) -> None:
    found = first_op(digests("abcde", "abcde"), digests("abcde", grads))
    assert named(found) == ("grad", index, op)
    assert found is not None
    assert (found.target, found.others) == (CHAIN[target], others)


def test_an_op_that_got_no_gradient_has_passed_none_on() -> None:
    found = first_op(digests("abcde", "ab.de"), digests("abcde", "aB.de"))
    assert named(found) == ("grad", 3, "add")
    assert found is not None
    assert found.others == ()


def test_lines_of_a_gradient() -> None:
    found = first_op(digests("abcde", "abcde"), digests("abcde", "ABcde"))
    assert found is not None
    assert found.lines() == [
        "first op that differs: #3 of 5, add float32 (2,)",
        "  its backward (or that of op #2) differs: the gradient of exp float32 (2,)",
    ]


def test_the_line_of_the_present_side_is_taken_where_it_is_known() -> None:
    moved = (CHAIN[0], TapeNode("exp", F, (2,), (0,), scope="head", place="b.py:9: exp"), *CHAIN[2:])
    bare = (CHAIN[0], TapeNode("exp", F, (2,), (0,)), *CHAIN[2:])
    a = digests("abcde", "abcde")
    assert graph_difference(CHAIN, moved) is None  # another line, another layer: the same graph
    for nodes, place in ((moved, "b.py:9: exp"), (bare, "a.py:1: exp")):
        found = first_op(a, digests("aBCDE", "ABCDE", nodes))
        assert found is not None
        assert found.lines()[-1] == f"  {place}"


def with_node(at: int, node: TapeNode) -> tuple[TapeNode, ...]:
    """The chain with a node more, to which what follows moves on."""
    moved = [
        TapeNode(n.op, n.dtype, n.shape, tuple(p + (p >= at) for p in n.parents), n.attrs, n.name, n.scope, n.place)
        for n in CHAIN
    ]
    return (*moved[:at], node, *moved[at:])


@pytest.mark.parametrize("at", [0, 1, 2, 4, 5])
def test_an_op_more_or_less(at: int) -> None:
    longer = with_node(at, TapeNode("relu", F, (2,), (max(at - 1, 0),) if at else ()))
    assert named(graph_difference(CHAIN, longer)) == ("added", at, "relu")
    assert named(graph_difference(longer, CHAIN)) == ("removed", at, "relu")


@pytest.mark.parametrize(
    "node",
    [
        TapeNode("relu", F, (2,), (1,)),
        TapeNode("tanh", "float64", (2,), (1,)),
        TapeNode("tanh", F, (2, 1), (1,)),
        TapeNode("tanh", F, (2,), (0,)),
        TapeNode("tanh", F, (2,), (1,), attrs="axis=1"),
    ],
)
def test_another_op(node: TapeNode) -> None:
    found = graph_difference(CHAIN, (*CHAIN[:2], node, *CHAIN[3:]))
    assert named(found) == ("changed", 2, node.op)
    assert found is not None
    assert (found.was, found.inputs_agree) == (CHAIN[2], False)


STEP = TapeNode("leaf", "int64", ())


@pytest.mark.parametrize(
    ("leaf", "taker", "short"),
    [
        (STEP, ("uniform", "seed=0, micro_batch=0, ordinal=0"), "the step of uniform, a draw of ctx.random"),
        (STEP, ("cast", "dtype='float32'"), "the int64 () that cast takes"),
        (TapeNode("leaf", F, (2,)), ("dropout", "p=0.5, ordinal=0"), "the float32 (2,) that dropout takes"),
        (TapeNode("leaf", F, (2,), name="v"), ("neg", ""), "'v'"),
    ],
)
def test_a_leaf_more_or_less_is_told_by_the_op_that_takes_it_and_its_line(
    leaf: TapeNode, taker: tuple[str, str], short: str
) -> None:
    op, attrs = taker
    longer = (*CHAIN, leaf, TapeNode(op, F, (2,), (5,), attrs, place="m.py:7: the line"))
    said = f"it is taken by {op}{f' ({attrs})' if attrs else ''} float32 (2,)"
    for found, has in (
        (graph_difference(CHAIN, longer), "b has it, a has not"),
        (graph_difference(longer, CHAIN), "a has it, b has not"),
    ):
        assert found is not None
        assert (found.short, found.lines()[1:]) == (short, [f"  {has}; {said}", "  m.py:7: the line"])


def test_the_backward_of_a_leaf_is_not_told_by_an_op_that_takes_it() -> None:
    leaf = TapeNode("leaf", F, (2,))
    found = first_op(digests("a", "b", (leaf,)), digests("a", "c", (leaf,)))
    assert found is not None
    assert found.short == "the backward of a constant"


def test_a_leaf_that_no_op_takes() -> None:
    found = graph_difference(CHAIN, (*CHAIN, STEP))
    assert found is not None
    assert (found.short, found.lines()[1:]) == ("a constant", ["  b has it, a has not"])


def test_two_params_in_each_others_place() -> None:
    one = (TapeNode("leaf", F, (2,), name="v"), TapeNode("leaf", F, (2,), name="w"), TapeNode("sub", F, (2,), (0, 1)))
    other = (one[1], one[0], one[2])
    assert graph_difference(one, one) is None
    assert graph_difference(one, other) is not None


def test_long_tapes_are_aligned_near_the_first_difference() -> None:
    long = [TapeNode("leaf", F, ())] + [TapeNode("neg", F, (), (i,)) for i in range(3000)]
    other = [
        *long[:1500],
        TapeNode("exp", F, (), (1499,)),
        *(TapeNode("neg", F, (), (i + 1,)) for i in range(1499, 3000)),
    ]
    assert named(graph_difference(long, other)) == ("added", 1500, "exp")


def test_lines_of_what_no_op_made() -> None:
    found = first_op(digests("abcde", "abcde"), digests("ABCDE", "ABCDE"))
    assert found is not None
    assert found.short == "the float32 (2,) that exp takes"
    assert found.lines() == [
        "first op that differs: #0 of 5, leaf 'w' float32 (2,)",
        "  no op made it, its value differs; it is taken by exp float32 (2,)",
        "  a.py:1: exp",
    ]


TAKEN = "  in its place a has tanh float32 (2,); it is taken by add float32 (2,)"


@pytest.mark.parametrize(
    ("node", "line", "short"),
    [
        (TapeNode("relu", F, (2,), (1,)), "  in its place a has tanh float32 (2,)", "relu instead of tanh"),
        (TapeNode("tanh", F, (2,), (1,), "axis=1"), "  in its place a has tanh float32 (2,)", "tanh"),
        (TapeNode("leaf", F, (2,)), TAKEN, "the float32 (2,) that add takes instead of tanh"),
        (TapeNode("leaf", F, (2,), name="v"), TAKEN, "'v' instead of tanh"),
        (TapeNode("tanh", F, (2,), (0,)), "  it takes other inputs in b than in a", "tanh"),
    ],
)
def test_lines_of_another_op(node: TapeNode, line: str, short: str) -> None:
    found = graph_difference(CHAIN, (*CHAIN[:2], node, *CHAIN[3:]))
    assert found is not None
    assert (found.lines()[1], found.short) == (line, short)


def test_lines_of_an_op_more_or_less() -> None:
    longer = with_node(2, TapeNode("relu", F, (2,), (1,), scope="fc"))
    for pair, line in (((CHAIN, longer), "  b has it, a has not"), ((longer, CHAIN), "  a has it, b has not")):
        found = graph_difference(*pair)
        assert found is not None
        assert found.lines() == [f"first op that differs: #2 of {6}, relu float32 (2,) in layer fc", line]
