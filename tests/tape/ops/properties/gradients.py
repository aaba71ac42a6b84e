"""Properties of an op's derivatives, held against differences of its values and against each other."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dgrr.tape import AnyTensor, AnyVar, Tape, jvp, ops
from dgrr.tape.record.derivative import NO_GRAD
from dgrr.tape.record.op import Op

from .cases import Array, Case, Record, assert_same_bits, cases, run
from .numeric import dot, moved, normal, slope

DIRECTIONS = 2
ADJOINT = 5000
"""Roundings that <Jv, u> and <v, J'u> may differ by: 1e-12 in float64."""


def leaves(tape: Tape[Any], case: Case, trainable: Sequence[bool] | None = None) -> list[AnyVar | None]:
    """A leaf for each given array; ``trainable`` says which of the float inputs require a gradient (all)."""
    flags = dict(zip(case.float_inputs, trainable or [True] * len(case.float_inputs), strict=True))
    return [None if a is None else tape.leaf(a, requires_grad=flags.get(i, False)) for i, a in enumerate(case.arrays)]


def applied(tape: Tape[Any], case: Case, trainable: Sequence[bool] | None = None) -> tuple[list[AnyVar | None], AnyVar]:
    """The leaves and the op's result on them."""
    made = leaves(tape, case, trainable)
    out: AnyVar = case.op(*made, **case.attrs)
    return made, out


def differentiable(case: Case) -> list[int]:
    """Positions of the given float inputs that have a VJP."""
    return [i for i in case.float_inputs if case.op.smooth[i]]


def gradients(case: Case, seed: Array) -> list[Array | None]:
    """The gradient of <seed, op> by every input, None where there is none."""
    tape: Tape[Any] = Tape()
    made, out = applied(tape, case)
    grads = tape.backward_dense(out, seed)
    arrived = [None if leaf is None else grads[leaf] for leaf in made]
    return [None if g is None else g.array for g in arrived]


def precision(*arrays: Array) -> float:
    """The coarsest relative precision among arrays of floats."""
    return max(float(np.finfo(a.dtype).eps) for a in arrays)


def regular(op: Record) -> Iterator[tuple[Case, Array]]:
    """The float64 cases whose result is of floats, with it, all values finite and at least one of them there.

    An op that has a derivative must have at least one such case.
    """
    seen = 0
    if "slope" in op.excused:
        assert not any(op.smooth), f"{op.name}: it has a derivative and an excuse"
        return
    for case in cases(op, np.float64):
        y = case.result
        inputs = [case.arrays[i] for i in case.float_inputs]
        finite = y.dtype.kind == "f" and all(np.isfinite(a).all() for a in (*inputs, y) if a is not None)
        if finite and inputs and y.size:
            seen += 1
            yield case, y
    assert seen or not any(op.smooth), f"{op.name}: no sample on which a derivative can be checked"


def check_gradient(op: Record) -> None:
    """Each VJP is the slope of the op's value; where NO_GRAD stands for an input of floats the slope is 0."""
    rng = np.random.default_rng(1)
    for case, y in regular(op):
        for i, _ in product(case.float_inputs, range(DIRECTIONS)):
            _check_slope(case, y, i, rng)
    _check_smooth(op)


def _check_slope(case: Case, y: Array, i: int, rng: np.random.Generator) -> bool:
    x = case.arrays[i]
    assert x is not None
    v, u = normal(rng, x), normal(rng, y)
    numeric = slope(lambda t: run(case.op, moved(case.arrays, {i: v}, t), case.attrs), u, precision(x, y))
    if numeric.kink:
        return False
    g = gradients(case, u)[i] if i in differentiable(case) else np.zeros_like(x)
    assert g is not None, f"{case.label}: no gradient arrives at input {i}"
    numeric.assert_equals(*dot([(g, v)]), f"{case.label}: slope along input {i}")
    return True


def _check_smooth(op: Record) -> None:
    """Kinks excuse single directions, never all directions of an input."""
    rng = np.random.default_rng(2)
    for i, differentiable_input in enumerate(op.smooth):
        if differentiable_input:
            smooth = [_check_slope(case, y, i, rng) for case, y in regular(op) if i in case.float_inputs]
            assert any(smooth), f"{op.name}: input {i} is differentiable, and every sample has a kink there"


def check_second_order(op: Record) -> None:
    """The recorded gradient has the bits of the plain one; its gradient is the slope of the plain one."""
    rng = np.random.default_rng(3)
    for case, y in regular(op):
        _check_second_slope(case, normal(rng, y), rng)


def _check_second_slope(case: Case, u: Array, rng: np.random.Generator) -> None:
    """Of ``s = sum_i <g_i, w_i>``, g_i the gradient for seed u, by all inputs and by the seed."""
    positions = differentiable(case)
    plain = gradients(case, u)
    weights = {i: normal(rng, plain[i]) for i in positions}  # type: ignore[arg-type]
    tape: Tape[Any] = Tape()
    made, out = applied(tape, case)
    seed = tape.leaf(u)
    grads = tape.backward_dense(out, seed, create_graph=True)
    s = tape.leaf(np.zeros((), np.float64))
    for i in positions:
        g = grads[made[i]]
        assert g is not None, f"{case.label}: no recorded gradient arrives at input {i}"
        assert_same_bits(g.numpy(), plain[i], f"{case.label}: recorded gradient of input {i}")  # type: ignore[arg-type]
        s = s + ops.reduce_sum(ops.cast(g, np.float64) * weights[i].astype(np.float64))
    second = tape.backward_scalar(s)
    variables = {i: made[i] for i in case.float_inputs} | {-1: seed}
    directions = {i: normal(rng, v.numpy()) for i, v in variables.items() if v is not None}
    pairs = [(_array(second[variables[i]]), v) for i, v in directions.items()]

    def plain_gradients(t: float) -> Array:
        shifted = Case(case.op, case.label, tuple(moved(case.arrays, directions, t)), case.attrs)
        g = gradients(shifted, u + t * directions[-1])
        return np.concatenate([np.ravel(g[i]) for i in positions])  # type: ignore[arg-type]

    w = np.concatenate([np.ravel(weights[i]) for i in positions])
    numeric = slope(plain_gradients, w, precision(u, w), cancelled=dot([(u, out.numpy())])[1])
    if not numeric.kink:
        numeric.assert_equals(*dot([(g, v) for g, v in pairs if g is not None]), f"{case.label}: second order")


def _array(g: AnyTensor | None) -> Array | None:
    return None if g is None else g.array


def check_adjoint(op: Record) -> None:
    """JVP and VJP are each other's transposes: <Jv, u> = <v, J'u>."""
    if isinstance(op, Op):
        assert any(op.smooth) == (op.jvp is not NO_GRAD), f"{op.name}: VJPs and JVP must exist together"
    rng = np.random.default_rng(4)
    for case, y in regular(op):
        tangents = [
            normal(rng, a) if a is not None and i in case.float_inputs else None for i, a in enumerate(case.arrays)
        ]
        u = normal(rng, y)
        jv = jvp(partial(op, **case.attrs), case.arrays, tangents)[1].array
        assert jv.shape == y.shape, f"{case.label}: the JVP has shape {jv.shape}, the result {y.shape}"
        assert jv.dtype == y.dtype, f"{case.label}: the JVP is of {jv.dtype}, the result of {y.dtype}"
        g = gradients(case, u)
        left, left_scale = dot([(jv, u)])
        right, right_scale = dot([(g[i], tangents[i]) for i in differentiable(case)])
        bound = precision(y) * (ADJOINT * (left_scale + right_scale) + dot([(u, y)])[1])
        assert abs(left - right) <= bound, f"{case.label}: <Jv, u> = {left!r}, <v, J'u> = {right!r}"


GRADIENTS: dict[str, Callable[[Any], None]] = {
    "gradient": check_gradient,
    "second order": check_second_order,
    "adjoint": check_adjoint,
}
