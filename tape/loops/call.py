"""A call that runs bodies: its results are nodes of a tape, and the first of them passes on the gradients of all."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..errors import TapeError
from ..graph.backward import DenseGrads
from ..graph.node import Node, ResultNode
from ..graph.symbol import Symbol, Why
from ..location import caller
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, Var
from .body import Body

Lift = Callable[[int], Any]
"""The value of a node as derivatives take it."""


class BodyCall(ABC):
    """Bodies and what they are given, ``inputs`` on ``tape``; each of the ``results`` is a node when it is asked for.

    ``run`` is what the bodies gave, or what is known of that where nothing is computed.
    """

    name: str
    """What messages and graphs call it."""

    attrs: Mapping[str, Any] = {}
    """What graphs say of it beside its bodies and results."""

    cut = range(0)
    """The positions of the inputs of whose rows a body is given one."""

    def __init__(self, tape: Any, bodies: Mapping[str, Body], inputs: Sequence[AnyVar]) -> None:
        self.tape, self.bodies, self.inputs = tape, bodies, inputs
        self.results: dict[str, int] = {}
        self.first = -1

    @abstractmethod
    def on(self, tape: Any, inputs: Sequence[AnyVar]) -> "BodyCall":
        """The same call of other inputs, on another tape."""

    @abstractmethod
    def value_in(self, body: Body, key: str) -> int:
        """Which value of a body a result is made of."""

    @abstractmethod
    def requiring(self, body: Body) -> set[int]:
        """The values of a body that require gradients."""

    @abstractmethod
    def run_on(self, new_tape: Callable[[], Any]) -> Any:
        """The run on tapes that have nothing else."""

    @abstractmethod
    def written(self, inputs: Sequence[AnyVar]) -> Any:
        """The run on the tape of these inputs, every op a node of its own."""

    @abstractmethod
    def back(self, arrived: Mapping[str, Any], known: dict[int, Any], lift: Lift) -> dict[int, Any]:
        """The cotangents of the inputs by their ids, given those of results and those that were there, recorded."""

    def forth(self, tangents: Sequence[Any], inputs: Sequence[Any], key: str) -> Any:
        """The tangent of a result, recorded where nothing runs."""
        return self.written(inputs).push(tangents, key)

    @property
    def smooth(self) -> tuple[bool, ...]:
        """Which inputs have a derivative: each, if what it is made of has."""
        return (True,) * len(self.inputs)

    # ------------------------------------------------------------------ results

    @cached_property
    def run(self) -> Any:
        """What its bodies gave, or what is known of them."""
        return self.tape.run_of(self)

    def vars(self, keys: Sequence[str]) -> dict[str, AnyVar]:
        """Results on the tape, as nodes."""
        return {key: Var(self.tape, self.result(key), self.tape.generation) for key in keys}

    def each(self, key: str) -> int | None:
        """Which value of the body a result stacks, of all steps; None for one that is what it is."""
        return None

    def spec(self, key: str) -> Spec:
        """Shape and element type of a result."""
        body = next(iter(self.bodies.values()))
        return body.tape.node(self.value_in(body, key)).value.spec

    def result(self, key: str) -> int:
        """The id of a result, which becomes a node when it is first asked for."""
        if key not in self.results:
            self.tape.append_result(self, key)
        return self.results[key]

    def appended(self, tape: Any, nodes: list[Node], key: str) -> AnyVar:
        """Append the node of a result to those of the tape."""
        id = len(nodes)
        self.results[key] = id
        self.first = id if self.first < 0 else self.first
        sources = tuple([tape.node(x) for x in self.inputs])
        head = (self, {"result": key}, self.run.value(key), sources, self.run.requires(key), None)
        row: list[Any] = [id, *head, tape.scope_name, caller()]
        node = ResultNode(*row)
        node.loop = self
        nodes.append(node)
        return Var(tape, id, tape.generation)

    def requires(self, key: str) -> bool:
        """Whether a gradient may flow through a result, whichever body it is of."""
        return any(self.value_in(body, key) in self.requiring(body) for body in self.bodies.values())

    def inferred(self, why: Why) -> "Inferred":
        """What is known of the results before it runs."""
        return Inferred(self, why)

    # ------------------------------------------------------------------ derivatives

    def pull(self, cotangents: Sequence[Any], lift: Lift, live: Collection[int] | None) -> list[tuple[int, Any]]:
        """What the cotangents of its inputs become: those that were there, and what flows back through its bodies."""
        found = {key: cotangents[id] for key, id in self.results.items() if id < len(cotangents)}
        arrived = {key: g for key, g in found.items() if g is not None}
        if not arrived:
            return []
        known = {x.id: g for x in self.inputs if (g := cotangents[x.id]) is not None}
        if isinstance(self.run, Inferred):
            totals = self.back(arrived, known, lift)
        elif any(isinstance(g, Var) for g in (*arrived.values(), *known.values())):
            totals = self.written([lift(x.id) for x in self.inputs]).pull(arrived, known)
        else:
            totals = self.run.pull(arrived, known)
        smooth = [x.id for x in self.inputs if self.tape.node(x).requires_grad]
        return [(id, g) for id, g in totals.items() if id in smooth and (live is None or id in live)]

    def inside(self, arrived: Mapping[str, AnyTensor]) -> list[DenseGrads[AnyTensor]]:
        """The gradients of all values of the bodies, step by step. Raises TapeError where nothing was computed."""
        if isinstance(self.run, Inferred):
            raise TapeError(
                f"inside: expected a {self.name} on a tape that computes, got one of a captured step; run the step "
                "eagerly"
            )
        found: list[DenseGrads[AnyTensor]] = self.run.inside(arrived)
        return found

    def push(self, tangents: Sequence[Any], inputs: Sequence[Any], output: Any, attrs: Any) -> Any:
        """The tangent of a result; None if it is zero."""
        if all(t is None for t in tangents):
            return None
        if isinstance(self.run, Inferred):
            return self.forth(tangents, inputs, attrs["result"])
        run = self.written(inputs) if any(isinstance(x, Var) for x in inputs) else self.run
        return run.push(tangents, attrs["result"])


class Inferred:
    """A call that does not run here: its results have a shape and nothing else."""

    def __init__(self, call: BodyCall, why: Why) -> None:
        self._call, self._why = call, why
        self._known: dict[Body, tuple[int, set[int]]] = {}

    def requiring(self, body: Body) -> set[int]:
        """The values of a body that require gradients; loops in it may have got results since."""
        if self._known.get(body, (0,))[0] < len(body.tape):
            self._known[body] = len(body.tape), self._call.requiring(body)
        return self._known[body][1]

    def value(self, key: str) -> AnyTensor:
        """A result."""
        return Symbol(self._call.spec(key), self._why)

    def requires(self, key: str) -> bool:
        """Whether a gradient flows through a result."""
        return any(self._call.value_in(body, key) in self.requiring(body) for body in self._call.bodies.values())


def where(op: str, step: int, steps: int, side: int = 0) -> str:
    """What an error of a body begins with."""
    said = {"scan": f"step {step} of {steps}", "while_loop": f"step {step}", "cond": ("on_true", "on_false")[side]}
    return f"{op}: {said[op]}: " if op in said else ""
