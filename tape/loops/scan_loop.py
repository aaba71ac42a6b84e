"""One ``scan`` on a tape: what its results are nodes of."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ops import stack
from ..values.spec import Spec
from ..var.var import AnyVar
from .body import Body
from .call import BodyCall, Lift
from .gradient import looped
from .written import WrittenLoop, alone, written


class ScanLoop(BodyCall):
    """A body that is applied ``length`` times: to the state that the step before left, and to a row of each of xs.

    ``inputs`` are the state before the first step, the xs, and what the body takes from around, on ``tape``. Its
    results are nodes of the tape: ``carry 0`` is a part of the last state, ``y 0`` what the steps give, stacked, and
    ``each 7`` a value of the body in the same way, where a gradient asks for it.
    """

    name = "scan"

    def __init__(self, tape: Any, body: Body, inputs: Sequence[AnyVar], length: int, reverse: bool) -> None:
        super().__init__(tape, {"body": body}, inputs)
        self.body, self.length, self.reverse = body, length, reverse
        self.attrs = {"length": length, "reverse": reverse}
        self.cut = range(len(body.carry), len(body.carry) + len(body.xs))

    def on(self, tape: Any, inputs: Sequence[AnyVar]) -> "ScanLoop":
        """The same loop with other inputs."""
        return type(self)(tape, self.body, inputs, self.length, self.reverse)

    def vars(self, keys: Sequence[str]) -> dict[str, AnyVar]:
        """Results on the tape, which has them as nodes, or all nodes of all steps if it writes loops out."""
        if not self.tape.unrolls:
            return super().vars(keys)
        steps = self.written(self.inputs)
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

    def value_in(self, body: Body, key: str) -> int:
        """Which value of the body a result is made of."""
        each = self.each(key)
        return body.after[int(key.split()[1])] if each is None else each

    def spec(self, key: str) -> Spec:
        """Shape and element type of a result."""
        spec = super().spec(key)
        return spec if self.each(key) is None else Spec((self.length, *spec.shape), spec.dtype)

    def requiring(self, body: Body) -> set[int]:
        """The values of the body that require gradients, in any step."""
        inputs = zip(body.inputs, self.inputs, strict=True)
        return body.requiring([id for id, x in inputs if self.tape.node(x).requires_grad], self.length)

    def each_of(self, value: int) -> int:
        """The id of the result that stacks a value of the body."""
        known = [f"y {j}" for j, y in enumerate(self.body.ys) if y == value]
        return self.result(known[0] if known else f"each {value}")

    def run_on(self, new_tape: Callable[[], Any]) -> WrittenLoop:
        """Its steps on a tape of their own."""
        return WrittenLoop(self, *alone(self, new_tape()))

    def written(self, inputs: Sequence[AnyVar]) -> WrittenLoop:
        """Its steps on the tape of these inputs."""
        return WrittenLoop(self, *written(self, inputs))

    def back(self, arrived: Mapping[str, Any], known: dict[int, Any], lift: Lift) -> dict[int, Any]:
        """The gradient as a loop backwards."""
        return looped(self, arrived, known, lift)
