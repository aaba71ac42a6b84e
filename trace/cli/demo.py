"""Training real digits, recording the run, proving it by replay, and seeing damage and forgery found.

`dgrr demo` ends with 0 only if every check held: the trace is valid, every update and every gradient was
recomputed to the bit, a flipped bit and an altered gradient were found. With its default arguments it also
holds the accuracy and the state digest, which is the same on every machine, to their published values.
"""

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from ...base.arrays import Array
from ...base.printed import aligned
from ...runtime import SGD, Adam, Keep, Result, Trainer, data
from ...runtime.optim import Rule
from ...screen.curves import plotted
from ...tape import AnyVar, nn, ops
from ..exit_codes import Exit
from ..replaying.replay import replay
from ..replaying.validate import validate
from ..v2.check.report import Report
from ..v2.read.reader import open_reader
from ..v2.repair.forge import flip_bit, forge_gradient
from ..v2.verdict import Verdict
from .answer import Answer, Fact, done, ended, untold
from .misread import BESIDE, Misread, drawn_digits, misread

ACCURACY = 0.97
"""Test accuracy that the default run must reach."""

STATE_DIGEST = "fc2c2a99ecbe9026702d6c4dc41dfc88b0869f32c4cb2f2ef6442a3488b7813f"
"""SHA-256 of parameters and optimizer state after the default run, on every machine."""

OPTIMIZERS: dict[str, Rule] = {"adam": Adam(lr=1e-3), "sgd": SGD(lr=0.05, momentum=0.9)}

WIDTH = 80
"""Columns that the end of the demo fits."""

MODEL = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def loss_fn(p: nn.Params, batch: tuple[Array, Array]) -> AnyVar:
    """Mean cross-entropy of the digits' labels."""
    images, labels = batch
    return ops.cross_entropy(MODEL(p, images), labels)


@dataclass
class DemoCheck:
    """One thing the demo proves: what, how it went, and how long it took."""

    what: str
    held: bool
    detail: str
    seconds: float

    def __str__(self) -> str:
        """A row of a table that fits 80 columns; what is wrong stands below it in full."""
        word = self.detail.partition(" ")[0]
        row = f"{'[OK]' if self.held else '[FAIL]':<6} {self.what:<47} {word:<10} {self.seconds:6.2f} s"
        return row if self.held else f"{row}\n       {self.detail}"


class Demo:
    """One run of the demo."""

    def __init__(self, args: Namespace, out: Path) -> None:
        self.args = args
        self.out = out
        self.train, self.test = data.digits()
        self.checks: list[DemoCheck] = []

    @property
    def is_default(self) -> bool:
        """Whether the published accuracy and digest apply."""
        given = (self.args.epochs, self.args.seed, self.args.batch, self.args.optimizer)
        return given == (20, 0, 64, "adam")

    def batches(self) -> Iterable[Any]:
        """The run's batches from its beginning."""
        return self.train.batches(self.args.batch, seed=self.args.seed)

    def run(self) -> Answer:
        """Train, prove, break."""
        trainer = Trainer(
            loss_fn,
            MODEL.init(self.args.seed),
            OPTIMIZERS[self.args.optimizer],
            trace=Keep(self.out, record=self.args.record, overwrite=self.args.overwrite or os.path.exists(self.out)),
            seed=self.args.seed,
        )
        layers = f"{sum(a.size for a in trainer.params.values()):,} parameters in {len(MODEL.layers)} layers"
        self._line(f"{len(self.train)} digits to train on, {len(self.test)} to test; {layers}\n{trainer.optimizer}")
        result = trainer.fit(self.batches(), epochs=self.args.epochs, progress=True)
        accuracy = trainer.evaluate(self.test, metric="accuracy", model=MODEL)
        if self.is_default:
            self._published(accuracy, result)
        self._prove()
        with TemporaryDirectory(prefix="dgrr-demo-") as folder:
            self._damage(Path(folder) / "flipped.dgrr", Path(folder) / "forged.dgrr")
        held = all(check.held for check in self.checks)
        images, labels = self.test.arrays
        wrong = misread(trainer.predict(images, model=MODEL), labels)
        text = "\n".join([*self._picture(result, wrong, images), *self._report(result, accuracy, held=held)])
        facts = self._facts(text, result, accuracy, wrong)
        return done(*facts) if held else ended(Exit.REPLAY, "failed", *facts)

    def _published(self, accuracy: float, result: Result) -> None:
        self._check(f"accuracy at least {ACCURACY}", lambda: (accuracy >= ACCURACY, f"{accuracy:.4f}"))
        same = result.state_digest == STATE_DIGEST
        self._check("state digest as published", lambda: (same, "equal" if same else f"expected {STATE_DIGEST}"))

    def _prove(self) -> None:
        """The trace is valid; every update follows from its gradient, every gradient from model and data."""
        self._expect("trace is valid", Verdict.OK, lambda: validate(self.out))
        recorded = self.args.record == "grads"
        alone = Verdict.OK if recorded else Verdict.UNPROVEN
        what = "every update recomputed from its gradient" if recorded else "digests alone prove no update"
        self._expect(what, alone, lambda: replay(self.out))
        self._expect("every gradient re-executed", Verdict.OK, lambda: self._reexecute(self.out))

    def _damage(self, flipped: Path, forged: Path) -> None:
        """A flipped bit and an altered gradient must be found, each under its own word."""
        middle, step, name = self.out.stat().st_size // 2, self._middle_step(), "2.weight"
        flip_bit(self.out, flipped, middle, 3)
        self._expect(f"bit 3 of byte {middle} flipped", Verdict.CORRUPT, lambda: validate(flipped))
        forge_gradient(self.out, forged, step, name)
        recorded = self.args.record == "grads"
        found, verdict = (replay, Verdict.UPDATE) if recorded else (self._reexecute, Verdict.GRADIENT)
        self._expect(f"gradient of {name} altered at step {step}", verdict, lambda: found(forged))

    def _middle_step(self) -> int:
        with open_reader(self.out) as trace:
            return len(trace) // 2

    def _reexecute(self, path: Path) -> Report:
        return replay(path, loss_fn=loss_fn, batches=self.batches())

    def _expect(self, what: str, verdict: Verdict, make: Callable[[], Report]) -> None:
        def outcome() -> tuple[bool, str]:
            report = make()
            return report.verdict is verdict, f"{report.verdict.value}" + _first(report)

        self._check(what, outcome)

    def _check(self, what: str, outcome: Callable[[], tuple[bool, str]]) -> None:
        began = perf_counter()
        held, detail = outcome()
        check = DemoCheck(what, held, detail, perf_counter() - began)
        self.checks.append(check)
        self._line(str(check))

    def _line(self, text: str) -> None:
        print(text, flush=True)

    def _facts(self, text: str, result: Result, accuracy: float, wrong: Sequence[Misread]) -> list[Fact]:
        size, loss = self.out.stat().st_size, result.losses[-1]
        run = untold(steps=result.steps, seconds=result.seconds, state_digest=result.state_digest)
        told = Fact("trace", self.out, text), *untold(bytes=size, accuracy=accuracy, final_loss=loss)
        return [*told, *run, *untold(checks=self.checks, misread=wrong)]

    def _picture(self, result: Result, wrong: Sequence[Misread], images: Any) -> list[str]:
        """The loss, and the digits that were read wrongly with the greatest confidence."""
        lines = ["", "loss", *plotted(result.losses, WIDTH), ""]
        if wrong:
            lines += [f"{len(wrong)} of {len(self.test)} digits misread, most confident first", ""]
            lines += [*drawn_digits(wrong[:BESIDE], images), ""]
        return lines

    def _report(self, result: Result, accuracy: float, *, held: bool) -> list[str]:
        rows = {
            "test accuracy": f"{accuracy:.4f}",
            "final loss": f"{result.losses[-1]:.6f}",
            "steps": str(result.steps),
            "training": f"{result.seconds:.2f} s",
            "proofs": f"{sum(check.seconds for check in self.checks):.2f} s",
            "trace": f"{self.out} ({self.out.stat().st_size / 1e6:.1f} MB)",
            "state digest": result.state_digest,
            "verdict": "every check held" if held else "a check FAILED",
        }
        return [
            aligned(rows.items(), ""),
            "",
            f"open its report with  dgrr report {quote(str(self.out))} -o report.html",
        ]


def _first(report: Report) -> str:
    return f" ({report.findings[0].text})" if report.findings else ""
