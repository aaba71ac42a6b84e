"""A captured step with a loop: the bits of the loop written out, a plan that does not grow, errors that say where."""

import numpy as np
import pytest

from dgrr.runtime import SGD, capture
from dgrr.tape.ops import scan

from ...tape.loops.loops import NAMES, given, loops, loss_of, written_out
from ...tape.loops.test_scan import DTYPES, bits, run


def captured(loop, arrays, function, **options):
    """A captured step whose parameters are all that has a gradient; the batch is the rest."""
    fixed = {
        path: a for path, a in arrays.items() if a.dtype.kind != "f" or (loop.fixed and path.startswith("['carry']"))
    }
    params = {path: a for path, a in arrays.items() if path not in fixed}
    batch = {"none": np.zeros(1), **fixed}

    def loss_fn(p, batch):
        loss, _ = loss_of(loop, function, {**p, **batch}, **options)
        return loss

    return capture(loss_fn, params, SGD(2.0**-12), batch), batch


def gradients(step, batch):
    grads = step.grads(batch)
    found = {path: grads[path] for path in step.params}
    return {path: bits(None if g is None else g.numpy()) for path, g in found.items()}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_a_captured_loop_is_the_loop_written_out(name, n, reverse):
    loop = next(each for each in loops(n) if each.name == name)
    for dtype in DTYPES:
        arrays = given(loop, dtype)
        values, expected = run(loop, arrays, written_out, reverse=reverse)
        step, batch = captured(loop, arrays, scan, reverse=reverse)
        found = gradients(step, batch)
        assert found == {path: expected[path] for path in found}
        assert bits(np.asarray(step(batch))) == values[0]


@pytest.mark.parametrize("name", NAMES)
def test_steps_of_a_captured_loop_are_those_of_the_loop_written_out(name):
    loop = next(each for each in loops(4) if each.name == name)
    arrays = given(loop, "float32")
    step, batch = captured(loop, arrays, scan)
    other, _ = captured(loop, arrays, written_out)
    for _ in range(3):
        assert bits(np.asarray(step(batch))) == bits(np.asarray(other(batch)))
    assert all(bits(step.params[path]) == bits(other.params[path]) for path in step.params)
