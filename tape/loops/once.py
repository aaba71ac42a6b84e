"""Calls that run a body once: a `cond`, which has two and chooses, and a `checkpoint`, which keeps nothing of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import TapeError
from ..graph.backward import DenseGrads
from ..graph.symbol import CHECKPOINT, COND, Why
from ..values.tensor import AnyTensor
from ..var.var import AnyVar
from .body import Body
from .call import BodyCall, Lift, where
from .once_derivatives import pulled, pushed, zeros
from .written import WrittenCall, alone, computed, written


class OnceCall(BodyCall):
    """One of ``bodies``, all of which take the same from around and give the same: ``y 0`` and so on."""

    why: Why

    ahead = 0
    """How many inputs stand before what the bodies take."""

    @property
    def chosen(self) -> int:
        """Which of the bodies runs."""
        return 0

    @property
    def taken(self) -> Sequence[AnyVar]:
        """What the bodies take from around."""
        return self.inputs[self.ahead :]

    def on(self, tape: Any, inputs: Sequence[AnyVar]) -> "OnceCall":
        """The same call with other inputs."""
        return type(self)(tape, self.bodies, inputs)

    def value_in(self, body: Body, key: str) -> int:
        """Which value of a body a result is."""
        return body.ys[int(key.split()[1])]

    def requiring(self, body: Body) -> set[int]:
        """The values of a body that require gradients."""
        inputs = zip(body.closed, self.taken, strict=True)
        return body.requiring([id for id, x in inputs if self.tape.node(x).requires_grad], 1)

    def run_on(self, new_tape: Callable[[], Any]) -> Any:
        """The run on a tape of its own."""
        return WrittenOnce(self, *alone(self, new_tape()))

    def written(self, inputs: Sequence[AnyVar]) -> "WrittenOnce":
        """The run on the tape of these inputs."""
        return WrittenOnce(self, *written(self, inputs))

    def back(self, arrived: Mapping[str, Any], known: dict[int, Any], lift: Lift) -> dict[int, Any]:
        """The gradient as such a call."""
        return pulled(self, arrived, known, lift)


class CondCall(OnceCall):
    """Two bodies; ``inputs`` are a truth, and what both take. Every input that requires a gradient gets one."""

    name, why, ahead = "cond", COND, 1

    @property
    def chosen(self) -> int:
        """The first where the truth holds."""
        return 0 if self.inputs[0].value.array else 1

    def vars(self, keys: Sequence[str]) -> dict[str, AnyVar]:
        """Results on the tape, as nodes. Raises TapeError for a tape whose ops run in one order."""
        require_choices(self.tape, "cond", "write both sides, and ops.where")
        return super().vars(keys)

    def forth(self, tangents: Sequence[Any], inputs: Sequence[Any], key: str) -> Any:
        """The tangent as such a call."""
        return pushed(self, tangents, inputs, key)


class CheckpointCall(OnceCall):
    """A body of which nothing is kept but what it gives: it is run again where a derivative asks for more."""

    name, why = "checkpoint", CHECKPOINT

    def vars(self, keys: Sequence[str]) -> dict[str, AnyVar]:
        """Results on the tape, which has them as nodes, or every op as one."""
        if not self.tape.unrolls:
            return super().vars(keys)
        run = self.written(self.inputs)
        return {key: run.vars(key)[0] for key in keys}

    def run_on(self, new_tape: Callable[[], Any]) -> "Rerun":
        """What a run gave."""
        return Rerun(lambda: WrittenOnce(self, *alone(self, new_tape())))


class WrittenOnce(WrittenCall):
    """The body that runs, on a tape."""

    def compute(self) -> None:
        """Op after op."""
        call, side = self.call, self.call.chosen
        self._body: Body = list(call.bodies.values())[side]
        taken = [self.leaves[x.id] for x in call.taken]
        known = dict(zip(self._body.closed, taken, strict=True))
        self._known = computed(self.tape, self._body, known, where(call.name, 0, 1, side))

    def requires(self, key: str) -> bool:
        """As where nothing runs: what the other body would need gets zeros."""
        wanted: bool = self.call.requires(key)
        return wanted

    @property
    def steps(self) -> list[tuple[Body, dict[int, AnyVar]]]:
        """The body that ran."""
        return [(self._body, self._known)]

    def vars(self, key: str) -> list[AnyVar]:
        """The node that a result is."""
        return [self._known[self.call.value_in(self._body, key)]]

    def pull(self, arrived: Mapping[str, Any], known: dict[int, Any]) -> dict[int, Any]:
        """As of all calls; what only the other body uses gets zeros."""
        totals = super().pull(arrived, known)
        recorded = any(not isinstance(g, AnyTensor) for g in arrived.values())
        for x in self.call.taken if len(self.call.bodies) > 1 else ():
            if totals.get(x.id) is None and self.call.tape.node(x).requires_grad:
                zero = zeros(x.value.spec)
                totals[x.id] = self.tape.const(zero) if recorded else zero
        return totals


class Rerun:
    """What a run gave, and how it is had again."""

    def __init__(self, run: Callable[[], WrittenOnce]) -> None:
        self._run, made = run, run()
        keys = [f"y {j}" for j in range(len(next(iter(made.call.bodies.values())).ys))]
        self._values = {key: made.value(key) for key in keys}
        self._call: BodyCall = made.call

    def value(self, key: str) -> AnyTensor:
        """A result."""
        return self._values[key]

    def requires(self, key: str) -> bool:
        """Whether a gradient flows through a result."""
        return self._call.requires(key)

    def pull(self, arrived: Mapping[str, Any], known: dict[int, Any]) -> dict[int, Any]:
        """As of another run."""
        return self._run().pull(arrived, known)

    def inside(self, arrived: Mapping[str, AnyTensor]) -> list[DenseGrads[AnyTensor]]:
        """As of another run."""
        return self._run().inside(arrived)

    def push(self, tangents: Sequence[Any], key: str) -> Any:
        """As of another run."""
        return self._run().push(tangents, key)


def require_choices(tape: Any, op: str, instead: str) -> None:
    """Raise TapeError for a tape whose ops run one after the other, whatever they give."""
    if not tape.chooses:
        raise TapeError(
            f"{op}: expected a step on the CPU, which alone can do one thing or another as a value says; a step on a "
            f"GPU and an ONNX file are ops in a row: {instead}"
        )
