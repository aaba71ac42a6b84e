"""Where no folder can hold compiled kernels, everything works, slower, and says so once."""

import os
import subprocess
import sys
from pathlib import Path

NOWHERE = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}
"""numba's only way to a cache folder is then a package inside a zip file, which ours is not."""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=NOWHERE, cwd=folder, capture_output=True, text=True, check=True)


def test_ops_run_without_a_cache_folder(tmp_path: Path) -> None:
    done = run("from dgrr.tape import Tape; print((Tape().leaf([1.0, 2.0]) * 3).numpy())", tmp_path)
    assert done.stdout == "[3. 6.]\n"
    assert done.stderr.count("set NUMBA_CACHE_DIR to a folder that can") == 1


def test_version_1_runs_without_a_cache_folder(tmp_path: Path) -> None:
    program = "from dgrr.trace.cli import main; raise SystemExit(main(['train', '--steps', '3', '--out', 't']))"
    done = run(program, tmp_path)
    assert "3 steps" in done.stdout
    assert "set NUMBA_CACHE_DIR" in done.stderr
