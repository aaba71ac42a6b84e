"""The first op at which two recorded steps part: its inputs agree and its output does not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import ClassVar, Literal, TypeAlias

from ...base.runs.completed_step import CODE, CONSUMED, TapeNode
from ..json_value import Plain
from ..v2.read.op_digests import OpDigests

Block: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]
"""What `difflib` says of a stretch of two lists: from where to where in `a`, and in `b`."""

LEAF = "leaf"
_WINDOW = 400
"""How many nodes behind the first different one are aligned."""
_WIDER = 2000
"""By how many more at most, where one tape is longer."""


@dataclass(frozen=True, slots=True)
class OpDifference(Plain):
    """The first op that differs, in order of execution: first all values, then the gradients in backward order.

    Args:
        what: "value": its inputs agree and its value differs; "grad": what arrives at it agrees and the gradient it
            passes on differs; "added", "removed" or "changed": the two tapes do not hold the same ops.
        index: its place in the list of nodes (of `b`; of `a` if it was removed).
        node: the op itself.
        count: how many nodes the list has.
        was: what `a` has in its place, where it was changed.
        target: for "grad": the node whose gradient differs; for a leaf: the first op that takes it.
        others: for "grad": further ops that add to the same gradient; it may be one of them instead.

    >>> OpDifference("value", 3, TapeNode("exp", "float32", (2,), (2,), scope="head"), 9).short
    'exp in layer head'
    """

    _keys: ClassVar = ("what", "index", "count", "inputs_agree", "others", "node", "was", "target")

    what: Literal["value", "grad", "added", "removed", "changed"]
    index: int
    node: TapeNode
    count: int
    was: TapeNode | None = None
    target: TapeNode | None = None
    others: tuple[int, ...] = ()

    @property
    def inputs_agree(self) -> bool:
        """Whether what it takes is the same in both; not known where the tapes do not hold the same ops."""
        return self.what in ("value", "grad")

    @property
    def short(self) -> str:
        """Which op in which layer, in a few words."""
        if self.what == "value" and self.node.op == LEAF and self.target is not None:
            return _taken(self.node, self.target)
        if self.node.op == CODE and self.was is None:
            return f"{'the backward of the code ' if self.what == 'grad' else ''}{_code(self.node)}"
        taker = None if self.what == "grad" else self.target
        name, was = _called(self.node, taker), None if self.was is None else _called(self.was)
        instead = "" if was in (None, name) else f" instead of {was}"
        return f"{'the backward of ' if self.what == 'grad' else ''}{name}{_layer(self.node)}{instead}"

    def lines(self) -> list[str]:
        """For a screen: what differs, its shape, its layer, and the user's line."""
        head = f"first op that differs: #{self.index} of {self.count}, {_said(self.node)}{_layer(self.node)}"
        place = self.node.place or ("" if self.node.op != LEAF or self.target is None else self.target.place)
        return [head, f"  {self._explained()}", *([f"  {place}"] if place else [])]

    def _explained(self) -> str:
        target = "" if self.target is None else f"{_said(self.target)}"
        taken = f"; it is taken by {target}" if target and self.node.op == LEAF else ""
        if self.what == "value" and self.node.op == LEAF:
            return f"no op made it, its value differs{taken}"
        if self.what == "grad":
            also = f" (or that of op {', '.join(f'#{i}' for i in self.others)})" if self.others else ""
            return f"its backward{also} differs: the gradient of {target}"
        if self.was is not None:
            said = f"{_said(self.was)}{_layer(self.was)}"
            other = said == f"{_said(self.node)}{_layer(self.node)}"
            return "it takes other inputs in b than in a" if other else f"in its place a has {said}{taken}"
        told = {"value": "its inputs agree, its value differs", "added": "b has it, a has not"}
        return told.get(self.what, "a has it, b has not") + taken


def first_op(a: OpDigests, b: OpDigests) -> OpDifference | None:
    """Where two steps part; None if every value and every gradient is the same."""
    changed = graph_difference(a.nodes, b.nodes)
    return changed or _first_value(a, b) or _first_gradient(a, b) or _consumed(a, b)


def _placed(a: OpDigests, b: OpDigests, index: int) -> TapeNode:
    """A node with the user's line of the present side, else of the other."""
    return b.nodes[index] if b.nodes[index].place else a.nodes[index]


def _first_value(a: OpDigests, b: OpDigests) -> OpDifference | None:
    differing = (i for i, (x, y) in enumerate(zip(a.values, b.values, strict=True)) if x != y)
    index = next((i for i in differing if b.nodes[i].name != CONSUMED), None)
    if index is None:
        return None
    taker = _taker(b.nodes, index)
    target = None if taker is None else _placed(a, b, taker)
    return OpDifference("value", index, _placed(a, b, index), len(b.nodes), target=target)


def _consumed(a: OpDigests, b: OpDigests) -> OpDifference | None:
    """What the optimizer takes is computed behind the whole backward pass."""
    last = len(b.nodes) - 1
    if last < 0 or b.nodes[last].name != CONSUMED or a.values[last] == b.values[last]:
        return None
    return OpDifference("value", last, _placed(a, b, last), len(b.nodes))


def _taker(nodes: Sequence[TapeNode], index: int) -> int | None:
    """The first op that takes a leaf, which has no line of its own; None for what an op made."""
    return next((i for i, node in enumerate(nodes) if nodes[index].op == LEAF and index in node.parents), None)


def _first_gradient(a: OpDigests, b: OpDigests) -> OpDifference | None:
    """On the way back: the last node whose gradient differs was computed first, by the ops that take it and got one."""
    index = next((i for i in reversed(range(len(a.grads))) if a.grads[i] != b.grads[i]), None)
    if index is None:
        return None
    arrived = {i for i, pair in enumerate(zip(a.grads, b.grads, strict=True)) if any(pair)}
    *others, op = [i for i, node in enumerate(b.nodes) if index in node.parents and i in arrived] or [index]
    return OpDifference(
        "grad", op, _placed(a, b, op), len(b.nodes), target=b.nodes[index], others=tuple(reversed(others))
    )


def graph_difference(a: Sequence[TapeNode], b: Sequence[TapeNode]) -> OpDifference | None:
    """The first op that was added, removed or changed between two tapes; None if they hold the same ops.

    >>> one = [TapeNode("leaf", "float64", ()), TapeNode("exp", "float64", (), (0,))]
    >>> found = graph_difference(one, [*one, TapeNode("tanh", "float64", (), (1,))])
    >>> found.what, found.node.op
    ('added', 'tanh')
    """
    start = _first_other(a, b)
    if start == len(a) == len(b):
        return None
    codes = _blocks(a, b, start, start)
    tag, i, _, j, _ = next((code for code in codes if code[0] != "equal"), ("replace", start, start, start, start))
    if tag == "delete":
        return _other("removed", a, i)
    if tag == "insert":
        return _other("added", b, j)
    return _other("changed", b, j, was=a[i])


def aligned(a: Sequence[TapeNode], b: Sequence[TapeNode]) -> Iterator[Block]:
    """Two tapes beside each other from their beginning to their end: the ops that both have, and what lies between.

    It goes by windows, which are wider by what one tape has more, up to 2,000.

    >>> one = [TapeNode("leaf", "float64", ()), TapeNode("exp", "float64", (), (0,))]
    >>> list(aligned(one, [*one, TapeNode("tanh", "float64", (), (1,))]))
    [('equal', 0, 2, 0, 2), ('insert', 2, 2, 2, 3)]
    """
    window = _WINDOW + min(abs(len(a) - len(b)), _WIDER)
    i = j = _first_other(a, b)
    if i:
        yield "equal", 0, i, 0, j
    while i < len(a) or j < len(b):
        codes = _blocks(a, b, i, j, window)
        whole = i + window >= len(a) and j + window >= len(b)
        while not whole and codes[-1][0] != "equal" and any(code[0] == "equal" for code in codes):
            codes.pop()  # what the window cuts off is aligned in the next
        yield from codes
        i, j = codes[-1][2], codes[-1][4]


def _first_other(a: Sequence[TapeNode], b: Sequence[TapeNode]) -> int:
    """The first place at which the ops or their inputs are others; the length of both if there is none."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if _key(x) != _key(y)), min(len(a), len(b)))


def _blocks(a: Sequence[TapeNode], b: Sequence[TapeNode], i: int, j: int, window: int = _WINDOW) -> list[Block]:
    """The ops behind two places, aligned without inputs, whose positions move behind what was added or removed."""
    x, y = (list(map(_kind, nodes[k : k + window])) for nodes, k in ((a, i), (b, j)))
    codes = SequenceMatcher(None, x, y, autojunk=False).get_opcodes()
    return [(tag, i + i1, i + i2, j + j1, j + j2) for tag, i1, i2, j1, j2 in codes]


def _other(
    what: Literal["added", "removed", "changed"], nodes: Sequence[TapeNode], index: int, was: TapeNode | None = None
) -> OpDifference:
    taker = _taker(nodes, index)
    target = None if taker is None else nodes[taker]
    return OpDifference(what, index, nodes[index], len(nodes), was, target)


def same_but_for_seed(op: OpDifference, seeds: tuple[int, int]) -> bool:
    """Whether a changed op differs in nothing but the seed of the run."""
    if op.what != "changed" or op.was is None:
        return False
    attrs = op.was.attrs.replace(f"seed={seeds[0]}", f"seed={seeds[1]}")
    return _key(replace(op.was, attrs=attrs)) == _key(op.node)


def _kind(node: TapeNode) -> tuple[object, ...]:
    """What an op is, without its place in the list and in the source."""
    return node.op, node.dtype, node.shape, node.attrs, node.name if node.op == LEAF else ""


def _key(node: TapeNode) -> tuple[object, ...]:
    return *_kind(node), node.parents


def _called(node: TapeNode, taker: TapeNode | None = None) -> str:
    """The op, or what no op made by its name, or else by the op that takes it."""
    if node.op != LEAF:
        return node.op
    if node.name:
        return f"'{node.name}'"
    return "a constant" if taker is None else _taken(node, taker)


def _taken(leaf: TapeNode, op: TapeNode) -> str:
    """A leaf by the op that takes it: a draw takes the count of steps, besides its seed and its ordinal."""
    if (leaf.dtype, leaf.shape) == ("int64", ()) and "ordinal=" in op.attrs:
        return f"the step of {op.op}, a draw of ctx.random"
    return f"the {leaf.dtype} {leaf.shape} that {op.op} takes"


def _code(node: TapeNode) -> str:
    """Code that is no op: between what it lies, in which function, and where."""
    lines, _, function = node.place.rpartition(": ")
    return f"{node.attrs} ({function}, {lines})" if lines else node.attrs


def _said(node: TapeNode) -> str:
    named = f" '{node.name}'" if node.name else ""
    attrs = f" ({node.attrs})" if node.attrs else ""
    return f"{node.op}{named}{attrs} {node.dtype} {node.shape}"


def _layer(node: TapeNode) -> str:
    return f" in layer {node.scope}" if node.scope else ""
