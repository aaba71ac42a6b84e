"""Differentiation of functions: from a function of Vars to the function that computes its derivatives.

Arguments are arrays, tensors and numbers, or nests of them: tuples, lists and dicts. Results are tensors in the
same nests. Who owns the arguments decides, as for ops: if a Var is among them, the derivatives are recorded on its
tape and the results are Vars, which can be differentiated again. So transforms nest: ``grad(grad(f))``,
``jacobian(grad(f))``, ``jvp(grad(f), ...)``. A function that uses a Var from around it is differentiated on that
Var's tape: put its other arguments there too, with ``x.tape.const``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DomainError, DTypeError, GradientError
from ..ops import reshape, stack
from ..record.kinds import Kind
from ..values.pytree import Nest, leaves, mapped
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .recorded_call import Function, RecordedCall, name_of

Argnums = int | tuple[int, ...]

POSITIONS = Kind(Argnums)


def grad(f: Function, argnums: Argnums = 0) -> Function:
    """The function that computes the gradient of the scalar ``f(*args)`` by the arguments at ``argnums``.

    It returns one nest for a number, a tuple of nests for a tuple. Where f does not depend on an argument the
    gradient is zeros. Raises GradientError, when called, if f returns no float scalar or an argument at
    ``argnums`` holds integers or bools; DomainError for positions at which f is given no argument.

    >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    AnyTensor(array([2., 4.]))
    >>> grad(grad(lambda x: x**3))(2.0).item()
    12.0
    """
    return _named("grad", f, lambda *args: _value_and_grad("grad", f, args, argnums, has_aux=False)[1])


def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The function that computes ``(f(*args), gradient)``; the gradient is that of `grad`, and so are the errors.

    With ``has_aux`` f returns ``(scalar, aux)``, and the result is ``((scalar, aux), gradient)``. Vars in the nest
    ``aux`` become tensors.

    >>> value, gradient = value_and_grad(lambda p: p["w"] * p["w"] + p["b"])({"w": 3.0, "b": 1.0})
    >>> value.item(), gradient["w"].item(), gradient["b"].item()
    (10.0, 6.0, 1.0)
    """
    call = "value_and_grad"
    return _named(call, f, lambda *args: _value_and_grad(call, f, args, argnums, has_aux))


def vjp(f: Function, *primals: Nest) -> tuple[Nest, Callable[[Nest], tuple[Nest, ...]]]:
    """``f(*primals)``, and the function that pulls a cotangent of it back to a tuple of cotangents of the primals.

    A cotangent has the nest, shapes and dtypes of the value; None in it stands for zeros. Integers and bools have
    None for a cotangent. The pullback may be called any number of times.
    Raises GradientError, ShapeError or DTypeError for a cotangent that does not fit.

    >>> value, pullback = vjp(lambda x, y: x * y, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (AnyTensor(array([ 3., 40.])), AnyTensor(array([ 1., 20.])))
    """
    recorded = RecordedCall("vjp", f, primals, range(len(primals)))

    def pullback(cotangent: Nest) -> tuple[Nest, ...]:
        seeds = recorded.checked("pullback", "cotangent", recorded.out, cotangent)
        pulled: tuple[Nest, ...] = recorded.pull(seeds, recorded.args)
        return pulled

    return recorded.values(recorded.out), pullback


def jvp(f: Function, primals: Sequence[Nest], tangents: Sequence[Nest]) -> tuple[Nest, Nest]:
    """``f(*primals)`` and its derivative along ``tangents``, by one forward sweep through the ops' JVPs.

    Tangents have the nest, shapes and dtypes of the primals; None stands for zeros, and is all that integers and
    bools can have. An op computes with the zeros of an operand that does not move: beside an infinity they make NaN.
    Raises GradientError, ShapeError or DTypeError for a tangent that does not fit; DTypeError if primals or tangents
    are no tuple or list.

    >>> jvp(lambda x: x.exp(), (0.0,), (2.0,))
    (AnyTensor(array(1.)), AnyTensor(array(2.)))
    """
    return _jvp("jvp", f, primals, tangents)


def hvp(f: Function, primals: Sequence[Nest], tangents: Sequence[Nest]) -> tuple[Nest, ...]:
    """The product of the Hessian of the scalar ``f(*primals)`` with ``tangents``: a tuple, one nest for each primal.

    It is the tangent of the gradient, forward over reverse, at a small multiple of the cost of f.
    Raises as `grad` does for f and as `jvp` does for tangents.

    >>> hvp(lambda x: (x * x * x).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    (AnyTensor(array([  6., 120.])),)
    """

    def gradient(*args: Nest) -> Nest:
        recorded = RecordedCall("hvp", f, args, range(len(args)))
        return recorded.pull([recorded.scalar_seed()], recorded.args)

    products: tuple[Nest, ...] = _jvp("hvp", gradient, primals, tangents)[1]
    return products


def jacobian(f: Function, argnums: Argnums = 0) -> Function:
    """The function that computes all derivatives of ``f(*args)`` by the arguments at ``argnums``.

    For each value in the nest that f returns it gives a nest like the argument (a tuple of them for a tuple), whose
    shapes are that of the value followed by that of the argument. One backward sweep for each element of the result.
    Raises GradientError and DomainError as `grad` does; f may return any nest of floats.

    >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    AnyTensor(array([[2., 0.],
           [0., 4.]]))
    """

    def call(*args: Nest) -> Nest:
        recorded, inputs = _with_inputs("jacobian", f, args, argnums, has_aux=False)
        return mapped(lambda _, out: _rows(recorded, out, inputs), recorded.out)

    return _named("jacobian", f, call)


def _named(transform: str, f: Function, call: Function) -> Function:
    call.__name__ = call.__qualname__ = f"{transform}({name_of(f)})"
    return call


def _with_inputs(
    call: str, f: Function, args: tuple[Nest, ...], argnums: Argnums, has_aux: bool
) -> tuple[RecordedCall, Nest]:
    """A call of f, and its arguments at ``argnums``, which must be floats."""
    argnums = POSITIONS(f"{call}: argument 'argnums'", argnums)
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    for number in chosen:
        if not -len(args) <= number < len(args):
            raise DomainError(
                f"{call}: argument 'argnums': expected positions among {len(args)} arguments, got {number}"
            )
    positions = {number % len(args) for number in chosen}
    recorded = RecordedCall(call, f, args, positions, has_aux=has_aux, only_floats=True)
    selected = tuple([recorded.args[number] for number in chosen])
    return recorded, selected if isinstance(argnums, tuple) else selected[0]


def _value_and_grad(
    call: str, f: Function, args: tuple[Nest, ...], argnums: Argnums, has_aux: bool
) -> tuple[Nest, Nest]:
    recorded, inputs = _with_inputs(call, f, args, argnums, has_aux)
    gradient = recorded.pull([recorded.scalar_seed()], inputs)
    value = recorded.values(recorded.out)
    return ((value, recorded.values(recorded.aux)) if has_aux else value), gradient


def _jvp(call: str, f: Function, primals: Sequence[Nest], tangents: Sequence[Nest]) -> tuple[Nest, Nest]:
    _require_tuple(call, "primals", primals)
    _require_tuple(call, "tangents", tangents)
    recorded = RecordedCall(call, f, tuple(primals), range(len(primals)), tangents)
    moved = recorded.checked(call, "tangents", recorded.args, tuple(tangents))
    return recorded.values(recorded.out), recorded.push(moved)


def _require_tuple(call: str, argument: str, given: object) -> None:
    """Raise DTypeError for one argument in the place of all of them, which would be unpacked row by row."""
    if not isinstance(given, tuple | list):
        kind = type(given).__name__
        raise DTypeError(
            f"{call}: argument {argument!r}: expected a tuple of arguments, got {kind}; write (x,) for one"
        )


def _rows(recorded: RecordedCall, out: AnyVar, inputs: Nest) -> Nest:
    """The derivatives of one result by a nest of inputs, from one backward sweep for each element."""
    if out.dtype.kind != "f":
        raise GradientError(f"{recorded.title}: expected it to return floats, got {out.dtype}, which has no gradient")
    shape = shape_of(out)
    rows = [dict(leaves(recorded.pull([(out, _one_hot(out, at))], inputs))) for at in np.ndindex(shape)]

    def stacked(path: str, x: AnyVar) -> Any:
        sizes = shape + shape_of(x)
        made = reshape(stack([row[path] for row in rows]), sizes) if rows else AnyTensor(np.zeros(sizes, x.dtype))
        return recorded.lifted(made)

    return mapped(stacked, inputs)


def _one_hot(like: AnyVar, at: tuple[int, ...]) -> AnyTensor:
    """1 at one element, 0 elsewhere."""
    made = np.zeros(shape_of(like), like.dtype)
    made[at] = 1
    return AnyTensor(made)
