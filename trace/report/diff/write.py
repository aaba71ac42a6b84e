"""Writing the page of two runs that were compared."""

import os
from collections.abc import Iterator
from pathlib import Path

from .... import __version__
from ....base.atomic_file import replacing, require_replaceable
from ....base.errors import DomainError
from ....base.system import FilePath
from ...comparing.ops import OpDifference, first_op
from ...comparing.result import Cause, Comparison
from ...comparing.settings import Differing
from ..graph import MOST_NODES
from ..page import escaped, filled, policy, require_other_name
from .chart import chart
from .markup import element, table
from .ops import counted, gradients, values
from .rows import Rows

_SHOWN = 8
"""How many tensors are shown; more are folded."""

_LEGEND = (
    ". On the right of each that differs: the beginning of its digest; of its inputs, those that differ are in bold. "
    "The keys j and k go to the next and to the previous difference."
)


def write_diff(found: Comparison, out: FilePath) -> int:
    """Write a page that shows where two runs part, op by op: one self-contained HTML file.

    It shows both steps side by side, in order of execution, with the first difference and everything computed from it;
    the gradients in backward order; both losses; the tensors and settings that differ. It shows ops if both runs
    recorded those of the step: ``Keep(ops=...)``. The page replaces a file of that name once it is complete.

    Args:
        found: what `compare`, `diff_with_model` or `bisect_with_model` found.
        out: the page.

    Returns:
        Its size in bytes.

    Raises:
        DomainError: a file could not be read, so that nothing was compared, or ``out`` is one of the traces.
        OSError: the page cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Keep, Trainer
    >>> from dgrr.trace import compare
    >>> with TemporaryDirectory() as folder:
    ...     for name, start in (("a", 1), ("b", 2)):
    ...         keep = Keep(f"{folder}/{name}", ops="first")
    ...         run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.full(2, float(start))}, SGD(0.1), trace=keep)
    ...         _ = run.fit([np.ones(2)], steps=1)
    ...     nbytes = write_diff(compare(f"{folder}/a", f"{folder}/b"), f"{folder}/page.html")
    >>> nbytes < 20_000
    True
    """
    require_page(found.a, found.b, out=out)
    if not found.compared:
        text = f"expected a comparison of two traces that can be read, got {found.verdict.value}: {found.sentence}"
        raise DomainError(f"write_diff: argument 'found': {text}")
    page = _page(found).encode(errors="replace")  # a path may hold what no text can
    with replacing(out) as file:
        file.write(page)
    return len(page)


def require_page(*traces: str, out: FilePath) -> None:
    """Refuse a name that no page of these traces can have. Raises DomainError, OSError."""
    require_other_name("write_diff", traces, out)
    require_replaceable(out)


def _page(found: Comparison) -> str:
    script = _text("keys.js")
    slots = {
        "title": escaped(f"{_name(found.a)} and {_name(found.b)} - dgrr diff"),
        "policy": policy(script),
        "style": _text("style.css"),
        "main": "".join(_parts(found)),
        "version": escaped(__version__),
        "script": script,
    }
    return filled(_text("page.html"), slots)


def _parts(found: Comparison) -> Iterator[str]:
    first = found.op or (None if found.ops is None else first_op(*found.ops))
    yield _summary(found, first)
    if found.losses is not None:
        yield _section("loss", "Losses", chart(found.losses, found.step))
    yield _section("settings", "Settings that differ", _settings(found.settings))
    yield _section("environment", "Parts of the environment that differ", _settings(found.environment))
    yield from _ops(found, first)
    yield _section("tensors", "Tensors that differ", _tensors(found))


def _summary(found: Comparison, first: OpDifference | None) -> str:
    shown = first is not None and found.ops is not None
    kind = "good" if found.same else "bad"
    paths = "".join(f"<dt>{side}</dt><dd>{escaped(path)}</dd>" for side, path in (("a", found.a), ("b", found.b)))
    parts = [
        f"<h1>{element('span', found.word, kind)} {escaped(found.sentence)}</h1>",
        f"<dl>{paths}</dl>",
        *(element("p", note, "note") for note in found.notes),
        element("pre", "" if first is None else "\n".join(first.lines())),
        '<p><a href="#first">show it among the ops</a></p>' if shown else "",
    ]
    return f'<section id="summary">{"".join(parts)}</section>'


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}">{element("h2", title)}{content}</section>' if content else ""


def _settings(rows: Differing) -> str:
    texts = [(key, *("none" if value is None else str(value) for value in both)) for key, both in rows.items()]
    return table(("setting", "a", "b"), texts) if texts else ""


def _tensors(found: Comparison) -> str:
    rows = [(t.title, f"{t.dtype} {t.shape}", t.figures()) for t in found.tensors]
    heads = ("tensor", "dtype and shape", "how it differs")
    more = f"<details><summary>{len(rows) - _SHOWN} more</summary>{table(heads, rows[_SHOWN:])}</details>"
    return "".join([table(heads, rows[:_SHOWN]), more if rows[_SHOWN:] else ""]) if rows else ""


def _ops(found: Comparison, first: OpDifference | None) -> Iterator[str]:
    """Both steps op by op; or why they are not shown."""
    if found.ops is None:
        yield _section("values", "Ops", element("p", _not_shown(found)))
        return
    step = found.step or 0
    most = max(len(side.nodes) for side in found.ops)
    if most > MOST_NODES:
        text = f"The ops of step {step} are not shown: they are {most:,}, and a page shows {MOST_NODES:,} at most."
        yield _section("values", "Ops", element("p", text))
        return
    name = "" if first is None else first.short
    rows = Rows(*found.ops, first)
    about = element("p", f"{counted(rows.values, 'values')}{_LEGEND if first else ''}")
    names = f'<div class="names">{element("span", _name(found.a))}{element("span", _name(found.b))}</div>'
    yield _section("values", f"Step {step}: values in order of execution", about + names + values(rows, name))
    arrived = [rows.grads[r] for r in rows.backward]
    if arrived:
        about = element("p", counted(arrived, "gradients"))
        title = f"Step {step}: gradients in the order of the way back"
        yield _section("gradients", title, about + names + gradients(rows, name))


def _not_shown(found: Comparison) -> str:
    if found.same:
        return "No step differs, so none is shown op by op."
    if found.cause is Cause.LENGTH:
        return "No step that both runs have differs, so none is shown op by op."
    step = found.step or 0
    return (
        f"The ops of step {step} are not shown: they must be recorded in both runs, as digests of one kind. Record "
        f'both with trace=Keep(path, ops=[{step}]), or with ops="every", and compare them again.'
    )


def _name(path: str) -> str:
    return os.path.basename(path) or path


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
