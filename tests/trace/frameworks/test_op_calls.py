"""The op level: every call of an op as it ran, the earliest that differs, and what a run that dies has called last."""

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.called_op import CalledOp
from dgrr.tape import DomainError
from dgrr.trace import Keep, compare, open_trace, record_torch, validate
from dgrr.trace.comparing.calls.call_difference import CallChange, first_call
from dgrr.trace.comparing.calls.drift import first_change, is_drift
from dgrr.trace.frameworks.pytorch.calls import op_calls
from dgrr.trace.v2.format.digest import Algorithm, tensor_digest
from dgrr.trace.v2.format.frames import CALLS

from .gpt import torch, train
from .pytorch_runs import network, sgd

nn = torch.nn
OPS: dict[str, Any] = {"level": "op"}


def digest(array: Any) -> bytes:
    return tensor_digest(Algorithm.XXH3_128, np.ascontiguousarray(array))


def calls_of(path: Path, step: int = 0) -> tuple[CalledOp, ...]:
    with open_trace(path) as trace:
        return trace.calls(step)


class Scaled(nn.Module):
    """Changes in place what it has made, and draws."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -2.0, 4.0]))

    def forward(self, x: Any) -> Any:
        hidden = self.w * 2.0
        hidden.add_(x)
        return hidden + torch.rand(3) * 0


def one_step(path: Path, module: Any, **options: Any) -> None:
    optimizer = sgd(module.parameters())
    with record_torch(module, optimizer, Keep(path, ops="first"), level="op", **options) as run:
        for _ in range(2):
            optimizer.zero_grad()
            loss = module(torch.tensor([1.0, 3.0, 5.0])).sum()
            run.loss(loss).backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            optimizer.step()


def test_a_call_is_what_it_was_told_and_the_digests_of_what_went_in_and_out(tmp_path: Path) -> None:
    torch.manual_seed(0)
    one_step(tmp_path / "run.dgrr", Scaled())
    calls = {call.name: call for call in reversed(calls_of(tmp_path / "run.dgrr"))}
    w, x = np.array([1, -2, 4], np.float32), np.array([1, 3, 5], np.float32)
    doubled = calls["aten.mul.Tensor"]
    assert (doubled.options, doubled.phase) == ("other=2.0", "forward")
    assert (doubled.inputs, doubled.outputs) == ((digest(w),), (digest(2 * w),))
    assert doubled.place.endswith(": hidden = self.w * 2.0")
    changed = calls["aten.add_.Tensor"]
    assert (changed.inputs, changed.outputs) == ((digest(2 * w), digest(x)), (digest(2 * w + x),))
    assert calls["aten.rand.default"].draws and not doubled.draws
    assert validate(tmp_path / "run.dgrr").ok
    assert not calls_of(tmp_path / "run.dgrr", 1)


def test_phases_layers_and_lines(tmp_path: Path) -> None:
    train(Keep(tmp_path / "run.dgrr", record="bare", ops="first"), options=OPS, checkpoint=True)
    calls = calls_of(tmp_path / "run.dgrr")
    assert list(dict.fromkeys(call.phase for call in calls)) == [
        *("forward", "backward", "recompute", "clip", "optimizer"),
    ]
    norms = [call for call in calls if call.name.startswith("aten.native_layer_norm")]
    assert [(call.name.split(".")[1], call.phase, call.scope) for call in norms if call.scope == "blocks.0.ln_2"] == [
        ("native_layer_norm", "forward", "blocks.0.ln_2"),
        ("native_layer_norm_backward", "backward", "blocks.0.ln_2"),
    ]
    powers = [call.place for call in calls if call.name == "aten.pow.Scalar"]
    assert powers and all("gpt.py:" in place and "frequency = 1.0 / base **" in place for place in powers)


def test_memory_that_was_never_written_is_no_value(tmp_path: Path) -> None:
    class Blank(nn.Linear):
        def forward(self, x: Any) -> Any:
            blank = torch.empty(3)
            part = blank[:1]
            blank.copy_(x)
            return super().forward(x) + part * blank.sum()

    one_step(tmp_path / "run.dgrr", Blank(3, 1))
    nothing = digest(np.empty(0, np.uint8))
    calls = {call.name: call for call in reversed(calls_of(tmp_path / "run.dgrr")) if call.phase == "forward"}
    assert calls["aten.empty.memory_format"].outputs == (nothing,)
    assert calls["aten.slice.Tensor"].inputs == calls["aten.slice.Tensor"].outputs == (nothing,)
    full = digest(np.array([1, 3, 5], np.float32))
    assert (calls["aten.copy_.default"].inputs, calls["aten.copy_.default"].outputs) == ((nothing, full), (full,))
    assert calls["aten.sum.default"].inputs == (full,)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("right") / "right.dgrr"
    train(Keep(path, record="bare", ops="first"), options=OPS, steps=1)
    return path


PLANTED: dict[str, tuple[dict[str, Any], str]] = {
    "rope base": ({"rope": 10001.0}, "aten.pow.Scalar called with 10000.0 -> 10001.0, blocks.0.attn {gpt}18"),
    "attention scale": (
        {"scale": 0.36},
        "aten.mul.Tensor called with 0.3535533905932738 -> 0.36, blocks.0.attn {gpt}36",
    ),
    "mask": ({"diagonal": 1}, "aten.tril.default called with diagonal nothing -> 1, blocks.0.attn {gpt}37"),
    "layer norm eps": (
        {"eps": 2e-5},
        "aten.native_layer_norm.default called with eps 1e-05 -> 2e-05, blocks.0.ln_1 {gpt}65",
    ),
    "learning rate": ({"lr": 1.1e-2}, "aten.mul_.Tensor called with 0.999 -> 0.9989, in optimizer, {gpt}136"),
    "betas": ({"betas": (0.9, 0.99)}, "aten.mul_.Tensor called with 0.999 -> 0.99, in optimizer, {gpt}136"),
    "weight decay": ({"decay": 0.11}, "aten.mul_.Tensor called with 0.999 -> 0.9989, in optimizer, {gpt}136"),
    "clip threshold": ({"clip": 0.09}, "aten.mul.Tensor called with 0.1 -> 0.09, in clip, {gpt}135"),
    "dropout p": ({"dropout": 0.2}, "aten.bernoulli_.float called with p 0.9 -> 0.8, blocks.0.mlp.drop {gpt}52"),
    "label shift": (
        {"shift": True},
        "aten.slice.Tensor called with start 1 -> 0, end 9223372036854775807 -> -1, {gpt}88",
    ),
    "loss reduction": ({"reduction": "sum"}, "aten.nll_loss_forward.default called with reduction 1 -> 2, {gpt}90"),
    "residual scale": ({"attn_residual": 0.99}, "aten.mul.Tensor called with 1.0 -> 0.99, blocks.0 {gpt}65"),
    "gelu": ({"gelu": "tanh"}, "aten.gelu.default called with approximate nothing -> 'tanh', blocks.0.mlp.act {gpt}52"),
    "embedding scale": ({"embedding": 4.0}, "aten.mul.Tensor called with 1.0 -> 4.0, {gpt}84"),
    "fused optimizer": (
        {"fused": True},
        "aten.zeros.default instead of aten.lift_fresh.default, in optimizer, {gpt}136",
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_earliest_call_is_named(right: Path, tmp_path: Path, mistake: str) -> None:
    made, name = PLANTED[mistake]
    train(Keep(tmp_path / "wrong.dgrr", record="bare", ops="first"), options=OPS, steps=1, **made)
    found = compare(right, tmp_path / "wrong.dgrr")
    assert found.call is not None
    assert found.call.short == name.format(gpt="tests/trace/frameworks/gpt.py:")
    assert found.sentence.endswith(f"; earliest {found.call.short}")
    assert f"first call that differs: #{found.call.index} of " in str(found)


def test_checkpointing_is_no_other_program(right: Path, tmp_path: Path) -> None:
    train(Keep(tmp_path / "again.dgrr", record="bare", ops="first"), options=OPS, steps=1, checkpoint=True)
    assert compare(right, tmp_path / "again.dgrr", proven=True)
    assert first_call(calls_of(right), calls_of(tmp_path / "again.dgrr")) is None


def call(name: str, taken: str = "", given: str = "", **more: Any) -> CalledOp:
    inputs, outputs = (tuple(c.encode() for c in text) for text in (taken, given))
    return CalledOp(name, inputs=inputs, outputs=outputs, **more)


ONE = [call("mul", "ab", "c"), call("exp", "c", "d"), call("sum", "d", "e")]


@pytest.mark.parametrize(
    ("other", "change", "index"),
    [
        ([ONE[0], call("exp", "c", "x"), ONE[2]], CallChange.GIVES, 1),
        ([ONE[0], call("exp", "c", "x", draws=True), ONE[2]], CallChange.DRAWS, 1),
        ([ONE[0], call("exp", "x", "d"), ONE[2]], CallChange.INPUT, 1),
        ([ONE[0], call("exp", "a", "d"), ONE[2]], CallChange.OTHERWISE, 1),
        ([ONE[0], call("exp", "c", "", raised=True)], CallChange.RAISED, 1),
        ([ONE[0], call("abs", "c", "c"), *ONE[1:]], CallChange.ADDED, 1),
        ([ONE[0], ONE[2]], CallChange.REMOVED, 1),
        ([ONE[0], call("exp2", "c", "x"), ONE[2]], CallChange.REPLACED, 1),
        ([ONE[0], call("exp", "c", "d", options="n=1"), ONE[2]], CallChange.TOLD, 1),
        (ONE[:2], CallChange.REMOVED, 2),
        ([*ONE, call("abs", "e", "e")], CallChange.ADDED, 3),
    ],
)
def test_in_what_a_call_differs(other: list[CalledOp], change: CallChange, index: int) -> None:
    found = first_call(ONE, other)
    assert found is not None and (found.change, found.index) == (change, index)
    assert found.lines()[0].startswith(f"first call that differs: #{index} of ")
    assert first_call(ONE, ONE) is None


DRAWN = [call("rand", "", "a", draws=True, generator=b"1"), call("exp", "a", "b")]


@pytest.mark.parametrize(
    ("other", "change"),
    [
        ([call("rand", "", "x", draws=True, generator=b"1"), call("exp", "x", "b")], CallChange.GIVES),
        ([call("rand", "", "x", draws=True, generator=b"2"), call("exp", "x", "b")], CallChange.DRAWS),
        ([call("rand", "", "x", draws=True), call("exp", "x", "b")], CallChange.DRAWS),
    ],
)
def test_of_equal_states_of_a_generator_a_kernel_draws_otherwise(other: list[CalledOp], change: CallChange) -> None:
    found = first_call(DRAWN, other)
    assert found is not None and found.change is change
    assert is_drift(replace(found, call=replace(found.call, name="aten.rand"))) == (change is CallChange.GIVES)


def test_another_seed_is_found_behind_other_kernels() -> None:
    drifted = [call("sin", "0", "1"), *DRAWN]
    seeded = [call("sin", "0", "2"), replace(DRAWN[0], outputs=(b"x",), generator=b"2"), DRAWN[1]]
    found = first_change(drifted, seeded)
    assert found is not None and (found.change, found.index) == (CallChange.DRAWS, 1)
    assert first_change(drifted, [seeded[0], replace(DRAWN[0], outputs=(b"x",)), DRAWN[1]]) is None
    assert first_change(drifted, [seeded[0], replace(DRAWN[0], generator=b""), DRAWN[1]]) is None


def test_a_generator_of_the_users_own_is_told_by_its_state(tmp_path: Path) -> None:
    class Noisy(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            self.w, self.own = nn.Parameter(torch.ones(3)), torch.Generator().manual_seed(seed)

        def forward(self, x: Any) -> Any:
            return self.w * torch.rand(3, generator=self.own) + torch.rand(3) + x

    calls = list[list[CalledOp]]()
    for seed in (1, 2):
        torch.manual_seed(0)
        one_step(tmp_path / str(seed), Noisy(seed))
        calls.append([each for each in calls_of(tmp_path / str(seed)) if each.draws])
    (own, other), (another, same) = calls
    assert own.generator != another.generator and other.generator == same.generator != b""
    assert other.generator != own.generator


def test_a_run_that_dies_inside_a_step_shows_its_last_ops(tmp_path: Path) -> None:
    class Dies(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.exp(x).reshape(7, 7)

    model = nn.Sequential(network(), Dies())
    optimizer = sgd(model.parameters())
    with (
        pytest.raises(RuntimeError, match="shape"),
        record_torch(model, optimizer, Keep(tmp_path / "run.dgrr", ops="every"), level="op") as run,
    ):
        run.loss(model(torch.ones(2, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = calls_of(tmp_path / "run.dgrr")
    assert [(each.name, each.scope, each.raised) for each in calls[-2:]] == [
        ("aten.exp.default", "1", False),
        ("aten.view.default", "1", True),
    ]
    asked = [sys.executable, "-m", "dgrr", "inspect", str(tmp_path / "run.dgrr.partial")]
    shown = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    assert "step 0 has no end; the last of its " in shown
    assert f"at work: aten.view.default, 1 {calls[-1].place.partition(': ')[0]}" in shown


def test_an_op_at_work_is_written_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run hangs, the op that has begun is in the file, and once it has ended it is written again."""
    monkeypatch.setattr(op_calls, "_SECONDS", -1.0)
    model, seen = network(), list[tuple[CalledOp, ...]]()
    path = tmp_path / "run.dgrr"

    def look(grad: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(calls_of(path))

    model[2].weight.register_hook(look)
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, Keep(path, ops="first"), level="op") as run:
        run.loss(model(torch.ones(2, 5)).sum()).backward()
        optimizer.step()
    (then,) = seen
    assert then[-1].raised and not then[-1].outputs
    whole = calls_of(path)
    assert not any(each.raised for each in whole)
    assert whole[: len(then) - 1] == then[:-1] and whole[len(then) - 1].name == then[-1].name


def test_calls_are_written_where_they_are_asked_for_alone(tmp_path: Path) -> None:
    for level in ("layer", "op"):
        keep = Keep(tmp_path / level, ops=[1], salt=bytes(16), created_at=0)
        train(keep, options={"level": level})
    with open_trace(tmp_path / "layer") as plain, open_trace(tmp_path / "op") as trace:
        assert [len(plain.calls(step)) for step in range(4)] == [0, 0, 0, 0]
        assert [bool(trace.calls(step)) for step in range(4)] == [False, True, False, False]
        assert [view.link for view in plain] == [view.link for view in trace]
        assert plain.ops(1) == trace.ops(1)


def test_another_level_is_refused(tmp_path: Path) -> None:
    model = network()
    text = r"record_torch: argument 'level': expected 'layer' or 'op', got 'kernel'"
    with pytest.raises(DomainError, match=text):
        record_torch(model, sgd(model.parameters()), tmp_path / "run.dgrr", level="kernel")  # type: ignore[arg-type]


def test_the_frame_is_told() -> None:
    assert (CALLS.code, CALLS.told) == (134, "calls of ops")
