"""The house rules that a machine can check: floors, folders, who may import numba, no op names outside the ops."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WINGS = ("tape", "runtime", "trace")

FLOORS = {
    "tape": [
        ["attributes", "errors", "exact", "files", "location"],
        ["dtypes", "nest", "shape", "spec", "ulp"],
        ["numerics", "random"],
        ["tensor"],
        ["table", "tables"],
        ["handle"],
        ["broadcasting", "families"],
        ["var"],
        ["primitive"],
        ["samples"],
        ["signature"],
        ["derivative", "description"],
        ["composed", "op"],
        ["ops"],
        ["node"],
        ["dot", "explain", "hooks", "nonfinite", "show"],
        ["backward"],
        ["compare", "forward", "nodes"],
        ["looking"],
        ["context", "tape"],
        ["gradcheck", "recorded", "symbolic"],
        ["transforms"],
        ["nn"],
    ],
    "runtime": [
        ["digest", "optim", "data", "batch", "memory", "moment"],
        ["recipe", "evaluate"],
        ["ir"],
        ["lower"],
        ["steps"],
        ["plans", "profile"],
        ["verification"],
        ["capture"],
        ["recording", "interrupt", "progress", "callbacks", "metrics", "feed"],
        ["checkpoint", "modes", "journal"],
        ["trainer"],
    ],
    "trace": [
        ["exits", "arguments"],
        ["sniff"],
        ["v1", "v2"],
        ["checking"],
        ["state"],
        ["reexecute"],
        ["recompute"],
        ["recorder"],
        ["demo", "step_command", "v1.commands", "v2.commands"],
        ["cli"],
    ],
}
"""Modules and subpackages of each wing, lowest first; a module imports its own floor and those below."""

LATE_IMPORTS = {"trace/cli.py", "trace/checking.py", "trace/v2/commands.py"}
"""Files that import inside functions, so that answers that need no compiled code come at once."""

NUMBA = ("tape/numerics/", "runtime/optim/kernels.py", "runtime/optim/schedule_kernels.py", "trace/v1/")
"""Where numba may be imported."""


def sources() -> list[Path]:
    return sorted(p for wing in WINGS for p in (ROOT / wing).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Every imported module as an absolute dotted name, apart from imports for type checkers alone."""
    tree = ast.parse(path.read_text())
    package = ["dgrr", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node
            yield from ((f"{module}.{alias.name}", node) for alias in node.names)


def floor_of(wing: str, module: str) -> int | None:
    """The floor of a dotted module name below ``dgrr.<wing>``; None for the wing's own ``__init__``."""
    parts = module.split(".")
    if len(parts) < 3:
        return None
    for module in (".".join(parts[2:4]), parts[2]):
        for floor, names in enumerate(FLOORS[wing]):
            if module in names:
                return floor
    return None


@pytest.mark.parametrize("path", sources(), ids=name)
def test_a_module_imports_only_its_own_floor_or_below(path: Path) -> None:
    wing, *rest = path.relative_to(ROOT).with_suffix("").parts
    if rest == ["__init__"]:
        return
    own = floor_of(wing, ".".join(["dgrr", wing, *rest]))
    assert own is not None, f"{name(path)} stands on no floor; add it to FLOORS"
    for module, _ in imports(path):
        if module.startswith(f"dgrr.{wing}."):
            floor = floor_of(wing, module)
            assert floor is None or floor <= own, f"{name(path)} imports upwards: {module}"


@pytest.mark.parametrize("path", sources(), ids=name)
def test_wings_import_downwards(path: Path) -> None:
    wing, *rest = path.relative_to(ROOT).parts
    allowed = {"tape": {"tape"}, "runtime": {"tape", "runtime"}, "trace": set(WINGS)}[wing]
    if wing == "trace" and rest[0] in ("exits.py", "sniff.py", "v1", "v2") and rest[-1] != "commands.py":
        allowed = {"trace"}  # the formats know neither of the others
    for module, _ in imports(path):
        if module.startswith("dgrr."):
            assert module.split(".")[1] in allowed, f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", sources(), ids=name)
def test_imports_inside_the_package_are_relative(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").split(".")[0] not in (*WINGS, "dgrr"), f"{name(path)}:{node.lineno}"


@pytest.mark.parametrize("path", sources(), ids=name)
def test_imports_stand_at_the_top(path: Path) -> None:
    if name(path) in LATE_IMPORTS:
        return
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef):
            late = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not late, f"{name(path)}:{late[0].lineno} imports inside {function.name}"


@pytest.mark.parametrize("path", sources(), ids=name)
def test_numba_is_imported_where_kernels_live(path: Path) -> None:
    if not name(path).startswith(NUMBA):
        assert not [m for m, _ in imports(path) if m.split(".")[0] in ("numba", "llvmlite")], name(path)


@pytest.mark.parametrize("path", [p for p in sources() if "/ops/" not in name(p)], ids=name)
def test_no_op_names_are_compared_outside_the_ops(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            text = ast.unparse(node)
            assert "op_name ==" not in text, f"{name(path)}:{node.lineno}: {text}"
            assert "op.name ==" not in text, f"{name(path)}:{node.lineno}: {text}"


def test_the_package_list_is_the_folders() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = project["tool"]["setuptools"]["packages"]
    folders = sorted(
        ".".join(["dgrr", *p.parent.relative_to(ROOT).parts]) for w in WINGS for p in (ROOT / w).rglob("__init__.py")
    )
    assert sorted(listed) == folders


@pytest.mark.parametrize("wing", WINGS)
def test_floors_name_only_what_exists(wing: str) -> None:
    there = {p.stem for p in (ROOT / wing).iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    named = {module for floor in FLOORS[wing] for module in floor if "." not in module}
    assert named == there - {"__init__"}
