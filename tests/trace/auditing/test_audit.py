"""Audits of honest and of forged runs: what is computed, what is found, and that nothing else decides it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.trace import AuditError, NotRecordedError, Verdict, audit, open_trace
from dgrr.trace.auditing.examine import Examiner, UnitStretch
from dgrr.trace.auditing.units import Units
from dgrr.trace.replaying import recomputed
from dgrr.trace.v2.format.digest import Algorithm, state_root, tensor_digest
from dgrr.trace.v2.repair.forge import flip_bit, forge_gradient

from ...fuzz.surgery import KEYFRAME, SEAL, File
from .runs import BATCHES, KEYFRAMES, NONCE, STEPS, Counting, Made, loss_fn


@pytest.mark.parametrize("mode", ["digest", "grads", "full"])
@pytest.mark.parametrize("state_every", [1, 4])
def test_an_honest_run_passes(run: Made, mode: str, state_every: int) -> None:
    path, counting = run(record=mode, state_every=state_every), Counting()
    found = audit(path, counting, BATCHES, sample=3, nonce=NONCE)
    assert found.ok and found.complete and found.exit_code == 0 and found
    assert len(found.sample) == 3 and len(set(found.sample)) == 3
    assert found.notes[0].startswith(f"{counting.calls} of {STEPS} steps computed, from ")
    units = Units(STEPS, state_every)
    if mode == "digest":
        last = {units[u].start // KEYFRAMES: units[u].stop for u in sorted(found.sample)}
        assert counting.calls == sum(stop - KEYFRAMES * start for start, stop in last.items())
    else:
        assert counting.calls == sum(len(units[unit]) for unit in found.sample)


def test_without_other_states_it_is_computed_from_the_beginning(run: Made) -> None:
    path, counting = run(keyframe_every=4096), Counting()
    found = audit(path, counting, BATCHES, sample=2, nonce=NONCE)
    assert found and counting.calls == max(found.sample) + 1
    assert found.notes[0] == f"{counting.calls} of {STEPS} steps computed, from 1 recorded states"


def test_a_sample_of_more_than_there_are_is_all(run: Made) -> None:
    counting = Counting()
    found = audit(run(), counting, BATCHES, sample=1000)
    assert found and sorted(found.sample) == list(range(STEPS)) and counting.calls == STEPS
    assert len(found.nonce) == 16 and found.nonce != audit(run(), loss_fn, BATCHES).nonce


def test_a_run_without_steps(run: Made) -> None:
    found = audit(run(steps=0), loss_fn, BATCHES)
    assert found and found.sample == [] and found.to_dict()["claims"] == []


def of_every_unit(path: Path, *, together: bool) -> list[Any]:
    """What is found in each unit, examined with the others of its stretch or alone; prepared steps find the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recomputed, "WORTH", 0)
        fast, slow = (_of_every_unit(path, mode, together=together) for mode in ("replay", "eager"))
    assert fast == slow
    return fast


def _of_every_unit(path: Path, mode: Any, *, together: bool) -> list[Any]:
    with open_trace(path) as trace:
        units = Units(len(trace), trace.header.state_every)
        found: dict[int, Any] = {}
        nearest = [trace.last_keyframe(units[unit].start) for unit in range(len(units))]
        for keyframe in sorted(set(nearest)):
            chosen = tuple(unit for unit, its in enumerate(nearest) if its == keyframe)
            for some in [chosen] if together else [(unit,) for unit in chosen]:
                examiner = Examiner(trace, loss_fn, BATCHES, (), mode)
                found.update(examiner.examined(units, UnitStretch(keyframe, some)))
    return [found[unit] for unit in range(len(units))]


@pytest.mark.parametrize("forged", [0, 3, 4, 6, 11, 12])
def test_a_forged_state_is_found_from_its_step_to_the_next_keyframe(run: Made, forged: int) -> None:
    for mode in ("digest", "grads"):
        found = of_every_unit(run(record=mode, state=(forged,)), together=True)
        spoilt = [step for step in range(STEPS) if step >= forged and step // KEYFRAMES == forged // KEYFRAMES]
        assert [step for step, finding in enumerate(found) if finding is not None] == spoilt
        for step in spoilt:
            assert (found[step].verdict, found[step].step, found[step].tensor) == (Verdict.UPDATE, forged, "w")
            assert found[step].text == "the recorded state is not what the rule makes of the gradients"


@pytest.mark.parametrize("forged", [0, 3, 6, 12])
def test_a_forged_gradient_is_found(run: Made, forged: int) -> None:
    """With recorded gradients, in its own step alone: what follows from it is applied on the way to the others."""
    found = of_every_unit(run(record="grads", gradient=(forged,)), together=True)
    assert [step for step, finding in enumerate(found) if finding is not None] == [forged]
    assert (found[forged].verdict, found[forged].step, found[forged].tensor) == (Verdict.GRADIENT, forged, "loss")
    found = of_every_unit(run(gradient=(forged,)), together=True)
    spoilt = [step for step in range(STEPS) if step >= forged and step // KEYFRAMES == forged // KEYFRAMES]
    assert [step for step, finding in enumerate(found) if finding is not None] == spoilt


def test_a_digest_that_was_altered_afterwards_is_found(run: Made, folder: Path) -> None:
    forge_gradient(run(), folder / "altered", 6, "w")
    found = of_every_unit(folder / "altered", together=True)
    assert [step for step, finding in enumerate(found) if finding is not None] == [6, 7]
    assert found[6].verdict is Verdict.GRADIENT
    assert not audit(folder / "altered", loss_fn, BATCHES, sample=STEPS)


@pytest.mark.parametrize("forged", [1, 5, 12])
def test_a_unit_of_several_steps_is_one(run: Made, forged: int) -> None:
    """States are digested after every fourth step and at the end: the unit of the forged step is found, and no other,
    since another state is recorded behind it."""
    for mode in ("digest", "grads"):
        found = of_every_unit(run(record=mode, state_every=4, state=(forged,)), together=True)
        assert [unit for unit, finding in enumerate(found) if finding is not None] == [forged // 4]


@pytest.mark.parametrize(
    "options",
    [
        {"state": (2, 5, 9)},
        {"gradient": (2, 5, 9)},
        {"state": (6,), "gradient": (5, 10), "record": "grads"},
        {"state": (9,), "gradient": (1, 5, 7), "record": "grads", "state_every": 4},
        {"state": (9,), "gradient": (1, 5), "state_every": 2},
    ],
)
def test_what_is_found_does_not_depend_on_the_other_units(run: Made, options: dict[str, Any]) -> None:
    path = run(**options)
    together = of_every_unit(path, together=True)
    assert together == of_every_unit(path, together=False)
    assert any(together) and not all(together)


def test_a_step_behind_others_that_are_applied_is_found_as_op_by_op(run: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step 1 is captured, step 2 applied, and step 3, which is another one, done again from the state before it."""
    monkeypatch.setattr(recomputed, "WORTH", 0)
    found = list[Any]()
    with open_trace(run(record="grads", gradient=(3,))) as trace:
        for mode in ("replay", "eager"):
            examiner = Examiner(trace, loss_fn, BATCHES, (), mode)  # type: ignore[arg-type]
            found.append(dict(examiner.examined(Units(STEPS, 1), UnitStretch(0, (1, 3)))))
    assert found[0] == found[1]
    assert found[0][1] is None and found[0][3].tensor == "loss"


def test_the_first_of_several_in_a_unit_is_told(run: Made) -> None:
    found = of_every_unit(run(record="grads", gradient=(5, 7), state=(6,), state_every=4), together=True)
    assert [finding and (finding.verdict, finding.step) for finding in found] == [
        None,
        (Verdict.GRADIENT, 5),
        None,
        None,
    ]


def test_another_model_and_other_data(run: Made) -> None:
    found = audit(run(), lambda p, x: loss_fn(p, x) * 2.0, BATCHES, nonce=NONCE)
    assert (found.verdict, found.exit_code, bool(found)) == (Verdict.GRADIENT, 5, False)
    assert found.finding is not None and (found.finding.step, found.finding.tensor) == (0, "loss")
    assert "gradient: step 0, 'loss': element []: recorded " in str(found) and "probability" not in str(found)
    found = audit(run(), loss_fn, BATCHES[::-1], nonce=NONCE)
    assert (found.verdict, found.exit_code) == (Verdict.DATA, 5)
    found = audit(run(), loss_fn, BATCHES[:0], nonce=NONCE)
    assert found.finding is not None and found.finding.text.startswith("there are no more batches; ")

    def broken() -> Any:
        raise ValueError("no disk")
        yield

    found = audit(run(), loss_fn, broken(), nonce=NONCE)
    assert found.finding is not None and found.finding.text == "the batches cannot be read: ValueError: no disk"


def test_bias_corrections_are_held_too(run: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgrr.trace.replaying.replay_state.ReplayState.corrections", lambda self: (0.5,))
    found = audit(run(), loss_fn, BATCHES, sample=1)
    assert found.finding is not None and found.finding.text.startswith("bias corrections: recorded ")


def test_an_end_that_is_not_recorded_is_unproven(run: Made, tmp_path: Path) -> None:
    """A SEAL without the final state, behind a step after which no state was due."""
    file = File.parse(run(state_every=4, keyframe_every=8).read_bytes())
    seal, size = file.frames[-1], file.digest_size
    assert seal.kind == SEAL and seal.front[8] == 1
    with open_trace(run(state_every=4, keyframe_every=8)) as trace:
        final = size * (len(trace.schema.tensors) + 1)
    fixed, behind = 16 + size, 16 + size + final
    seal.front = seal.front[:8] + bytes(4) + seal.front[12:fixed] + seal.front[behind:]
    (tmp_path / "open").write_bytes(file.encode())
    found = of_every_unit(tmp_path / "open", together=True)
    assert found[:3] == [None] * 3
    assert (found[3].verdict, found[3].step) == (Verdict.UNPROVEN, 12)
    assert found[3].text == "no state is recorded after steps 12 to 12: their updates are not proven"
    assert audit(tmp_path / "open", loss_fn, BATCHES).exit_code == 6


def test_a_keyframe_that_does_not_follow_from_its_step(run: Made, tmp_path: Path) -> None:
    """Validation says so first; whoever examines without it is told too."""
    file = File.parse(run().read_bytes())
    frame = [frame for frame in file.frames if frame.kind == KEYFRAME][1]
    weights = np.frombuffer(frame.body[:32], np.float64).copy()
    weights[0] += 1
    frame.body = weights.tobytes() + frame.body[32:]
    with open_trace(run()) as trace:
        count = len(trace.schema.tensors) + 1
    start = len(frame.front) - 16 * count
    inside = [frame.front[start + 16 * i :][:16] for i in range(count - 1)]
    inside[0] = tensor_digest(Algorithm.XXH3_128, weights)
    frame.front = frame.front[:start] + b"".join(inside) + state_root(Algorithm.XXH3_128, inside)
    (tmp_path / "spliced").write_bytes(file.encode())
    with pytest.raises(AuditError, match="audit: chain: the root of KEYFRAME 4 is not that of STEP 3"):
        audit(tmp_path / "spliced", loss_fn, BATCHES)
    with open_trace(tmp_path / "spliced") as trace:
        found = dict(Examiner(trace, loss_fn, BATCHES, ()).examined(Units(STEPS, 1), UnitStretch(4, (5, 6))))
    assert found[5] == found[6] and found[5] is not None
    assert str(found[5]) == "update: step 3, 'w': the keyframe behind it holds another state"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sample": 10_001}, "audit: argument 'sample': expected 1 to 10000 units, got 10001; replay computes all"),
        ({"sample": -1}, "audit: argument 'sample': expected 1 to 10000 units, got -1; replay computes all"),
        ({"nonce": b""}, "audit: argument 'nonce': expected 1 to 64 bytes, got 0"),
        ({"nonce": bytes(65)}, "audit: argument 'nonce': expected 1 to 64 bytes, got 65"),
        ({"jobs": 0}, "audit: argument 'jobs': expected at least 1, got 0"),
        ({"rules": ["sgd"]}, "replay: rules: expected classes of rules"),
    ],
)
def test_arguments_that_are_refused(run: Made, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        audit(run(), loss_fn, BATCHES, **options)


def test_traces_that_are_not_audited(run: Made, folder: Path) -> None:
    data = run().read_bytes()
    flip_bit(run(), folder / "flipped", len(data) // 2, 3)
    (folder / "cut").write_bytes(data[:-9])
    for path, verdict in ((folder / "flipped", Verdict.CORRUPT), (folder / "cut", Verdict.TORN_TAIL)):
        with pytest.raises(AuditError, match=f"^audit: {verdict.value}: ") as caught:
            audit(path, loss_fn, BATCHES)
        assert caught.value.finding.verdict is verdict
    with pytest.raises(AuditError, match="audit: numerics: recorded under numerics version 99, this library has"):
        audit(run(numerics=99), loss_fn, BATCHES)
    with pytest.raises(NotRecordedError, match="audit: a trace of record mode 'bare' holds no states to start from"):
        audit(run(record="bare"), loss_fn, BATCHES)
    with pytest.raises(AuditError, match="audit: data: seed: expected 5, the trace says 0"):
        audit(run(), loss_fn, BATCHES, seed=5)
    with pytest.raises(AuditError, match="audit: numerics: numerics version: expected 7, the trace says "):
        audit(run(), loss_fn, BATCHES, numerics=7)


def test_a_run_of_a_trainer_as_users_have_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    trainer = Trainer(loss_fn, {"w": np.ones(4)}, SGD(0.001), trace=Keep(path, record="digest", keyframe_every=5))
    trainer.fit(BATCHES, steps=12, progress=False)
    found = audit(path, loss_fn, BATCHES, sample=4, nonce=NONCE)
    assert found and "XXH3-128, stop no forger" in found.notes[-1]
    text = str(found)
    assert text.splitlines()[0] == f"{path}: ok, 4 of 4 steps computed, of 12 there are"
    assert "    one step  0.666667  (1 of 12 steps)" in text


def test_digests_of_sha256_need_no_note(run: Made) -> None:
    found = audit(run(digest="sha256"), loss_fn, BATCHES, sample=2)
    assert found and len(found.trace.root) == 64 and len(found.notes) == 1
