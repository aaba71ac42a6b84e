"""Gradients inside of loops, choices and checkpoints are those of the same values written out."""

import numpy as np
import pytest

from dgrr.tape import GradientError, Tape, TapeError, checkpoint, ops
from dgrr.tape.ops import cond, scan, while_loop
from dgrr.tape.transforms.symbolic_tape import SymbolicTape
from dgrr.tape.values.spec import Spec

from .loops import NAMES, drawn, given, loops, loss_of, written_out
from .test_scan import bits, leaves_on


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", [name for name in NAMES if "nested" not in name])
def test_every_value_of_every_step_has_its_gradient(name, reverse):
    """The loop written out has the same ops in the same order: step by step its nodes are those of the body."""
    loop = next(each for each in loops(3) if each.name == name)
    arrays = given(loop, "float64")
    written, looped = Tape(), Tape()
    loss, _ = loss_of(loop, written_out, leaves_on(written, loop, arrays), reverse=reverse)
    expected = written.backward_scalar(loss)
    loss, _ = loss_of(loop, scan, leaves_on(looped, loop, arrays), reverse=reverse)
    result = next(node.id for node in looped if node.op_name == "scan")
    steps = looped.backward_scalar(loss).inside(result)
    ops_of = [node.id for node in steps[0].nodes if node.op is not None]
    names = [steps[0].nodes[id].op_name for id in ops_of]
    ids = [
        node.id for node in written if (node.op is not None and node.op_name != "getitem") or node.op_name == "split"
    ]
    begin = next(i for i in range(len(ids)) if [written.node(id).op_name for id in ids[i : i + len(names)]] == names)
    for number, t in enumerate(reversed(range(3)) if reverse else range(3)):
        block = ids[begin + number * len(names) :][: len(names)]
        for id, there in zip(ops_of, block, strict=True):
            assert bits(steps[t].nodes[id].value.array) == bits(written.node(there).value.array)
            a, b = steps[t][id], expected[there]
            assert (a is None) == (b is None)
            assert a is None or np.array_equal(a.numpy(), b.numpy()), (name, t, id)


def test_bodies_in_bodies_are_looked_into_step_by_step():
    tape, seen = Tape(), []
    w = tape.param(drawn(1, 3))

    def body(h, x):
        def side(h):
            seen.append(ops.sin(h * w))
            return seen[-1] * x

        return checkpoint(side)(h), None

    def choosing(h, x):
        return cond(x.sum() > 0.0, lambda h: body(h, x)[0], lambda h: h - x, h), None

    last, _ = scan(choosing, w, tape.const(drawn(2, 4, 3)))
    steps = tape.backward_scalar(last.sum()).inside(last)
    assert len(steps) == 4
    for step, x in zip(steps, drawn(2, 4, 3), strict=True):
        inner = next(node.id for node in step.nodes if node.op_name == "cond")
        (side,) = step.inside(inner)
        assert ("checkpoint" in [node.op_name for node in side.nodes]) == (x.sum() > 0.0)
        if x.sum() > 0.0:
            (deep,) = side.inside(next(node.id for node in side.nodes if node.op_name == "checkpoint"))
            assert deep[seen[0]].numpy().tolist() == (step[inner].numpy() * x).tolist()
        assert step.first_nonfinite() is None


def test_the_first_gradient_that_is_not_finite_is_found_in_its_step():
    tape = Tape()
    x = tape.param([4.0, 0.0, 1.0])
    _, ys = scan(lambda h, x: (h, ops.log(x)), x[0], x)
    steps = tape.backward_scalar(ys.sum()).inside(ys)
    found = [step.first_nonfinite() for step in steps]
    assert [f is None for f in found] == [True, False, True]
    assert "ops.log(x)" in str(found[1])


def test_what_has_no_inside_says_so():
    tape = Tape()
    x = tape.param(2.0)
    grads = tape.backward_scalar(x * x)
    with pytest.raises(
        TapeError, match=r"inside: expected a result of a scan, a cond or a checkpoint, got node 1 \(mul\)"
    ):
        grads.inside(1)
    y = while_loop(lambda x: x < 0.0, lambda x: x * 2.0, ops.stop_gradient(x))
    with pytest.raises(GradientError, match="while_loop: no derivative"):
        tape.backward_scalar(x * y).inside(y)
    symbolic = SymbolicTape()
    x = symbolic.symbol(Spec((), np.dtype(np.float64)), "x", True)
    y = checkpoint(ops.sin)(x)
    text = "inside: expected a checkpoint on a tape that computes, got one of a captured step; run the step eagerly"
    with pytest.raises(TapeError, match=text):
        symbolic.backward_scalar(y, create_graph=True).inside(y)
