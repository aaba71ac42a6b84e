"""A captured step with a loop: the bits of the loop written out, a plan that does not grow, errors that say where."""

from dataclasses import replace

import numpy as np
import pytest

from dgrr.runtime import SGD, CaptureError, capture, capture_function
from dgrr.runtime.ir.bodies import bodies_of
from dgrr.runtime.ir.errors import IRError
from dgrr.runtime.ir.graph import IRGraph
from dgrr.runtime.ir.verify import verify
from dgrr.runtime.lower.compile import PASSES
from dgrr.tape import BoundsError, get_threads, ops, set_threads
from dgrr.tape.ops import scan

from ...tape.loops.loops import NAMES, drawn, given, loops, loss_of, written_out
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


def accumulated(n):
    """A captured loop over n rows of a batch."""

    def loss_fn(p, xs):
        last, ys = scan(lambda h, x: (ops.tanh(ops.linear(h, p["w"]) + x),) * 2, p["h"], xs)
        return (ys * ys).sum() + last.sum()

    params = {"w": drawn(1, 40, 40), "h": drawn(2, 30, 40)}
    xs = drawn(3, n, 30, 40)
    return capture(loss_fn, params, SGD(2.0**-7), xs), xs


def test_the_plan_does_not_grow_with_the_steps():
    short, long = accumulated(6)[0], accumulated(60)[0]
    assert len(short.lowered.ops) == len(long.lowered.ops)
    assert len(short.graph.nodes) == len(long.graph.nodes)
    assert [op.kernel.name for op in long.lowered.ops].count("loop") == 2


def test_threads_and_passes_change_no_bit():
    step, xs = accumulated(9)
    expected = bits(np.asarray(step(xs))), bits(step.params["w"])
    before = get_threads()
    try:
        for count in (1, 3):
            set_threads(count)
            again, _ = accumulated(9)
            assert (bits(np.asarray(again(xs))), bits(again.params["w"])) == expected
    finally:
        set_threads(before)
    for name in PASSES:
        other = capture(
            step.loss_fn, {"w": drawn(1, 40, 40), "h": drawn(2, 30, 40)}, SGD(2.0**-7), xs, without_passes=[name]
        )
        assert (bits(np.asarray(other(xs))), bits(other.params["w"])) == expected


def test_the_graph_is_read_back():
    graph = accumulated(3)[0].graph
    verify(graph)
    assert IRGraph.parse(str(graph)) == graph == IRGraph.from_json(graph.to_json())
    (forward, _) = [node for node in graph.nodes if node.op == "scan"]
    assert [node.op for node in bodies_of(forward)[0].nodes] == ["linear", "add", "tanh"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda attrs: {**attrs, "length": 4},
            "IRError: expected inputs",
        ),
        (lambda attrs: {**attrs, "length": "3"}, "node 0 \\(scan\\): attribute 'length': expected int, got '3'"),
        (lambda attrs: {**attrs, "results": ("y 9",)}, "expected results among each 0, .*, got 'y 9'"),
        (lambda attrs: {"body": attrs["body"]}, "expected the attributes body, length, reverse, results in this order"),
        (lambda attrs: {**attrs, "body": "graph"}, "IRSyntaxError"),
    ],
)
def test_a_wrong_loop_is_found(change, text):
    graph = accumulated(3)[0].graph
    first = next(node for node in graph.nodes if node.op == "scan")
    nodes = tuple([replace(node, attrs=change(node.attrs)) if node is first else node for node in graph.nodes])
    with pytest.raises(IRError, match=text):
        verify(replace(graph, nodes=nodes))


def test_a_step_with_loops_verifies():
    for name in ("lstm", "nested apart", "summed"):
        loop = next(each for each in loops(3) if each.name == name)
        step, batch = captured(loop, given(loop, "float32"), scan)
        step(batch)
        report = step.verify(replays=2)
        assert report.ok, str(report)


def test_an_index_out_of_range_is_told_with_its_step():
    def loss_fn(p, indices):
        def outer(h, rows):
            h, _ = scan(lambda g, i: (g + ops.take(p["w"], i, axis=0), None), h, rows)
            return h, None

        return scan(outer, p["w"][0], indices)[0].sum()

    good = np.array([[0, 1], [2, 0], [1, 1]])
    step = capture(loss_fn, {"w": drawn(1, 3, 4)}, SGD(0.1), good)
    bad = good.copy()
    bad[1, 1] = 7
    text = "scan: step 1 of 3: scan: step 1 of 2: take: argument 'indices': expected -3 to 2, got 7 at position 0"
    before = step.params["w"].copy()
    with pytest.raises(BoundsError) as caught:
        step(bad)
    assert str(caught.value).startswith(f"{text}; at ") and str(caught.value).endswith("axis=0), None), h, rows)")
    assert bits(step.params["w"]) == bits(before)
    step(good)
    forward = capture_function(
        lambda indices: scan(lambda h, i: (h, ops.take(h, i, axis=0)), np.zeros(2), indices)[1], np.array([0, 1])
    )
    with pytest.raises(BoundsError, match="scan: step 1 of 2: take: argument 'indices': expected -2 to 1, got 5"):
        forward(np.array([0, 5]))


def test_what_a_body_reads_is_looked_at():
    rates = [0.5]

    def loss_fn(p, xs):
        return scan(lambda h, x: (h * rates[0] + x * p["w"], None), np.zeros(()), xs)[0]

    step = capture(loss_fn, {"w": np.ones(())}, SGD(0.1), np.ones(3))
    step(np.ones(3))
    rates[0] = 0.25
    with pytest.raises(CaptureError, match="loss_fn behaves differently when it is called again"):
        step(np.ones(3))


def test_an_arena_of_junk_changes_nothing():
    step, xs = accumulated(5)
    expected = bits(np.asarray(step(xs)))
    other, _ = accumulated(5)
    bound = other.bound_plans("test").step.bound
    for root in bound.plan.slots:
        bound.memory[root][:] = 0xA5
    assert bits(np.asarray(other(xs))) == expected
