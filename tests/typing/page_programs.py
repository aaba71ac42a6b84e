"""The Python blocks of each page as one program, and the examples as users type them, given to mypy and pyright.

mypy is strict but for its rules of functions without annotations, and lets an op's function have no body, as in this
package. pyright is in its standard mode for pages, in its basic one for examples.
"""

import ast
import runpy
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checkers import ROOT, mypy, pyright

BLOCK = runpy.run_path(str(ROOT / "tests" / "house" / "run_page.py"))["BLOCK"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [*sorted((ROOT / "docs" / "examples").glob("*.py")), *sorted(Path(__file__).parent.glob("port_*.py"))]
OTHERS = ("jax", "numba", "pandas", "torch")
"""What pages import that checkers need not find."""

SETTINGS = f"""
[[tool.mypy.overrides]]
module = "pages.*"
disallow_untyped_defs = false
disallow_incomplete_defs = false
disallow_untyped_calls = false
disable_error_code = ["empty-body"]

[[tool.mypy.overrides]]
module = {[f"{name}.*" for name in OTHERS]}
follow_imports = "skip"
ignore_missing_imports = true
"""


@dataclass(frozen=True)
class Program:
    """A program whose lines stand where they stand in its source."""

    source: Path
    text: str


def composed(page: Path) -> Program:
    """The blocks of a page in their order, each in its lines; the rest of the page is empty lines."""
    text, made = page.read_text(), ""
    for block in BLOCK.finditer(text):
        made += "\n" * (text.count("\n", 0, block.start(1)) - made.count("\n")) + block[1]
    return Program(page, made)


def unannotated(example: Path) -> Program:
    """An example whose functions have no annotations, but for arguments that are None unless they are given."""
    text = example.read_text()
    lines = [line.encode() for line in text.splitlines()]  # columns are those of bytes
    for start, end in sorted(_annotations(text), reverse=True):
        (row, left), (last, right) = start, end
        assert row == last, f"{example.name}:{row}: an annotation of several lines"
        lines[row - 1] = lines[row - 1][:left] + lines[row - 1][right:]
    return Program(example, b"\n".join([*lines, b"# pyright: basic", b""]).decode())


Span = tuple[tuple[int, int], tuple[int, int]]


def _annotations(text: str) -> Iterator[Span]:
    """From where to where annotations of functions stand."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            if node.returns:
                arrow = text.splitlines()[node.returns.lineno - 1].encode().rindex(b" ->", 0, node.returns.col_offset)
                yield (node.returns.lineno, arrow), _end(node.returns)
            for argument in set(node.args.args) - _optional(node.args):
                if argument.annotation:
                    yield (argument.lineno, argument.col_offset + len(argument.arg)), _end(argument.annotation)


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _optional(arguments: ast.arguments) -> set[ast.arg]:
    """Those whose default is None, which a checker takes for all that they can be."""
    given = zip(reversed(arguments.args), reversed(arguments.defaults), strict=False)
    return {argument for argument, default in given if isinstance(default, ast.Constant) and default.value is None}


def programs() -> list[Program]:
    """One for each page that has blocks, and for each example."""
    pages = [made for page in PAGES if (made := composed(page)).text]
    return [*pages, *map(unannotated, EXAMPLES)]


def found() -> dict[str, list[str]]:
    """What each checker says of the pages and examples, by file and line of these."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        written, settings = _written(programs(), root), root / "pyproject.toml"
        settings.write_text((ROOT / "pyproject.toml").read_text() + SETTINGS)
        mode = {"typeCheckingMode": "standard", "reportMissingImports": False, "reportMissingModuleSource": False}
        findings = {"mypy": mypy([*written], settings), "pyright": pyright([*written], mode)}
    sources = {path.name: source.relative_to(ROOT) for path, source in written.items()}
    return {
        checker: [f"{sources[each.file.name]}:{each.line}: {each.message} [{each.rule}]" for each in of_it]
        for checker, of_it in findings.items()
    }


def _written(made: list[Program], root: Path) -> dict[Path, Path]:
    """The programs as modules of a package ``pages``, and the source of each."""
    (root / "pages").mkdir()
    (root / "pages" / "__init__.py").touch()
    written = {root / "pages" / f"{program.source.stem}.py": program for program in made}
    assert len(written) == len(made), "two pages of one name"
    for path, program in written.items():
        path.write_text(program.text)
    return {path: program.source for path, program in written.items()}
