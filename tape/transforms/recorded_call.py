"""One call of a function of Vars, recorded so that it can be differentiated backwards and forwards."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from ..errors import DTypeError, GradientError
from ..graph.backward import DenseGrads, Lift, cotangent, depending, zeros
from ..graph.forward import push
from ..ops import OPS, reshape
from ..tape import Tape
from ..values.pytree import Nest, beside, leaves, mapped
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, is_var, shape_of

Function = Callable[..., Any]


def name_of(f: Function) -> str:
    """What messages call a function."""
    return getattr(f, "__name__", type(f).__name__)


class RecordedCall:
    """A call on the tape of the Vars among the arguments, or ``beside`` them; on its own tape if there are none.

    ``args`` is what the function was given, as Vars; ``out`` and ``aux`` what it returned. The floats at
    ``positions`` are its inputs; with ``only_floats`` nothing else may stand there. They are new nodes, so that a
    Var that the function also uses from around it is not taken for an input.
    """

    def __init__(
        self,
        call: str,
        f: Function,
        args: tuple[Nest, ...],
        positions: Collection[int],
        tangents: Nest = None,
        has_aux: bool = False,
        only_floats: bool = False,
    ) -> None:
        self.call, self.title, self._only_floats = call, f"{call}: function {name_of(f)!r}", only_floats
        owner = next((x.tape for _, x in leaves([args, tangents]) if is_var(x)), None)
        self.nested = owner is not None
        self.tape: Tape[Any] = Tape() if owner is None else owner
        self._inputs: set[int] = set()
        self.args = tuple([mapped(partial(self._placed, i in positions), x, f"[{i}]") for i, x in enumerate(args)])
        self._first = len(self.tape)
        self.out, self.aux = self._returned(f(*self.args), has_aux)

    def _placed(self, wanted: bool, path: str, x: Any) -> AnyVar:
        """A value as the function gets it: a Var, and a new node if it is an input."""
        given = self.tape.node(x) if is_var(x) else None
        value = given.value if given else self._tensor(path, x)
        if not wanted or value.dtype.kind != "f":
            if wanted and self._only_floats:
                raise GradientError(
                    f"{self.call}: argument {f'args{path}'!r}: expected float32 or float64, got {value.dtype}, which "
                    "has no gradient; pass it as an argument that is not among argnums"
                )
            return x if given else self.tape.const(value)
        made = reshape(x, value.sizes) if given else self.tape.leaf(value)
        self.tape.node(made).requires_grad = True
        self._inputs.add(made.id)
        return made

    def _tensor(self, path: str, x: Any) -> AnyTensor:
        where = f"{self.call}: argument 'args{path}'"
        if isinstance(x, AnyTensor):
            return x
        if isinstance(x, np.ndarray | np.generic | int | float):
            return AnyTensor.leaf(cast(Any, x), where)
        raise DTypeError(
            f"{where}: expected a Var, a tensor, an array or a number, or a tuple, list or dict of them, "
            f"got {type(x).__name__}"
        )

    def _returned(self, returned: Any, has_aux: bool) -> tuple[Nest, Nest]:
        """What the function returned, and what stands beside it."""
        pair: Any = returned if has_aux else (returned, None)
        if not isinstance(pair, tuple) or len(cast(Any, pair)) != 2:
            got = type(returned).__name__
            raise GradientError(f"{self.title}: expected it to return (value, aux), got {got}")
        out, aux = cast(Any, pair)
        for path, x in leaves(out):
            if not is_var(x):
                at = f" at {path}" if path else ""
                raise GradientError(f"{self.title}: expected it to return a Var{at}, got {type(x).__name__}")
            self.tape.node(x)
        return out, aux

    def scalar_seed(self) -> tuple[AnyVar, Any]:
        """The result with the cotangent 1. Raises GradientError unless it is one float scalar."""
        out = self.out
        if not is_var(out) or shape_of(out) or out.dtype.kind != "f":
            got = f"{out.dtype} of shape {shape_of(out)}" if is_var(out) else f"a {type(out).__name__}"
            raise GradientError(
                f"{self.title}: expected it to return a float scalar, got {got}; reduce it first, or use jacobian"
            )
        return out, AnyTensor(np.ones((), out.dtype))

    def checked(self, call: str, argument: str, like: Nest, given: Nest) -> list[tuple[AnyVar, Any]]:
        """The Vars of a nest, each with the tangent or cotangent that is given for it, where one is.

        Raises GradientError, ShapeError, DTypeError or TapeError for one that does not fit.
        """
        found: list[tuple[AnyVar, Any]] = []
        for path, x, value in beside(like, given, call, argument):
            if value is not None:
                made = cotangent(call, path, x.value, value)
                if is_var(made):
                    self.tape.node(made)
                found.append((x, made))
        return found

    def pull(self, seeds: Sequence[tuple[AnyVar, Any]], inputs: Nest) -> Nest:
        """The gradients by a nest of inputs, given the cotangents of results."""
        live = depending(list(self.tape), self._inputs, max((out.id for out, _ in seeds), default=0))
        cotangents: list[Any] = [None] * len(self.tape)
        for out, seed in seeds:
            known = cotangents[out.id]
            cotangents[out.id] = seed if known is None else OPS["add"](known, seed)
        arrived: DenseGrads[Any] = self.tape.sweep(cotangents, max(live, default=-1), self.nested, live)
        return mapped(lambda _, x: self._derivative(x, arrived[x.id]), inputs)

    def push(self, moved: Sequence[tuple[AnyVar, Any]]) -> Nest:
        """The tangents of the results, given those of inputs."""
        tangents = {x.id: self.lifted(t) for x, t in moved}
        last = max((out.id for _, out in leaves(self.out)), default=-1)
        lift: Lift = self.tape.var if self.nested else self.tape.value
        push(list(self.tape), tangents, self._first, last, lift)
        return mapped(lambda _, out: self._derivative(out, tangents.get(out.id)), self.out)

    def _derivative(self, x: AnyVar, found: Any) -> Any:
        """A derivative at ``x``: zeros if none arrived, None if none exists."""
        made = zeros(x.value) if found is None else found
        return None if made is None else self.lifted(made)

    def lifted(self, x: Any) -> Any:
        """A derivative as it is handed out: a Var if the arguments were."""
        return self.tape.const(x) if self.nested and isinstance(x, AnyTensor) else x

    def values(self, nest: Nest) -> Nest:
        """What the function returned as it is handed out: tensors, unless the arguments were Vars."""
        return nest if self.nested else mapped(lambda _, x: x.value if is_var(x) else x, nest)
