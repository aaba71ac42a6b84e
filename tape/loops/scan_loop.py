"""One loop on a tape: what its results are nodes of."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

from ..graph.node import Node, ResultNode
from ..graph.symbol import Symbol, Why
from ..location import caller
from ..ops import stack
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, Var
from .body import Body
from .gradient import looped
from .written import WrittenLoop, written


class ScanLoop:
    """A body that is applied ``length`` times: to the state that the step before left, and to a row of each of xs.

    ``inputs`` are the state before the first step, the xs, and what the body takes from around, on ``tape``. Its
    results are nodes of the tape: ``carry 0`` is a part of the last state, ``y 0`` what the steps give, stacked, and
    ``each 7`` a value of the body in the same way, where a gradient asks for it.
    """

    name = "scan"

    def __init__(self, tape: Any, body: Body, inputs: Sequence[AnyVar], length: int, reverse: bool) -> None:
        self.tape, self.body, self.inputs = tape, body, inputs
        self.length, self.reverse = length, reverse
        self.results: dict[str, int] = {}
        self.first = -1

    @cached_property
    def run(self) -> Any:
        """What its steps gave, or what is known of them."""
        return self.tape.run_of(self)

    def vars(self, keys: Sequence[str]) -> dict[str, AnyVar]:
        """Results on the tape, which has them as nodes, or all nodes of all steps if it writes loops out."""
        if not self.tape.unrolls:
            return {key: Var(self.tape, self.result(key), self.tape.generation) for key in keys}
        steps = written(self, self.inputs)
        made = {key: steps.vars(key) for key in keys}
        return {key: found[0] if self.each(key) is None else stack(found) for key, found in made.items()}

    @property
    def places(self) -> Sequence[int]:
        """The rows of xs in the order of the steps."""
        return range(self.length)[::-1] if self.reverse else range(self.length)

    def each(self, key: str) -> int | None:
        """Which value of the body a result stacks; None for a part of the last state."""
        kind, number = key.split()
        if kind == "carry":
            return None
        return self.body.ys[int(number)] if kind == "y" else int(number)

    def made(self, key: str) -> int:
        """Which value of the body a result is made of."""
        each = self.each(key)
        return self.body.after[int(key.split()[1])] if each is None else each

    def spec(self, key: str) -> Spec:
        """Shape and element type of a result."""
        spec = self.body.tape.node(self.made(key)).value.spec
        return spec if self.each(key) is None else Spec((self.length, *spec.shape), spec.dtype)

    # ------------------------------------------------------------------ results

    def result(self, key: str) -> int:
        """The id of a result, which becomes a node when it is first asked for."""
        if key not in self.results:
            self.tape.append_result(self, key)
        return self.results[key]

    def each_of(self, value: int) -> int:
        """The id of the result that stacks a value of the body."""
        known = [f"y {j}" for j, y in enumerate(self.body.ys) if y == value]
        return self.result(known[0] if known else f"each {value}")

    def appended(self, tape: Any, nodes: list[Node], key: str) -> AnyVar:
        """Append the node of a result to those of the tape."""
        id = len(nodes)
        self.results[key] = id
        self.first = id if self.first < 0 else self.first
        values = [x.value for x in self.inputs]
        needs = [tape.node(x).requires_grad for x in self.inputs]
        wanted, scope = self.run.requires(key), tape.scope_name
        node = ResultNode(
            id,
            self,  # type: ignore[arg-type]
            {"result": key},
            self.run.value(key),
            tuple([x.id for x in self.inputs]),
            values,
            needs if wanted else [False] * len(needs),
            wanted,
            None,
            scope,
            caller(),
        )
        node.loop = self
        nodes.append(node)
        return Var(tape, id, tape.generation)

    def inferred(self, why: Why) -> "Inferred":
        """What is known of the results before it runs."""
        return Inferred(self, why)

    # ------------------------------------------------------------------ derivatives

    def pull(
        self, cotangents: Sequence[Any], lift: Callable[[int], Any], live: Collection[int] | None
    ) -> list[tuple[int, Any]]:
        """What the cotangents of its inputs become: those that were there, and what flows back through its steps."""
        found = {key: cotangents[id] for key, id in self.results.items() if id < len(cotangents)}
        arrived = {key: g for key, g in found.items() if g is not None}
        if not arrived:
            return []
        known = {x.id: g for x in self.inputs if (g := cotangents[x.id]) is not None}
        recorded = any(isinstance(g, Var) for g in (*arrived.values(), *known.values()))
        if isinstance(self.run, WrittenLoop) and not recorded:
            totals = self.run.pull(arrived, known)
        elif isinstance(self.run, WrittenLoop):
            totals = written(self, [lift(x.id) for x in self.inputs]).pull(arrived, known)
        else:
            totals = looped(self, arrived, known, lift, live)
        smooth = [x.id for x in self.inputs if self.tape.node(x).requires_grad]
        return [(id, g) for id, g in totals.items() if id in smooth and (live is None or id in live)]

    def push(self, tangents: Sequence[Any], inputs: Sequence[Any], output: Any, attrs: Any) -> Any:
        """The tangent of a result; None if it is zero."""
        if all(t is None for t in tangents):
            return None
        if isinstance(self.run, WrittenLoop) and not any(isinstance(x, Var) for x in inputs):
            return self.run.push(tangents, attrs["result"])
        return written(self, inputs).push(tangents, attrs["result"])


class Inferred:
    """A loop that does not run here: its results have a shape and nothing else."""

    def __init__(self, loop: ScanLoop, why: Why) -> None:
        self._loop, self._why = loop, why
        self._seen, self._requiring = 0, set[int]()

    @property
    def requiring(self) -> set[int]:
        """The values of the body that require gradients; loops in it may have got results since."""
        body = self._loop.body
        if self._seen < len(body.tape):
            self._seen = len(body.tape)
            inputs = zip(body.inputs, self._loop.inputs, strict=True)
            needing = [id for id, x in inputs if self._loop.tape.node(x).requires_grad]
            self._requiring = body.requiring(needing, self._loop.length)
        return self._requiring

    def value(self, key: str) -> AnyTensor:
        """A result."""
        return Symbol(self._loop.spec(key), self._why)

    def requires(self, key: str) -> bool:
        """Whether a gradient flows through a result."""
        return self._loop.made(key) in self.requiring
