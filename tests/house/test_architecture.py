"""The house rules that a machine can check: floors, folders, who may import numba, no op names outside the ops."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from .floors import FLOORS, drawn

pytestmark = pytest.mark.xdist_group("architecture")  # one process parses all sources

ROOT = Path(__file__).parents[2]
WINGS = tuple(wing for floor in FLOORS["."] for wing in floor)

LATE_IMPORTS = {
    "runtime/captured/buffers.py",
    "runtime/captured/replayed_step.py",
    "tape/numerics/engine/numba_compiler.py",
    "tape/numerics/llvm/worker.py",
    "trace/cli/arguments.py",
    "trace/cli/formats.py",
    "trace/cli/loading.py",
    "trace/cli/v2.py",
    "trace/exporting/tables.py",
    "trace/golden/plugin.py",
    "trace/golden/traces.py",
    "trace/replaying/validate.py",
    "trace/trace.py",
    "trace/v2/check/validate.py",
    "trace/v2/read/locate.py",
}
"""Files, beside commands, that import in functions, so that what needs no compiled code, or no GPU, comes at once."""

OF_FORMATS = ("trace/v1/", "trace/v2/")
"""What reads and writes files, and knows no screen: how a trace shows itself is said above."""

NUMBA = re.compile(r"tape/numerics/|tape/ops/\w+/kernels(/|\.py)|runtime/optim/(kernels|laws/known)\.py|trace/v1/")
"""Where numba may be imported."""

INTERNALS = tuple(
    f"tape/numerics/{name}.py"
    for name in ("engine/code_for", "engine/numba_compiler", "engine/numba_internals", "interrupts", "llvm/link")
)
"""Where alone numba's internals and llvmlite may be imported."""
PUBLIC = re.compile(r"numba(\.extending|\.types)?(\.[A-Za-z]\w*)?")
"""What numba promises to keep."""


@cache
def sources() -> list[Path]:
    return sorted(p for wing in WINGS for p in (ROOT / wing).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text())))


def place(path: Path, node: ast.AST) -> str:
    """Where a reader finds a piece of a file."""
    return f"{name(path)}:{getattr(node, 'lineno', 0)}"


@cache
def imports(path: Path) -> list[tuple[str, ast.AST]]:
    """Every imported module as an absolute dotted name: in functions, by `import_module`, for type checkers alone."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, ast.AST]]:
    package = ["dgrr", *path.relative_to(ROOT).parts[:-1]]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node
            yield from ((f"{module}.{alias.name}", node) for alias in node.names)
        elif isinstance(node, ast.Call) and (module := by_import_module(node, package)):
            yield module, node


def by_import_module(node: ast.Call, package: Sequence[str]) -> str:
    """What a call imports, as far as its text tells: by `import_module`, under whatever name; none if it does not."""
    function = getattr(node.func, "attr", getattr(node.func, "id", ""))
    said = re.match(r"f?'(\.*)([\w.]*)", ast.unparse(node.args[0])) if function == "import_module" else None
    if said is None:
        return ""
    dots = len(said[1])
    return ".".join([*(package[: len(package) - dots + 1] if dots else []), said[2]]).rstrip(".")


@pytest.mark.parametrize(
    ("call", "module"),
    [
        ("import_module('..nn', __package__)", "dgrr.tape.nn"),
        ("importlib.import_module('..nn', __package__)", "dgrr.tape.nn"),
        ("importlib.import_module('.along', package=__package__).rows", "dgrr.tape.ops.along"),
        ("importlib.import_module('dgrr.trace')", "dgrr.trace"),
        ("importlib.import_module(f'.{family}', __package__)", "dgrr.tape.ops"),
        ("importlib.reload('..nn')", ""),
    ],
)
def test_imports_by_a_call_are_seen(call: str, module: str) -> None:
    calls = [node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call)]
    assert [by_import_module(node, ["dgrr", "tape", "ops"]) for node in calls] == [module]


NOT_ROOMS = {"__init__", "__main__"}
"""A folder's face and its command, which stand above all that is in it."""


def floor_of(folder: str, name: str) -> int | None:
    """The floor of a folder or module inside a folder of rooms; None if it stands on none."""
    return next((i for i, names in enumerate(FLOORS[folder]) if name in names), None)


def meeting(one: Sequence[str], other: Sequence[str]) -> tuple[str, str, str] | None:
    """The folder in which two paths part, and what each of them is there; None if one leads to the other."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return "/".join(one[:i]) or ".", a, b
    return None


def not_below(path: Path, module: str) -> str:
    """What is wrong with an import, if what it names stands on the same floor or above."""
    top, *other = module.split(".")
    parting = meeting(path.relative_to(ROOT).with_suffix("").parts, other) if top == "dgrr" else None
    if parting is None or parting[0] not in FLOORS or parting[1] in NOT_ROOMS:
        return ""
    folder, mine, others = parting
    floor, below = floor_of(folder, mine), floor_of(folder, others)
    if floor is None:
        return f"{name(path)}: {mine} stands on no floor of {folder}; add it to floors.py"
    return "" if below is None or below < floor else f"{name(path)} imports {module}, which does not stand below it"


def test_a_module_imports_only_floors_below() -> None:
    assert [fault for path in sources() for module, _ in imports(path) if (fault := not_below(path, module))] == []


def test_a_format_knows_no_screen() -> None:
    of_formats = [path for path in sources() if name(path).startswith(OF_FORMATS)]
    assert len(of_formats) > 60
    assert [place(path, node) for path in of_formats for m, node in imports(path) if m.startswith("dgrr.screen")] == []


def imported_modules() -> dict[str, set[str]]:
    """Every module by its dotted name, and the modules that it takes names from; a face has its folder's name."""
    files = {".".join(["dgrr", *p.relative_to(ROOT).with_suffix("").parts]): p for p in sources()}
    files = {module.removesuffix(".__init__"): path for module, path in files.items()}
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        statements: dict[ast.AST, list[str]] = {}
        for other, node in imports(path):
            statements.setdefault(node, []).append(other)
        taken = {n if n in files else base for base, *names in statements.values() for n in names or [base]}
        found[module] = taken & files.keys() - {module}
    return found


def circle(imported: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, the first at both ends; none if there is no ring."""
    done: set[str] = set()

    def walk(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module not in done:
            for other in sorted(imported[module]):
                if found := walk(other, [*way, module]):
                    return found
        done.add(module)
        return []

    return next((found for module in imported if (found := walk(module, []))), [])


def test_a_ring_of_imports_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": set()}) == ["b", "c", "b"]


def test_no_modules_import_each_other_in_a_ring() -> None:
    """Not even for type checkers alone: what needs a name of a module stands above it."""
    assert circle(imported_modules()) == []


def wing(module: str) -> str:
    """The wing that an imported module belongs to; none where it is not ours."""
    top, _, below = module.partition(".")
    return below.split(".")[0] if top == "dgrr" and below.split(".")[0] in WINGS else ""


def compilers(path: Path) -> list[str]:
    """Of what a module imports the parts of numba and llvmlite."""
    return [module for module, _ in imports(path) if module.split(".")[0] in ("numba", "llvmlite")]


FORMATS = re.compile(r"trace/(exit_codes\.py|file_version\.py|v1/|v2/)")
"""What reads and writes traces, and knows nothing of what computes a run; the kernels that make frames alone."""

OF_FRAMES = re.compile(r"dgrr\.tape\.numerics\.(crc32|prepared|xxh3)\.")
"""What is known of the engine where steps are recorded, and checked, in one call."""


def test_the_formats_import_no_engine() -> None:
    formats = [path for path in sources() if FORMATS.match(name(path))]
    found = [(name(path), module) for path in formats for module, _ in imports(path)]
    engine = [(path, module) for path, module in found if wing(module) in ("tape", "runtime")]
    assert [module for _, module in engine if not OF_FRAMES.match(module)] == []
    assert {path.rsplit("/", 1)[0] for path, _ in engine} == {"trace/v2/read/prepared", "trace/v2/write/prepared"}


def test_imports_inside_the_package_are_relative() -> None:
    absolute = [
        place(path, node)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.level == 0
        if (node.module or "").split(".")[0] in (*WINGS, "dgrr")
    ]
    assert absolute == []


def test_imports_stand_at_the_top() -> None:
    late = [
        place(path, node)
        for path in sources()
        if name(path) not in LATE_IMPORTS and not name(path).startswith("trace/cli/commands/")
        for function in nodes(path)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert late == []


def test_numba_is_imported_where_kernels_live() -> None:
    assert [(name(p), compilers(p)) for p in sources() if not NUMBA.match(name(p)) and compilers(p)] == []


def touches_internals(path: Path) -> bool:
    """Whether a module names what numba does not promise to keep."""
    allowed = all(PUBLIC.fullmatch(module) and module.split(".")[1:2] != ["core"] for module in compilers(path))
    return not allowed or "numba.core" in path.read_text()


def test_only_named_modules_touch_the_internals_of_numba() -> None:
    assert sorted(name(path) for path in sources() if touches_internals(path)) == sorted(INTERNALS)


def test_no_op_names_are_compared_outside_the_ops() -> None:
    compared = [
        place(path, node)
        for path in sources()
        if "/ops/" not in name(path)
        for node in nodes(path)
        if isinstance(node, ast.Compare) and re.search(r"op(_|\.)name ==", ast.unparse(node))
    ]
    assert compared == []


def plain_booleans(node: ast.AST) -> bool:
    """Whether a function takes booleans by position, or a call gives them so."""
    if isinstance(node, ast.FunctionDef):
        return any(a.annotation and ast.unparse(a.annotation).startswith("bool") for a in node.args.args)
    return isinstance(node, ast.Call) and any(
        isinstance(a, ast.Constant) and isinstance(a.value, bool) for a in node.args
    )


def test_the_trace_wing_names_booleans_in_calls() -> None:
    trace = [path for path in sources() if name(path).startswith("trace/")]
    assert [place(path, node) for path in trace for node in nodes(path) if plain_booleans(node)] == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    """Layers apart, which have PyTorch's names and are written `nn.Linear`."""
    found = Counter(
        node.name
        for path in sources()
        if not name(path).startswith("tape/nn/layers/")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    assert [name for name, held in found.items() if held > 1] == []


def test_the_trace_wing_names_arrays_once() -> None:
    named = re.compile(r"^Arrays?(: TypeAlias)? = ", re.MULTILINE)
    assert not [name(p) for p in sources() if name(p).startswith("trace/") and named.search(p.read_text())]


def test_the_package_list_is_the_folders() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = project["tool"]["setuptools"]["packages"]
    faces = [ROOT / "__init__.py", *(p for wing in WINGS for p in (ROOT / wing).rglob("__init__.py"))]
    assert sorted(listed) == sorted(".".join(["dgrr", *p.parent.relative_to(ROOT).parts]) for p in faces)


def inside(folder: Path) -> set[str]:
    """The modules and packages in a folder."""
    return {p.stem for p in folder.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()} - NOT_ROOMS


@pytest.mark.parametrize("folder", FLOORS)
def test_floors_name_what_is_there(folder: str) -> None:
    assert sorted(n for names in FLOORS[folder] for n in names) == sorted(inside(ROOT / folder))


MOST, LARGEST = 12, 16
"""Files of a room, beside its face, that a reader has in view without floors, and with them."""


def test_every_folder_of_rooms_and_every_large_room_has_floors() -> None:
    faces = [p.parent.relative_to(ROOT) for wing in WINGS for p in (ROOT / wing).rglob("__init__.py")]
    large = {face for face in faces if len(list((ROOT / face).glob("*.py"))) > MOST + 1}
    assert set(FLOORS) == {face.as_posix() for face in {face.parent for face in faces} | large} | {"base", "screen"}


def test_no_room_is_too_large() -> None:
    rooms = [p.parent for wing in WINGS for p in (ROOT / wing).rglob("__init__.py")]
    assert [room for room in rooms if len(list(room.glob("*.py"))) > LARGEST + 1] == []


def test_the_page_draws_the_floors() -> None:
    assert drawn() in (ROOT / "docs" / "architecture.md").read_text()
