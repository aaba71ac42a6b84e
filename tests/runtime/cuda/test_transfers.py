"""Large inputs of a step on a GPU: they are sent from where the batch has them, as late as they are needed."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, capture
from dgrr.runtime.cuda import transfers
from dgrr.tape import ops

pytestmark = [pytest.mark.usefixtures("host_gpu"), pytest.mark.xdist_group("cuda")]

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.standard_normal((6, 5)).astype(np.float32)}


def loss_fn(p: Any, batch: Any) -> Any:
    x, scale, targets = batch
    return ops.mse_loss(ops.tanh(x @ p["w"]) * scale, targets)


def batch() -> tuple[np.ndarray, ...]:  # type: ignore[type-arg]
    return tuple(RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 6), (5,), (4, 5)))


@pytest.fixture
def _four_floats_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """All inputs but the scale."""
    monkeypatch.setattr(transfers, "DIRECT", 64)


def captured(device: Any) -> CapturedStep:
    return capture(loss_fn, PARAMS, Adam(1e-2), batch(), device=device)


def logged(host_gpu: Any, monkeypatch: pytest.MonkeyPatch, given: Any) -> list[Any]:
    """What a step asks of the GPU once its arrays are there: the addresses that it uploads from, and the graphs."""
    step = captured("cuda")
    for _ in range(2):
        step(given)
    log, upload, start, wait = list[Any](), host_gpu.upload, host_gpu.start, host_gpu.wait
    monkeypatch.setattr(host_gpu, "upload", lambda to, array: [log.append(array.ctypes.data), upload(to, array)])
    monkeypatch.setattr(host_gpu, "start", lambda graph: [log.append("start"), start(graph)])
    monkeypatch.setattr(host_gpu, "wait", lambda: [log.append("wait"), wait()])
    step(given)
    return log


@pytest.mark.usefixtures("_four_floats_are_large")
def test_targets_are_sent_while_the_way_there_is_computed(host_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = batch()
    log = logged(host_gpu, monkeypatch, given)
    x, _, targets = given
    assert log == [x.ctypes.data, "start", targets.ctypes.data, "start", "wait"]


@pytest.mark.usefixtures("_four_floats_are_large")
def test_steps_have_the_bits_of_the_cpu_however_a_batch_lies() -> None:
    cpu, gpu = captured("cpu"), captured("cuda")
    for lies in (np.ascontiguousarray, np.asfortranarray, lambda a: a[::-1]):
        given = tuple(map(lies, batch()))
        assert cpu(given) == gpu(given)
    assert cpu.digest() == gpu.digest()
    steps = [batch() for _ in range(3)]
    assert cpu.steps(steps).tolist() == gpu.steps(steps).tolist()
    assert cpu.digest() == gpu.digest()


@pytest.mark.usefixtures("_four_floats_are_large")
def test_the_last_batch_is_kept() -> None:
    cpu, gpu = captured("cpu"), captured("cuda")
    for _ in range(2):
        given = batch()
        mine, other = cpu.tape(given), gpu.tape(given)
        assert all(np.array_equal(a, b) for a, b in zip(mine.values, other.values, strict=True))
    assert not gpu.verify(1).failures


def test_small_inputs_are_copied_by_the_one_graph(host_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = batch()
    log = logged(host_gpu, monkeypatch, given)
    assert log == ["start", "wait"]


@pytest.mark.usefixtures("_four_floats_are_large")
def test_an_input_that_nobody_reads() -> None:
    def unread(p: Any, given: Any) -> Any:
        return (given[0] @ p["w"]).sum()

    cpu, gpu = (capture(unread, PARAMS, SGD(0.1), batch(), device=d) for d in ("cpu", "cuda"))  # type: ignore[arg-type]
    given = batch()
    assert cpu(given) == gpu(given) and cpu.digest() == gpu.digest()
