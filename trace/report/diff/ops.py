"""The ops of two steps as HTML: each row a node of both, equal ones quiet and long stretches of them folded."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from ....base.runs.completed_step import TapeNode
from ..page import escaped
from .markup import element
from .rows import RowMark, Rows, Side

_AROUND = 2
"""How many equal rows are shown before and behind those that differ."""

_FEWEST = 6
"""How many equal rows are folded at least."""

_SAID = {
    RowMark.FIRST: "first difference: ",
    RowMark.FLOWS: "follows from the first",
    RowMark.BESIDE: "does not follow from the first",
}


def values(rows: Rows, first: str) -> str:
    """All values in order of execution; `first` is what the first difference is called."""
    made = [(mark, _of_value(rows, r, first if mark is RowMark.FIRST else "")) for r, mark in enumerate(rows.values)]
    return _folded(made, "ops")


def gradients(rows: Rows, first: str) -> str:
    """All gradients in the order of the way back, likewise."""
    marks = [(rows.grads[r], r) for r in rows.backward]
    made = [(mark, _of_gradient(rows, r, first if mark is RowMark.FIRST else "")) for mark, r in marks]
    return _folded(made, "gradients")


def counted(marks: Sequence[RowMark], what: str) -> str:
    """How many differ, and how many of them follow from the first difference.

    >>> counted([RowMark.EQUAL, RowMark.FIRST, RowMark.FLOWS, RowMark.BESIDE], "values")
    '3 of 4 values differ: the first, 1 that follows from it, 1 that does not'
    """
    first, flows, beside = (marks.count(mark) for mark in _SAID)
    differ = first + flows + beside
    if not differ:
        return f"all {len(marks)} {what} are equal"
    parts = ["the first"] if first else []
    source = "it" if first else "the first difference"
    parts += [f"{flows} that {'follows' if flows == 1 else 'follow'} from {source}"] if flows else []
    parts += [f"{beside} that {'does' if beside == 1 else 'do'} not"] if beside else []
    return f"{differ} of {len(marks)} {what} differ: {', '.join(parts)}"


def _folded(made: Iterable[tuple[RowMark, str]], what: str) -> str:
    parts = list[str]()
    stretches = [
        (equal, [row for _, row in rows]) for equal, rows in groupby(made, lambda row: row[0] is RowMark.EQUAL)
    ]
    for place, (equal, rows) in enumerate(stretches):
        begin = _AROUND if place else 0
        end = len(rows) - (_AROUND if place + 1 < len(stretches) else 0)
        if not equal or end - begin < _FEWEST:
            parts += rows
            continue
        count = f"{end - begin:,} equal {what}"
        folded = f"<details><summary>{count}</summary>{''.join(rows[begin:end])}</details>"
        parts += [*rows[:begin], folded, *rows[end:]]
    return "".join(parts)


def _of_value(rows: Rows, number: int, first: str) -> str:
    row = rows.rows[number]
    sides = [_node(side, at, inputs=True) for side, at in zip(rows.sides, row.both, strict=True)]
    return _row(rows.values[number], row.change, sides, rows.digests(row), first)


def _of_gradient(rows: Rows, number: int, first: str) -> str:
    row = rows.rows[number]
    sides = [_node(side, at, inputs=False) for side, at in zip(rows.sides, row.both, strict=True)]
    return _row(rows.grads[number], "", sides, rows.gradients(row), first)


def _row(mark: RowMark, change: str, sides: Sequence[str], digests: Sequence[bytes | None], first: str) -> str:
    """An equal row says once what both say; another has a mark, and the digest of each side."""
    if mark is RowMark.EQUAL:
        cells = sides[:1] if sides[0] == sides[1] else sides
        return f'<div class="r">{"".join(map(_cell, cells))}</div>'
    told = element("p", ", ".join(filter(None, (f"{_SAID[mark]}{first}", change))), "mark")
    both = [
        _cell(side and f"{element('samp', 'none' if digest is None else digest.hex()[:8])}{side}")
        for side, digest in zip(sides, digests, strict=True)
    ]
    place = ' id="first"' if mark is RowMark.FIRST else ""
    return f'<div class="r d {mark.value}"{place} role="group" tabindex="-1">{told}{"".join(both)}</div>'


def _cell(side: str) -> str:
    return f'<div class="c">{side}</div>' if side else '<div class="c none">–</div>'


def _node(side: Side, at: int | None, *, inputs: bool) -> str:
    """A node of one run: its op, what it is called, its dtype and shape, its layer; its inputs, and the user's line."""
    if at is None:
        return ""
    node = side.ops.nodes[at]
    name = f" '{node.name}'" if node.name else ""
    parts = [
        element("b", f"#{at} {node.op}{name}"),
        escaped(f"{node.dtype} {node.shape}"),
        element("i", node.scope and f"layer {node.scope}"),
    ]
    if inputs:
        parts += [element("span", node.attrs), _inputs(side, node), element("code", node.place)]
    return " ".join(filter(None, parts))


def _inputs(side: Side, node: TapeNode) -> str:
    """The positions of the inputs; of those that differ in bold letters."""
    parts = [f"<b>#{p}</b>" if p in side.others else f"#{p}" for p in node.parents]
    return f"<small>of {', '.join(parts)}</small>" if parts else ""
