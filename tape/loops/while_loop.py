"""``while_loop``: a loop that ends when its state says so, recorded as a body that says for the next turn, too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import GradientError
from ..graph.symbol import WHILE_LOOP
from ..location import Location
from ..values.pytree import Nest, mapped
from ..values.tensor import AnyTensor
from ..var.var import AnyVar
from .body import Body
from .body_tape import BodyTape
from .call import BodyCall, Lift, where
from .given import TRUTH, alike, placed, returned, truth_of, vars_of
from .once import require_choices
from .written import computed

INSTEAD = "use ops.scan with a fixed length"


def while_loop(tape: Any, cond: Callable[[Any], Any], body: Callable[[Any], Any], carry: Nest) -> Nest:
    """What `dgrr.tape.ops.while_loop` does on a tape."""
    require_choices(tape, "while_loop", INSTEAD)
    start = placed(tape, "while_loop", "carry", carry)
    inner = BodyTape(tape, WHILE_LOOP)
    with inner.recording():
        truth = inner.symbol(TRUTH)
        before = mapped(lambda _, x: inner.symbol(x.value.spec, x.name), start)
        after = returned(inner, "body", "carry", body(before))
        ends = alike("while_loop: argument 'body'", "carry", "it was given", before, after)
        said = "while_loop: argument 'cond': expected it to return"
        going = truth_of(said, returned(inner, "cond", "result", cond(after)), None)
    begins = truth_of(said, placed(tape, "while_loop", "cond", cond(start)), None)
    state = [truth, *vars_of(before)]
    recorded = Body.of(inner, [], carry=state, after=[going, *ends])
    loop = WhileLoop(tape, {"body": recorded}, [begins, *vars_of(start), *recorded.around])
    results = iter(loop.vars([f"carry {i}" for i in range(1, len(state))]).values())

    def taken(path: str, x: AnyVar) -> AnyVar:
        return next(results)

    return mapped(taken, start)


class WhileLoop(BodyCall):
    """A body that is applied while the first part of its state holds. No gradient flows through it."""

    name = "while_loop"

    def on(self, tape: Any, inputs: Sequence[AnyVar]) -> "WhileLoop":
        """The same loop with other inputs."""
        return type(self)(tape, self.bodies, inputs)

    def vars(self, keys: Sequence[str]) -> dict[str, AnyVar]:
        """Results on the tape, as nodes. Raises TapeError for a tape whose ops run in one order."""
        require_choices(self.tape, "while_loop", INSTEAD)
        return super().vars(keys)

    def value_in(self, body: Body, key: str) -> int:
        """Which value of the body a part of the last state is."""
        return body.after[int(key.split()[1])]

    def requiring(self, body: Body) -> set[int]:
        """The values of the body that would require gradients, and parts of the state that may be the first."""
        inputs = zip(body.inputs, self.inputs, strict=True)
        found = [id for id, x in inputs if self.tape.node(x).requires_grad]
        known = body.requiring(found, len(body.carry) + 1)
        return known | {after for id, after in zip(body.carry, body.after, strict=True) if id in known}

    def run_on(self, new_tape: Callable[[], Any]) -> "Turns":
        """What its turns give, each on a tape of its own."""
        return Turns(self, new_tape)

    def written(self, inputs: Sequence[AnyVar]) -> NoReturn:
        """Raises GradientError: only derivatives ask for it."""
        node = self.tape.node(self.first)
        at = "" if node.place is None else f"; it was called at {Location.of(node.place)}"
        raise GradientError(
            "while_loop: no derivative goes through it, as how many steps it takes is known only when it has run; "
            f"{INSTEAD}, or ops.stop_gradient on what it begins with{at}"
        )

    def back(self, arrived: Mapping[str, Any], known: dict[int, Any], lift: Lift) -> NoReturn:
        """Raises GradientError."""
        self.written(self.inputs)


class Turns:
    """What a loop leaves; nothing else is kept."""

    def __init__(self, loop: WhileLoop, new_tape: Callable[[], Any]) -> None:
        body = loop.bodies["body"]
        values = [x.value for x in loop.inputs]
        state, around = values[: len(body.carry)], values[len(body.carry) :]
        turn = 0
        while state[0].array:
            tape = new_tape()
            known = {id: tape.const(x) for id, x in zip(body.inputs, (*state, *around), strict=True)}
            known = computed(tape, body, known, where(loop.name, turn, 0))
            state, turn = [known[id].value for id in body.after], turn + 1
        self._loop, self._state = loop, state

    def value(self, key: str) -> AnyTensor:
        """A part of the last state."""
        return self._state[int(key.split()[1])]

    def requires(self, key: str) -> bool:
        """Whether a gradient would flow through it."""
        return self._loop.requires(key)

    def inside(self, arrived: Mapping[str, AnyTensor]) -> NoReturn:
        """Raises GradientError."""
        self._loop.written(self._loop.inputs)

    def pull(self, arrived: Mapping[str, Any], known: dict[int, Any]) -> NoReturn:
        """Raises GradientError."""
        self._loop.written(self._loop.inputs)

    def push(self, tangents: Sequence[Any], key: str) -> NoReturn:
        """Raises GradientError."""
        self._loop.written(self._loop.inputs)
