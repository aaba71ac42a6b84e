"""The C program and the CMake file of the documentation, next to the captured call."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import CapturedFunction, capture_function, export_library
from dgrr.tape import nn

from .native import Array, host

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "library"


def captured() -> tuple[CapturedFunction, Array]:
    """The network of the page, and the image that its programs make."""
    model, image = nn.Linear(64, 10), np.arange(64, dtype=np.float32).reshape(1, 64) / 64
    params = model.init(seed=0)
    return capture_function(lambda x: model(params, x), image), image


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of a library for this machine, and what the program has to print."""
    predict, image = captured()
    folder = tmp_path_factory.mktemp("digits")
    library = export_library(predict, folder, target=host(), name="digits")[host()]
    return library.object.parent, [float(x).hex() for x in predict(image)[0]]


def test_the_program_prints_the_scores_to_the_last_bit(expected: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, scores = expected
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    program = tmp_path / "predict"
    command = ["gcc", *flags, str(EXAMPLE / "predict.c"), str(folder / "digits.o"), "-o", str(program)]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    assert [float.fromhex(x).hex() for x in printed] == scores


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_builds_it(expected: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, scores = expected
    given = ["-S", str(EXAMPLE), "-B", str(tmp_path), f"-DLIBRARY={folder}"]
    subprocess.run(["cmake", *given], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(tmp_path)], check=True, capture_output=True)
    printed = subprocess.run([str(tmp_path / "predict")], check=True, capture_output=True, text=True).stdout.split()
    assert [float.fromhex(x).hex() for x in printed] == scores


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node (Debian: apt-get install nodejs)")
def test_so_does_the_one_for_node(tmp_path: Path) -> None:
    predict, image = captured()
    export_library(predict, tmp_path, target="wasm32", name="digits")
    command = ["node", str(EXAMPLE / "predict.mjs"), str(tmp_path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert [float(x) for x in printed] == predict(image)[0].tolist()


def test_the_page_shows_the_program() -> None:
    page = (EXAMPLE.parents[1] / "deploying.md").read_text()
    for name in ("export.py", "predict.c", "predict.html", "CMakeLists.txt", "predict.mjs"):
        assert (EXAMPLE / name).read_text() in page, name
