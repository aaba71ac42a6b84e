"""How many threads there are, what a forked child has, and what an interrupt leaves behind."""

import gc
import os
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, get_threads, set_threads
from dgrr.tape.numerics import launch
from dgrr.tape.ops import OPS

FORK = """
import gc
import os
import signal
import numpy as np
from dgrr.tape import AnyTensor, ops, set_threads
from dgrr.tape.numerics import launch

launch.PARALLEL_WORK = 0
set_threads(3)
x = AnyTensor(np.linspace(-3, 3, 1000).reshape(20, 50))

def results():
    return [y.numpy().tobytes() for y in (ops.exp(x), ops.softmax(x), ops.reduce_sum(x, 0))]

expected = results()
child = os.fork()
if child == 0:
    signal.alarm(20)  # a child that waits for threads it does not have would never end
    same = results() == expected
    set_threads(2)
    os._exit(0 if same and results() == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), results() == expected)
"""


def python(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script], env=os.environ | variables, capture_output=True, text=True, timeout=60
    )


def test_a_forked_child_computes_the_same_with_threads_of_its_own() -> None:
    done = python(FORK)
    assert (done.stdout, done.returncode) == ("0 True\n", 0), done.stderr


# ------------------------------------------------------------------ how many threads


@pytest.mark.parametrize("count", [0, -3, 2.5])
def test_set_threads_refuses_what_is_no_count(count: Any) -> None:
    before = get_threads()
    with pytest.raises(ValueError, match=f"^set_threads: expected a whole number of at least 1, got {count}$"):
        set_threads(count)
    assert get_threads() == before


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_variable_is_refused_at_import(text: str) -> None:
    done = python("import dgrr.tape", DGRR_THREADS=text)
    expected = f"ValueError: DGRR_THREADS: expected a whole number of at least 1, got {text!r}"
    assert done.stderr.splitlines()[-1] == expected


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("", len(os.sched_getaffinity(0)))])
def test_the_variable_sets_the_number_of_threads(text: str, count: int) -> None:
    done = python("from dgrr.tape import get_threads; print(get_threads())", DGRR_THREADS=text)
    assert done.stdout == f"{count}\n"


def test_an_interrupted_caller_leaves_its_workers_their_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may end the wait for a kernel that is still writing: the arrays must outlive it."""
    submitted: list[tuple[Any, ...]] = []

    class Interrupted:
        def result(self) -> int:
            raise KeyboardInterrupt

    class Pool:
        def submit(self, *call: Any) -> Interrupted:
            submitted.append(call)
            return Interrupted()

    monkeypatch.setattr(launch, "PARALLEL_WORK", 0)
    monkeypatch.setattr(launch.Threads, "pool", Pool())
    x = AnyTensor.leaf(np.arange(5.0))
    held = weakref.ref(x.array)
    with pytest.raises(KeyboardInterrupt):
        OPS["neg"](x)
    del x
    gc.collect()
    assert held() is not None
    for function, *arguments in submitted:
        assert function(*arguments) == 0
    submitted.clear()
    del function, arguments
    gc.collect()
    assert held() is None
