"""Writes docs/from_pytorch_names.md from the table of names: ``python docs/generate_names.py``.

A test fails when the file is stale.
"""

import re
from pathlib import Path

from dgrr.base.pytorch_names import Row, Section, sections

PAGE = Path(__file__).with_name("from_pytorch_names.md")

CODE = re.compile(
    r"(?<![\w.])(?:nn|ops|optim|data|ctx|tape|model|np|x|dgrr|Trainer|Dataset)(?:\.\w+)*(?:\.\w+|\([^()]*\))"
)
"""What is code in a note."""

HEAD = """# PyTorch's names, and what they are here

Generated from `base/pytorch_names.txt` by `python docs/generate_names.py`; do not edit. What differs as a whole, such
as where parameters and gradients are, says [from_pytorch.md](from_pytorch.md).

`nn` and `ops` are of `dgrr.tape`, `optim` and `data` of `dgrr.runtime`; `x` is a Var, `tape` its Tape, `ctx` the
context that a loss function may take. Where the middle column is a name, it is the name here; where it is an
expression, there is no such name, and that does the same; where it is empty, the note says what to do. A name that is
missing says the same: `nn.BatchNorm2d` is an AttributeError that names `nn.BatchNorm`. Ops are no methods but for
those listed under `torch.Tensor`: `x.sin()` there is `ops.sin(x)` here.
"""


def page() -> str:
    """The whole page."""
    return "".join([HEAD, *map(_section, sections())])


def _section(section: Section) -> str:
    head = f"\n## {section.title}\n\n| `{section.module}` | here | note |\n|---|---|---|\n"
    return head + "".join(map(_row, sorted(section.rows, key=lambda row: (row.name.lower(), row.name))))


def _row(row: Row) -> str:
    note = CODE.sub(r"`\g<0>`", row.note)
    return f"| `{row.name}` | {f'`{row.here}`' if row.here else ''} | {note} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
