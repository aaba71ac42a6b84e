"""A captured step means what the eager step means, or it says no: what a loss function reads from Python is found."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CaptureError, Trainer, capture, capture_function
from dgrr.tape import AnyVar, Var, ops
from dgrr.tape.record import F, S, op
from dgrr.tape.record.derivative import NO_GRAD
from dgrr.tape.record.samples import unary
from dgrr.tape.var.op_table import OPS
from dgrr.trace import open_trace

PARAMS = {"w": np.ones(3)}
BATCH = np.array([1.0, 2.0, 3.0])


class Python:
    """State that a loss function reads beside its arguments: a number that ticks at every call, or when told."""

    def __init__(self) -> None:
        self.calls, self.hidden = 0, {"coefficient": 1.0}
        self.array = np.ones(3)
        self.read: Any = self.hidden.__getitem__

    @property
    def coefficient(self) -> Any:
        """Read by compiled code, of which nothing is seen before a look."""
        return self.read("coefficient")

    @coefficient.setter
    def coefficient(self, value: float) -> None:
        self.hidden["coefficient"] = value

    def tick(self) -> float:
        """The next count of calls."""
        self.calls += 1
        return float(self.calls)


READS: dict[str, Callable[[Python, AnyVar], AnyVar]] = {
    "a counter as a constant": lambda python, x: x * python.tick(),
    "a counter as an attribute": lambda python, x: ops.scale(x, python.tick()),
    "random numbers": lambda python, x: x * np.random.default_rng(int(python.tick())).random(3),
    "an array that is changed in place": lambda python, x: x * _grown(python.array),
    "a branch": lambda python, x: x if python.tick() % 2 else x.exp(),
    "more and more ops": lambda python, x: sum((x for _ in range(int(python.tick()))), x),
    "another parent": lambda python, x: x * (x.exp() if python.tick() % 2 else x),
}


def _grown(array: Any) -> Any:
    array += 1
    return array


def loss_reading(read: Callable[[Python, AnyVar], AnyVar]) -> Callable[[Any, Any], AnyVar]:
    """A loss function that reads from Python."""
    python = Python()

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        loss: AnyVar = read(python, p["w"] * batch).sum()
        return loss

    return loss_fn


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_what_changes_at_every_call_is_found_at_capture(read: Callable[[Python, AnyVar], AnyVar]) -> None:
    with pytest.raises(CaptureError, match="behaves differently when it is called again at .*test_purity.py"):
        capture(loss_reading(read), PARAMS, SGD(0.0), BATCH)


@pytest.mark.parametrize("mode", ["replay", "capture"])
def test_the_trainer_refuses_what_eager_steps_may_do(mode: Any) -> None:
    losses: dict[str, Any] = {}
    for used in ("eager", mode):
        trainer = Trainer(loss_reading(READS["a counter as a constant"]), PARAMS, SGD(0.0), mode=used)
        if used == "eager":
            losses[used] = trainer.fit([BATCH] * 6, progress=False).losses.tolist()
        else:
            with pytest.raises(CaptureError):
                trainer.fit([BATCH] * 6, progress=False)
    assert losses == {"eager": [6.0, 12.0, 18.0, 24.0, 30.0, 36.0]}


def test_the_error_names_line_constant_and_way_out() -> None:
    with pytest.raises(CaptureError) as caught:
        capture(loss_reading(lambda python, x: x * python.tick()), PARAMS, SGD(0.0), BATCH)
    assert re.fullmatch(
        r"capture: loss_fn behaves differently when it is called again at \S*test_purity\.py:\d+: "
        r"capture\(loss_reading\(lambda python, x: x \* python\.tick\(\)\), PARAMS, SGD\(0\.0\), BATCH\): "
        r"value %\d was recorded as float64\[3\] mul\(%2, float64\[3\] 1\.0\), "
        r"but the second time as float64\[3\] mul\(%2, float64\[3\] 2\.0\); "
        r"a captured step keeps the first for ever; take what changes from ctx\.step \(the count of steps\), from "
        r'ctx\.random or from an array of the batch, or run the step with mode="eager"',
        str(caught.value),
    )


def annealed(python: Python) -> Callable[[Any, Any], AnyVar]:
    """A loss function whose coefficient somebody changes between two steps."""
    return lambda p, batch: ops.scale((p["w"] * batch).sum(), python.coefficient)


@pytest.mark.parametrize("run", ["call", "gradients", "grads", "replay", "steps"])
def test_what_changes_later_is_found_before_twice_as_many_runs(run: str) -> None:
    python = Python()
    step = capture(annealed(python), PARAMS, SGD(0.0), BATCH)
    calls: dict[str, Callable[[], object]] = {
        "call": lambda: step(BATCH),
        "gradients": lambda: step.gradients(BATCH),
        "grads": lambda: step.grads(BATCH),
        "replay": lambda: step.replay(1),
        "steps": lambda: step.steps([BATCH]),
    }
    step.bind(BATCH)
    for _ in range(5):
        calls[run]()
    python.coefficient = 2.0
    calls[run]()
    calls[run]()
    with pytest.raises(CaptureError, match=r"at run 8 of what was captured as float64\[\] scale\(%\d\) \{c=2.0\}"):
        calls[run]()
    python.coefficient = 1.0
    calls[run]()


def test_what_changes_at_every_step_never_trains_a_wrong_one() -> None:
    python = Python()

    def batches() -> Iterator[Any]:
        for i in count(1):
            python.coefficient = float(i)
            yield BATCH

    trainer = Trainer(annealed(python), PARAMS, SGD(0.125))
    with pytest.raises(CaptureError):
        trainer.fit(batches(), steps=9, progress=False)
    other = Trainer(annealed(python), PARAMS, SGD(0.125), mode="eager")
    other.fit(batches(), steps=trainer.steps, progress=False)
    assert trainer.steps == 1
    assert trainer.params["w"].tobytes() == other.params["w"].tobytes()


def test_a_fit_ends_only_if_the_loss_function_is_still_the_same(tmp_path: Any) -> None:
    python = Python()

    def batches() -> Iterator[Any]:
        for i in range(12):
            python.coefficient = 1.0 if i < 11 else 2.0
            yield BATCH

    trainer = Trainer(annealed(python), PARAMS, SGD(0.125), trace=tmp_path / "run.dgrr")
    with pytest.raises(CaptureError, match="but after the last step as"):
        trainer.fit(batches(), progress=False)
    assert not (tmp_path / "run.dgrr").exists()


def test_looks_are_as_many_as_the_logarithm_of_the_runs() -> None:
    calls = Python()

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        calls.tick()
        return (p["w"] * batch).sum()

    step = capture(loss_fn, PARAMS, SGD(0.0), BATCH)
    assert calls.calls == 2
    for _ in range(1000):
        step(BATCH)
    assert calls.calls == 2 + 9
    step.replay(4000)
    assert calls.calls == 2 + 9 + 3


def test_what_is_on_the_tape_counts_even_where_nobody_takes_it() -> None:
    python = Python()

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        shown = batch * python.tick()
        assert shown.shape == batch.shape
        return (p["w"] * batch).sum()

    with pytest.raises(CaptureError, match="mul"):
        capture(loss_fn, PARAMS, SGD(0.0), BATCH)


def test_which_value_is_the_loss_counts_as_much_as_how_it_was_made() -> None:
    python = Python()

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        both = (p["w"] * batch).sum(), p["w"].sum()
        return both[int(python.tick()) % 2]

    with pytest.raises(CaptureError, match="recorded as output 'loss' = %.*, but the second time as output 'loss' = %"):
        capture(loss_fn, PARAMS, SGD(0.0), BATCH)


def test_which_value_is_a_metric_counts_too() -> None:
    python = Python()

    def loss_fn(p: Any, batch: Any) -> Any:
        both = (p["w"] * batch).sum(), p["w"].sum()
        return both[0], {"shown": both[int(python.tick()) % 2]}

    with pytest.raises(CaptureError, match="recorded as .*metric shown.*, but the second time as"):
        capture(loss_fn, PARAMS, SGD(0.0), BATCH)


def test_what_a_derivative_reads_is_found() -> None:
    python = Python()

    @op(
        lower=lambda x: x,
        reference=lambda x: x,
        samples=unary(),
        vjp=[lambda g: ops.scale(g, python.tick())],
        jvp=NO_GRAD,
    )
    def ticking(x: Var[F, *S]) -> Var[F, *S]:
        """x, whose gradient is another each time."""
        raise NotImplementedError

    del OPS["ticking"]
    with pytest.raises(CaptureError, match=r"scale\(%\d\) \{c=1.0\}, but the second time as .*c=2.0"):
        capture(lambda p, batch: ticking(p["w"] * batch).sum(), PARAMS, SGD(0.0), BATCH)


def test_verify_says_it_too() -> None:
    python = Python()
    step = capture(annealed(python), PARAMS, SGD(0.0), BATCH)
    step(BATCH)
    assert step.verify(2).ok
    python.coefficient = 2.0
    found = {check.name: check for check in step.verify(2).failures}
    assert "scale(%3) {c=2.0}" in found["recording"].detail


def test_a_trace_of_what_was_done_before_stays_readable(tmp_path: Any) -> None:
    python = Python()
    trainer = Trainer(annealed(python), PARAMS, SGD(0.0), trace=tmp_path / "run.dgrr")

    def batches() -> Iterator[Any]:
        for i in range(12):
            python.coefficient = 1.0 if i < 5 else 2.0
            yield BATCH

    with pytest.raises(CaptureError):
        trainer.fit(batches(), progress=False)
    (unfinished,) = tmp_path.iterdir()
    with open_trace(unfinished) as trace:
        assert len(trace) == trainer.steps


def test_a_captured_function_says_no_too() -> None:
    python = Python()
    scaled = capture_function(lambda x: x * python.coefficient, BATCH)
    for _ in range(4):
        assert scaled(BATCH).tobytes() == BATCH.tobytes()
    python.coefficient = 2.0
    for _ in range(2):
        scaled(BATCH)
    with pytest.raises(
        CaptureError,
        match="capture: the function behaves differently when it is called again .* at run 8 of what was captured",
    ):
        scaled(BATCH)
