"""How the program ends: at once."""

import subprocess
import sys

PROGRAM = """
import gc, sys
from dgrr import __main__
sys.argv[1:] = ["--version"]
__main__.main()
print(gc.get_freeze_count() > 0)
"""


def test_what_was_loaded_is_not_searched_for_cycles_at_the_end() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.splitlines()[1:] == ["True"]
