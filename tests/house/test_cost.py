"""The table of what one more thing costs: its lines are those of made-up examples, its files those of built-in ones."""

import re
from ast import ClassDef, FunctionDef, parse, walk
from functools import cache

import pytest

from .test_docs import ROOT

ROW = re.compile(r"^\| (?P<what>[^|]+) \| [^|]+ \| (?P<files>\d) \| (?P<lines>\d+) \| [^|]+ \|$", re.MULTILINE)

EXAMPLES = {
    "op of each place": ("tape/record/test_pointwise_op.py", "cube"),
    "loss": ("tape/ops/losses/test_loss.py", "squared_hinge_loss", "log_cosh_loss"),
    "pool": ("tape/ops/pooling/test_one_more.py", "min_pool"),
    "activation layer": ("tape/nn/test_one_more.py", "Rounded"),
    "layer with parameters": ("tape/nn/test_one_more.py", "Faded"),
    "rule of each place": ("runtime/optim/made_up.py", "HeavySign"),
    "schedule": ("runtime/optim/made_up.py", "Hyperbola"),
    "ONNX operator that is one op": ("peers/test_onnx_one_more.py", "ROW"),
    "form of a kernel in CUDA C++": ("tape/numerics/cuda/test_one_more.py", "FORM"),
}
"""Where the made-up one of each row stands, whose tests show that nothing else is written."""

BUILT_IN = {
    "op of each place": ("acosh", r"tape/ops/(?!.*kernels)"),
    "loss": ("poisson_nll_loss", ""),
    "pool": ("adaptive_max_pool", "tape/ops/"),
    "activation layer": ("ELU", ""),
    "layer with parameters": ("SwiGLU", ""),
    "rule of each place": ("Adamax", ""),
    "schedule": ("Polynomial", ""),
    "ONNX operator that is one op": ("Asinh", ""),
    "form of a kernel in CUDA C++": ("row_statistics", "tape/ops/.*cuda"),
}
"""A built-in one of each row by name, and where the files are that the row speaks of: formulas are apart."""


@cache
def rows() -> dict[str, re.Match[str]]:
    page = (ROOT / "docs/architecture.md").read_text().partition("## The cost of one more")[2]
    return {row["what"]: row for row in ROW.finditer(page)}


def lines(file: str, name: str) -> int:
    """The lines of a class, or of a function's decorators and overloads, or of a constant, without docstrings."""
    text = (ROOT / "tests" / file).read_text()
    if "SOURCE = '''" in text and f"class {name}(" in text:
        text = text.partition("SOURCE = '''")[2].partition("'''")[0]
    found = 0
    for node in walk(parse(text)):
        if isinstance(node, ClassDef) and node.name == name:
            docs = {n for part in walk(node) if isinstance(part, ClassDef | FunctionDef) for n in _docstring(part)}
            first = min(decorator.lineno for decorator in node.decorator_list)
            own = range(first, (node.end_lineno or 0) + 1)
            found += sum(bool(text.splitlines()[n - 1].strip()) for n in own if n not in docs)
        elif isinstance(node, FunctionDef) and node.name == name:
            first = min(decorator.lineno for decorator in node.decorator_list)
            behind = set(range(first, (node.end_lineno or 0) + 1)) - set(_docstring(node))
            found += len(behind) if file.endswith("test_loss.py") else node.lineno - first
    return found or _constant(text, name)


def _docstring(node: ClassDef | FunctionDef) -> range:
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def _constant(text: str, name: str) -> int:
    for node in parse(text).body:
        if getattr(getattr(node, "targets", [None])[0], "id", "") == name:
            return (node.end_lineno or 0) - node.lineno + 1
    raise AssertionError(f"{name} is not there")


@pytest.mark.parametrize("what", EXAMPLES)
def test_lines_are_those_of_the_made_up_one(what: str) -> None:
    file, *names = EXAMPLES[what]
    assert {lines(file, name) for name in names} == {int(rows()[what]["lines"])}
    assert int(rows()[what]["lines"]) <= 12


@pytest.mark.parametrize("what", BUILT_IN)
def test_files_are_those_of_a_built_in_one(what: str) -> None:
    name, where = BUILT_IN[what]
    word = re.compile(rf"\b{name}\b")
    every = [path for wing in ("base", "tape", "runtime", "trace") for path in (ROOT / wing).rglob("*.py")]
    found = [path.relative_to(ROOT).as_posix() for path in every if word.search(path.read_text())]
    files = [file for file in found if re.match(where, file)]
    assert len(files) == int(rows()[what]["files"]) <= 2, files


def test_every_row_is_held() -> None:
    assert EXAMPLES.keys() == BUILT_IN.keys()
    assert rows().keys() - EXAMPLES.keys() == {
        "kernel of a formula on a GPU",
        "loss whose mean is an op",
        "attribute of an op that must be in a range",
        "layer over one or two axes",
    }
