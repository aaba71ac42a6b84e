"""Captured choices, checkpoints and loops without a length: the bits of the eager step."""

import os
import threading
from dataclasses import replace
from signal import SIGINT, signal

import numpy as np
import pytest

from dgrr.runtime import SGD, capture, capture_function
from dgrr.runtime.ir.bodies import bodies_of
from dgrr.runtime.ir.errors import IRError
from dgrr.runtime.ir.graph import IRGraph
from dgrr.runtime.ir.verify import verify
from dgrr.runtime.lower.compile import PASSES
from dgrr.tape import BoundsError, Tape, checkpoint, get_threads, ops, set_threads, vmap

from ...tape.loops.choices import CHOICES, loss_of, parameters
from ...tape.loops.loops import drawn
from ...tape.loops.test_checkpoint import by_checkpoint
from ...tape.loops.test_scan import bits
from ...tape.loops.test_while_loop import by_hand, newton

RATE = 2.0**-9


def of_choice(name):
    def loss_fn(p, t):
        return loss_of(CHOICES[name], p, t, ops.cond)

    return loss_fn


def eager(loss_fn, arrays, batch):
    """The loss, and the gradient of every parameter."""
    tape = Tape()
    p = tape.params(arrays)
    loss = loss_fn(p, tape.const(batch))
    grads = tape.backward_scalar(loss)
    return bits(loss.numpy()), {name: None if grads[x] is None else bits(grads[x].numpy()) for name, x in p.items()}


def found_in(step, batch):
    grads = step.grads(batch)
    found = {name: None if grads[name] is None else bits(grads[name].numpy()) for name in step.params}
    return bits(np.asarray(step(batch))), found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in CHOICES if name != "several"])
def test_a_captured_choice_chooses_anew_in_every_step(name, dtype):
    def loss_fn(p, t):
        y = CHOICES[name](p, t, ops.cond)
        return (y * drawn(7, *tuple(y.shape)).astype(dtype)).sum()

    step = capture(loss_fn, parameters(dtype), SGD(RATE), np.array(1.0, dtype))
    for t in (1.0, -1.0, -2.0, 3.0):
        batch = np.array(t, dtype)
        arrays = {key: a.copy() for key, a in step.params.items()}
        assert found_in(step, batch) == eager(loss_fn, arrays, batch)


def test_members_of_vmap_choose_in_a_captured_step():
    def loss_fn(p, xs):
        def one(x, b):
            return ops.cond(x.sum() > 0.0, lambda x: ops.tanh(x) * b, lambda x: x - b, x)

        return (vmap(one, in_axes=(0, None))(xs, p["b"]) * p["x"]).sum()

    xs = drawn(8, 5, 4)
    step = capture(loss_fn, parameters(), SGD(RATE), xs)
    for batch in (xs, -xs):
        arrays = {key: a.copy() for key, a in step.params.items()}
        made, found = found_in(step, batch)
        assert (made, found) == eager(loss_fn, arrays, batch) and found["b"] is not None


def test_steps_with_choices_verify():
    for name in ("chained", "several", "inner_choice", "around_scan", "checkpointed"):
        for t in (1.0, -1.0):
            step = capture(of_choice(name), parameters(), SGD(RATE), np.array(t))
            step(np.array(t))
            report = step.verify(replays=2)
            assert report.ok, str(report)


def test_threads_and_passes_and_junk_change_no_bit():
    def made(**options):
        step = capture(of_choice("around_scan"), parameters(), SGD(RATE), np.array(1.0), **options)
        bound = step.bound_plans("test").step.bound if options else None
        for root in () if bound is None else bound.plan.slots:
            bound.memory[root][:] = 0xA5
        losses = [bits(np.asarray(step(np.array(t)))) for t in (1.0, -1.0)]
        return losses, {name: bits(a) for name, a in step.params.items()}

    expected, before = made(), get_threads()
    for name in PASSES:
        step = capture(of_choice("around_scan"), parameters(), SGD(RATE), np.array(1.0), without_passes=[name])
        assert [bits(np.asarray(step(np.array(t)))) for t in (1.0, -1.0)] == expected[0]
    try:
        set_threads(3)
        assert made() == expected
    finally:
        set_threads(before)


def test_a_graph_with_choices_is_read_back():
    graph = capture(of_choice("plain"), parameters(), SGD(RATE), np.array(1.0)).graph
    verify(graph)
    assert IRGraph.parse(str(graph)) == graph == IRGraph.from_json(graph.to_json())
    forward, back = [node for node in graph.nodes if node.op == "cond"]
    assert [[node.op for node in body.nodes] for body in bodies_of(forward)] == [
        ["matmul", "tanh"],
        ["broadcast_to", "mul"],
    ]
    assert back.attrs["results"] == ("y 0", "y 1", "y 2")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda attrs: {**attrs, "on_false": attrs["on_true"].replace("5, 4", "5, 3")}, "IRError"),
        (lambda attrs: {**attrs, "on_true": 3}, "attribute 'on_true': expected str, got 3"),
        (lambda attrs: {**attrs, "results": ("y 9",)}, "expected results among y 0, got 'y 9'"),
        (lambda attrs: {"on_true": ""}, "expected the attributes on_true, on_false, results in this order"),
        (
            lambda attrs: {**attrs, "on_false": attrs["on_false"].replace('output "y 0" = %3', 'output "y 0" = %1')},
            "expected sides that give the same",
        ),
    ],
)
def test_a_wrong_choice_is_found(change, text):
    graph = capture(of_choice("plain"), parameters(), SGD(RATE), np.array(1.0)).graph
    first = next(node for node in graph.nodes if node.op == "cond")
    nodes = tuple([replace(node, attrs=change(node.attrs)) if node is first else node for node in graph.nodes])
    with pytest.raises(IRError, match=text):
        verify(replace(graph, nodes=nodes))


def test_an_error_in_a_side_is_told_with_its_line():
    def loss_fn(p, i):
        return ops.cond(i > 0, lambda i: ops.take(p["b"], i, axis=0), lambda i: p["b"][0], i)

    step = capture(loss_fn, parameters(), SGD(RATE), np.array(1))
    before = step.params["b"].copy()
    with pytest.raises(BoundsError) as caught:
        step(np.array(9))
    text = "cond: on_true: take: argument 'indices': expected -4 to 3, got 9 at position 0; at "
    assert str(caught.value).startswith(text) and "return ops.cond(i > 0" in str(caught.value)
    assert bits(step.params["b"]) == bits(before)
    step(np.array(-9))


# ---------------------------------------------------------------------- checkpoints


def of_blocks(kept):
    def loss_fn(p, _):
        return loss_of(lambda p, t, _: by_checkpoint(kept, p, p["x"]), p, None, None)

    return loss_fn


def test_a_captured_checkpoint_changes_no_bit():
    found = []
    for kept in (checkpoint, lambda f: f):
        step = capture(of_blocks(kept), parameters(), SGD(RATE), np.zeros(1))
        found.append([found_in(step, np.zeros(1)), *[bits(np.asarray(step(np.zeros(1)))) for _ in range(3)]])
    assert found[0] == found[1]
    assert found[0][0] == eager(of_blocks(checkpoint), parameters(), np.zeros(1))


def deep(kept, depth=24):
    """Bytes of the arena of a step of many blocks, and its parameters after three steps."""

    def block(w, h):
        return h + ops.tanh(ops.sin(ops.tanh(ops.sin(h @ w))))

    def loss_fn(p, x):
        h = x
        for i in range(depth):
            h = kept(block)(p[f"w{i}"], h)
        return (h * h).mean()

    params = {f"w{i}": drawn(i, 16, 16).astype(np.float32) for i in range(depth)}
    x = drawn(99, 64, 16).astype(np.float32)
    step = capture(loss_fn, params, SGD(0.01), x)
    losses = [bits(np.asarray(step(x))) for _ in range(3)]
    return step.bound_plans("test").step.bound.plan.arena_bytes, losses, {k: bits(a) for k, a in step.params.items()}


def test_a_plan_with_checkpoints_is_smaller():
    one = 64 * 16 * 4
    with_all, *expected = deep(lambda f: f)
    with_few, *found = deep(checkpoint)
    assert found == expected
    assert with_few < 24 * 2 * one < with_all


def test_a_loop_keeps_the_carry_of_every_few_steps():
    xs = drawn(3, 64, 8, 4).astype(np.float32)

    def of(every):
        def loss_fn(p, xs):
            def step(h, x):
                h = ops.tanh(ops.sin(h @ p["w"]) + ops.cos(x))
                return h, None

            def rows(h, xs):
                return ops.scan(step, h, xs)

            if every:
                last, _ = ops.scan(checkpoint(rows), p["h"], ops.reshape(xs, (64 // every, every, 8, 4)))
            else:
                last, _ = rows(p["h"], xs)
            return (last * last).sum()

        step = capture(
            loss_fn, {"w": drawn(1, 4, 4).astype(np.float32), "h": drawn(2, 8, 4).astype(np.float32)}, SGD(0.1), xs
        )
        losses = [bits(np.asarray(step(xs))) for _ in range(3)]
        return (
            step.bound_plans("test").step.bound.plan.arena_bytes,
            losses,
            {k: bits(a) for k, a in step.params.items()},
        )

    (all_bytes, *expected), (few_bytes, *found) = of(0), of(8)
    assert found == expected
    assert few_bytes * 2 < all_bytes, (few_bytes, all_bytes)


# ---------------------------------------------------------------------- loops without a length


def test_a_captured_loop_takes_as_many_steps_as_it_needs():
    roots = capture_function(lambda x: newton(x), np.array(2.0))
    for x in (2.0, 3e4, 1.0, 1e-3):
        made = roots(np.array(x))
        n, y = by_hand(np.float64(x))
        assert (int(made["n"]), bits(np.asarray(made["y"]))) == (n, bits(np.asarray(y)))


def test_a_step_with_a_loop_without_a_length_verifies():
    def loss_fn(p, x):
        start = ops.stop_gradient(p["b"].sum() * p["b"].sum() + 2.0)
        return newton(start)["y"] * (p["b"] * x).sum()

    step = capture(loss_fn, parameters(), SGD(RATE), drawn(5, 4))
    for _ in range(3):
        arrays = {key: a.copy() for key, a in step.params.items()}
        assert found_in(step, drawn(5, 4)) == eager(loss_fn, arrays, drawn(5, 4))
    report = step.verify(replays=2)
    assert report.ok, str(report)
    graph = step.graph
    verify(graph)
    assert IRGraph.parse(str(graph)) == graph
    first = next(node for node in graph.nodes if node.op == "while_loop")
    wrong = replace(first, inputs=(first.inputs[1], *first.inputs[1:]))
    with pytest.raises(IRError, match="expected inputs"):
        verify(replace(graph, nodes=tuple([wrong if node is first else node for node in graph.nodes])))


def test_an_error_in_a_loop_without_a_length_is_told_with_its_step():
    forward = capture_function(
        lambda n: ops.while_loop(lambda i: i < n, lambda i: i + ops.take(np.array([1, 1, 1]), i, axis=0), n * 0),
        np.array(2),
    )
    assert int(forward(np.array(3))) == 3
    with pytest.raises(
        BoundsError, match=r"while_loop: step 3: take: argument 'indices': expected -3 to 2, got 3 .*; at "
    ):
        forward(np.array(5))


LONG = 1 << 40

RUNS = {
    "while_loop": lambda n: ops.while_loop(lambda i: i < LONG * n, lambda i: i + n, n * 0),
    "scan": lambda n: ops.scan(lambda h, _: (h + n, None), n, length=LONG)[0],
    "a loop in a choice": lambda n: ops.cond(
        n > 0, lambda n: ops.while_loop(lambda i: i < LONG * n, lambda i: i + n, n * 0), lambda n: n, n
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_ctrl_c_ends_a_loop(name):
    """The first run is that of the capture; `while_loop` is there to be compiled before, which no Ctrl-C ends."""
    forward = capture_function(RUNS["while_loop"], np.array(0))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        capture_function(RUNS[name], np.array(1))
    timer.join()
    assert int(forward(np.array(0))) == 0


def test_a_handler_that_holds_ctrl_c_has_the_run_whole():
    def slow(n):
        return ops.while_loop(lambda i: i < n, lambda i: i + 1, n * 0)

    forward, came = capture_function(slow, np.array(0)), []
    before = signal(SIGINT, lambda *_: came.append(1))
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), SIGINT))
        timer.start()
        assert int(forward(np.array(20_000_000))) == 20_000_000
        timer.join()
    finally:
        signal(SIGINT, before)
    assert came == [1]


def test_steps_at_once_go_on_where_ctrl_c_came():
    """The handler holds it; the step that it cut short is run anew, and those before it stay."""

    def loss_fn(p, n):
        turns = ops.while_loop(lambda i: i < n, lambda i: i + 1, n * 0)
        return (p["b"] * p["b"]).sum() * ops.cast(turns, "float64") * 1e-6

    def losses(count):
        step = capture(loss_fn, {"b": drawn(1, 4)}, SGD(0.1), np.array(1))
        step(np.array(1_000_000))
        return step, [bits(x) for x in step.replay(count)]

    _, expected = losses(6)
    came, before = [], signal(SIGINT, lambda *_: came.append(1))
    try:
        timers = [threading.Timer(0.05 + 0.1 * i, os.kill, (os.getpid(), SIGINT)) for i in range(3)]
        for timer in timers:
            timer.start()
        _, found = losses(6)
        for timer in timers:
            timer.join()
    finally:
        signal(SIGINT, before)
    assert found == expected and len(came) == 3
