"""The table of PyTorch's names: each name of ours in it is there, and what is said of a missing name."""

import ast
import re
import subprocess
import sys
from collections import Counter
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dgrr.runtime
import dgrr.tape
import dgrr.trace
from dgrr.base.pytorch_names import Row, row_of, sections
from dgrr.runtime import data, optim
from dgrr.tape import MissingAttributeError, Tape, nn, ops
from dgrr.tape.nn.context import Random

ROWS = [row for section in sections() for row in section.rows]

ROOTS: dict[str, Any] = {
    "nn": nn,
    "ops": ops,
    "optim": optim,
    "data": data,
    "np": np,
    "tape": Tape,
    "ctx": SimpleNamespace(random=Random),
    "x": Tape().const(np.ones((2, 2))),
}
"""What the names of the table begin with."""

OTHERS = ("x.tape.", "x.value.", "x.numpy()", "x.shape", "np.random", "ctx.state", "model.", "dgrr.runtime.ranks")


def said(text: str) -> list[str]:
    """The dotted names of ours that a text has."""
    return re.findall(rf"(?<![\w.])(?:{'|'.join(ROOTS)})(?:\.[a-zA-Z_]\w*)+", text)


def there_is(dotted: str) -> bool:
    root, _, rest = dotted.partition(".")
    try:
        attrgetter(rest)(ROOTS[root])
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.module)
def test_every_name_of_ours_is_there(section: Any) -> None:
    missing: list[str] = []
    for row in section.rows:
        names = said(row.here) + said(row.note)
        missing += [f"{row.name}: {name}" for name in names if not name.startswith(OTHERS) and not there_is(name)]
        if row.is_name and "." not in row.here and not any(hasattr(m, row.here) for m in (dgrr.tape, dgrr.runtime)):
            missing.append(f"{row.name}: {row.here}")
    assert missing == []


def test_a_name_that_is_not_there_is_found() -> None:
    assert said("ops.sin(x) and nn.Nothing, x.reshape") == ["ops.sin", "nn.Nothing", "x.reshape"]
    assert [there_is(name) for name in ("ops.sin", "nn.Nothing", "ctx.random.normal")] == [True, False, True]


def test_every_row_says_something_and_expressions_are_code() -> None:
    assert [row for row in ROWS if not row.here and not row.note] == []
    for row in ROWS:
        if row.here:
            ast.parse(row.here, mode="eval")


def test_no_name_stands_twice_in_a_section() -> None:
    assert [key for key, n in Counter((row.module, row.name) for row in ROWS).items() if n > 1] == []


OTHERWISE = {"bernoulli", "dropout", "equal", "inv", "normal", "scatter_add", "sum"}
"""Names that both have, where another one of ours does what PyTorch's does."""


def test_a_name_that_both_have_is_itself() -> None:
    shared = [row for row in ROWS if row.module.startswith("torch") and there_is(f"ops.{row.name}")]
    rows = [row for row in shared if row.module in ("torch", "torch.nn.functional", "torch.linalg")]
    assert {row.name for row in rows if row.here != f"ops.{row.name}"} == OTHERWISE


MISSING = [
    (nn, "BatchNorm2d", "dgrr.tape.nn has no 'BatchNorm2d'; it is nn.BatchNorm, for any number of axes"),
    (ops, "cat", "dgrr.tape.ops has no 'cat'; it is ops.concat, its dim is axis"),
    (ops, "softmin", "dgrr.tape.ops has no 'softmin'; write ops.softmax(-x)"),
    (ops, "eigh", "dgrr.tape.ops has no 'eigh'; numpy's on x.numpy(), without a gradient"),
    (ops, "reduce_summ", "dgrr.tape.ops has no 'reduce_summ'; did you mean ops.reduce_sum?"),
    (optim, "Warmup", "dgrr.runtime.optim has no 'Warmup'; did you mean optim.WarmUp?"),
    (optim, "ExponentialLR", "dgrr.runtime.optim has no 'ExponentialLR'; it is optim.Exponential"),
    (dgrr.runtime, "RMSprop", "dgrr.runtime has no 'RMSprop'; it is optim.RMSprop"),
    (dgrr.tape, "meshgrid", "dgrr.tape has no 'meshgrid'; numpy makes arrays: np.zeros(shape, np.float32)"),
    (dgrr.trace, "opentrace", "dgrr.trace has no 'opentrace'; did you mean trace.open_trace?"),
    (dgrr.tape, "tape_", "dgrr.tape has no 'tape_'; did you mean tape.Tape?"),
    (nn, "xyzzy", "dgrr.tape.nn has no 'xyzzy'"),
    (nn, "__wrapped__", "dgrr.tape.nn has no '__wrapped__'"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "text"), MISSING, ids=[name for _, name, _ in MISSING])
def test_a_missing_name_is_refused_with_the_one_that_is_meant(module: Any, name: str, text: str) -> None:
    assert not hasattr(module, name)
    with pytest.raises(MissingAttributeError) as caught:
        getattr(module, name)
    assert str(caught.value) == text


def test_python_adds_no_suggestion_of_its_own() -> None:
    program = "from dgrr.tape import nn; nn.Batchnorm"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stderr.endswith("Error: dgrr.tape.nn has no 'Batchnorm'; did you mean nn.BatchNorm?\n")


def test_the_table_is_read_where_a_name_is_missing_alone() -> None:
    program = (
        "import dgrr.runtime, dgrr.tape.nn; from dgrr.base import pytorch_names as p;"
        "print(p.sections.cache_info().misses)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "0\n"


def test_rows_are_found_by_home() -> None:
    assert row_of("relu", "ops") == Row("torch.nn.functional", "relu", "ops.relu", "")
    assert row_of("relu", "nn") is None
