"""``cond`` gives what its side alone gives: values and gradients to the bit, zeros for the rest."""

from functools import partial

import numpy as np
import pytest

from dgrr.tape import (
    AnyTensor,
    BoundsError,
    DTypeError,
    ShapeError,
    Tape,
    TapeError,
    grad,
    gradcheck,
    hvp,
    jvp,
    ops,
    vmap,
)
from dgrr.tape.loops.written import again
from dgrr.tape.ops import cond, scan
from dgrr.tape.transforms.symbolic_tape import SymbolicTape

from .choices import CHOICES, if_of, loss_of, parameters
from .loops import drawn
from .test_scan import bits


def run(f, truth, choose):
    """The loss, and the gradient of every parameter."""
    tape = Tape()
    p = tape.params(parameters())
    loss = loss_of(f, p, tape.const(1.0 if truth else -1.0), choose)
    grads = tape.backward_scalar(loss)
    return bits(loss.numpy()), {name: None if grads[x] is None else bits(grads[x].numpy()) for name, x in p.items()}


def run_recorded(f, truth):
    """The same recorded on values that are not known, and computed afterwards."""
    symbolic, tape = SymbolicTape(), Tape()
    given = {**parameters(), "t": np.array(1.0 if truth else -1.0)}
    p = {name: symbolic.symbol(tape.leaf(a).value.spec, name, name != "t") for name, a in given.items()}
    loss = loss_of(f, p, p["t"], cond)
    grads = symbolic.backward_scalar(loss, create_graph=True)
    known = {x.id: tape.var(i) for i, x in enumerate(p.values())}
    for node in symbolic:
        if node.id not in known:
            known[node.id] = tape.const(node.value) if node.op is None else again(tape, node, known)
    found = {name: known[g.id] for name, x in p.items() if name != "t" and (g := grads[x]) is not None}
    return bits(known[loss.id].numpy()), {name: bits(g.numpy()) for name, g in found.items()}


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("name", [name for name in CHOICES if name != "constant_side"])
def test_a_choice_is_its_side(name, truth):
    f = CHOICES[name]
    value, expected = run(f, truth, if_of(truth))
    made, found = run(f, truth, cond)
    zeros = {name: bits(np.zeros_like(a)) for name, a in parameters().items()}
    used = {name for name, g in found.items() if g is not None}
    assert made == value
    assert used >= {name for name, g in expected.items() if g is not None} and len(used) > 0
    assert {name: found[name] for name in used} == {name: expected[name] or zeros[name] for name in used}
    assert run_recorded(f, truth) == (made, {name: found[name] for name in used})


def test_only_the_side_that_is_meant_runs():
    tape = Tape(check="finite")
    x = tape.param(0.0)
    assert cond(x > 0.0, lambda x: 1.0 / x, lambda x: x * 3.0, x).item() == 0.0
    assert [(node.op_name, dict(node.attrs)) for node in tape][-1] == ("cond", {"result": "y 0"})
    assert [node.op_name for node in tape].count("cond") == 1


def test_what_only_the_other_side_uses_gets_zeros():
    tape = Tape(check="finite")
    x, w, v = tape.param(np.float32(2.0)), tape.param(np.float32(3.0)), tape.param(np.float32(0.0))
    grads = tape.backward_scalar(cond(x > 0.0, lambda x: x * w, lambda x: x / v, x))
    assert [grads[p].numpy().tolist() for p in (x, w, v)] == [3.0, 2.0, 0.0]
    assert grads[v].dtype == np.float32 and not np.signbit(grads[v].numpy())


def test_a_side_without_a_gradient_gives_zeros():
    """A constant result is one that the other side's parameters are told of: a captured step knows no sides."""
    f = CHOICES["constant_side"]
    for name, g in run(f, False, cond)[1].items():
        assert g == (bits(np.zeros(4)) if name == "b" else None)
    assert run_recorded(f, False)[1] == {"b": bits(np.zeros(4))}
    assert run(f, True, cond) == run(f, True, if_of(True))


def test_second_derivatives_and_tangents_are_those_of_the_side():
    for name in ("plain", "chained", "inner_choice", "around_scan", "checkpointed"):
        for truth in (True, False):
            t = np.array(1.0 if truth else -1.0)

            def of(choose, p, f=CHOICES[name], t=t):
                return loss_of(f, p, t if choose is not cond else next(iter(p.values())).tape.const(t), choose)

            p = parameters()
            moved = {key: drawn(20 + i, *a.shape) for i, (key, a) in enumerate(p.items())}
            second = [hvp(partial(of, choose), (p,), (moved,)) for choose in (cond, if_of(truth))]
            first = [jvp(partial(of, choose), (p,), (moved,)) for choose in (cond, if_of(truth))]
            assert bits(first[0][1].numpy()) == bits(first[1][1].numpy())
            for key in p:
                a, b = (x[0][key] if isinstance(x, tuple) else x[key] for x in second)
                assert np.array_equal(a.numpy(), b.numpy()), (name, truth, key)
    assert gradcheck(lambda x: cond(x.sum() > 0.0, lambda x: (x * x).sum(), lambda x: x.sum(), x), drawn(1, 3)).ok


def test_members_of_vmap_each_run_their_own_side():
    def g(x, w):
        return cond(x.sum() > 0.0, lambda x: ops.tanh(x) * w, lambda x: x * w, x).sum()

    xs, w = drawn(5, 6, 4), drawn(6, 4)
    alone = [grad(lambda x, w: g(x, w), argnums=(0, 1))(x, w) for x in xs]
    together = vmap(grad(g, argnums=(0, 1)), in_axes=(0, None))(xs, w)
    for k, (dx, dw) in enumerate(alone):
        assert bits(together[0].numpy()[k]) == bits(dx.numpy()) and bits(together[1].numpy()[k]) == bits(dw.numpy())
    made = vmap(lambda x: cond(x > 0.0, lambda x: x * 2.0, lambda x: x - 1.0, x))(np.array([1.0, -1.0]))
    assert made.numpy().tolist() == [2.0, -2.0]
    tape = Tape()
    x = tape.param(xs)
    made = vmap(g, in_axes=(0, None))(x, w)
    assert np.array_equal(tape.backward_scalar(made.sum())[x].numpy()[2], alone[2][0].numpy())


def test_steps_of_a_loop_choose_each_for_itself():
    def body(h, x):
        h = cond(x.sum() > 0.0, lambda h: ops.tanh(h * x), lambda h: h - x, h)
        return h, h

    def by_hand(h, xs):
        ys = []
        for t in range(5):
            h = ops.tanh(h * xs[t]) if xs.numpy()[t].sum() > 0.0 else h - xs[t]
            ys.append(h)
        return h, ops.stack(ys)

    found = []
    for looped in (True, False):
        tape = Tape()
        h, xs = tape.param(drawn(1, 3)), tape.param(drawn(2, 5, 3))
        last, ys = scan(body, h, xs) if looped else by_hand(h, xs)
        grads = tape.backward_scalar(last.sum() + (ys * ys).sum())
        found.append([grads[h].numpy(), grads[xs].numpy(), ys.numpy()])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


REFUSED = {
    "no Var": (
        TapeError,
        "cond: expected a Var in pred and args; put an array on a tape with tape.const",
        lambda tape: cond(np.array(True), lambda: 1, lambda: 2),
    ),
    "a number": (
        ShapeError,
        "cond: argument 'pred': expected one bool, of shape (), got float64 of shape (); compare and reduce it first",
        lambda tape: cond(tape.leaf(1.0), lambda x: x, lambda x: x, tape.leaf(1.0)),
    ),
    "bools": (
        ShapeError,
        "cond: argument 'pred': expected one bool, of shape (), got bool of shape (2,); compare and reduce it first",
        lambda tape: cond(tape.leaf([1.0, 2.0]) > 0.0, lambda x: x, lambda x: x, tape.leaf(1.0)),
    ),
    "another shape": (
        ShapeError,
        "cond: argument 'on_false': expected it to return result[0] as on_true does, float64 of shape (2,), got "
        "float64 of shape ()",
        lambda tape: cond(np.array(True), lambda x: (x, x), lambda x: (x.sum(), x), tape.leaf([1.0, 2.0])),
    ),
    "another dtype": (
        ShapeError,
        "cond: argument 'on_false': expected it to return result as on_true does, float64 of shape (), got float32 of "
        "shape ()",
        lambda tape: cond(np.array(True), lambda x: x, lambda x: ops.cast(x, "float32"), tape.leaf(1.0)),
    ),
    "another nest": (
        ShapeError,
        "cond: argument 'on_false': expected it to return result as a tuple of 2, got one value",
        lambda tape: cond(np.array(True), lambda x: (x, x), lambda x: x, tape.leaf(1.0)),
    ),
    "a Python number": (
        DTypeError,
        "cond: argument 'on_true': expected a Var or an array for result, got float",
        lambda tape: cond(np.array(True), lambda x: 1.0, lambda x: x, tape.leaf(1.0)),
    ),
    "a value": (
        TapeError,
        "cond: the value of a float64 tensor of shape () was read while the sides are being recorded: both are, "
        "whichever runs, so Python cannot branch on them; use ops (ops.where, comparisons, slicing), or write the "
        "choice as an if of Python",
        lambda tape: cond(np.array(True), lambda x: x * float(x), lambda x: x, tape.leaf(1.0)),
    ),
    "an index": (
        BoundsError,
        "cond: on_false: take: argument 'indices': expected -2 to 1, got 5 at position 0; at ",
        lambda tape: cond(
            np.array(False), lambda i: i, lambda i: ops.take(tape.leaf([1, 2]), i, axis=0), tape.leaf(np.array(5))
        ),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_what_to_do(what):
    kind, text, call = REFUSED[what]
    with pytest.raises(kind) as caught:
        call(Tape())
    assert type(caught.value) is kind and str(caught.value).startswith(text)


def test_a_step_in_a_row_has_no_choices():
    tape = SymbolicTape(unrolls=True)
    x = tape.symbol(AnyTensor(np.zeros(())).spec, "x", True)
    text = (
        "cond: expected a step on the CPU, which alone can do one thing or another as a value says; a step on a GPU "
        "and an ONNX file are ops in a row: write both sides, and ops.where"
    )
    with pytest.raises(TapeError) as caught:
        cond(x > 0.0, lambda x: x, lambda x: -x, x)
    assert str(caught.value) == text
    with pytest.raises(TapeError, match="cond: expected a step on the CPU"):
        scan(lambda h, _: (cond(h > 0.0, lambda x: x, lambda x: -x, h), None), x, length=2)
