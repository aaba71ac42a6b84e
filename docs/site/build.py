"""The documentation site, from the pages of docs/, the docstrings and the notebooks: offline, and strict.

``python docs/site/build.py [FOLDER]`` writes it to FOLDER, by default build/site; its index.html opens from there. What
leads nowhere is an error: a link, a section, a name of the reference, a page that nothing leads to.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import excerpts
import notebooks
import pages
import reference

HERE = Path(__file__).parent


def build(folder: Path) -> None:
    """Write the site, in place of what was in the folder. Raises SystemExit if anything is wrong."""
    with tempfile.TemporaryDirectory() as source:
        stage(Path(source))
        made = Path(source) / "made"
        command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--jobs", "2"]
        failed = subprocess.run([*command, "-c", str(HERE), source, str(made)]).returncode
        if failed:
            raise SystemExit(failed)
        shutil.rmtree(made / ".doctrees")
        excerpts.write(made)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)


def stage(source: Path) -> None:
    """What Sphinx reads: the pages with links as they are on the site, and all that is generated."""
    pages.stage(source)
    notebooks.stage(source / "notebooks")
    reference.write(source / "api")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/site"))
    folder = parser.parse_args().folder
    build(folder)
    print(f"{folder / 'index.html'}")
