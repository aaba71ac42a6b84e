"""The text of a graph, read back."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from ....tape.numerics.sizes import Sizes
from ....tape.values.spec import Spec
from ..attributes import evaluated
from ..errors import IRSyntaxError
from ..values import GraphContent, IRNode, Role, Value, dtype_named
from .text import BELOW, BLANKS, HEAD, OMITTED, PLAIN_CONTENT

G = TypeVar("G", bound=GraphContent)

STRING = r'"(?:[^"\\]|\\.)*"'
"""A string in JSON's quotes."""

WORD = r"[^\W\d]\w*"
"""The name of an op or attribute."""

ROLES = ", ".join(Role)

MISSING = object()
"""An attribute whose text stands below."""


class Line:
    """One line, read from left to right; blanks between its parts do not matter."""

    def __init__(self, number: int, text: str) -> None:
        self.number, self.text, self.rest = number, text, text.strip()

    def error(self, expected: str, given: str | None = None) -> IRSyntaxError:
        """What was expected where the reader stands."""
        stands = self.rest or "the end of the line" if given is None else given
        return IRSyntaxError.at(f"IRGraph.parse: line {self.number}", expected, stands)

    def maybe(self, pattern: str) -> str | None:
        """The next part if it is a ``pattern``."""
        found = re.match(pattern, self.rest)
        if found is None:
            return None
        self.rest = self.rest[found.end() :].lstrip()
        return found[0]

    def take(self, pattern: str, expected: str) -> str:
        """The next part, a ``pattern``. Raises IRSyntaxError if it is none."""
        part = self.maybe(pattern)
        if part is None:
            raise self.error(expected)
        return part

    def end(self) -> None:
        """Raises IRSyntaxError if anything is left."""
        if self.rest:
            raise self.error("the end of the line")

    def id(self) -> int:
        """The id of a value."""
        return int(self.take(r"%\d+", "a value such as %3")[1:])

    def string(self) -> str:
        """A text in quotes."""
        part = self.take(STRING, "a name in double quotes")
        try:
            return str(json.loads(part))
        except ValueError:
            raise self.error("a string with JSON's escapes", part) from None

    def listed(self, item: Callable[[], Any], end: str) -> tuple[Any, ...]:
        """Items between commas up to ``end``."""
        items: list[Any] = []
        while not self.maybe(re.escape(end)):
            if items:
                self.take(",", f"',' or '{end}'")
            items.append(item())
        return tuple(items)


class Reader:
    """The parts of a graph, gathered line by line."""

    def __init__(self) -> None:
        self.values: dict[int, Value] = {}
        self.nodes: list[IRNode] = []
        self.outputs: dict[str, int] = {}
        self.updates: dict[int, int] = {}
        self._below: dict[str, list[str]] = {}
        """The texts that stand below the last node, by attribute."""
        self._open: list[str] | None = None

    def read(self, line: Line) -> None:
        """Enter one line."""
        if self._open is not None and line.text.startswith(BLANKS):
            self._open.append(line.text.removeprefix(BLANKS))
            return
        name = line.text.removeprefix(HEAD).removesuffix(":")
        if self._below and line.text == f"{HEAD}{name}:" and not self._below.get(name, [""]):
            self._open = self._below[name]
            return
        self.require_whole(line)
        if line.rest.startswith("%"):
            self._value(line)
        elif line.rest.startswith("#"):
            self._node(line)
        elif line.maybe(r"output\b"):
            name = line.string()
            line.take("=", "'='")
            self._enter(line, self.outputs, name, line.id(), f"one output {name!r}")
        elif line.maybe(r"update\b"):
            id = line.id()
            line.take("<-", "'<-'")
            self._enter(line, self.updates, id, line.id(), f"one update of %{id}")
        else:
            raise line.error("a value (%), a node (#), 'output' or 'update'")
        line.end()

    def require_whole(self, line: Line) -> None:
        """Put what stands below the last node in its place. Raises IRSyntaxError if anything is missing there."""
        for name, lines in self._below.items():
            if not lines:
                raise line.error(f"the attribute {name!r} of the node before: '{HEAD}{name}:', and below its text")
            self.nodes[-1].attrs[name] = "\n".join(lines)  # type: ignore[index]
        self._below, self._open = {}, None

    def _enter(self, line: Line, table: dict[Any, Any], key: Any, item: Any, expected: str) -> None:
        if key in table:
            raise line.error(expected, "a second one")
        table[key] = item

    def _value(self, line: Line) -> None:
        id = line.id()
        line.take(":", "':'")
        shape, dtype = _spec(line)
        role = _role(line)
        name = line.string() if line.rest.startswith('"') else ""
        content = _content(line) if line.maybe("=") else ""
        self._enter(
            line, self.values, id, Value(id, Spec(shape, dtype), role, name, content), f"one description of %{id}"
        )

    def _node(self, line: Line) -> None:
        id = int(line.take(r"#\d+", "a node such as #3")[1:])

        def output() -> int:
            return self._output(line)

        outputs = line.listed(output, ")") if line.maybe(r"\(") else (output(),)
        line.take("=", "'='")
        op = line.take(WORD, "the name of an op")
        line.take(r"\(", "'('")
        inputs = line.listed(lambda: None if line.maybe(OMITTED) else line.id(), ")")
        attrs = _attributes(line)
        self._below = {name: [] for name, value in attrs.items() if value is MISSING}
        self.nodes.append(IRNode(id, op, inputs, outputs, attrs))

    def _output(self, line: Line) -> int:
        """A value that a node produces, entered where it is described."""
        id = line.id()
        if line.maybe(":"):
            shape, dtype = _spec(line)
            name = line.string() if line.rest.startswith('"') else ""
            value = Value(id, Spec(shape, dtype), Role.STATIC, name)
            self._enter(line, self.values, id, value, f"one description of %{id}")
        return id


def parse(make: type[G], text: str) -> G:
    """The graph of a text. Raises IRSyntaxError, which names the line, what was expected and what stands there."""
    lines = _lines(text)
    head = next(lines, Line(1, ""))
    head.take(r"graph\b", "'graph' and a name")
    name = head.string()
    head.end()
    reader = Reader()
    for line in lines:
        reader.read(line)
    reader.require_whole(Line(text.count("\n") + 1, ""))
    return make(name, reader.values, tuple(reader.nodes), reader.outputs, reader.updates)


def _lines(text: str) -> Iterator[Line]:
    return (Line(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip())


def _spec(line: Line) -> tuple[Sizes, np.dtype[Any]]:
    name = line.take(r"[^\s\[]+", "an element type")
    dtype = dtype_named(name)
    if dtype is None:
        raise line.error("an element type such as float32", name)
    line.take(r"\[", "'['")
    return line.listed(lambda: int(line.take(r"\d+", "a size")), "]"), dtype


def _role(line: Line) -> Role:
    word = line.take(WORD, f"one of {ROLES}")
    if word not in [*Role]:
        raise line.error(f"one of {ROLES}", word)
    return Role(word)


def _content(line: Line) -> str:
    if line.rest.startswith('"'):
        return line.string()
    return line.take(PLAIN_CONTENT.pattern, "what the constant is")


def _attributes(line: Line) -> dict[str, Any]:
    if not line.rest:
        return {}
    text, line.rest = line.rest, ""
    pairs = _keywords(text) if text[0] + text[-1] == "{}" else None
    if pairs is None:
        raise line.error("attributes such as {axis=0}", text)
    attrs: dict[str, Any] = {}
    for name, value in pairs:
        if name in attrs:
            raise line.error(f"one attribute {name!r}", "a second one")
        attrs[name] = value
    return attrs


def _keywords(text: str) -> list[tuple[str, Any]] | None:
    """The pairs between braces, as Python reads the arguments of a call; None for anything else."""
    try:
        match ast.parse(f"_({text[1:-1]})", mode="eval").body:
            case ast.Call(func=ast.Name(), args=[], keywords=keywords) if all(k.arg for k in keywords):
                return [(str(keyword.arg), _value(keyword.value)) for keyword in keywords]
            case _:
                return None
    except (SyntaxError, ValueError):
        return None


def _value(expression: ast.expr) -> Any:
    below = isinstance(expression, ast.Name) and expression.id == BELOW
    return MISSING if below else evaluated(expression)
