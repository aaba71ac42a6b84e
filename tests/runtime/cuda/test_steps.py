"""Steps on a GPU, to the bit what the CPU gives; the GPU is this machine, the code that of a GPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgrr.runtime.captured.profile as profile_module
import dgrr.runtime.cuda.measure as measure
from dgrr.runtime import SGD, Adam, AdamW, CapturedStep, Trainer, capture
from dgrr.runtime.data import digits
from dgrr.tape import BoundsError, DomainError, NonFiniteError, nn, ops
from dgrr.trace import open_trace, replay

pytestmark = [pytest.mark.usefixtures("host_gpu"), pytest.mark.xdist_group("cuda")]

MLP = nn.Sequential(nn.Linear(64, 12), nn.GELU(), nn.LayerNorm(12), nn.Linear(12, 10))
CNN = nn.Sequential(
    nn.Conv(1, 3, (3, 3), padding=1), nn.BatchNorm(3), nn.ReLU(), nn.MaxPool((2, 2)), nn.Flatten(), nn.Dropout(0.2),
    nn.Linear(48, 10),
)  # fmt: skip
BLOCK = nn.Sequential(nn.TransformerBlock(8, 2, 12, causal=True), nn.Linear(8, 5))


def mlp_loss(p: Any, batch: Any) -> Any:
    images, labels = batch
    return ops.cross_entropy(MLP(p, images), labels)


def cnn_loss(p: Any, batch: Any, ctx: Any) -> Any:
    images, labels = batch
    return ops.cross_entropy(CNN(p, images.reshape((-1, 1, 8, 8)), ctx), labels), ctx.state


def block_loss(p: Any, batch: Any, ctx: Any) -> Any:
    x, labels = batch
    y = BLOCK({k: v for k, v in p.items() if k != "table"}, ops.embedding(p["table"], x), ctx)
    return ops.cross_entropy(y.reshape((-1, 5)), labels.reshape((-1,)))


def image_batches(n: int, size: int = 6) -> list[Any]:
    train, _ = digits()
    return [batch for batch, _ in zip(train.batches(size, seed=0), range(n), strict=False)]


def symbol_batches(n: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [(rng.integers(0, 7, (2, 5)), rng.integers(0, 5, (2, 5))) for _ in range(n)]


def block_params() -> dict[str, Any]:
    return {"table": np.random.default_rng(1).standard_normal((7, 8)).astype(np.float32), **BLOCK.init(seed=0)}


def pair(loss_fn: Callable[..., Any], params: Any, rule: Any, batch: Any, **options: Any) -> tuple[CapturedStep, ...]:
    return tuple(capture(loss_fn, params, rule, batch, device=d, **options) for d in ("cpu", "cuda"))  # type: ignore[arg-type]


def test_a_perceptron() -> None:
    batches = image_batches(3)
    cpu, gpu = pair(mlp_loss, MLP.init(seed=0), AdamW(1e-2), batches[0], clip_norm=0.5)
    for batch in batches:
        assert cpu(batch) == gpu(batch)
        assert cpu.norm == gpu.norm and cpu.scale == gpu.scale
        assert cpu.digest() == gpu.digest()
        assert all(np.array_equal(cpu.consumed[name], gpu.consumed[name]) for name in cpu.consumed)


@pytest.mark.long
def test_float64() -> None:
    def loss_fn(p: Any, batch: Any) -> Any:
        return ((batch @ p["w"]).tanh() - 1.0).sum()

    batch, params = np.random.default_rng(0).standard_normal((3, 4)), {"w": np.ones((4, 2))}
    cpu, gpu = pair(loss_fn, params, SGD(0.1), batch)
    for _ in range(2):
        assert cpu(batch) == gpu(batch)
    assert cpu.digest() == gpu.digest()


@pytest.mark.long
def test_a_convolutional_network_with_a_state_and_draws() -> None:
    batches = image_batches(3)
    rule = {"*.bias": SGD(0.1, momentum=0.9), "*": Adam(1e-2)}
    cpu, gpu = pair(cnn_loss, CNN.init(seed=0), rule, batches[0], model_state=CNN.init_state(), seed=5)
    for batch in batches:
        assert cpu(batch) == gpu(batch)
        assert cpu.digest() == gpu.digest()


def test_attention_and_scattered_gradients() -> None:
    batches = symbol_batches(2)
    cpu, gpu = pair(block_loss, block_params(), SGD(0.1), batches[0])
    for batch in batches:
        assert cpu(batch) == gpu(batch)
        assert cpu.digest() == gpu.digest()


@pytest.mark.long
def test_accumulated_steps_of_a_launch() -> None:
    batches = image_batches(4)
    steps = [tuple(batches[:2]), tuple(batches[2:])]
    cpu, gpu = pair(mlp_loss, MLP.init(seed=0), Adam(1e-2), steps[0], accumulate=2, ema=0.5)
    assert cpu.steps(steps).tolist() == gpu.steps(steps).tolist()
    assert cpu.replay(3).tolist() == gpu.replay(3).tolist()
    assert cpu.digest() == gpu.digest()


def test_every_gradient_and_every_value() -> None:
    batch = image_batches(1)[0]
    cpu, gpu = pair(mlp_loss, MLP.init(seed=0), Adam(1e-2), batch)
    for name in MLP.init(seed=0):
        assert np.array_equal(np.asarray(cpu.grads(batch)[name]), np.asarray(gpu.grads(batch)[name]))
    mine, other = cpu.tape(batch), gpu.tape(batch)
    assert all(np.array_equal(a, b) for a, b in zip(mine.values, other.values, strict=True))
    first = np.asarray(gpu.grads(batch)["0.weight"]).copy()
    gpu(batch)
    cpu(batch)
    assert np.array_equal(np.asarray(cpu.grads(batch)["0.weight"]), np.asarray(gpu.grads(batch)["0.weight"]))
    assert not np.array_equal(first, np.asarray(gpu.grads(batch)["0.weight"]))


def test_what_is_shown_may_be_changed() -> None:
    batch = image_batches(1)[0]
    cpu, gpu = pair(mlp_loss, MLP.init(seed=0), Adam(1e-2), batch)
    for step in (cpu, gpu):
        step(batch)
        step.params["0.weight"][...] *= 2
        step(batch)
    assert cpu.digest() == gpu.digest()
    for step in (cpu, gpu):
        kept = step.state_dict()
        step(batch)
        step.load_state_dict(kept)
    assert cpu.digest() == gpu.digest()


def test_the_first_fault_is_reported_and_nothing_is_changed() -> None:
    images, labels = image_batches(1)[0]
    cpu, gpu = pair(mlp_loss, MLP.init(seed=0), Adam(1e-2), (images, labels))
    before = gpu.digest()
    wrong = labels.copy()
    wrong[4] = 77
    found = []
    for step in (cpu, gpu):
        with pytest.raises(BoundsError) as caught:
            step((images, wrong))
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert gpu.digest() == before
    infinite = images.copy()
    infinite[2, 3] = np.inf
    with pytest.raises(NonFiniteError):
        gpu((infinite, labels))
    assert gpu.digest() == before
    assert cpu((images, labels)) == gpu((images, labels))


def test_a_trace_of_a_gpu_is_proven_by_a_cpu(tmp_path: Path) -> None:
    train, test = digits()
    runs, roots = [], []
    for device in ("cpu", "cuda"):
        path = tmp_path / f"{device}.dgrr"
        trainer = Trainer(mlp_loss, MLP.init(seed=0), Adam(1e-2), trace=path, device=device)  # type: ignore[arg-type]
        result = trainer.fit(train.batches(16, seed=0), steps=3)
        runs.append((result.state_digest, trainer.evaluate(test.batches(32), model=MLP)))
        with open_trace(path) as trace:
            roots.append([trace.loss[k] for k in range(3)])
    assert runs[0] == runs[1]
    assert roots[0] == roots[1]
    assert replay(tmp_path / "cuda.dgrr", loss_fn=mlp_loss, batches=train.batches(16, seed=0))


def test_a_checkpoint_goes_on_elsewhere(tmp_path: Path) -> None:
    found = set()
    for begins, ends in (("cpu", "cpu"), ("cuda", "cpu"), ("cpu", "cuda")):
        path, (train, _) = tmp_path / f"{begins}{ends}.ckpt", digits()
        first = Trainer(mlp_loss, MLP.init(seed=0), Adam(1e-2), device=begins)  # type: ignore[arg-type]
        first.fit(train.batches(16, seed=0), steps=2)
        first.save(path)
        other = Trainer(mlp_loss, MLP.init(seed=0), Adam(1e-2), device=ends)  # type: ignore[arg-type]
        other.load(path)
        found.add(other.fit(train.batches(16, seed=0), steps=4).state_digest)
    assert len(found) == 1


def test_other_shapes_are_captured_too() -> None:
    batches = image_batches(1, 6) + image_batches(1, 4)
    cpu, gpu = pair(mlp_loss, MLP.init(seed=0), Adam(1e-2), batches[0])
    for batch in (*batches, batches[0]):
        assert cpu(batch) == gpu(batch)
    assert cpu.digest() == gpu.digest()


def test_what_is_refused() -> None:
    with pytest.raises(DomainError, match=r"device: expected 'cpu' or 'cuda', got 'tpu'"):
        capture(mlp_loss, MLP.init(seed=0), Adam(1e-2), image_batches(1)[0], device="tpu")  # type: ignore[arg-type]
    with pytest.raises(DomainError, match=r"expected mode='replay' and warmup=0 with 'cuda'.*got mode='eager'"):
        Trainer(mlp_loss, MLP.init(seed=0), Adam(1e-2), device="cuda", mode="eager")
    with pytest.raises(DomainError, match=r"got warmup=2"):
        Trainer(mlp_loss, MLP.init(seed=0), Adam(1e-2), device="cuda", warmup=2)


def test_a_profile_says_where_the_time_of_a_gpu_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_module, "REPEATS", 1)
    monkeypatch.setattr(measure, "limits", lambda gpu: (2e9, 1e9))
    (batch,) = image_batches(1)
    params = MLP.init(0)
    step = capture(mlp_loss, params, Adam(0.01), batch, device="cuda")
    before = step.digest()
    found = step.profile(batch)
    assert (found.peak, found.bandwidth) == (2e9, 1e9)
    plan = step.profile(batch).calls
    assert [call.kernel for call in plan] == [call.kernel for call in found.calls]
    assert {"normalize", "cross_entropy_rows_with_grad"} <= {call.kernel for call in found.calls}
    assert all(call.seconds > 0 for call in found.calls if call.nbytes)
    assert step.digest() == before
