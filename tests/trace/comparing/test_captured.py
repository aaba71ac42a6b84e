"""Runs computed now as captured steps: what is said of them is what is said of the same op by op."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Keep, Trainer
from dgrr.tape import ops
from dgrr.trace import Cause, Comparison, bisect_with_model, diff_with_model, open_trace
from dgrr.trace.replaying import recomputed
from dgrr.trace.replaying.execution import Execution
from dgrr.trace.v2.format.digest import state_root

from ...fuzz.surgery import File

STEPS = 90
RNG = np.random.default_rng(3)
BATCHES = [(RNG.standard_normal((4, 3)), RNG.standard_normal((4, 2))) for _ in range(STEPS)]


def loss_fn(p: Any, batch: Any) -> Any:
    return ops.mse_loss(ops.linear(batch[0], p["w"], p["b"]), batch[1])


def other_from(first: int) -> Callable[..., Any]:
    """What computes another loss from a step on."""

    def other(p: Any, batch: Any, ctx: Any) -> Any:
        return loss_fn(p, batch) * (ops.cast(ctx.step >= first, "float64") + 1.0)

    return other


def train(path: Path, *, ops: Any = None, state_every: int | None = None, **options: Any) -> Path:
    keep = Keep(path, ops=ops, state_every=state_every, **options)
    params = {"w": np.full((2, 3), 0.1), "b": np.zeros(2)}
    Trainer(loss_fn, params, Adam(0.01), trace=keep, mode="eager").fit(BATCHES, progress=False)
    return path


@pytest.fixture
def by_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are computed op by op."""
    made, real = list[int](), Execution.compute

    def noted(self: Execution, view: Any, *more: Any) -> Any:
        made.append(view.step)
        return real(self, view, *more)

    monkeypatch.setattr(Execution, "compute", noted)
    return made


def said(compared: Callable[..., Comparison], path: Path, loss_fn: Any, batches: Any = BATCHES) -> Comparison:
    """What is said of captured steps, which is what is said op by op but for notes on what was read."""
    fast = compared(path, loss_fn, batches)
    slow = compared(path, loss_fn, batches, mode="eager")
    assert fast.to_dict() | {"notes": []} == slow.to_dict() | {"notes": []}
    return fast


COMPARED = [diff_with_model, bisect_with_model]


@pytest.mark.parametrize("compared", COMPARED)
@pytest.mark.parametrize("options", [{}, {"record": "digest", "digest": "sha256"}, {"state_every": 16}])
def test_the_same_model(compared: Any, tmp_path: Path, by_parts: list[int], options: dict[str, Any]) -> None:
    path = train(tmp_path / "t", **options)
    found = compared(path, loss_fn, BATCHES)
    assert found.same and by_parts == []
    assert found.notes[-1].startswith("every step was computed")
    said(compared, path, loss_fn)


@pytest.mark.parametrize("compared", COMPARED)
@pytest.mark.parametrize("first", [0, 1, 63, 64, 70, STEPS - 1])
@pytest.mark.parametrize(("state_every", "kept"), [(1, 64), (24, 72)])
def test_another_model(
    compared: Any, tmp_path: Path, by_parts: list[int], first: int, state_every: int, kept: int
) -> None:
    """From the last state that was kept it is computed op by op: that behind 64 steps, or where a state is digested."""
    path = train(tmp_path / "t", state_every=state_every, record="digest")
    found = compared(path, other_from(first), BATCHES)
    assert (found.cause, found.step) == (Cause.GRADIENT, first)
    assert by_parts == [*range(first // kept * kept, first + 1)]
    assert found.losses is not None
    said(compared, path, other_from(first))


def test_the_op_is_named(tmp_path: Path) -> None:
    path = train(tmp_path / "t", ops="every")
    found = said(diff_with_model, path, other_from(70))
    assert (found.cause, found.step) == (Cause.MODEL, 70)


def test_another_batch_and_too_few(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    found = said(diff_with_model, path, loss_fn, [*BATCHES[:70], *BATCHES[71:], BATCHES[70]])
    assert (found.cause, found.step) == (Cause.DATA, 70)
    fast, slow = (diff_with_model(path, loss_fn, iter(BATCHES[:70]), mode=mode) for mode in ("replay", "eager"))
    assert (fast.cause, fast.step, fast.sentence) == (Cause.DATA, 70, slow.sentence)


def test_another_start(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    moved = {"w": np.full((2, 3), 0.1), "b": np.ones(2)}
    assert diff_with_model(path, loss_fn, BATCHES, params=moved).cause is Cause.START


def test_a_model_that_cannot_be_captured(tmp_path: Path, by_parts: list[int]) -> None:
    path = train(tmp_path / "t")

    def branches(p: Any, batch: Any) -> Any:
        loss = loss_fn(p, batch)
        return loss * 1.0 if loss.item() > 1.0 else loss

    assert said(diff_with_model, path, branches).same
    assert by_parts == 2 * [*range(STEPS)]


def test_a_short_run_is_computed_op_by_op(tmp_path: Path, by_parts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recomputed, "WORTH", STEPS + 1)
    assert diff_with_model(train(tmp_path / "t"), loss_fn, BATCHES).same
    assert by_parts == [*range(STEPS)]


@pytest.mark.parametrize("compared", COMPARED)
def test_another_mode_is_refused(compared: Any, tmp_path: Path) -> None:
    text = f"^{compared.__name__}: mode: expected 'replay' or 'eager', got 'fast'$"
    with pytest.raises(ValueError, match=text):
        compared(tmp_path / "t", loss_fn, BATCHES, mode="fast")


def test_a_final_state_that_is_another(tmp_path: Path) -> None:
    """Of a run whose last step has no digests of the state, those of the SEAL."""
    path = train(tmp_path / "t", state_every=16)
    with open_trace(path) as trace:
        assert trace.seal is not None
        digests, size = [*trace.seal.final[:-1]], trace.layout.digest_size
        digests[0] = bytes(size)
        final = b"".join(digests) + state_root(trace.header.algorithm, digests)
    file = File.parse(path.read_bytes())
    seal = file.frames[-1]
    at = 16 + size
    seal.front = seal.front[:at] + final + seal.front[at + len(final) :]
    (tmp_path / "f").write_bytes(file.encode())
    found = said(diff_with_model, tmp_path / "f", loss_fn)
    assert (found.cause, found.step) == (Cause.UPDATE, STEPS - 1)
    assert found.sentence.startswith("all 90 steps are equal, but not the final state: a tensor differs, first 'w'")
