"""Steps of a GPU that the CPU recomputes; the GPU is this machine, the code that of a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, NonFiniteError, Trainer, WitnessError
from dgrr.runtime.cuda.bind import CudaBound
from dgrr.runtime.training.witness import Witness
from dgrr.tape import DomainError, nn, ops
from dgrr.trace import UnsealedTraceWarning, open_trace

pytestmark = [pytest.mark.usefixtures("host_gpu"), pytest.mark.xdist_group("cuda")]

MODEL = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.BatchNorm(3), nn.Dropout(0.5), nn.Linear(3, 2))
RNG = np.random.default_rng(0)
BATCHES = [(RNG.standard_normal((5, 4)).astype(np.float32), RNG.integers(0, 2, 5)) for _ in range(12)]


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    x, labels = batch
    return ops.cross_entropy(MODEL(p, x, ctx), labels), ctx.state


def trainer(witness: float | None, **options: Any) -> Trainer:
    given: dict[str, Any] = {"model_state": MODEL.init_state(), "device": "cuda", "seed": 3, **options}
    return Trainer(loss_fn, MODEL.init(0), Adam(0.1), witness=witness, **given)


def flips(monkeypatch: pytest.MonkeyPatch, name: str, step: int) -> None:
    """Have the GPU flip a bit of a parameter behind a step."""
    run, steps = CudaBound.run, list[int]()

    def flipping(self: CudaBound, *taken: Any) -> None:
        run(self, *taken)
        if self._trains:
            if len(steps) == step:
                (id,) = [v.id for v in self.plan.program.graph.values.values() if v.name == name]
                self._mirror.show()
                self._outside[id].reshape(-1).view(np.uint8)[5] ^= 1
            steps.append(0)

    monkeypatch.setattr(CudaBound, "run", flipping)


def test_a_run_that_is_right_is_what_it_is_without_a_witness() -> None:
    runs = [trainer(share, clip_norm=1.0, ema=0.9) for share in (None, 0.4, 1.0)]
    digests = {made.fit(BATCHES).state_digest for made in runs}
    assert len(digests) == 1
    drawn = [k for k in range(12) if runs[1]._run.runner.witness.draws(k)]  # type: ignore[union-attr]
    assert runs[0].witnessed == [] and runs[1].witnessed == drawn and runs[2].witnessed == list(range(12))
    assert 1 < len(drawn) < 11


def test_who_is_drawn_follows_from_seed_and_number() -> None:
    def drawn(seed: int, share: float) -> list[int]:
        witness = Witness(trainer(None, seed=seed)._run.runner.step, share)  # type: ignore[arg-type]
        return [k for k in range(2000) if witness.draws(k)]

    few, many = drawn(3, 0.05), drawn(3, 0.5)
    assert few == drawn(3, 0.05) and set(few) < set(many) and few != drawn(4, 0.05)
    assert abs(len(few) - 100) < 50 and abs(len(many) - 1000) < 120


@pytest.mark.parametrize(("name", "kind"), [("0.weight", "parameter"), ("m/4.bias", "state")])
def test_a_flipped_bit_is_named_with_its_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, kind: str
) -> None:
    made = trainer(1.0, trace=tmp_path / "run.dgrr")
    flips(monkeypatch, name, 4)
    with pytest.raises(WitnessError) as caught:
        made.fit(BATCHES)
    text = str(caught.value)
    assert text.startswith(f"fit: step 4: expected the CPU's bits on 'cuda', got others: {kind} {name!r}: element [")
    assert text.endswith("go on from a checkpoint before this step, on another GPU or with device='cpu'")
    assert made.witnessed == [0, 1, 2, 3] and made.steps in (5, 6)
    with pytest.warns(UnsealedTraceWarning), open_trace(tmp_path / "run.dgrr") as trace:
        assert len(trace.loss) == made.steps


def test_the_last_step_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    flips(monkeypatch, "4.bias", 11)
    with pytest.raises(WitnessError, match="fit: step 11: "):
        trainer(1.0).fit(BATCHES)


def test_steps_that_are_not_drawn_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(0.4)
    missed = next(k for k in range(12) if not made._run.runner.witness.draws(k))  # type: ignore[union-attr]
    flips(monkeypatch, "4.bias", missed)
    made.fit(BATCHES)


def test_what_a_wrong_step_leads_to_is_said_of_that_step(monkeypatch: pytest.MonkeyPatch) -> None:
    run, steps = CudaBound.run, list[int]()

    def breaking(self: CudaBound, *taken: Any) -> None:
        run(self, *taken)
        steps.append(0)
        if len(steps) == 3:
            (id,) = [v.id for v in self.plan.program.graph.values.values() if v.name == "0.weight"]
            self._mirror.show()
            self._outside[id][:] = np.inf

    monkeypatch.setattr(CudaBound, "run", breaking)
    with pytest.raises(WitnessError, match=r"fit: step 2: .* parameter '0.weight': element \[0, 0\]: expected .* inf"):
        trainer(1.0).fit(BATCHES)
    steps.clear()
    with pytest.raises(NonFiniteError):
        trainer(None).fit(BATCHES)


def test_what_is_refused() -> None:
    with pytest.raises(DomainError, match=r"argument 'witness': expected a share of the steps above 0 and up to 1, or"):
        trainer(1.5)
    with pytest.raises(DomainError, match=r"'witness': expected None with the device 'cpu', which would vouch for its"):
        trainer(0.5, device="cpu")
