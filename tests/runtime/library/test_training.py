"""A training step as a library: the bits of the captured step, and what it does with what is wrong."""

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Library, capture, export_library
from dgrr.runtime.library.calls import BUFFER, STATE
from dgrr.runtime.library.header import header
from dgrr.runtime.library.image import NOT_FINITE
from dgrr.runtime.library.loader import types
from dgrr.runtime.step.batch import batch_arrays
from dgrr.tape import ops

from .conftest import NET, batches, step
from .native import Array, Loaded, host, room

CONTROL = """
#include <xmmintrin.h>
unsigned get(void) { return _mm_getcsr(); }
void put(unsigned word) { _mm_setcsr(word); }
"""


def shown_loss(p: Any, batch: Any, ctx: Any) -> Any:
    """Cross-entropy, and two metrics: one in words of several letters."""
    scores = NET(p, batch[0], ctx)
    loss = ops.cross_entropy(scores, batch[1])
    return loss, {"hits": ops.reduce_mean(scores * scores), "peak of x": ops.reduce_max(batch[0])}


def of_step(loaded: Loaded, batch: tuple[Array, Array]) -> int:
    """The code of a call."""
    return loaded.call([np.ascontiguousarray(a) for a in batch], [np.empty(1, np.float32)])


def test_it_trains_to_the_bits_of_the_captured_step(training: Library) -> None:
    loaded, own = Loaded(training), step()
    for batch in batches():
        (loss,) = loaded(*batch)
        assert loss.tobytes() == np.asarray(own(batch)).tobytes()
    arrays = {**own.params, **own.state, **own.model_state}
    held = loaded.held()
    assert held.keys() == arrays.keys()
    assert not [name for name, array in arrays.items() if held[name].tobytes() != array.tobytes()]


def chosen_loss(p: Any, batch: Any) -> Any:
    """The loss of one of two sides, which use other parameters; a batch chooses by its sum."""
    x, labels = batch
    on_true, on_false = (lambda x: ops.tanh(x @ p["left"])), (lambda x: x @ p["right"] * 0.5)
    return ops.cross_entropy(ops.cond(x.sum() > 0, on_true, on_false, x), labels)


@pytest.mark.long
def test_a_step_that_chooses_trains_the_side_that_it_took(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    params = {name: rng.standard_normal((6, 3)).astype(np.float32) for name in ("left", "right")}
    given = [(sign * abs(x), labels) for (x, labels), sign in zip(batches(), (1, -1, -1, 1), strict=True)]
    own = capture(chosen_loss, params, SGD(0.1), given[0])
    loaded = Loaded(export_library(own, tmp_path, target=host(), name="chosen")[host()])
    for x, labels in given:
        before = {name: array.copy() for name, array in loaded.held().items()}
        (loss,) = loaded(x, labels)
        assert loss.tobytes() == np.asarray(own((x, labels))).tobytes()
        held = loaded.held()
        assert not [name for name, array in own.params.items() if held[name].tobytes() != array.tobytes()]
        assert [held[n].tobytes() != before[n].tobytes() for n in ("left", "right")] == [x.sum() > 0, x.sum() < 0]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_it_hands_out_what_a_step_shows(accumulate: int, tmp_path: Path) -> None:
    given = batches() if accumulate == 1 else [tuple(batches()[i : i + 2]) for i in (0, 2)]
    own = capture(shown_loss, NET.init(seed=1), SGD(0.1), given[0], accumulate=accumulate, clip_norm=0.25)
    loaded = Loaded(export_library(own, tmp_path, target=host(), name="shown")[host()])
    hits = ["metric_hits"] if accumulate == 1 else ["metric_hits_0", "metric_hits_1"]
    peaks = ["metric_peak_of_x"] if accumulate == 1 else ["metric_peak_of_x_0", "metric_peak_of_x_1"]
    names = ["loss", "clip", *(name for pair in zip(hits, peaks, strict=True) for name in pair)]
    assert [o["name"] for o in loaded.facts["outputs"]] == names
    for batch in given:
        found = dict(zip(names, loaded(*batch_arrays(batch)), strict=True))
        assert found["loss"].tobytes() == np.asarray(own(batch)).tobytes()
        assert found["clip"].tolist() == [own.norm, own.scale]
        assert own.norm == own.gradient_norm() > 0.25
        for name, every in {"hits": hits, "peak of x": peaks}.items():
            assert np.mean([float(found[each]) for each in every]) == own.metrics[name]
    assert "double *clip /* [2] */" in header(loaded.facts)
    assert f"float *{peaks[-1]} /* [1] */" in header(loaded.facts)
    assert f'"{hits[-1]}": Float32Array; // []' in types(loaded.facts)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the control word is that of x86")
def test_it_rounds_as_ever_whatever_the_thread_has_set(training: Library, tmp_path: Path) -> None:
    (tmp_path / "control.c").write_text(CONTROL)
    command = ["gcc", "-shared", "-fPIC", "control.c", "-o", "control.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    control = ctypes.CDLL(str(tmp_path / "control.so"))
    loaded, own, batch = Loaded(training), step(), batches()[0]
    tiny = (batch[0] * np.float32(1e-39), batch[1])
    inputs, loss, before = [*tiny], np.empty(1, np.float32), control.get()
    control.put(before | 0xE040)  # towards zero, subnormals are zeros
    code, set_then = loaded.call(inputs, [loss]), control.get()
    control.put(before)
    assert code == 0
    assert set_then & 0xFFC0 == before & 0xFFC0 | 0xE040
    assert loss.tobytes() == np.asarray(own(tiny)).tobytes()


def test_a_label_that_is_no_class_is_refused_with_its_place(training: Library) -> None:
    loaded, (x, labels) = Loaded(training), batches()[0]
    before, labels = loaded.state.copy(), labels.copy()
    labels[5] = 3
    code = of_step(loaded, (x, labels))
    assert "argument 'labels': expected a class from 0 to 2" in loaded.message(code)
    assert loaded.position == 5
    assert loaded.facts["codes"][code - 1] == loaded.message(code)
    assert loaded.state.tobytes() == before.tobytes()


def test_a_loss_that_is_not_finite_trains_nothing(training: Library) -> None:
    loaded, (x, labels) = Loaded(training), batches()[0]
    before, x = loaded.state.copy(), x.copy()
    x[2, 1] = np.inf
    assert loaded.message(of_step(loaded, (x, labels))) == NOT_FINITE
    assert loaded.state.tobytes() == before.tobytes()


def test_buffers_that_do_not_fit_are_refused(training: Library) -> None:
    loaded, batch = Loaded(training), batches()[0]
    for arena in (loaded.arena[:-1], room(loaded.arena.nbytes + 64)[8:][: loaded.arena.nbytes]):
        loaded.arena, kept = arena, loaded.arena
        assert loaded.message(of_step(loaded, batch)) == BUFFER
        loaded.arena = kept
    shifted = np.frombuffer(b"\0" * 2 + batch[0].tobytes(), np.uint8)[2:]
    assert loaded.message(loaded.call([shifted, batch[1]], [np.empty(1, np.float32)])) == BUFFER
    assert loaded.message(loaded.start(loaded.state[:-1])) == BUFFER
    assert loaded.message(loaded.start(room(loaded.state.nbytes + 64)[4:])) == BUFFER
    assert of_step(loaded, batch) == 0


def test_a_state_of_another_library_is_refused(training: Library) -> None:
    loaded = Loaded(training)
    loaded.state[:8] += 1
    before = loaded.state.copy()
    assert loaded.message(of_step(loaded, batches()[0])) == STATE
    assert loaded.state.tobytes() == before.tobytes()
