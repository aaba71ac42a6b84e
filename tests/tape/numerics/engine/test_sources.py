"""The stamp of cached kernels: every file that a kernel inlines changes it, and no other."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dgrr.runtime  # noqa: F401  # whose kernels are looked at too
from dgrr.tape.numerics.engine.code_for import VARIABLE
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.sources import PACKAGE, sources

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("edited sources")]  # they share what one process made

OPS = """
import sys
sys.path.insert(0, sys.argv[1])
from dgrr.tape import Tape, ops
x = Tape().leaf([[1.0, 2.0], [3.0, 4.0]])
ops.argmax(x, -1), ops.sin(x)
"""


def imported_modules(path: Path) -> set[Path]:
    """The files that a file imports, read from its syntax tree."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for module in (base, *(base / alias.name for alias in node.names)):
                found |= {p for p in (module.with_suffix(".py"), module / "__init__.py") if p.is_file()}
    return found


def closure(path: Path) -> set[Path]:
    found, waiting = set[Path](), {path}
    while waiting:
        found |= waiting
        waiting = {p for file in waiting for p in imported_modules(file) if MARK not in p.read_text()} - found
    return found


MARK = "\n# kernels: none\n"

OWN = [kernel.body for kernel in KERNELS.values() if kernel.body.__module__.startswith("dgrr.")]
FILES = sorted({Path(body.__code__.co_filename) for body in OWN})


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_sources_of_a_kernel_are_all_that_it_imports(path: Path) -> None:
    assert sources(path) == closure(path)


def reached(function: Any) -> set[Path]:
    """The files of dgrr with the functions that a function's code names, directly or not."""
    found, waiting = dict[int, Path](), [function]
    while waiting:
        own = waiting.pop()
        own = getattr(own, "py_func", getattr(own, "_defn", own))
        if hasattr(own, "__code__") and id(own) not in found:
            found[id(own)] = Path(own.__code__.co_filename)
            within = [own.__code__, *(part for part in own.__code__.co_consts if hasattr(part, "co_names"))]
            waiting += [own.__globals__[name] for code in within for name in code.co_names if name in own.__globals__]
            waiting += [cell.cell_contents for cell in own.__closure__ or ()]
    return {path for path in found.values() if PACKAGE in path.parents}


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.body in OWN])
def test_every_function_that_a_kernel_reaches_is_in_its_sources(name: str) -> None:
    body = KERNELS[name].body
    own = reached(body)
    assert own <= sources(Path(body.__code__.co_filename)) and not any(MARK in path.read_text() for path in own)


def test_many_functions_are_reached() -> None:
    found = {path.name for path in reached(KERNELS["lion_step"].body)}
    assert {"lion.py", "formulas.py", "operations.py", "known.py"} <= found


def test_the_class_of_a_formula_is_none_of_its_sources() -> None:
    found = {path.name for path in sources(PACKAGE / "runtime/optim/methods/lion.py")}
    assert {"pointwise.py", "formulas.py"} < found and not found & {"point_rule.py", "rule.py", "schedules.py"}
    assert len(found) < 40


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that a test may edit, as the folder to put before ``sys.path``."""
    folder = tmp_path_factory.mktemp("tree")
    package = folder / "dgrr"
    package.mkdir()
    shutil.copy(PACKAGE / "__init__.py", package)
    for wing in ("base", "screen", "tape", "runtime", "trace"):
        shutil.copytree(PACKAGE / wing, package / wing, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def compiled_by(tree: Path, program: str, **more: str) -> set[str]:
    """The kernels that a process compiles and saves because none are kept that fit."""
    kernels = tree / "kernels"
    before = {p.name for p in kernels.rglob("*.nbc")}
    variables = {**os.environ, "DGRR_CACHE_DIR": str(kernels), **more}
    subprocess.run([sys.executable, "-c", program, str(tree)], check=True, env=variables)
    return {p.name.split("-")[0] for p in kernels.rglob("*.nbc") if p.name not in before}


def edit(path: Path) -> None:
    path.write_text(path.read_text() + "\n# edited\n")


def test_only_the_kernels_that_inline_an_edited_file_are_compiled_anew(tree: Path) -> None:
    tape = tree / "dgrr" / "tape"
    assert compiled_by(tree, OPS) >= {"_fill", "argmax_rows", "sin"}
    assert compiled_by(tree, OPS) == set()
    edit(tape / "numerics" / "simd" / "minmax.py")  # inlined by what looks for extremes
    edit(tape / "ops" / "reduce" / "kernels" / "softmax.py")  # another family's
    assert compiled_by(tree, OPS) == {"argmax_rows"}
    edit(tape / "numerics" / "math" / "trigonometry.py")  # inlined by functions, by way of another file
    assert compiled_by(tree, OPS) == {"sin"}


def test_code_for_gpus_is_kept_apart(tree: Path) -> None:
    compiled_by(tree, OPS)
    assert compiled_by(tree, OPS, **{VARIABLE: "gpu"}) >= {"argmax_rows", "sin"}
    assert compiled_by(tree, OPS) == set()


USERS = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/mine"]
import kernels
"""


def test_kernels_of_users_know_their_own_files_too(tree: Path) -> None:
    mine = tree / "mine"
    (mine / "inner").mkdir(parents=True)
    (mine / "kernels.py").write_text(
        "import numpy as np\nfrom dgrr.tape.numerics.engine.kernel import kernel, vector\nfrom inner import helper\n"
        "import unrelated\n\n"
        "@kernel\ndef users(table, ints, part, parts):\n    vector(table, 0, 0, 1)[0] = helper.two()\n    return 0\n\n"
        "users.address(np.dtype(np.float32))\n"
    )
    (mine / "unrelated.py").touch()
    (mine / "inner" / "__init__.py").touch()
    (mine / "inner" / "helper.py").write_text("from numba import njit\n\n@njit(inline='always')\ndef two(): return 2\n")
    assert compiled_by(tree, USERS) == {"users"}
    assert compiled_by(tree, USERS) == set()
    edit(mine / "inner" / "helper.py")
    assert compiled_by(tree, USERS) == {"users"}


def test_a_kernel_whose_module_is_moved_is_compiled_anew(tree: Path) -> None:
    (tree / "place").mkdir()
    text = (
        "import numpy as np\nfrom dgrr.tape.numerics.engine.kernel import kernel\n\n"
        "@kernel\ndef moved(table, ints, part, parts):\n    return 0\n\nmoved.address(np.dtype(np.float32))\n"
    )
    (tree / "place" / "before.py").write_text(text)
    program = "import sys\nsys.path[:0] = [sys.argv[1], sys.argv[1] + '/place']\nimport {}\n"
    assert compiled_by(tree, program.format("before")) == {"moved"}
    (tree / "place" / "before.py").rename(tree / "place" / "behind.py")
    assert compiled_by(tree, program.format("behind")) == {"moved"}
    assert compiled_by(tree, program.format("behind")) == set()
