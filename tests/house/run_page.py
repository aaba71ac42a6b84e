"""Run the Python blocks of a page as one program, and print as JSON what each printed.

``python tests/house/run_page.py PAGE``

Blocks are compiled at their place in the page, so that errors and locations name its lines.
"""

import json
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
"""A Python block, and the block of text behind it, if there is one, that shows what it prints."""


def printed(page: str) -> list[str]:
    """What each Python block of a page prints."""
    text, scope, outputs = Path(page).read_text(), {"__name__": "__main__"}, list[str]()
    for block in BLOCK.finditer(text):
        before = text.count("\n", 0, block.start(1))
        with redirect_stdout(StringIO()) as out:
            exec(compile("\n" * before + block[1], page, "exec"), scope)
        outputs.append(out.getvalue())
    return outputs


if __name__ == "__main__":
    print(json.dumps(printed(sys.argv[1])))
