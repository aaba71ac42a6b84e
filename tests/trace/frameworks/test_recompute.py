"""Updates that PyTorch made, computed again: how far apart, and what is found where one is not the law's."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.ulp import ulp_distances
from dgrr.trace import InvalidTraceError, recompute, record_torch, replay

from ...keeping import recorder_of
from .pytorch_runs import Made, batches, cross_entropy, network, sgd, torch, train
from .test_pytorch import Factory, two_groups

optim = torch.optim

LAWS: dict[str, Made] = {
    "sgd": sgd,
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.25),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, betas=(0.4, 0.9)),
    "foreach": lambda p: optim.AdamW(p, lr=0.01, foreach=True),
    "fused": lambda p: optim.AdamW(p, lr=0.01, fused=True),
    "two groups": two_groups,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_laws_make_what_pytorch_made(path: Path, law: str, dtype: Any) -> None:
    train(path, LAWS[law], dtype=dtype, steps=6)
    report = recompute(path)
    assert report, str(report)
    assert (report.checked, report.steps) == (6, 6)
    arithmetics = {"float64"} if dtype is torch.float64 else {"float32", "float64"}
    params = {d.tensor for d in report.distances if "/" not in d.tensor}
    assert {d.arithmetic for d in report.distances} == arithmetics
    assert params == {"0.weight", "0.bias", "2.weight", "2.bias"}
    for distance in report.distances:
        assert list(distance.worst) == list(range(6))
        assert max(distance.worst.values()) >= max(distance.histogram) >= 0


def test_the_distances_are_counted(path: Path) -> None:
    """By the formula of SGD in numpy, which has the bits of the kernel."""
    train(path, sgd, steps=1)
    model, (batch,) = network(), batches(1)
    cross_entropy(model, batch).backward()
    p, g = model[0].weight.detach().numpy(), model[0].weight.grad.numpy()
    theirs = torch.add(model[0].weight.detach(), model[0].weight.grad, alpha=-0.1).numpy()
    by_hand = ulp_distances(p - np.float32(0.1) * g, theirs)
    exact = ulp_distances((p.astype("d") - 0.1 * g.astype("d")).astype("f"), theirs)
    found = {d.arithmetic: d for d in recompute(path).distances if d.tensor == "0.weight"}
    for arithmetic, expected in (("float32", by_hand), ("float64", exact)):
        distance = found[arithmetic]
        assert distance.worst == {0: int(expected.max())}
        assert sum(distance.histogram.values()) == expected.size
        assert distance.histogram.get(0, 0) == int((expected == 0).sum())


def test_a_param_counts_its_own_updates(path: Path) -> None:
    """Adam corrects its averages by how often this param was updated."""
    model = network()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    with record_torch(model, optimizer, path) as run:
        for i, batch in enumerate(batches(6)):
            model[0].requires_grad_(i % 2 == 1)
            optimizer.zero_grad()
            run.loss(cross_entropy(model, batch), batch).backward()
            optimizer.step()
    assert recompute(path), str(recompute(path))


@pytest.mark.parametrize("make", [LAWS["adam"], LAWS["momentum"]])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_run_may_begin_with_an_optimizer_that_was_used_before(
    path: Path, make: Made, frozen: bool, tmp_path: Path
) -> None:
    """Also with one that has updated some of its params more often than others."""
    model = network()
    optimizer = make(model.parameters())
    for name in ("first.dgrr", "run.dgrr"):
        with record_torch(model, optimizer, tmp_path / name) as run:
            for i, batch in enumerate(batches(4)):
                model[0].requires_grad_(not frozen or i % 2 == 1)
                optimizer.zero_grad()
                run.loss(cross_entropy(model, batch), batch).backward()
                optimizer.step()
    assert recompute(path), str(recompute(path))


def spoilt(params: Any) -> Any:
    """Moves one element a little further after its third step."""
    optimizer, steps = sgd(params), count(1)

    def move(*_: Any) -> None:
        if next(steps) == 3:
            with torch.no_grad():
                optimizer.param_groups[0]["params"][2][1, 4] += 1e-4

    optimizer.register_step_post_hook(move)
    return optimizer


def test_an_update_that_is_not_the_laws_is_found(path: Path) -> None:
    train(path, spoilt)
    report = recompute(path)
    assert not report and report.verdict.value == "update"
    (finding,) = report.findings
    assert (finding.step, finding.tensor) == (2, "2.weight")
    assert "of what sgd@1 makes in float32; element [1, 4]: recorded" in finding.text
    assert "update: step 2, '2.weight': not within atol=" in str(report)
    (distance,) = [d for d in report.distances if (d.tensor, d.arithmetic) == ("2.weight", "float32")]
    assert distance.worst[2] > 100 > distance.worst[3], "the next step goes on from what is recorded"


@pytest.mark.parametrize("law", ["sgd", "adam"])
def test_a_rate_that_is_off_by_a_thousandth_is_found(path: Path, law: str) -> None:
    """What is recorded is another rate than that of the update."""

    def dishonest(params: Any) -> Any:
        optimizer = LAWS[law](params)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.register_step_pre_hook(lambda o, *_: o.param_groups[0].update(lr=rate * 1.001))
        optimizer.register_step_post_hook(lambda o, *_: o.param_groups[0].update(lr=rate))
        return optimizer

    train(path, dishonest)
    report = recompute(path)
    assert report.verdict.value == "update" and report.findings[0].step == 0


def test_the_policy_may_be_given(path: Path) -> None:
    train(path, LAWS["adam"])
    assert recompute(path, policy="rtol=1e-3,atol=1e-6")
    strict = recompute(path, policy="bitwise")
    assert strict.verdict.value == "update" and "not within bitwise of what adam@1 makes" in str(strict)
    assert recompute(path, policy={"m/*": "rtol=1", "*": "rtol=1e-2,atol=1e-6"})
    with pytest.raises(ValueError, match="policy: expected 'bitwise'"):
        recompute(path, policy="near")


def test_what_is_not_recorded_after_every_step_is_carried_on(path: Path) -> None:
    train(Factory(path, state_every=3), LAWS["adam"], steps=7)
    report = recompute(path)
    assert report.checked == 2
    assert all(list(distance.worst) == [2, 5] for distance in report.distances)
    assert str(report.findings[0]) == "unproven: values are not recorded after every step: record with record='full'"


@pytest.mark.parametrize("record", ["grads", "digest", "bare"])
def test_digests_leave_updates_unproven(path: Path, record: Any) -> None:
    train(path, sgd, record=record)
    report = recompute(path)
    assert report.verdict.value == "unproven" and report.checked == 0 and not report.distances


def test_the_first_step_is_computed_again_where_its_values_are_recorded(path: Path) -> None:
    train(Factory(path, record="digest", values=1 << 16), sgd)
    report = recompute(path)
    assert report.checked == 1 and {tuple(d.worst) for d in report.distances} == {(0,)}


def test_another_optimizer_is_unproven(path: Path) -> None:
    train(path, lambda p: optim.RMSprop(p))
    report = recompute(path)
    assert report.verdict.value == "unproven"
    assert "the rule 'torch_rmsprop@1' is none of sgd, adam and adamw" in str(report)


def test_a_trace_of_this_package_is_refused(path: Path) -> None:
    arrays = {"params": {"w": np.ones(2)}, "state": {"step": np.array(0)}}
    recorder_of(path, **arrays, rule="sgd@1", hyperparameters=[], numerics=1).seal()
    with pytest.raises(InvalidTraceError, match=r"expected a run of another framework, .*; got one of dgrr: replay it"):
        recompute(path)


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"name": "torch"}', '{"groups":[["x"]],"counts":[],"name":"","version":""}']
)
def test_an_event_of_another_form_is_refused(path: Path, text: str) -> None:
    arrays = {"params": {"w": np.ones(2)}, "state": {"step": np.array(0)}}
    recorder = recorder_of(path, **arrays, rule="sgd@1", hyperparameters=[], numerics=0)
    recorder.event("framework", text)
    recorder.seal()
    with pytest.raises(InvalidTraceError, match="the EVENT 'framework' is not what a recorder writes"):
        recompute(path)


def test_replay_takes_the_laws_within_a_tolerance(path: Path) -> None:
    train(path, LAWS["adam"])
    assert replay(path, ulp_tol=1 << 20).update == "proven"
    assert replay(path).verdict.value == "update"


def test_the_report_in_words_and_in_plain_types(path: Path) -> None:
    train(path, sgd, steps=2)
    report = recompute(path)
    first, *rest = str(report).splitlines()
    assert first == f"{path}: ok: sgd@1 of torch {torch.__version__}, 2 of 2 updates computed again"
    assert len(rest) == 8 and rest[0].startswith("  0.weight in float32: ")
    said = report.to_dict()
    assert json.loads(json.dumps(said)) == said
    assert said["verdict"] == "ok" and said["distances"][0]["tensor"] == "0.weight"
    assert set(said["distances"][0]["worst"]) == {"0", "1"}
