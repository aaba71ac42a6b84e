"""The table of PyTorch's names beside PyTorch: it has them, and the expressions give what its functions give."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dgrr.tape
from dgrr.base.pytorch_names import Row, row_of, sections
from dgrr.runtime import optim
from dgrr.tape import nn, ops

torch: Any = pytest.importorskip("torch", reason="the comparison needs PyTorch: pip install -e '.[test,torch]'")

FREE = {"x", "a", "b", "c"}
"""What stands for the arguments in expressions that are compared."""


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.module)
def test_pytorch_has_each_of_its_names(section: Any) -> None:
    module = torch.Tensor if section.module == "torch.Tensor" else importlib.import_module(section.module)
    assert [row.name for row in section.rows if not hasattr(module, row.name)] == []


def free(row: Row) -> set[str]:
    """The names in an expression that are no modules of ours."""
    names: set[str] = set() if row.is_name or not row.here else set(compile(row.here, row.name, "eval").co_names)
    code = compile(row.here or "0", row.name, "eval")
    return {name for name in names if name in FREE or not _known(name, code)}


def _known(name: str, code: Any) -> bool:
    return name in ("ops", "np", "list", "abs") or any(hasattr(o, name) for o in (ops, np, dgrr.tape.Var))


COMPARED = [
    row
    for section in sections()
    if section.module in ("torch", "torch.nn.functional", "torch.linalg")
    for row in section.rows
    if row.here and not row.is_name and free(row) <= FREE and free(row)
]
OTHER_FORMS: dict[str, Callable[[Any, Any, Any, Any], Any] | None] = {
    "addmm": lambda x, a, b, c: torch.addmm(c, a, b),
    "baddbmm": lambda x, a, b, c: torch.baddbmm(c[None], a[None], b[None])[0],
    "addcmul": lambda x, a, b, c: torch.addcmul(c, a, b),
    "addcdiv": lambda x, a, b, c: torch.addcdiv(c, a, b),
    "select": None,  # needs an index
    "unbind": None,  # gives a list
    "matrix_power": lambda x, a, b, c: torch.linalg.matrix_power(a, 2),
    "multi_dot": lambda x, a, b, c: torch.linalg.multi_dot([a, b, c]),
    "unsqueeze": lambda x, a, b, c: torch.unsqueeze(x, 1),
    "diff": lambda x, a, b, c: torch.diff(x, dim=0),
    "heaviside": lambda x, a, b, c: torch.heaviside(x, torch.zeros(())),
    "normalize": lambda x, a, b, c: torch.nn.functional.normalize(x, dim=-1),
    "softmin": lambda x, a, b, c: torch.nn.functional.softmin(x, dim=-1),
    "glu": None,  # the note says what to do with the parts
    "pdist": lambda x, a, b, c: torch.cdist(x, x),
    "numel": None,  # a number
}
"""How PyTorch is called where it takes more than the arguments of the expression."""


@pytest.mark.parametrize(
    "row", [r for r in COMPARED if r.name not in OTHER_FORMS or OTHER_FORMS[r.name]], ids=lambda r: r.name
)
def test_expressions_give_what_pytorch_gives(row: Row) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.uniform(0.1, 0.9, (3, 3)).astype(np.float32) for name in sorted(FREE)}
    arrays["x"][0, 0] = 0.0 if row.name in ("sinc", "heaviside") else arrays["x"][0, 0]
    tape = dgrr.tape.Tape[Any]()
    given = {name: tape.const(array) for name, array in arrays.items()}
    found = eval(row.here, {"ops": ops, "np": np, "nn": nn, **given})
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    call = OTHER_FORMS.get(row.name)
    if call is None:
        used = [tensors[name] for name in sorted(free(row))]
        expected = getattr(importlib.import_module(row.module), row.name)(*used)
    else:
        expected = call(**tensors)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_enough_expressions_are_compared() -> None:
    assert len(COMPARED) > 35


def sources() -> set[str]:
    """What docstrings of ops and layers name as their source in PyTorch."""
    found: set[str] = set()
    for package in (dgrr.tape.ops, dgrr.tape.nn):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            text = inspect.getsource(importlib.import_module(module.name))
            for source in re.findall(r"Source: .*", text):
                found |= set(re.findall(r"\btorch\.[\w.]*\w", source))
    return found


def test_what_docstrings_name_as_a_source_is_in_the_table() -> None:
    listed = {f"{row.module}.{row.name}" for section in sections() for row in section.rows}
    assert sources() - listed == set()
    assert len(sources()) > 140


@pytest.mark.parametrize(
    ("ours", "home", "theirs"),
    [(nn, "nn", [torch.nn]), (ops, "ops", [torch, torch.nn.functional, torch.linalg]), (optim, "optim", [torch.optim])],
)
def test_each_of_our_names_that_pytorch_has_too_is_in_the_table(ours: Any, home: str, theirs: list[Any]) -> None:
    both = [name for name in ours.__all__ if any(callable(getattr(module, name, None)) for module in theirs)]
    assert [name for name in both if row_of(name, home) is None] == []
    assert len(both) > 10
