"""Functions, evaluation and verification on a GPU; the GPU is this machine, the code that of a GPU."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Trainer, capture, capture_function
from dgrr.runtime.cuda.bind import CudaBound
from dgrr.runtime.data import digits
from dgrr.tape import BoundsError, DomainError, TapeError, nn, ops

pytestmark = [pytest.mark.usefixtures("host_gpu"), pytest.mark.xdist_group("cuda")]

MODEL = nn.Sequential(nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 10))
X = np.random.default_rng(1).standard_normal((6, 64)).astype(np.float32)


def loss_fn(p: Any, batch: Any) -> Any:
    images, labels = batch
    loss = ops.cross_entropy(MODEL(p, images), labels)
    return loss, {"half": loss * 0.5}


def both(function: Any, *arguments: Any) -> tuple[Any, Any]:
    here, there = (capture_function(function, device=device) for device in ("cpu", "cuda"))  # type: ignore[arg-type]
    return here(*arguments), there(*arguments)


@pytest.mark.long
def test_a_model_of_several_shapes() -> None:
    here, there = (capture_function(MODEL, device=device) for device in ("cpu", "cuda"))  # type: ignore[arg-type]
    params = MODEL.init(0)
    for x in (X, X[:2], X[::2], X[:3], X):
        assert here(params, x).tobytes() == there(params, x).tobytes()


@pytest.mark.long
def test_results_of_any_form_even_what_was_given() -> None:
    here, there = both(lambda x, n: {"x": x, "more": (x.exp().sum(), [x * n, n])}, X, np.float32(3))
    assert here["x"].tobytes() == there["x"].tobytes() == X.tobytes()
    assert here["more"][0].tobytes() == there["more"][0].tobytes()
    assert here["more"][1][0].tobytes() == there["more"][1][0].tobytes() and there["more"][1][1] == 3


def test_results_stay_and_arrays_from_elsewhere_are_as_they_are_at_each_call() -> None:
    weights = np.ones(2)
    times = capture_function(lambda x: x * weights, np.zeros(2), device="cuda")
    first = times(np.full(2, 3.0))
    weights[:] = 9
    assert (times(np.full(2, 3.0)).tolist(), first.tolist()) == ([27, 27], [3, 3])


def test_a_loop_is_written_out() -> None:
    def sums(x: Any) -> Any:
        return ops.scan(lambda s, row: (s * 0.5 + row, s), x[0], x)

    here, there = both(sums, X)
    assert here[0].tobytes() == there[0].tobytes() and here[1].tobytes() == there[1].tobytes()


def test_what_is_refused_is_refused_in_the_words_of_the_cpu() -> None:
    found = list[str]()
    for device in ("cpu", "cuda"):
        rows = capture_function(ops.embedding, device=device)  # type: ignore[arg-type]
        with pytest.raises(BoundsError) as caught:
            rows(X, np.array([1, 77]))
        found.append(str(caught.value))
        assert rows(X, np.array([1, 2])).tobytes() == X[1:3].tobytes()
        with pytest.raises(TapeError):
            capture_function(lambda x: x * float(x.numpy()[0]), device=device)(np.ones(2))  # type: ignore[arg-type]
    assert found[0] == found[1]
    with pytest.raises(DomainError, match="device: expected 'cpu' or 'cuda', got 'tpu'"):
        capture_function(ops.exp, device="tpu")  # type: ignore[arg-type]


@pytest.mark.long
def test_evaluation_and_prediction_between_steps() -> None:
    train, test = digits()
    found = []
    for device in ("cpu", "cuda"):
        trainer = Trainer(loss_fn, MODEL.init(0), Adam(1e-2), ema=0.5, device=device)  # type: ignore[arg-type]
        figures = list[Any]()
        for steps in (1, 2):
            result = trainer.fit(train.batches(16, seed=0), steps=steps, validation=test.batches(64), validate_every=1)
            data = test.batches(100)
            figures += [trainer.evaluate(data), trainer.evaluate(data, "half"), trainer.evaluate(data, model=MODEL)]
            figures.append(trainer.evaluate(data, "accuracy", MODEL, averages=True))
            figures.append(trainer.predict(X, model=MODEL, batch=4).tobytes())
            figures.append(result.history.to_dict() if hasattr(result.history, "to_dict") else None)
            trainer.params["2.bias"][0] += 1
            figures.append(trainer.evaluate(data))
        found.append((figures, result.state_digest))
    assert found[0] == found[1]


def test_nothing_is_brought_to_the_host_for_an_evaluation(host_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = digits()
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(1e-2), device="cuda")
    batches = [batch for batch, _ in zip(test.batches(64), range(2), strict=False)]
    trainer.evaluate(batches)
    trainer.fit(train.batches(16, seed=0), steps=1)
    sizes = list[int]()
    download = type(host_gpu).download
    monkeypatch.setattr(type(host_gpu), "download", lambda self, a, at: (sizes.append(a.nbytes), download(self, a, at)))
    trainer.evaluate(batches)
    assert sizes == [4] * 4, "the loss and the metric of two batches"


# ------------------------------------------------------------------ verification

BATCH = (X, np.array([1, 2, 3, 4, 5, 6]))


def test_a_step_on_a_gpu_is_verified_there_and_stays_as_it_is() -> None:
    step = capture(loss_fn, MODEL.init(0), Adam(1e-2), BATCH, device="cuda")
    step(BATCH)
    before = step.digest()
    report = step.verify(2)
    assert report.ok, str(report)
    names = [check.name for check in report.checks]
    here = [check.name for check in step.on("cpu").verify(1).checks]
    assert [name for name in here if name not in names] == ["bound table", "identity", "allocation"]
    assert step.digest() == before


def test_an_op_that_has_other_bits_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    step = capture(loss_fn, MODEL.init(0), SGD(0.1), BATCH, device="cuda")
    launches = CudaBound._launches

    def without_tanh(self: Any, i: int, op: Any) -> Any:
        return [] if any(kernel.name == "tanh" for kernel in op.kernels) else launches(self, i, op)

    monkeypatch.setattr(CudaBound, "_launches", without_tanh)
    report = step.verify(1)
    (found,) = [check for check in report.checks if check.name == "executed trace"]
    assert not found.held and "node" in found.detail and "(tanh): element [0, 0]: expected" in found.detail


def test_a_step_goes_to_another_device_with_its_state_and_batch() -> None:
    step = capture(loss_fn, MODEL.init(0), Adam(1e-2), BATCH)
    step(BATCH)
    there = step.on("cuda")
    assert there.device == "cuda" and there.digest() == step.digest()
    assert there.replay(2).tolist() == step.replay(2).tolist() and there.digest() == step.digest()
    assert there.on("cpu").digest() == step.digest()
