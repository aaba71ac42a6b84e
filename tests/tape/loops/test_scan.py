"""``scan`` gives what the same loop in Python gives: values and gradients, to the bit."""

import numpy as np
import pytest

from dgrr.tape import Tape
from dgrr.tape.loops.written import again
from dgrr.tape.ops import scan
from dgrr.tape.transforms.symbolic_tape import SymbolicTape

from .loops import NAMES, Loop, given, loops, loss_of, written_out

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
