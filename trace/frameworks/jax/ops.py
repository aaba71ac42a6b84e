"""The ops of a step of a JAX program: its jaxpr, evaluated equation by equation."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....base.runs.called_op import CalledOp
from .equation import Equations, Where, options

Digests: TypeAlias = tuple[bytes, ...]
"""Of one value, for each trace that is written."""

_TOGETHER = 256
"""How many calls are written together."""

_INSIDE = {
    **dict.fromkeys(("jit", "pjit", "remat2", "checkpoint"), "jaxpr"),
    **dict.fromkeys(("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
}
"""Primitives that only wrap a program, and what they call it."""


class _Value(NamedTuple):
    """A value and its digests; a number that stands in the program has none."""

    value: Any
    digests: Digests | None = None


class _Called(NamedTuple):
    """A call, with what it takes and gives."""

    call: CalledOp
    inputs: list[Digests]
    outputs: list[Digests]

    def of(self, trace: int) -> CalledOp:
        """The call as one of the traces has it."""
        inputs, outputs = (tuple(each[trace] for each in digests) for digests in (self.inputs, self.outputs))
        call = self.call
        return CalledOp(call.name, call.options, inputs, outputs, call.phase, call.scope, call.place)


class JaxOps:
    """Evaluates what a function does with its arguments, and writes down every equation.

    Args:
        jax: the package.
        digests: gives those of a value.
        writes: what the calls are told to, for each trace: the number of the first of them, and the calls.
    """

    def __init__(
        self,
        jax: Any,
        digests: Callable[[Any], Digests],
        writes: Sequence[Callable[[int, Sequence[CalledOp]], None]],
    ) -> None:
        self._jax, self._digests, self._writes = jax, digests, writes
        self._equations = Equations(jax)
        self.begin_step()

    def begin_step(self) -> None:
        """Count calls from 0 on."""
        self._held, self._first, self._is_behind = list[_Called](), 0, False

    def evaluate(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Write the calls of ``function(*args, **kwargs)``. Arguments that are no arrays stand in the program."""
        jax = self._jax
        leaves, tree = jax.tree.flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray | np.generic)]

        def of_arrays(*arrays: Any) -> Any:
            given = dict(zip(places, arrays, strict=True))
            args, kwargs = jax.tree.unflatten(tree, [given.get(i, leaf) for i, leaf in enumerate(leaves)])
            return function(*args, **kwargs)

        arrays = [leaves[i] for i in places]
        self._program(jax.make_jaxpr(of_arrays)(*arrays), self._known(arrays), Where())
        self._write()

    def _known(self, values: Iterable[Any]) -> list[_Value]:
        return [_Value(value, self._digests(value)) for value in values]

    def _program(self, program: Any, taken: Sequence[_Value], outer: Where) -> list[_Value]:
        """Evaluate a jaxpr, closed or without constants."""
        jaxpr = getattr(program, "jaxpr", program)
        values = dict[Any, _Value](zip(jaxpr.constvars, self._known(getattr(program, "consts", ())), strict=True))
        values.update(zip(jaxpr.invars, taken, strict=True))

        def read(atom: Any) -> _Value:
            return _Value(atom.val) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            given = self._equation(jaxpr, equation, [read(atom) for atom in equation.invars], outer)
            values.update(zip(equation.outvars, given, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, jaxpr: Any, equation: Any, taken: list[_Value], outer: Where) -> list[_Value]:
        """Evaluate one equation; one that only wraps others, chooses or repeats is opened."""
        name, params, where = equation.primitive.name, equation.params, self._equations.where(equation, outer)
        if name in _INSIDE:
            placed = self._placed(taken, params.get("in_shardings"))
            return self._placed(self._program(params[_INSIDE[name]], placed, where), params.get("out_shardings"))
        if name == "cond":
            which = min(max(int(taken[0].value), 0), len(params["branches"]) - 1)
            return self._program(params["branches"][which], taken[1:], where)
        if name == "scan" and params["length"]:
            return self._scan(params, taken, where)
        return self._call(jaxpr, equation, taken, where)

    def _placed(self, values: list[_Value], shardings: Sequence[Any] | None) -> list[_Value]:
        """Values where a jitted function has them."""
        placed = list(values)
        for i, sharding in enumerate(shardings or ()):
            if isinstance(sharding, self._jax.sharding.Sharding) and values[i].digests is not None:
                placed[i] = self._known([self._jax.device_put(values[i].value, sharding)])[0]
        return placed

    def _scan(self, params: Any, taken: list[_Value], where: Where) -> list[_Value]:
        """Evaluate the body of a loop for each of its steps, within ``scan.0``, ``scan.1`` and so on."""
        fixed, carries = params["num_consts"], params["num_carry"]
        consts, carry, sequences = taken[:fixed], taken[fixed : fixed + carries], taken[fixed + carries :]
        numbers = range(params["length"])
        rows = dict[int, list[_Value]]()
        for i in reversed(numbers) if params["reverse"] else numbers:
            parts = self._known([sequence.value[i] for sequence in sequences])
            inside = where._replace(scope=".".join(filter(None, [where.scope, f"scan.{i}"])))
            given = self._program(params["jaxpr"], [*consts, *carry, *parts], inside)
            carry, rows[i] = given[:carries], given[carries:]
        stacks = zip(*(rows[i] for i in numbers), strict=True)
        return [*carry, *self._known([self._jax.numpy.stack([each.value for each in stack]) for stack in stacks])]

    def _call(self, jaxpr: Any, equation: Any, taken: list[_Value], where: Where) -> list[_Value]:
        """Evaluate an equation that has none inside, or is one op, and note it."""
        literals = {i: each.value for i, each in enumerate(taken) if each.digests is None}
        values = self._known(self._evaluated(jaxpr, equation, [each.value for each in taken]))
        said = self._equations.name(equation), options(equation.params, literals)
        call = CalledOp(*said, phase=self._phase(where), scope=where.scope, place=where.place)
        self._held.append(_Called(call, _digests(taken), _digests(values)))
        if len(self._held) >= _TOGETHER:
            self._write()
        return values

    def _evaluated(self, jaxpr: Any, equation: Any, values: Sequence[Any]) -> list[Any]:
        """What one equation of a jaxpr gives."""
        places = [i for i, atom in enumerate(equation.invars) if not hasattr(atom, "val")]
        taken, given = [equation.invars[i] for i in places], equation.outvars
        alone = jaxpr.replace(constvars=[], invars=taken, outvars=given, eqns=[equation])
        return list(self._jax.core.eval_jaxpr(alone, (), *(values[i] for i in places)))

    def _phase(self, where: Where) -> str:
        """What no transform tells belongs to the forward pass, and behind the backward pass to the optimizer."""
        self._is_behind = self._is_behind or where.phase == "backward"
        return where.phase or ("optimizer" if self._is_behind else "forward")

    def _write(self) -> None:
        if self._held:
            for trace, write in enumerate(self._writes):
                write(self._first, [called.of(trace) for called in self._held])
        self._first += len(self._held)
        self._held = []


def _digests(values: Iterable[_Value]) -> list[Digests]:
    return [each.digests for each in values if each.digests is not None]
