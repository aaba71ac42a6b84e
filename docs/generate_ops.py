"""Writes docs/ops.md from the tables of ops and composed functions: ``python docs/generate_ops.py``.

A test fails when the file is stale.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dgrr.tape import AnyTensor, ops
from dgrr.tape.ops import OPS
from dgrr.tape.ops.cuda_forms import FORMS
from dgrr.tape.record.composed import Composed
from dgrr.tape.record.derivative import NO_GRAD
from dgrr.tape.record.description import Description, described
from dgrr.tape.record.lowering import ViewStep
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Make
from dgrr.tape.values.shape import Pattern
from dgrr.tape.var.op_table import COMPOSED

PAGE = Path(__file__).with_name("ops.md")

HEAD = """# Ops

Generated from the op table by `python docs/generate_ops.py`; do not edit.

Every op is a function of Vars in `dgrr.tape.ops`. A shape such as `(*Bs, M, K)` names its axes: one name has
one size within a call, `*Bs` stands for any number of axes, `...` for any shape. "Derivative by" lists the inputs
that have a gradient. "On a GPU" says which of its kernels are written for tiles there, "translated" where all are the
CPU's own ([gpu.md](gpu.md)), and "-" where there is none, as a view computes nothing. "Covers" gives the names of the
documented op set that the op implements. Every op raises TapeError for Vars of different tapes, and where no argument
is a Var or a tensor, and DTypeError for an attribute of another type than its annotation says; what else it raises
stands with it, with the text of one such error.

A number in the place of an input takes its element type from the inputs that must have the same, so that
`where(mask, x, 0.0)` has that of `x`; two numbers have none, and are refused. An attribute that is a number has no
gradient: a Var in its place is a GradientError, whose text says how the same is written with a Var (`x * c` for
`scale(x, c)`). Whole numbers are those of `operator.index`, numpy's too; a bool is none.

"""


def page() -> str:
    """The whole page."""
    public = [op for op in OPS.values() if not op.private]
    private = [op for op in OPS.values() if op.private]
    parts = [HEAD, _table(public), "\n## What each op does\n\n", *map(_entry, public)]
    parts += [
        "## Functions composed of ops\n\nThe tape shows the ops that they are made of.\n\n",
        _table_of_composed(list(COMPOSED.values())),
        *map(_entry, COMPOSED.values()),
        *map(_plain, sorted(ops.__all__)),
    ]
    parts += [
        "## Private ops\n\nRecords that derivatives and the functions above use; they hold the same properties. One "
        "that has the name of a\nfunction is its plain form, as the tape shows it.\n\n",
        *map(_entry, private),
    ]
    return "".join(parts).rstrip("\n") + "\n"


def _table(records: list[Op]) -> str:
    rows = ["| op | result | derivative by | on a GPU | covers |", "|---|---|---|---|---|"]
    for op in records:
        by = ", ".join(_differentiable(op)) or "none"
        rows.append(
            f"| [`{op.name}`](#{op.name}) | `{_result(op)}` | {by} | {_on_gpu(op)} | {', '.join(op.covers) or '-'} |"
        )
    return "\n".join(rows) + "\n"


def _on_gpu(op: Op) -> str:
    """How the kernels of an op's samples come to a GPU."""
    names = kernels_of(op)
    return ", ".join(f"`{name}`" for name in sorted(names & FORMS.keys())) or ("translated" if names else "-")


def kernels_of(op: Op) -> set[str]:
    """The names of the kernels that an op's samples are lowered to."""
    found: set[str] = set()
    for sample in op.samples(Make(np.dtype(np.float32))):
        inputs, attrs = op.bind(sample.arrays, sample.attrs)
        specs = [None if x is None else AnyTensor(np.asarray(x)).spec for x in inputs]
        waiting = [op.lowered(specs, attrs)[1]]
        while waiting:
            step = waiting.pop().step
            if step is not None:
                waiting.extend(step.inputs)
                found |= set() if isinstance(step, ViewStep) else {step.kernel.name}
    return found


def _table_of_composed(records: list[Composed]) -> str:
    head = "| function | result | covers |\n|---|---|---|\n"
    rows = [f"| [`{f.name}`](#{f.name}) | `{_result(f)}` | {', '.join(f.covers) or '-'} |\n" for f in records]
    return "".join([head, *rows, "\n"]) if records else ""


def _section(name: str, function: Callable[..., Any], description: Description, *more: str) -> str:
    """Name, parameters, text, facts and example of a function."""
    parameters = [str(p).split(":")[0] + _default(p) for p in inspect.signature(function).parameters.values()]
    head = f"### {name}\n\n`{name}({', '.join(parameters)})`"
    facts = "\n".join([*(_fact(fact, entries) for fact, entries in description.facts.items()), *more])
    example = description.example and f"```pycon\n{description.example}\n```"
    return "\n\n".join([part for part in (head, description.text, facts, example) if part]) + "\n\n"


def _fact(name: str, entries: Sequence[str]) -> str:
    """One item, or one with an item for each entry below it."""
    shown = [_rule(entry) for entry in entries] if name == "Shapes" else entries
    below = "".join(f"\n  - {entry}" for entry in shown)
    return f"- {name.lower()}:{below if name == 'Raises' or len(shown) > 1 else f' {shown[0]}'}"


def _rule(entry: str) -> str:
    """A shape rule as code, and what its author says of it."""
    rule, mark, words = entry.partition("; ")
    return f"`{rule}`{mark}{words}"


def _entry(op: Op | Composed) -> str:
    axes = ", ".join(f"{n}: {axis}" for n, axis in op.batch_axis.items())
    more = [f"- batch axis: {axes}"] if axes else []
    more += [f"- excused from the property '{what}': {why}" for what, why in op.excused.items()]
    return _section(op.name, op.function, op.description, *more)


def _plain(name: str) -> str:
    """The entry of a public function that has no record; nothing for one that has, under whatever name."""
    function = getattr(ops, name)
    recorded = not inspect.isfunction(function) or function.__name__ in {*OPS, *COMPOSED}
    return "" if recorded else _section(name, function, described(inspect.cleandoc(function.__doc__ or "")))


def _default(parameter: inspect.Parameter) -> str:
    return "" if parameter.default is parameter.empty else f"={parameter.default!r}"


def _differentiable(op: Op) -> list[str]:
    return [n for n, rule in zip(op.signature.inputs, op.vjp, strict=True) if rule is not NO_GRAD]


def _result(op: Op | Composed) -> str:
    return " or ".join(dict.fromkeys(_shape(result.pattern) for _, result in op.signature.cases))


def _shape(pattern: Pattern) -> str:
    return pattern.render({})


if __name__ == "__main__":
    PAGE.write_text(page())
