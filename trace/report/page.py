"""The HTML file: a template, its style and its scripts as they lie beside this module, and the data of the runs.

A policy in the page lets nothing run but these scripts, and nothing be loaded from anywhere: what a trace says, such as
the name of a tensor, is text and never markup.
"""

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...base.errors import DomainError
from ...base.system import FilePath
from ..json_value import json_value

SCRIPTS = (
    "data",
    "dom",
    "table",
    "charts",
    "losses",
    "marks",
    "gradients",
    "tensors",
    "histograms",
    "pictures",
    "layout",
    "graph",
    "nodes",
    "about",
    "picker",
    "keys",
    "main",
)
"""The page's own scripts, in the order in which they need each other."""


def page(title: str, data: Mapping[str, Any], arrays: Sequence[str], library: str) -> str:
    """The whole file; `library` is the script that draws."""
    own = "\n".join(_text(f"{name}.js") for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{own}\n}})();'
    slots = {
        "title": escaped(title),
        "policy": policy(script, library),
        "style": _text("style.css"),
        "data": in_script(data),
        "arrays": "\n".join(_array(i, text) for i, text in enumerate(arrays)),
        "script": script,
        "library": library,
    }
    return filled(_text("page.html"), slots)


def filled(template: str, slots: Mapping[str, str]) -> str:
    """A template with a text in each place ``<!--name-->``.

    >>> filled("<p><!--what--></p>", {"what": "a loss"})
    '<p>a loss</p>'
    """
    for name, text in slots.items():
        before, _, after = template.partition(f"<!--{name}-->")
        template = f"{before}{text}{after}"
    return template


def policy(*scripts: str) -> str:
    """What a page lets run: these scripts; it loads nothing."""
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes}"


def in_script(data: Mapping[str, Any]) -> str:
    """JSON that may stand in an element ``script``, whatever its texts are.

    >>> in_script({"name": "</script>", "loss": float("inf")})
    '{"name":"\\\\u003c/script>","loss":"inf"}'
    """
    return json.dumps(json_value(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def escaped(text: str) -> str:
    """Text as HTML has it.

    >>> escaped("a < b")
    'a &lt; b'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def require_other_name(caller: str, names: Iterable[str], out: FilePath) -> None:
    """Refuse a name for a page that is one of the traces, or of a file that will become one. Raises DomainError."""
    for name in names:
        for file in (name, f"{name}.partial"):
            if os.path.exists(file) and os.path.exists(out) and os.path.samefile(file, out):
                text = f"{os.fspath(out)} is one of the traces: give the page another name"
                raise DomainError(f"{caller}: argument 'out': {text}")


def _array(number: int, text: str) -> str:
    return f'<script type="text/plain" id="array{number}">{text}</script>'


def _text(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the policy calls a script by."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
