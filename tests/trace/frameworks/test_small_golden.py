"""Golden files with a tolerance that fit in a repository: sketches in the place of values, and what they find."""

from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Comparison, compare, open_trace, record_torch
from dgrr.trace.comparing.policy import Policy
from dgrr.trace.golden.keeping import keep
from dgrr.trace.golden.marker import marker_of
from dgrr.trace.golden.recording import GoldenRecording

from .gpt import torch, train
from .pytorch_runs import network, sgd, train as train_small

nn = torch.nn
POLICY = "rtol=1e-4,atol=1e-6"


def golden(path: Path, **wanted: Any) -> Any:
    return GoldenRecording(path, "golden", marker_of([((), wanted)]))


def held(a: Path, b: Path, policy: str = POLICY) -> Comparison:
    """As the plugin holds a run to its golden file."""
    return compare(a, b, policy=policy, proven=True)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("right") / "right.dgrr"
    return path, dict(train(golden(path), steps=12).named_parameters())


WRONG: dict[str, dict[str, Any]] = {
    "rope": {"rope": 10100.0},
    "scale": {"scale": 0.36},
    "mask": {"diagonal": 1},
    "eps": {"eps": 2e-5},
    "learning rate": {"lr": 1.001e-2},
    "clip": {"clip": 0.099},
    "std": {"std": 0.02001},
    "shift": {"shift": True},
    "residual": {"attn_residual": 0.999},
    "gelu": {"gelu": "tanh"},
    "no zero_grad": {"zeroed": False},
}


@pytest.mark.parametrize("mistake", WRONG)
def test_no_weaker_than_assert_close_on_the_final_params(right: Any, tmp_path: Path, mistake: str) -> None:
    path, params = right
    found = dict(train(golden(tmp_path / "wrong.dgrr"), steps=12, **WRONG[mistake]).named_parameters())
    with pytest.raises(AssertionError):
        torch.testing.assert_close(found, params)
    assert not held(path, tmp_path / "wrong.dgrr")


def test_other_roundings_pass_and_what_was_not_compared_is_said_first(right: Any, tmp_path: Path) -> None:
    train(golden(tmp_path / "fused.dgrr"), steps=12, fused=True)
    found = held(right[0], tmp_path / "fused.dgrr")
    assert found
    first = str(found).splitlines()[0]
    assert first.startswith(
        f"ok: equal within {POLICY.replace('1e-4', '0.0001').replace('1e-6', '1e-06')}: 12 steps; not"
    )
    assert "not compared, as no values are recorded there: " in found.sentence
    assert "not compared" not in held(right[0], right[0]).sentence
    assert found.uncompared > 0 == held(right[0], right[0]).uncompared


def test_what_was_not_compared_is_said_in_pytests_line(right: Any, tmp_path: Path) -> None:
    """Without opening anything: ``dgrr: 1 verified in part``."""
    train(golden(tmp_path / "fused.dgrr"), steps=12, fused=True)
    policy, kept = Policy.parse(POLICY), tmp_path / "kept.dgrr"
    assert keep(kept, right[0], policy, "all", write_missing=True) == "written"
    assert keep(kept, right[0], policy, "none", write_missing=False) == "verified"
    assert keep(kept, tmp_path / "fused.dgrr", policy, "none", write_missing=False) == "verified in part"


def test_the_final_state_is_compared_with_its_distance(right: Any, tmp_path: Path) -> None:
    """A change of the very last update, which no loss and no gradient shows."""
    recording = golden(tmp_path / "wrong.dgrr")
    keep = recording.open_recorder

    def opened(run: Any) -> Any:
        recorder = keep(run)
        step = recorder.step

        def changed(done: Any) -> None:
            if done.step == 11:
                done.params["ln_f.weight"] += 1e-3
            step(done)

        recorder.step = changed
        return recorder

    recording.open_recorder = opened
    train(recording, steps=12)
    found = held(right[0], tmp_path / "wrong.dgrr")
    assert not found
    (tensor,) = found.tensors
    assert (tensor.name, tensor.what) == ("ln_f.weight", "after") and tensor.apart is not None
    assert 1e-3 / 1.6 < tensor.apart < 1e-3 * 1.6
    assert f"relatively about {tensor.apart:.2g} apart as a whole, by sketches" in str(found)


def test_a_golden_file_of_values_and_one_of_sketches_are_compared(right: Any, tmp_path: Path) -> None:
    from dgrr.trace import Keep

    train(Keep(tmp_path / "values.dgrr", record="full"), steps=12)
    assert held(tmp_path / "values.dgrr", right[0])
    train(Keep(tmp_path / "far.dgrr", record="full"), steps=12, scale=0.36)
    assert not held(tmp_path / "far.dgrr", right[0])


@pytest.mark.parametrize("policy", [POLICY, "bitwise"])
def test_fifty_steps_are_small(tmp_path: Path, policy: str) -> None:
    path = tmp_path / "golden.dgrr"
    train(golden(path, policy=policy), steps=50)
    with open_trace(path) as trace:
        tensors = len(trace.schema.tensors)
        assert trace.header.mode.name == "BARE" and trace.ops(0) is not None
    assert path.stat().st_size < 600 * 50 + 500 * tensors  # with the number of tensors, not with their size


def test_calls_of_the_first_step_stand_for_its_layers_and_are_small(tmp_path: Path) -> None:
    sizes = dict[str, int]()
    for name, policy in (("a", "drift"), ("b", "drift"), ("plain", "bitwise")):
        train(golden(tmp_path / name, policy=policy), steps=2)
        sizes[name] = (tmp_path / name).stat().st_size
    with open_trace(tmp_path / "a") as trace:
        calls = len(trace.calls(0))
        assert calls > 500 and not trace.calls(1) and trace.ops(0) is None
    assert sizes["a"] < sizes["plain"] + 20 * calls
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_small_model_has_its_values_too(tmp_path: Path) -> None:
    for name, by in (("a", 0.0), ("b", 1e-3)):
        model = network()
        with torch.no_grad():
            model[0].bias += by
        train_small(golden(tmp_path / f"{name}.dgrr"), sgd, model=model)
    found = held(tmp_path / "a.dgrr", tmp_path / "b.dgrr")
    assert not found and any(tensor.recorded for tensor in found.tensors)


def nudged(path: Path, policy: Any, by: float) -> None:
    """A golden file of a run in which something besides the optimizer changes a param before the last update."""
    model = nn.Sequential(nn.Linear(20, 64), nn.Linear(64, 4))
    optimizer, draw = torch.optim.AdamW(model.parameters()), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for param in model.parameters():
            param.copy_(torch.rand(param.shape, generator=draw))
    with record_torch(model, optimizer, golden(path, policy=policy)) as run:
        for step in range(3):
            optimizer.zero_grad()
            run.loss(model(torch.rand(8, 20, generator=draw)).square().mean()).backward()
            with torch.no_grad():
                model[1].bias += by * (step == 2)
            optimizer.step()


@pytest.mark.parametrize("policy", ["bitwise", POLICY, "ulp=64", {"*.bias": "ulp=64", "*": "rtol=1e-3"}, "drift"])
def test_the_final_state_is_compared_whatever_the_policy(tmp_path: Path, policy: Any) -> None:
    for name, by in (("a", 0.0), ("b", 1e-2)):
        nudged(tmp_path / name, policy, by)
    found = held(tmp_path / "a", tmp_path / "b", policy)
    assert found.verdict.value == "diverged" and [tensor.name for tensor in found.tensors] == ["1.bias"]
    with open_trace(tmp_path / "a") as trace:
        assert trace.header.mode.name == "BARE"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({}, "ok: equal to the bit: 2 steps"),
        ({"foreach": True}, "ok: equal to the bit: 2 steps"),
        (
            {"dropout": 0.1000001},
            "diverged (model): step 0 is the first that differs: its results are equal, but not what they are made of; "
            "earliest aten.bernoulli_.float called with p 0.9 -> 0.8999999, blocks.0.mlp.drop ",
        ),
    ],
)
def test_calls_are_held_to_each_other_where_results_are_equal(tmp_path: Path, made: dict[str, Any], said: str) -> None:
    for name, mistake in (("a", {}), ("b", made)):
        train(golden(tmp_path / name, policy="drift"), steps=2, **mistake)
    assert str(held(tmp_path / "a", tmp_path / "b", "drift")).replace("\n  ", " ").startswith(said)


def test_a_golden_of_calls_serves_a_compiled_model(tmp_path: Path) -> None:
    def stands_for_compiled(model: Any) -> Any:
        return torch.compile(model, backend="eager")

    train(golden(tmp_path / "a", policy="drift"), steps=1)
    train(golden(tmp_path / "b", policy="drift"), steps=1, wrapped=stands_for_compiled)
    for one, other in ("ab", "ba"):
        found = held(tmp_path / one, tmp_path / other, "drift")
        assert found and found.sentence.endswith("not compared, as one run is compiled: the layers of 1 steps")
