"""The graph of a step in SSA form: forward, loss, backward and optimizer as one list of nodes over values.

Every value is produced by exactly one node or declared: an input of the batch, a parameter, optimizer state,
or a constant. What a step changes is said by ``updates``: the value that a parameter or a state array has
after the step. Step count, bias corrections and learning rate are values like all others.
"""

from dataclasses import dataclass
from hashlib import sha256

from ...base.printed import Printed
from ...screen.showing import counted
from .formats import dot, json
from .formats.parse import parse
from .formats.text import write
from .values import GraphContent, IRNode as IRNode, Role as Role, Value as Value, gradient_name as gradient_name


@dataclass(frozen=True, repr=False)
class IRGraph(GraphContent, Printed):
    """A step: its content, which text, JSON and a drawing show.

    Graphs are equal if their content is; then they have the same text, JSON and digest.

    >>> graph = IRGraph.parse('''graph "square"
    ...   %0: float32[2] input "x"
    ...   #0 %1: float32[2] = mul(%0, %0)
    ...   #1 %2: float32[] = reduce_sum(%1) {axis=None, keepdims=False}
    ...   output "sum" = %2''')
    >>> graph.nodes[1].attrs
    {'axis': None, 'keepdims': False}
    >>> IRGraph.from_json(graph.to_json()) == graph == IRGraph.parse(str(graph))
    True
    """

    def __str__(self) -> str:
        return write(self)

    def __repr__(self) -> str:
        return f"<graph {self.name!r}: {counted(len(self.nodes), 'node')}, {counted(len(self.values), 'value')}>"

    @classmethod
    def parse(cls, text: str) -> "IRGraph":
        """The graph that prints as ``text``. Raises IRSyntaxError, which names the line."""
        return parse(cls, text)

    def to_json(self) -> str:
        """The graph as canonical JSON in ASCII. Raises IRError for an attribute that no graph can hold."""
        return json.write(self)

    @classmethod
    def from_json(cls, text: str) -> "IRGraph":
        """The graph that `to_json` wrote. Raises IRSyntaxError, which names the place."""
        return json.read(cls, text)

    def digest(self) -> str:
        """The identity of the step: SHA-256 of the canonical JSON, in hexadecimal."""
        return sha256(self.to_json().encode()).hexdigest()

    def to_dot(self) -> str:
        """A drawing in the DOT language."""
        return dot.draw(self)
