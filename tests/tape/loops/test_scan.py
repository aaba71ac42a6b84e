"""``scan`` gives what the same loop in Python gives: values and gradients, to the bit."""

from functools import partial

import numpy as np
import pytest

from dgrr.tape import (
    AnyTensor,
    BoundsError,
    DTypeError,
    NonFiniteError,
    ShapeError,
    Tape,
    TapeError,
    gradcheck,
    hvp,
    jvp,
    ops,
    vmap,
)
from dgrr.tape.loops.written import again
from dgrr.tape.ops import scan
from dgrr.tape.transforms.symbolic_tape import SymbolicTape

from .loops import NAMES, Loop, drawn, given, loops, loss_of, written_out

DTYPES = ("float32", "float64")


def bits(x):
    return None if x is None else (x.dtype.str, x.shape, np.ascontiguousarray(x).tobytes())


def leaves_on(tape, loop, arrays):
    """The arrays as leaves; a first carry that is a constant needs no gradient."""
    return {
        path: tape.leaf(a, requires_grad=a.dtype.kind == "f" and not (loop.fixed and path.startswith("['carry']")))
        for path, a in arrays.items()
    }


def run(loop: Loop, arrays, function, **options):
    """Values, and gradients by path."""
    tape = Tape()
    p = leaves_on(tape, loop, arrays)
    loss, results = loss_of(loop, function, p, **options)
    grads = tape.backward_scalar(loss)
    found = {path: None if grads[x] is None else grads[x].array for path, x in p.items()}
    return [bits(x.numpy()) for x in (loss, *results)], {path: bits(g) for path, g in found.items()}


def run_recorded(loop: Loop, arrays, **options):
    """The same recorded on values that are not known, and computed afterwards."""
    symbolic, tape = SymbolicTape(), Tape()
    symbolic.unrolls = False
    p = {
        path: symbolic.symbol(x.value.spec, path, tape.node(x).requires_grad)
        for path, x in leaves_on(tape, loop, arrays).items()
    }
    loss, results = loss_of(loop, scan, p, **options)
    grads = symbolic.backward_scalar(loss, create_graph=True)
    known = dict(zip([x.id for x in p.values()], [tape.var(i) for i in range(len(p))], strict=True))
    for node in symbolic:
        if node.id not in known:
            known[node.id] = tape.const(node.value) if node.op is None else again(tape, node, known)
    found = {path: None if grads[x] is None else known[grads[x].id].numpy() for path, x in p.items()}
    return [bits(known[x.id].numpy()) for x in (loss, *results)], {path: bits(g) for path, g in found.items()}


def nonzero_gradients(found):
    return {path: g for path, g in found.items() if g is not None}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_scan_is_the_loop_written_out(name, n, reverse):
    loop = next(each for each in loops(n) if each.name == name)
    for dtype in DTYPES:
        arrays = given(loop, dtype)
        expected = run(loop, arrays, written_out, reverse=reverse)
        assert nonzero_gradients(expected[1])
        assert run(loop, arrays, scan, reverse=reverse) == expected
        assert run_recorded(loop, arrays, reverse=reverse) == expected


def test_no_steps_leave_the_carry_and_give_no_rows():
    tape = Tape()
    h, w = tape.param(np.ones(2)), tape.param(np.full(2, 3.0))
    last, ys = scan(lambda h, x: (h * w, h + x), h, np.zeros((0, 2)))
    assert last is h and ys.shape == (0, 2)
    grads = tape.backward_scalar(last.sum())
    assert grads[h].numpy().tolist() == [1.0, 1.0] and grads[w] is None


def test_a_length_stands_for_xs():
    tape = Tape()
    w = tape.param(2.0)
    last, ys = scan(lambda h, _: (h * w, None), w, length=3)
    assert last.item() == 16.0 and ys is None
    assert tape.backward_scalar(last)[w].item() == 32.0


def test_rows_are_read_where_they_lie():
    held = drawn(0, 4, 6, 3)
    for view in (held[::2], held[::-1], held.transpose(2, 0, 1), held.transpose(1, 2, 0)[1:, ::-1]):
        found = []
        for function in (scan, written_out):
            tape = Tape()
            xs = tape.leaf(view) * 1.0 if function is written_out else tape.leaf(view)
            last, ys = function(lambda h, x: (ops.tanh(h + x), h * x), np.ones(view.shape[1:]), ops.flip(xs, -1))
            found.append(
                (bits(last.numpy()), bits(ys.numpy()), bits(tape.backward_scalar(ys.sum() + last.sum())[0].array))
            )
        assert found[0] == found[1]


def test_a_loop_has_a_node_for_each_result():
    tape = Tape()
    w = tape.param(2.0)
    scan(lambda c, x: ((c[0] * w, c[1] + x), c[0]), (np.zeros(()), np.zeros(())), tape.const(np.ones(5)))
    assert [(node.op_name, dict(node.attrs)) for node in tape if node.op] == [
        ("scan", {"result": key}) for key in ("carry 0", "carry 1", "y 0")
    ]
    assert [node.requires_grad for node in tape if node.op] == [True, False, True]


def test_second_derivatives_are_those_of_the_loop_written_out():
    def total(function):
        def f(w, x):
            last, ys = function(lambda h, r: (ops.tanh(h * w + r), h * h), w * 0.5, x)
            return (last * last).sum() + ys.sum()

        return f

    w, x = drawn(1, 3), drawn(2, 4, 3)
    found = [hvp(total(each), (w, x), (np.ones(3), drawn(3, 4, 3))) for each in (scan, written_out)]
    assert [bits(x.numpy()) for x in found[0]] == [bits(x.numpy()) for x in found[1]]
    assert gradcheck(lambda w, x: total(scan)(w, x), w, x).ok


def value_of(loop, function, p):
    return loss_of(loop, function, p)[0]


def test_tangents_are_those_of_the_loop_written_out():
    for name in ("lstm", "shifted", "nested", "named"):
        loop = next(each for each in loops(3) if each.name == name)
        arrays = given(loop, "float64")
        directions = {path: drawn(i, *a.shape) for i, (path, a) in enumerate(arrays.items())}
        found = [jvp(partial(value_of, loop, each), (arrays,), (directions,)) for each in (scan, written_out)]
        assert [bits(x.numpy()) for x in found[0]] == [bits(x.numpy()) for x in found[1]]


def test_members_of_vmap_have_the_bits_that_they_have_alone():
    def f(w, x):
        return scan(lambda h, r: (ops.tanh(h * w + r), h), x[0], x)[1]

    w, xs = drawn(1, 3), drawn(2, 5, 4, 3)
    together = vmap(f, in_axes=(None, 0))(w, xs).numpy()
    for x, made in zip(xs, together, strict=True):
        tape = Tape()
        assert bits(f(tape.leaf(w), tape.leaf(x)).numpy()) == bits(made)


REFUSED = {
    "no Var": (
        TapeError,
        "scan: expected a Var in carry or xs; put an array on a tape with tape.const",
        lambda tape: scan(lambda h, x: (h, x), np.zeros(2), np.zeros((3, 2))),
    ),
    "a number": (
        DTypeError,
        "scan: argument 'carry[1]': expected a Var or an array, or a tuple, list or dict of them, got float; "
        "a number has no element type of its own: write np.zeros((), np.float32)",
        lambda tape: scan(lambda h, x: (h, x), (tape.leaf([1.0]), 0.0), tape.leaf([1.0])),
    ),
    "no axis": (
        ShapeError,
        "scan: argument 'xs['a']': expected an axis for the steps, got shape ()",
        lambda tape: scan(lambda h, x: (h, x), np.zeros(2), {"a": tape.leaf(1.0)}),
    ),
    "other rows": (
        ShapeError,
        "scan: argument 'xs[1]': expected 3 rows, as 'xs[0]' says, got shape (2, 4)",
        lambda tape: scan(lambda h, x: (h, x), tape.leaf([1.0]), (np.zeros((3, 4)), np.zeros((2, 4)))),
    ),
    "other length": (
        ShapeError,
        "scan: argument 'xs': expected 4 rows, as 'length' says, got shape (3,)",
        lambda tape: scan(lambda h, x: (h, x), tape.leaf([1.0]), np.zeros(3), length=4),
    ),
    "negative length": (
        ShapeError,
        "scan: argument 'length': expected at least 0, got -1",
        lambda tape: scan(lambda h, x: (h, x), tape.leaf([1.0]), length=-1),
    ),
    "no length": (
        ShapeError,
        "scan: expected xs, or length, to say how many steps there are, got neither",
        lambda tape: scan(lambda h, x: (h, x), tape.leaf([1.0])),
    ),
    "no pair": (
        DTypeError,
        "scan: argument 'body': expected it to return (carry, y), got Var; y may be None",
        lambda tape: scan(lambda h, x: h, tape.leaf([1.0]), length=2),
    ),
    "another shape": (
        ShapeError,
        "scan: argument 'body': expected it to return carry['h'] as it was given, float64 of shape (1,), got float64 "
        "of shape ()",
        lambda tape: scan(lambda c, x: ({"h": c["h"].sum()}, x), {"h": tape.leaf([1.0])}, length=2),
    ),
    "another dtype": (
        ShapeError,
        "scan: argument 'body': expected it to return carry as it was given, float64 of shape (1,), got float32 of "
        "shape (1,)",
        lambda tape: scan(lambda h, x: (ops.cast(h, "float32"), x), tape.leaf([1.0]), length=2),
    ),
    "another form": (
        ShapeError,
        "scan: argument 'body': expected it to return carry as a tuple of 2, got one value",
        lambda tape: scan(lambda c, x: (c[0], x), (tape.leaf([1.0]), tape.leaf([1.0])), length=2),
    ),
    "a number for y": (
        DTypeError,
        "scan: argument 'body': expected a Var or an array for y[1], got float",
        lambda tape: scan(lambda h, x: (h, (h, 1.0)), tape.leaf([1.0]), length=2),
    ),
    "a value": (
        TapeError,
        "scan: the value of a bool tensor of shape () was read while the body is being recorded: it is recorded "
        "once for all steps, so Python cannot branch on them; use ops (ops.where, comparisons, slicing), or write the "
        "loop as a loop of Python",
        lambda tape: scan(lambda h, x: (h if h > 0 else -h, x), tape.leaf(1.0), length=2),
    ),
    "another tape": (
        TapeError,
        "expected a Var of ",
        lambda tape: scan(lambda h, x: (h * Tape().leaf(1.0), x), tape.leaf(1.0), length=2),
    ),
    "an index": (
        BoundsError,
        "scan: step 1 of 3: take: argument 'indices': expected -2 to 1, got 5 at position 0; at ",
        lambda tape: scan(lambda h, i: (h, ops.take(h, i, axis=0)), tape.leaf([1.0, 2.0]), np.array([0, 5, 1])),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_what_to_do(what):
    kind, text, call = REFUSED[what]
    with pytest.raises(kind) as caught:
        call(Tape())
    assert type(caught.value) is kind and str(caught.value).startswith(text)


def test_a_var_of_the_body_is_of_no_use_behind_it():
    tape, found = Tape(), []

    def body(h, x):
        found.append(h * 2.0)
        return h, x

    h = tape.leaf(1.0)
    scan(body, h, length=2)
    with pytest.raises(
        TapeError,
        match="scan: a Var of the body was used outside of it, where it has no value; return it from the body",
    ):
        found[0] * h
    with pytest.raises(TapeError, match="expected a Var of"):
        h * found[0]
    assert (h * 2.0).item() == 2.0


def test_a_body_that_fails_leaves_the_tape_as_it_was():
    tape = Tape()
    h = tape.leaf(1.0)
    with pytest.raises(ZeroDivisionError):
        scan(lambda h, x: 1 // 0, h, length=2)
    assert len(tape) == 1 and (h * 2.0).item() == 2.0


def test_what_is_not_finite_is_told_with_its_step():
    tape = Tape(check="finite")
    x = tape.leaf([1.0, 0.0, 1.0])
    with pytest.raises(NonFiniteError, match=r"scan: step 1 of 3: inv: expected finite values"):
        scan(lambda h, x: (h, ops.inv(x)), x[0], x)


def test_hooks_see_the_gradients_of_results():
    tape, seen = Tape(), []
    w = tape.param(2.0)
    last, ys = scan(lambda h, x: (h * w + x, h), np.zeros(()), tape.const(np.ones(3)))
    tape.hook(last, lambda g: seen.append(g.item()) or AnyTensor(np.array(g.item() * 10.0)))
    g = tape.backward_scalar(last + ys.sum() * 0.0)[w].item()
    assert seen == [1.0] and g == 10.0 * 5.0


def test_results_are_counted_among_the_ops_that_are_replaced():
    tape = Tape()
    x = tape.leaf(np.ones(3))
    with tape.replacing({1: AnyTensor(np.full(3, 7.0)), 2: AnyTensor(np.full(3, 5.0))}):
        last, ys = scan(lambda h, x: (h + x, h), np.zeros(()), x)
        y = ys * 2.0
    assert last.item() == 3.0 and ys.numpy().tolist() == [7.0] * 3 and y.numpy().tolist() == [5.0] * 3
    text = "replacing: op 0 \\(scan\\): expected shape \\(\\), got \\(2,\\)"
    with pytest.raises(ShapeError, match=text), tape.replacing({0: AnyTensor(np.zeros(2))}):
        scan(lambda h, x: (h + x, h), np.zeros(()), x)
