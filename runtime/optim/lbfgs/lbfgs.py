"""L-BFGS as a rule of its own kind: it asks for the loss and its gradient as often as it needs them."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from ....base.arrays import Array, Arrays
from ....tape.errors import DomainError
from ....tape.record.kinds.values import NOT_NEGATIVE, one_of, optional
from ..arrays import check_float
from ..kinds import COUNT, Hyperparameters
from .landscape import Closure, Landscape, Place, flat, require_finite
from .line_search import Point, strong_wolfe
from .memory import Memory
from .vectors import dot, largest, total

LineSearch = Literal["strong_wolfe"]

KINDS = {
    **dict.fromkeys(("lr", "tolerance_grad", "tolerance_change"), NOT_NEGATIVE),
    **dict.fromkeys(("max_iter", "history_size"), COUNT),
    "max_eval": optional(COUNT),
    "line_search": optional(one_of("strong_wolfe")),
}


@dataclass(frozen=True)
class LBFGS(Hyperparameters, kinds=KINDS):
    """Steps along the direction of the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno.

    One call of `step` makes up to ``max_iter`` iterations. Each takes the direction ``d = -H @ g``, where the inverse
    Hessian H is approximated from the last ``history_size`` steps and changes of the gradient, and goes ``p + t * d``:
    with ``t = lr`` (at first ``min(1, 1 / sum(|g|)) * lr``), or from there to where a line search finds the strong
    conditions of Wolfe. It ends early where the gradient, the step or the change of the loss is within its tolerance.

    Everything but the closure is computed in float64, in a fixed order; parameters are rounded once where they are
    written. So the same closure gives the same bits on every machine. It needs the loss several times a step, at points
    that it chooses: it is no rule for a Trainer, and no trace records it.

    Source: Nocedal and Wright (2006), chapters 3 and 7; torch.optim.LBFGS.
    Shapes: parameters of any shape; gradients have that of their parameter.
    Dtypes: parameters float32 or float64; gradients as their parameter; the state int64 and float64.

    Args:
        lr: size of a step, or where a line search begins.
        max_iter: iterations of a call.
        max_eval: evaluations of a call after which no iteration begins; None is 5/4 of ``max_iter``.
        tolerance_grad: the largest element of a gradient that counts as none.
        tolerance_change: the largest change of a parameter, or of the loss, that counts as none.
        history_size: how many steps are remembered.
        line_search: ``"strong_wolfe"``, or None for steps of ``lr``.

    >>> from dgrr.runtime import gradients
    >>> from dgrr.runtime.optim import LBFGS
    >>> from dgrr.tape import ops
    >>> import numpy as np
    >>> def valley(p, x):
    ...     return 100.0 * ops.square(p["y"] - p["x"] ** 2) + ops.square(1.0 - p["x"])
    >>> params = {"x": np.array(-1.0), "y": np.array(1.0)}
    >>> rule = LBFGS(max_iter=100, line_search="strong_wolfe")
    >>> state = rule.init(params)
    >>> rule.step(params, lambda p: gradients(valley, p, ()), state)
    4.0
    >>> params["x"].round(3).item(), params["y"].round(3).item()
    (1.0, 1.0)
    """

    lr: float = 1.0
    _: KW_ONLY
    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search: LineSearch | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_eval is None:
            object.__setattr__(self, "max_eval", self.max_iter * 5 // 4)

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state before the first step.

        Returns:
            ``"step"`` and ``"evaluations"``, how many there were; ``"gradient"`` and ``"move"``, of the last iteration;
            ``"steps"``, ``"changes"``, ``"inverses"`` and ``"scale"``, what is remembered: nothing yet.

        Raises:
            DTypeError: a parameter is not an array of float32 or float64.
            DomainError: there are no parameters.
        """
        if not params:
            raise DomainError("LBFGS.init: params: expected at least one parameter, got none")
        arrays = [check_float(array, "LBFGS.init: parameter {!r}", name) for name, array in params.items()]
        return Memory.empty(sum(array.size for array in arrays))

    def step(self, params: Arrays, closure: Closure, state: dict[str, Array]) -> float:
        """Update parameters and state in place, by up to ``max_iter`` iterations. On an error nothing is changed.

        Args:
            params: C-contiguous, writeable arrays of float32 or float64 by name.
            closure: ``closure(params)`` gives the loss at parameters that it must not change, and the gradients by
                name, as `dgrr.runtime.gradients` does. It has to be the same function each time: the same batch, and
                no draws that differ.
            state: what `init` made for these parameters; its arrays are replaced.

        Returns:
            The loss before the first iteration.

        Raises:
            dgrr.tape.NonFiniteError: the loss or a gradient is not finite at the parameters, or after a step without
                line search.
            ShapeError, DTypeError: an array does not fit its parameter.
            DomainError: an unknown or missing name, or an array that cannot be updated in place.
        """
        landscape = Landscape(closure, params)
        x = landscape.here
        memory = Memory(state, x.size, self.history_size)
        first = require_finite(landscape(x))
        if largest(first.gradient) > self.tolerance_grad:
            x = Descent(self, landscape, memory).run(x, first)
        for name, array in landscape.arrays(x).items():
            params[name][...] = array
        state.update(memory.arrays(int(state["evaluations"]) + landscape.evaluations))
        return first.loss


class Descent:
    """The iterations of one call."""

    def __init__(self, rule: LBFGS, landscape: Landscape, memory: Memory) -> None:
        self._rule, self._landscape, self._memory = rule, landscape, memory

    def run(self, x: Array, place: Place) -> Array:
        """Where the iterations lead from a place."""
        rule = self._rule
        for left in reversed(range(rule.max_iter)):
            d = self._memory.direction(place.gradient)
            start = Point(0.0, place.loss, place.gradient, dot(place.gradient, d))
            t = self._first_t(place.gradient)
            self._memory.move = d * t
            if start.slope > -rule.tolerance_change:
                break
            x, place, t = self._moved(x, d, start, t, is_last=not left)
            self._memory.move = d * t
            if not left or self._has_arrived(start, place):
                break
        return x

    def _first_t(self, gradient: Array) -> float:
        lr = self._rule.lr
        return min(1.0, 1.0 / total(gradient)) * lr if self._memory.count == 1 else lr

    def _moved(self, x: Array, d: Array, start: Point, t: float, *, is_last: bool) -> tuple[Array, Place, float]:
        """The place after a step, and its length. The last one of fixed length is evaluated by the next call."""
        if self._rule.line_search is not None:
            point = self._searched(x, d, start, t)
            return self._at(x, d, point.t), Place(point.loss, point.gradient), point.t
        x = self._at(x, d, t)
        return x, Place(start.loss, start.gradient) if is_last else require_finite(self._landscape(x)), t

    def _searched(self, x: Array, d: Array, start: Point, t: float) -> Point:
        def evaluate(t: float) -> Point:
            loss, gradient = self._landscape(self._at(x, d, t))
            return Point(t, loss, gradient, dot(gradient, d))

        left = self._most - self._landscape.evaluations
        return strong_wolfe(evaluate, start, t, largest(d), self._rule.tolerance_change, left)

    def _at(self, x: Array, d: Array, t: float) -> Array:
        """A point of a line, as parameters can hold it."""
        return flat(self._landscape.arrays(x + t * d))

    def _has_arrived(self, start: Point, place: Place) -> bool:
        """Whether nothing is left to gain, or no evaluation."""
        rule = self._rule
        return (
            self._landscape.evaluations >= self._most
            or largest(place.gradient) <= rule.tolerance_grad
            or largest(self._memory.move) <= rule.tolerance_change
            or abs(place.loss - start.loss) < rule.tolerance_change
        )

    @property
    def _most(self) -> int:
        assert self._rule.max_eval is not None, "filled in"
        return self._rule.max_eval
