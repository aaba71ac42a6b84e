"""The machine around its rows: batches and losses moved, flags of threads kept away."""

# numba's kernels carry no types.
# mypy: disable-error-code="no-untyped-def,misc,no-any-return,call-arg"
# pyright: basic, reportCallIssue=false
from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine import machine
from dgrr.tape.numerics.engine.intrinsics import word
from dgrr.tape.numerics.engine.kernel import share, vector
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.engine.threads import HelperPool

from .programs import Array, Program, pool, publish, unlisted
from .test_environment import WORDS, control, under


@unlisted
def machine_adds(table, ints, part, parts):
    """``total = total + x * y``; fails at a negative x."""
    total, x, y = vector(table, 0, 0, 1), vector(table, 1, 0, 1), vector(table, 2, 0, 2)
    total[0] += x[0] * (y[0] + y[1])
    return 3 if x[0] < 0 else 0


@unlisted
def machine_rounds(table, ints, part, parts):
    """What flags of the thread would change: a subnormal result, a rounded sum; for as many items as its word says."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, 2 * start, 2 * n), vector(table, 1, 0, 3)
    for i in range(n):
        out[2 * i], out[2 * i + 1] = x[0] * x[1], x[1] + x[2]
    return 0


# ------------------------------------------------------------------ several steps


class Adding:
    """A program of two inputs and a loss."""

    def __init__(self) -> None:
        self.total, self.x, self.y = np.zeros(1), np.zeros(1), np.zeros(2)
        self.program = Program((machine_adds, [self.total, self.x, self.y], Words(), 1))

    def steps(self, xs: Array, ys: Array) -> tuple[int, list[float]]:
        """How many steps ran, and their losses; those that did not run leave -1."""
        places = np.arange(len(xs))
        return self.gathered(
            [
                (self.x.ctypes.data, xs.ctypes.data, 8, places.ctypes.data, 1, 1, 8),
                (self.y.ctypes.data, ys.ctypes.data, 16, places.ctypes.data, 1, 1, 16),
            ],
            len(xs),
        )

    def gathered(self, sources: list[tuple[int, ...]], n: int) -> tuple[int, list[float]]:
        """The same from where the sources say."""
        losses = np.full(n, -1.0)
        kept = np.array([(self.total.ctypes.data, losses.ctypes.data, 8)], np.int64)
        rows, fault = self.program.rows, self.program.fault
        done = machine.run_steps(rows.ctypes.data, 1, 0, fault, np.array(sources, np.int64), kept, n)
        return done, losses.tolist()


def test_every_step_has_its_batch_and_leaves_its_loss() -> None:
    adding = Adding()
    xs, ys = np.array([1.0, 2.0, 3.0]), np.array([[1.0, 0.0], [0.5, 0.5], [2.0, 3.0]])
    assert adding.steps(xs, ys) == (3, [1.0, 3.0, 18.0])
    assert (adding.x.tolist(), adding.y.tolist()) == ([3.0], [2.0, 3.0])


def test_rows_of_a_batch_lie_anywhere() -> None:
    adding = Adding()
    xs, ys = np.array([1.0, 2.0, 3.0]), np.array([[10.0, -1.0], [20.0, -1.0], [30.0, -1.0], [40.0, -1.0]])
    x_places, y_places = np.array([xs[2:].ctypes.data, xs[1:].ctypes.data]), np.array([3, 1, 9, 0, 2, 9])
    sources = [
        (adding.x.ctypes.data, 0, 1, x_places.ctypes.data, 1, 1, 8),
        (adding.y.ctypes.data, ys.ctypes.data, 16, y_places.ctypes.data, 3, 2, 8),
    ]
    assert adding.gathered(sources, 2) == (2, [3.0 * (40 + 20), 3.0 * (40 + 20) + 2.0 * (10 + 30)])
    assert adding.y.tolist() == [10.0, 30.0]


def test_steps_end_at_the_one_that_fails() -> None:
    adding = Adding()
    done, losses = adding.steps(np.array([1.0, -2.0, 3.0]), np.ones((3, 2)))
    assert (done, losses) == (1, [2.0, -1.0, -1.0])
    assert adding.program.fault.tolist() == [3, 0]


def test_no_steps() -> None:
    assert Adding().steps(np.empty(0), np.empty((0, 2))) == (0, [])


# ------------------------------------------------------------------ feeding


class Fed(Adding):
    """The same program, fed with a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = [np.array(buffer.shape, np.int64) for buffer in (self.x, self.y)]
        rows = [
            (buffer.ctypes.data, buffer.nbytes, buffer.ndim, sizes.ctypes.data, id(buffer.dtype))
            for buffer, sizes in zip((self.x, self.y), self.sizes, strict=True)
        ]
        self.feeds = np.array(rows, np.int64)

    def run(self, *batch: Any) -> int:
        rows, fault = self.program.rows, self.program.fault
        run, kind = machine.run_fed(len(batch)), id(np.ndarray)
        return run(rows.ctypes.data, 1, 0, fault.ctypes.data, self.feeds.ctypes.data, kind, batch)


def test_a_batch_is_copied_and_run() -> None:
    fed = Fed()
    x, y = np.array([2.0]), np.array([3.0, 4.0])
    assert fed.run(x, y) == 0
    assert fed.run(x * 0 - 1, y) == 1
    assert fed.total.tolist() == [7.0]
    assert fed.program.fault.tolist() == [3, 0]
    assert (fed.x.tolist(), fed.y.tolist()) == ([-1.0], [3.0, 4.0])


@pytest.mark.parametrize(
    "y",
    [
        np.ones(3), np.ones((1, 2)), np.ones(2, np.float32), np.ones(2, np.int64), np.ones(()), np.ones(4)[::2],
        np.ones(4)[::-2], np.broadcast_to(np.ones(1), 2), np.ones(2, ">f8"),
        np.frombuffer(b"x" * 17, np.uint8)[1:].view(np.float64), [1.0, 1.0], None, np.ones(2).view(np.recarray),
    ],
    ids=["longer", "an axis more", "another type", "integers", "a number", "strided", "reversed", "repeated",
         "another byte order", "not aligned", "a list", "nothing", "a subclass of arrays"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_done(y: Any) -> None:
    fed = Fed()
    assert fed.run(np.array([2.0]), y) == -1
    assert (fed.total.tolist(), fed.x.tolist(), fed.y.tolist()) == ([0.0], [0.0], [0.0, 0.0])


def test_arrays_are_found_up_to_the_first_batch_that_does_not_fit() -> None:
    fed = Fed()
    batches = [np.ones(1), np.ones(2), np.zeros(1), np.zeros(2), np.ones(1), np.ones(3), np.ones(1), np.ones(2)]
    objects, places = np.fromiter(batches, object, 8), np.full(8, -1)
    given = (fed.feeds.ctypes.data, places.ctypes.data)
    assert machine.find_arrays(objects.ctypes.data, 4, 2, id(np.ndarray), *given) == 2
    assert places[:4].tolist() == [array.ctypes.data for array in batches[:4]]
    assert machine.find_arrays(objects.ctypes.data, 2, 2, id(np.ndarray), *given) == 2
    assert machine.find_arrays(objects.ctypes.data, 0, 2, id(np.ndarray), *given) == 0


# ------------------------------------------------------------------ flags


def rounding(parts: int) -> tuple[Array, Program]:
    out, x = np.zeros(2 * parts), np.array([2.0**-1070, 0.5, 2.0**-60])
    return out, Program((machine_rounds, [out, x], Words(parts), parts))


KEPT = [2.0**-1071, 0.5]


@pytest.mark.parametrize("flags", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("parts", [1, 4])
def test_flags_of_the_caller_change_nothing_and_come_back(flags: int, parts: int) -> None:
    out, program = rounding(parts)
    with under(flags):  # checks on the way out that the flags are there again
        program.run()
    assert out.tolist() == KEPT * parts


@pytest.mark.parametrize("flags", WORDS.values(), ids=WORDS)
def test_flags_of_a_helper_change_nothing_and_come_back(unmanned: HelperPool, flags: int) -> None:
    out, program = rounding(4)
    publish(unmanned, program, 1, 4, 0)
    with under(flags):
        machine.help_out(unmanned.control, unmanned.control + machine.PARKED)
        assert control() == flags
    assert out.tolist() == KEPT * 4


@pytest.mark.parametrize("flags", WORDS.values(), ids=WORDS)
def test_flags_of_threads_that_start_under_them_change_nothing(flags: int) -> None:
    out, program = rounding(8)
    with under(flags), pool(2) as made:
        for _ in range(50):
            out[:] = 0
            program.run(made.control)
            assert out.tolist() == KEPT * 8


def test_flags_change_nothing_in_several_steps() -> None:
    adding = Adding()
    with under(WORDS["both"]):
        assert adding.steps(np.array([2.0**-1070, 1.0]), np.array([[0.25, 0.25], [2.0**-1074, 0.0]])) == (
            2,
            [2.0**-1071, 2.0**-1071 + 2.0**-1074],
        )
