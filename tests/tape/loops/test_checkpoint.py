"""``checkpoint`` changes no bit of values and gradients, and keeps nothing of what is between."""

import tracemalloc

import numpy as np
import pytest

from dgrr.tape import DTypeError, GradientError, Tape, TapeError, checkpoint, hvp, jvp, nn, ops, vmap
from dgrr.tape.ops import scan

from .choices import CHOICES, loss_of, parameters
from .loops import drawn
from .test_scan import bits


def as_it_is(function):
    return function


def block(p, x):
    """A transformer's, with dropout."""
    drop = ops.dropout(ops.gelu(x @ p["w"]), np.array(2), p=0.4, seed=3)
    return x + ops.tanh(drop * p["b"]), x


def by_checkpoint(kept, p, x):
    y, same = kept(block)(p, x)
    z, _ = kept(block)(p, ops.sin(y) + same)
    a, b = kept(lambda x: (x * p["b"],) * 2)(z)
    return kept(lambda a: ops.exp(-(a * b)) @ p["w"])(a) + x


def run(kept):
    """The loss and all gradients."""
    tape = Tape()
    p = tape.params(parameters())
    loss = loss_of(lambda p, t, _: by_checkpoint(kept, p, p["x"]), p, None, None)
    grads = tape.backward_scalar(loss)
    return bits(loss.numpy()), {name: bits(grads[x].numpy()) for name, x in p.items()}


def test_no_bit_is_changed():
    assert run(checkpoint) == run(as_it_is)


def test_second_derivatives_tangents_and_members_have_the_same_bits():
    def of(kept):
        return lambda p: loss_of(lambda p, t, _: by_checkpoint(kept, p, p["x"]), p, None, None)

    p = parameters()
    moved = {name: drawn(30 + i, *a.shape) for i, (name, a) in enumerate(p.items())}
    found = [
        (
            hvp(of(kept), (p,), (moved,)),
            jvp(of(kept), (p,), (moved,)),
            vmap(lambda w, p, k=kept: of(k)({**p, "w": w}), (0, None))(np.stack([p["w"], -p["w"]]), p),
        )
        for kept in (checkpoint, as_it_is)
    ]
    first, second = found
    assert [bits(g.numpy()) for g in nested(first)] == [bits(g.numpy()) for g in nested(second)]


def nested(x):
    """All tensors in a nest."""
    if isinstance(x, tuple | list):
        return [y for part in x for y in nested(part)]
    return [y for part in x.values() for y in nested(part)] if isinstance(x, dict) else [x]


@pytest.mark.parametrize("name", CHOICES)
def test_functions_with_loops_and_choices_are_kept_as_others(name):
    found = []
    for kept in (checkpoint, as_it_is):
        tape = Tape()
        p = tape.params(parameters())
        y = kept(lambda p, n=name: CHOICES[n](p, p["b"][0], ops.cond))(p)
        loss = (y * 1.5).sum()
        grads = tape.backward_scalar(loss)
        found.append([bits(loss.numpy()), *[None if grads[x] is None else bits(grads[x].numpy()) for x in p.values()]])
    assert found[0] == found[1]


def test_what_is_handed_on_is_what_was_given():
    tape = Tape()
    x = tape.param([1.0, 2.0])
    same, twice, again = checkpoint(lambda x: (x, x * 2.0, x))(x)
    assert same is x and again is x and [node.op_name for node in tape if node.op] == ["checkpoint"]
    assert checkpoint(lambda x, more: {"y": x * more["by"]})(x, {"by": 3.0})["y"].numpy().tolist() == [3.0, 6.0]
    assert checkpoint(lambda x, by: x * by)(x, by=3.0).numpy().tolist() == [3.0, 6.0]
    assert twice.numpy().tolist() == [2.0, 4.0]


def test_layers_are_functions():
    model = nn.Linear(4, 4)
    tape = Tape()
    p = tape.params(model.init(0))
    y = checkpoint(model)(p, tape.const(drawn(1, 3, 4).astype(np.float32)))
    assert tape.backward_scalar(y.sum())[p["weight"]] is not None


def kept_bytes(kept, depth=30):
    """The most that an eager step of many layers has allocated at once, above what it begins with."""
    w = drawn(1, 64, 64)
    x = drawn(2, 256, 64)

    def layer(h):
        return ops.tanh(ops.sin(ops.tanh(ops.sin(h @ p))))

    tracemalloc.start()
    try:
        tape = Tape()
        p, h = tape.param(w), tape.const(x)
        for _ in range(depth):
            h = kept(layer)(h)
        tape.backward_scalar(h.sum())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_eager_step_keeps_less():
    one = 256 * 64 * 8
    assert kept_bytes(checkpoint) < 30 * 3 * one  # what layers give, the gradients of that, and the values of one
    assert kept_bytes(as_it_is) > 30 * 8 * one


def test_a_loop_keeps_the_carry_of_every_few_steps():
    """A loop in a loop whose body is a checkpoint: the bits of the loop alone."""
    xs, w = drawn(3, 12, 4), drawn(4, 4)

    def step(h, x):
        h = ops.tanh(h * p + x)
        return h, h * x

    def rows(h, xs):
        return scan(step, h, xs)

    found = []
    for every in (None, 4):
        tape = Tape()
        p, x, h = tape.param(w), tape.param(xs), tape.param(drawn(5, 4))
        if every is None:
            last, ys = rows(h, x)
        else:
            last, ys = scan(checkpoint(rows), h, ops.reshape(x, (3, every, 4)))
            ys = ops.reshape(ys, (12, 4))
        grads = tape.backward_scalar((ys * ys).sum() + last.sum())
        found.append([bits(last.numpy()), bits(ys.numpy()), *[bits(grads[v].numpy()) for v in (p, x, h)]])
    assert found[0] == found[1]


def test_what_is_refused_says_what_to_do():
    with pytest.raises(TapeError, match=r"checkpoint: expected a Var in its arguments; put an array on a tape"):
        checkpoint(lambda x: x)(np.zeros(2))
    x = Tape().param(1.0)
    with pytest.raises(
        DTypeError, match=r"checkpoint: argument 'function': expected a Var or an array for result\[1\], got float"
    ):
        checkpoint(lambda x: (x, 1.0))(x)
    text = "checkpoint: the value of a float64 tensor of shape .* or call it without checkpoint"
    with pytest.raises(TapeError, match=text):
        checkpoint(lambda x: x * x.item())(x)
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 // 0)(x)
    assert (x * 2.0).item() == 2.0
    found = []
    checkpoint(lambda x: found.append(x * 2.0) or x)(x)
    with pytest.raises(TapeError, match="checkpoint: a Var of the body was used outside of it, where it has no value"):
        found[0] * 2.0
    with pytest.raises(TapeError, match="hook: node 2 .* is in the body of a checkpoint, which runs no Python"):
        checkpoint(lambda x: x.tape.hook(x * 2.0, print) or x)(x)
    y = checkpoint(ops.stop_gradient)(x)
    with pytest.raises(GradientError):
        x.tape.backward_scalar(y)
