"""Types in signatures under the names that people write, with links to those that the reference has.

Python forgets aliases, and shows what they stand for.
"""

import inspect
import re
from functools import cache

import reference
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

NESTED = r"_NestedSequence\[complex( \||,) bytes( \||,) str\]"
ALIASES = (
    (re.compile(rf"(Union\[)?_Buffer( \||,) _SupportsArray.*?{NESTED}(?(1)\])"), "ArrayLike"),
    (re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[Any\]\]"), "ndarray"),
    (re.compile(r"Var\[Any, Unpack\[tuple\[Any, \.\.\.\]\]\]"), "AnyVar"),
    (re.compile(r"Var\[(\w+), Unpack\[tuple\[Any, \.\.\.\]\]\]"), r"Gradual[\1]"),
)
"""What stands in a signature, and its alias."""
PACK = re.compile(r"Unpack\[(\w+)\]")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the event."""
    app.connect("object-description-transform", _transform)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _transform(app: Sphinx, domain: str, objtype: str, content: addnodes.desc_content) -> None:
    """Spell the types of an object's signatures."""
    for signature in content.parent.findall(addnodes.desc_signature):
        for link in [*signature.findall(addnodes.pending_xref)]:
            if link["reftarget"].rpartition(".")[2] not in _documented():
                link.replace_self(nodes.Text(_shown(link)))
        for kind in (addnodes.desc_sig_name, addnodes.desc_returns, addnodes.desc_annotation):
            for node in [n for n in signature.findall(kind) if len(n.children) > 1]:
                _spell(node)


@cache
def _documented() -> frozenset[str]:
    """The names of the classes that the reference has."""
    entries = [entry for entries in reference.public().values() for entry in entries.items()]
    return frozenset(name.rpartition(".")[2] for name, x in entries if inspect.isclass(x))


def _spell(node: nodes.Element) -> None:
    """One type: by its alias as text, else part by part, so that its links stay."""
    parts = [_shown(child) for child in node.children]
    text = spelled("".join(parts))
    if text != "".join(parts):
        node[:] = [nodes.Text(PACK.sub(r"*\1", text))]
        return
    for i in reversed(range(len(parts) - 3)):
        if parts[i : i + 2] == ["Unpack", "["] and parts[i + 3] == "]":
            node[i : i + 4] = [nodes.Text("*"), node.children[i + 2]]


def spelled(text: str) -> str:
    """A type with the names of aliases."""
    for long, alias in ALIASES:
        text = long.sub(alias, text)
    return text


def _shown(node: nodes.Node) -> str:
    """What a reader sees of a part: a reference holds its text once for each way in which it may be resolved."""
    conditions = [child for child in node.children if isinstance(child, addnodes.pending_xref_condition)]
    return conditions[0].astext() if conditions else node.astext()
