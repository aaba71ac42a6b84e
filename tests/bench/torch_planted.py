"""Thirty-six mistakes in a small GPT, as found by golden traces and by what else is used to find them.

    python -m dgrr.tests.bench.torch_planted

Each mistake is trained for three steps, and held against the run without it: by a golden trace to the bit, and one with
the default tolerance; by the hashes of PyTorch's DebugMode; by `torch.testing.assert_close` on the final parameters; by
the losses to five decimals, and within five percent. The last column says what each calls the same program with the
kernels of AVX2, where that is not the processor's best: a change, or not. The mistakes that each has missed are listed
below the table, which is in the form of docs/golden_traces_pytorch.md.
"""

import argparse
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .torch_drift import MISTAKES, draw_with_numpy

SMALL = (
    "rope base 10000.01",
    "attention scale, last digits",
    "mask two off",
    "norm eps, last digits",
    "rate, last digits",
    "decay, last digits",
    "first momentum, last digits",
    "clipping, last digits",
    "dropout, last digits",
    "initial scale",
    "residual, one ULP",
    "scale of embeddings",
)
"""Those of `torch_drift` that are added to the 24 of tests/trace/frameworks/test_planted.py."""

STEPS = 3


class Unrecorded(nullcontext[Any]):
    """Stands for a run that is recorded: keeps the losses."""

    def __init__(self) -> None:
        super().__init__(self)
        self.losses = list[float]()

    def loss(self, loss: Any, batch: Any = None) -> Any:
        """Note a loss."""
        self.losses.append(float(loss))
        return loss


@dataclass
class Seen:
    """What a run shows: golden traces, losses, final params, and the log of DebugMode."""

    bitwise: Path
    tolerant: Path
    losses: list[float]
    params: dict[str, Any]
    log: list[tuple[str, str]]


def seen(folder: Path, name: str, made: dict[str, Any]) -> Seen:
    """Train four times: for two golden traces, plainly, and under DebugMode."""
    from torch.utils._debug_mode import DebugMode

    from dgrr.tests.trace.frameworks import gpt
    from dgrr.trace import Keep
    from dgrr.trace.golden.marker import marker_of
    from dgrr.trace.golden.recording import GoldenRecording

    record, plain = gpt.record_torch, Unrecorded()

    def train(keep: Any, **options: Any) -> Any:
        draw_with_numpy(made.get("seed", 0))
        return gpt.train(keep, steps=STEPS, options=options, **made)

    paths = folder / f"{name}.bitwise.dgrr", folder / f"{name}.tolerant.dgrr"
    train(Keep(paths[0], record="bare", ops="every"), level="op")
    train(GoldenRecording(paths[1], "golden", marker_of([((), {})])))
    try:
        gpt.record_torch = lambda *args, **options: plain
        params = {key: value.detach() for key, value in train(None).named_parameters()}
        gpt.record_torch = lambda *args, **options: Unrecorded()
        with DebugMode() as mode, DebugMode.log_tensor_hashes():
            train(None)
    finally:
        gpt.record_torch = record
    log = [(str(getattr(call, "op", call)), repr((call.log or {}).get("hash"))) for call in mode.logs]
    return Seen(*paths, plain.losses, params, log)


def by_golden(right: Seen, wrong: Seen) -> bool:
    """Whether a golden trace to the bit differs, in more than drift."""
    from dgrr.trace import compare

    return compare(right.bitwise, wrong.bitwise, policy="drift", proven=True).verdict.value == "diverged"


def by_tolerance(right: Seen, wrong: Seen) -> bool:
    """Whether a golden trace with the default tolerance does."""
    from dgrr.trace import compare

    return not compare(right.tolerant, wrong.tolerant, policy="rtol=1e-4,atol=1e-6", proven=True).same


def by_hashes(right: Seen, wrong: Seen) -> bool:
    """Whether the logs of DebugMode differ, in a call or a hash; they cannot be sent to another process as they are."""
    return right.log != wrong.log


def by_closeness(right: Seen, wrong: Seen) -> bool:
    """Whether the final params are not close."""
    import torch

    try:
        torch.testing.assert_close(wrong.params, right.params)
    except AssertionError:
        return True
    return False


def by_decimals(right: Seen, wrong: Seen) -> bool:
    """Whether a loss differs in its first five decimals."""
    return [f"{loss:.5f}" for loss in right.losses] != [f"{loss:.5f}" for loss in wrong.losses]


def by_percent(right: Seen, wrong: Seen) -> bool:
    """Whether a loss is more than five percent away."""
    if len(right.losses) != len(wrong.losses):
        return True
    return any(abs(a - b) > 0.05 * abs(a) for a, b in zip(right.losses, wrong.losses, strict=True))


MEANS: dict[str, Callable[[Seen, Seen], bool]] = {
    'a golden trace with calls of ops, `policy="drift"`': by_golden,
    "a golden trace with the default tolerance": by_tolerance,
    "the calls and hashes of DebugMode": by_hashes,
    "`assert_close` on the final parameters": by_closeness,
    "losses to five decimals": by_decimals,
    "losses within 5 %": by_percent,
}


def planted() -> dict[str, dict[str, Any]]:
    """All mistakes by name."""
    from dgrr.tests.trace.frameworks.test_planted import PLANTED

    return {name: made for name, (made, *_) in PLANTED.items()} | {name: MISTAKES[name] for name in SMALL}


def worker(folder: Path, name: str) -> None:
    """The run without a mistake, in this environment; what it shows is left in a file."""
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(seen(folder, name, {})))


def main() -> None:
    """Train everything, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.worker:
        worker(args.folder, args.worker)
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "dgrr.tests.bench.torch_planted", "--worker", "other", "--folder", name]
        subprocess.run(command, env=os.environ | {"ATEN_CPU_CAPABILITY": "avx2"}, check=True)
        other: Seen = pickle.loads((folder / "other.pickle").read_bytes())
        right = seen(folder, "right", {})
        wrong = {title: seen(folder, f"wrong{i}", made) for i, (title, made) in enumerate(planted().items())}
        print(f"| means | found of {len(wrong)} | AVX2 alone |\n|---|---|---|")
        missed = dict[str, list[str]]()
        for means, differs in MEANS.items():
            missed[means] = [title for title, run in wrong.items() if not differs(right, run)]
            alone = "a change" if differs(right, other) else "no change"
            print(f"| {means} | {len(wrong) - len(missed[means])} | {alone} |")
        for means, titles in missed.items():
            print(f"\n{means} missed: {', '.join(titles) or 'none'}")


if __name__ == "__main__":
    main()
