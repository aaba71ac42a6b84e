"""Traces of runs by rules of users: recorded and validated as any, proven where the class is handed over."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import NonFiniteError, Trainer
from dgrr.runtime.optim import Cosine, OpsRule, Rule, ops_rule
from dgrr.tape import ops
from dgrr.trace import Verdict, open_trace, replay, state_after, validate
from dgrr.trace.cli import main
from dgrr.trace.v2.repair.forge import forge_gradient

MODULE = """
import numpy as np
from dgrr.runtime.optim import ops_rule
from dgrr.tape import ops


@ops_rule("plain_rmsprop@1")
def RMSprop(p, g, square, *, lr=1e-2, alpha=0.9, eps=1e-8):
    square = alpha * square + (1 - alpha) * (g * g)
    return p - lr * (g / (ops.sqrt(square) + eps)), square
"""


@ops_rule("plain_rmsprop@1")
def RMSprop(p: Any, g: Any, square: Any, *, lr: Any = 1e-2, alpha: Any = 0.9, eps: Any = 1e-8) -> Any:  # noqa: N802
    """As above."""
    square = alpha * square + (1 - alpha) * (g * g)
    return p - lr * (g / (ops.sqrt(square) + eps)), square


@ops_rule("plain_rmsprop@1")
def Other(p: Any, g: Any, square: Any, *, lr: Any = 1e-2, alpha: Any = 0.9, eps: Any = 1e-8) -> Any:  # noqa: N802
    """Another formula under the same name."""
    square = alpha * square + (1 - alpha) * (g * g)
    return p - lr * (g / ops.sqrt(square + eps)), square


@ops_rule("plain_rmsprop@1")
def Strange(p: Any, g: Any, *, lr: Any) -> Any:  # noqa: N802
    """Other hyperparameters under the same name."""
    return p - lr * g


def loss_fn(p: Any, x: Any) -> Any:
    return ops.reduce_mean(ops.square(x @ p["w"] + p["b"]))


def batches(count: int = 9) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((4, 3)).astype(np.float32) for _ in range(count)]


def start() -> dict[str, Any]:
    return {"w": np.linspace(-1, 1, 6, dtype="f").reshape(3, 2), "b": np.zeros(2, "f"), "unused": np.ones(2)}


def trainer(path: Path, rule: Rule | None = None, **options: Any) -> Trainer:
    return Trainer(loss_fn, start(), rule or RMSprop(Cosine(0.1, steps=8)), trace=path, **options)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.dgrr"
    trainer(path).fit(batches(), progress=False)
    return path


@pytest.mark.parametrize("mode", ["eager", "capture", "replay"])
def test_every_update_is_proven(tmp_path: Path, mode: Any) -> None:
    run = trainer(tmp_path / "t.dgrr", mode=mode, clip_norm=0.5, clip_value=0.25)
    run.fit(batches(), progress=False)
    report = replay(tmp_path / "t.dgrr", rules=[RMSprop], loss_fn=loss_fn, batches=batches())
    assert (report.verdict, report.update, report.gradient) == (Verdict.OK, "proven", "proven"), str(report)
    after = state_after(tmp_path / "t.dgrr", 8, rules=[RMSprop])
    assert {name: array.tobytes() for name, array in after.items()} == {
        name: array.tobytes() for name, array in {**run.params, **run.state}.items()
    }


def test_a_digest_trace_is_proven_with_the_model(tmp_path: Path) -> None:
    trainer(tmp_path / "t.dgrr", record="digest").fit(batches(), progress=False)
    report = replay(tmp_path / "t.dgrr", rules=[RMSprop], loss_fn=loss_fn, batches=batches())
    assert (report.verdict, report.update) == (Verdict.OK, "proven"), str(report)


def test_what_is_recorded(trace: Path) -> None:
    with open_trace(trace) as opened:
        (group,) = opened.schema.groups
        assert (group.rule, group.hyperparameters, group.corrections) == ("plain_rmsprop@1", ("lr", "alpha", "eps"), 0)
        names = [tensor.name for tensor in opened.schema.tensors]
        assert names == ["w", "b", "unused", "step", "square/w", "square/b", "square/unused"]
        rates = [view.hyper["lr"] for view in opened]
    assert rates == [RMSprop(Cosine(0.1, steps=8)).hyperparameters(k + 1)["lr"] for k in range(9)]
    assert validate(trace).verdict is Verdict.OK


def test_without_the_class_the_rule_is_named(trace: Path) -> None:
    report = replay(trace)
    assert (report.verdict, report.update) == (Verdict.UNPROVEN, "not proven")
    assert (
        "the rule 'plain_rmsprop@1' is not known to this library; pass its class: rules=[…], or --rule MODULE:NAME"
        in str(report)
    )
    assert replay(trace, rules=[ops_rule("tiger@1")(lambda p, g, *, lr: p)]).verdict is Verdict.UNPROVEN


def test_a_forged_gradient_is_found(trace: Path, tmp_path: Path) -> None:
    forge_gradient(trace, tmp_path / "forged.dgrr", 4, "w")
    report = replay(tmp_path / "forged.dgrr", rules=[RMSprop])
    assert report.verdict is Verdict.UPDATE
    assert "step 4" in str(report)
    assert "is not what plain_rmsprop@1 makes of the recorded gradients" in str(report)


@pytest.mark.parametrize(
    ("rule", "text"), [(Other, "is not what plain_rmsprop@1 makes"), (Strange, "expected lr, got lr, alpha")]
)
def test_another_class_of_the_name_is_found(trace: Path, rule: type[OpsRule], text: str) -> None:
    report = replay(trace, rules=[rule])
    assert report.verdict is Verdict.UPDATE
    assert text in str(report)


@pytest.mark.parametrize("given", [RMSprop(0.1), "plain_rmsprop@1", dict])
def test_rules_that_are_no_classes(trace: Path, given: Any) -> None:
    with pytest.raises(ValueError, match="replay: rules: expected classes of rules, as ops_rule makes them, got"):
        replay(trace, rules=[given])


def test_a_class_of_a_built_in_name(trace: Path) -> None:
    class Adam(RMSprop):  # type: ignore[misc, valid-type]
        rule = "adam@1"

    with pytest.raises(ValueError, match="replay: rules: Adam: expected a name that is not built in, got 'adam@1'"):
        replay(trace, rules=[Adam])


def test_an_interrupted_run_goes_on_in_its_trace(tmp_path: Path) -> None:
    whole, path, saved = tmp_path / "whole.dgrr", tmp_path / "run.dgrr", tmp_path / "run.ckpt"
    trainer(whole).fit(batches(), progress=False)

    def broken() -> Any:
        yield from batches()[:6]
        raise OSError("no more data")

    first = trainer(path, checkpoint=saved, checkpoint_every=4)
    with pytest.raises(OSError, match="no more data"):
        first.fit(broken(), progress=False)
    second = trainer(path, checkpoint=saved, checkpoint_every=4)
    second.load(saved)
    second.fit(batches(), progress=False)
    with open_trace(path) as a, open_trace(whole) as b:
        assert [view.link for view in a] == [view.link for view in b]
    assert replay(path, rules=[RMSprop]).ok


def test_an_update_that_leaves_the_finite_numbers(tmp_path: Path) -> None:
    run = trainer(tmp_path / "t.dgrr", RMSprop(3e38))
    with pytest.raises(NonFiniteError):
        run.fit(batches(), progress=False)
    assert replay(tmp_path / "t.dgrr", rules=[RMSprop]).verdict is Verdict.OK


# ------------------------------------------------------------------ the command


def test_the_command_takes_rules(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "my_rules_of_ops.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert main(["replay", "--trace", str(trace)]) == 6
    assert "--rule MODULE:NAME" in capsys.readouterr().err
    assert main(["replay", "--trace", str(trace), "--rule", "my_rules_of_ops:RMSprop"]) == 0
    assert "update     proven" in capsys.readouterr().out
    for given, text in {
        "my_rules_of_ops": "--rule: expected MODULE:NAME, such as train:Rule, got 'my_rules_of_ops'",
        "my_rules_of_ops:Nothing": "my_rules_of_ops:Nothing: module 'my_rules_of_ops' has no attribute 'Nothing'",
        "my_rules_of_ops:np": "--rule: my_rules_of_ops:np: expected a class of rules, as ops_rule makes it, got module",
    }.items():
        assert main(["replay", "--trace", str(trace), "--rule", given]) == 1
        assert text in capsys.readouterr().err


def test_validation_needs_no_class(trace: Path) -> None:
    """Another process, which has never seen the rule."""
    command = [sys.executable, "-m", "dgrr", "validate", str(trace)]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0
