"""``while_loop`` gives what the same loop in Python gives."""

import numpy as np
import pytest

from dgrr.tape import (
    BoundsError,
    DTypeError,
    GradientError,
    NonFiniteError,
    ShapeError,
    Tape,
    TapeError,
    grad,
    jvp,
    ops,
    vmap,
)
from dgrr.tape.ops import cond, scan, while_loop
from dgrr.tape.transforms.symbolic_tape import SymbolicTape
from dgrr.tape.values.spec import Spec

from .test_scan import bits


def newton(x, below=1e-12):
    """The square root of x, and after how many steps."""

    def going(carry):
        n, y = carry["n"], carry["y"]
        return ops.logical_and(ops.abs(y * y - x) > below, n < 50)

    def body(carry):
        y = carry["y"]
        return {"n": carry["n"] + 1, "y": (y + x / y) * 0.5}

    return while_loop(going, body, {"n": np.array(0), "y": x})


def by_hand(x, below=1e-12):
    n, y = 0, x
    while abs(y * y - x) > below and n < 50:
        n, y = n + 1, (y + x / y) * 0.5
    return n, y


@pytest.mark.parametrize("x", [2.0, 3e4, 1.0, 1e-3])
def test_a_loop_is_that_of_python(x):
    tape = Tape()
    made = newton(tape.const(x))
    n, y = by_hand(np.float64(x))
    assert (made["n"].item(), bits(made["y"].numpy())) == (n, bits(np.asarray(y)))


def test_a_loop_that_does_not_begin_leaves_its_carry():
    tape = Tape()
    x = tape.const([1.0, -0.0])
    assert bits(while_loop(lambda x: x.sum() > 5.0, lambda x: x / 0.0, x).numpy()) == bits(x.numpy())


def test_loops_stand_in_scans_and_choices():
    tape = Tape()
    xs = tape.const([2.0, 9.0, 25.0])
    roots = scan(lambda h, x: (h, newton(x)["y"]), np.array(0.0), xs)[1]
    assert roots.numpy().tolist() == [by_hand(np.float64(x))[1] for x in (2.0, 9.0, 25.0)]
    root = cond(xs.sum() > 0.0, lambda x: newton(x)["y"], lambda x: x, xs[1])
    assert root.item() == by_hand(np.float64(9.0))[1]


def test_members_of_vmap_each_run_their_own_loop():
    made = vmap(newton)(np.array([2.0, 1.0, 3e4]))
    assert made["n"].numpy().tolist() == [by_hand(np.float64(x))[0] for x in (2.0, 1.0, 3e4)]
    assert made["y"].numpy().tolist() == [by_hand(np.float64(x))[1] for x in (2.0, 1.0, 3e4)]


def test_nothing_is_kept_of_its_steps():
    tape = Tape()
    made = while_loop(lambda n: n < 1000, lambda n: n + 1, tape.const(np.array(0)))
    assert made.item() == 1000 and len(tape) < 8


def test_a_gradient_that_goes_through_it_is_refused_with_its_line():
    text = (
        "while_loop: no derivative goes through it, as how many steps it takes is known only when it has run; use "
        "ops.scan with a fixed length, or ops.stop_gradient on what it begins with; it was called at "
    )

    def doubled(x):
        return while_loop(lambda y: y < 100.0, lambda y: y * x, x)

    for derive in (lambda: grad(doubled)(3.0), lambda: jvp(doubled, (3.0,), (1.0,)), lambda: grad(grad(doubled))(3.0)):
        with pytest.raises(GradientError) as caught:
            derive()
        assert str(caught.value).startswith(text) and "return while_loop(lambda y" in str(caught.value)
    tape = SymbolicTape()
    x = tape.symbol(Spec((), np.dtype(np.float64)), "x", True)
    with pytest.raises(GradientError, match="while_loop: no derivative goes through it"):
        tape.backward_scalar(doubled(x), create_graph=True)
    assert grad(lambda x: doubled(ops.stop_gradient(x)) * x)(3.0).item() == 243.0
    with pytest.raises(GradientError, match="while_loop: no derivative"):
        grad(lambda x: scan(lambda h, _: (doubled(h), None), x, length=2)[0])(3.0)


REFUSED = {
    "no Var": (
        TapeError,
        "while_loop: expected a Var in carry; put an array on a tape with tape.const",
        lambda tape: while_loop(lambda x: x, lambda x: x, np.zeros(2)),
    ),
    "a number": (
        DTypeError,
        "while_loop: argument 'carry[1]': expected a Var or an array, or a tuple, list or dict of them, got int; a "
        "number has no element type of its own: write np.zeros((), np.float32)",
        lambda tape: while_loop(lambda x: x, lambda x: x, (tape.const(1.0), 0)),
    ),
    "no bool": (
        ShapeError,
        "while_loop: argument 'cond': expected it to return one bool, of shape (), got float64 of shape (); compare "
        "and reduce it first",
        lambda tape: while_loop(lambda x: x, lambda x: x, tape.const(1.0)),
    ),
    "bools": (
        ShapeError,
        "while_loop: argument 'cond': expected it to return one bool, of shape (), got bool of shape (2,); compare "
        "and reduce it first",
        lambda tape: while_loop(lambda x: x > 0.0, lambda x: x, tape.const([1.0, 2.0])),
    ),
    "another shape": (
        ShapeError,
        "while_loop: argument 'body': expected it to return carry[0] as it was given, float64 of shape (2,), got "
        "float64 of shape ()",
        lambda tape: while_loop(lambda c: c[0].sum() > 0.0, lambda c: (c[0].sum(),), (tape.const([1.0, 2.0]),)),
    ),
    "a number back": (
        DTypeError,
        "while_loop: argument 'body': expected a Var or an array for carry, got float",
        lambda tape: while_loop(lambda x: x > 0.0, lambda x: 1.0, tape.const(1.0)),
    ),
    "a value": (
        TapeError,
        "while_loop: the value of a bool tensor of shape () was read while the body is being recorded: it is recorded "
        "once for all steps, so Python cannot branch on them; use ops (ops.where, comparisons, slicing), or write the "
        "loop as a loop of Python",
        lambda tape: while_loop(lambda x: x > 0.0, lambda x: x if x > 1.0 else -x, tape.const(1.0)),
    ),
    "an index": (
        BoundsError,
        "while_loop: step 2: take: argument 'indices': expected -2 to 1, got 2 at position 0; at ",
        lambda tape: while_loop(
            lambda i: i < 5, lambda i: ops.take(np.array([1, 2]), i, axis=0), tape.const(np.array(0))
        ),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_what_to_do(what):
    kind, text, call = REFUSED[what]
    tape = Tape()
    with pytest.raises(kind) as caught:
        call(tape)
    assert type(caught.value) is kind and str(caught.value).startswith(text)


def test_what_is_not_finite_is_told_with_its_step():
    x = Tape(check="finite").const(1.0)
    with pytest.raises(NonFiniteError, match=r"while_loop: step 1: inv: expected finite values"):
        while_loop(lambda x: x < 5.0, lambda x: ops.inv(x) - 1.0, x)
