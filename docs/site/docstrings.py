"""Docstrings as reStructuredText: facts become fields, and a name between single quotes leads to what it names."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.docutils import SphinxRole

from dgrr.tape.record.description import described

QUOTED = re.compile(r"(``.+?``|`[^`]+`|::\n(?:\n| +[^\n]*(?:\n|\Z))+)", re.DOTALL)
"""Code, names and indented formulas, in which nothing is to be escaped."""
SECTIONS = Config(napoleon_use_rtype=False)
"""How ``Args:`` and ``Raises:`` are read."""
HELD = re.compile(r"[A-Z]|.*\.")
"""Names that have to be there."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the events, and the role of names."""
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.add_role("name", Name())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _docstring(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """A docstring with fields."""
    lines[:] = [*rewritten("\n".join(lines).rstrip()).splitlines(), ""]


def _signature(
    app: Sphinx, what: str, name: str, obj: object, options: Any, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """A signature that can be parsed: what a field begins with has no text."""
    return signature and signature.replace("<factory>", "..."), result


def rewritten(doc: str) -> str:
    """A docstring as reStructuredText."""
    if not re.search("^(Source|Shapes):", doc, re.MULTILINE):
        return _sections(doc)
    parts = described(doc)
    fields = [line for fact, entries in parts.facts.items() for line in _fields(fact, entries)]
    return "\n\n".join([_sections(parts.text), "\n".join(fields), parts.example])


def _sections(doc: str) -> str:
    """Text whose sections, such as ``Args:``, are fields."""
    return str(GoogleDocstring(escaped(doc), SECTIONS)).strip()


def _fields(fact: str, entries: Sequence[str]) -> Iterator[str]:
    """A field for each entry."""
    for entry in entries:
        if fact == "Raises" and (found := re.match(r"([\w, ]+): (.*)", entry)):
            yield f":raises {found[1]}: {escaped(found[2])}"
        elif fact == "Shapes":
            rule, mark, words = entry.partition("; ")
            yield f":{fact}: ``{rule.replace('``', '')}``{mark}{escaped(words)}"
        else:
            yield f":{fact}: {escaped(entry)}"


def escaped(text: str) -> str:
    """Text in which what reStructuredText takes for markup, but for quotes, is itself; examples stay."""
    prose, *example = re.split(r"^(?= *>>> )", text, maxsplit=1, flags=re.MULTILINE)
    parts = QUOTED.split(prose)
    parts[::2] = [re.sub(r"[*|]|(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts + example)


class Name(SphinxRole):
    """A name between single quotes: a reference to the Python object of that name; else code.

    One that begins with a capital or has a dot must exist. Others may be arguments; those in capitals name files.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The reference, to be resolved from where it stands."""
        code = nodes.literal(self.rawtext, self.text, classes=["xref", "py"])
        if not re.fullmatch(r"(?![A-Z]{2})[A-Za-z_][\w.]*", self.text):
            return [code], []
        found = addnodes.pending_xref("", code, refdomain="py", reftype="obj", reftarget=self.text)
        found["refdoc"] = self.env.docname
        if HELD.match(self.text):
            found["refspecific"] = True  # search it in all of the reference
        found.attributes.update({f"py:{key}": self.env.ref_context.get(f"py:{key}") for key in ("module", "class")})
        self.set_source_info(found)
        return [found], []
