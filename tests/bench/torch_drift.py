"""Drift told from change: 30 pairs of runs on other kernels, and 30 with a small mistake besides, as they are called.

    python -m dgrr.tests.bench.torch_drift [--seeds N]

Each environment is a process of its own, in which a small GPT is trained for two steps from each seed, all of whose
calls of ops are recorded; the weights at the beginning are numpy's, since PyTorch's draws differ between instruction
sets. A mistake is made on other kernels than those of the reference, so that it has to be found behind drift. Printed
is a table in the form of docs/golden_traces_pytorch.md.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

ENVIRONMENTS: dict[str, dict[str, str]] = {
    "reference": {},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "no vectors": {"ATEN_CPU_CAPABILITY": "default"},
    "oneDNN off": {"DGRR_BENCH_ONEDNN": "0"},
    "oneDNN up to SSE4.1": {"DNNL_MAX_CPU_ISA": "SSE41"},
    "matmul precision medium": {"DGRR_BENCH_MATMUL": "medium"},
}
BEHIND = "AVX2"
"""Where mistakes are made."""

MISTAKES: dict[str, dict[str, Any]] = {
    "rope base 10001": {"rope": 10001.0},
    "rope base 10000.01": {"rope": 10000.01},
    "attention scale": {"scale": 0.354},
    "attention scale, last digits": {"scale": 0.35355342},
    "mask one off": {"diagonal": 1},
    "mask two off": {"diagonal": 2},
    "norm eps": {"eps": 1.01e-5},
    "norm eps, last digits": {"eps": 1.00001e-5},
    "rate": {"lr": 1.0001e-2},
    "rate, last digits": {"lr": 1.0000001e-2},
    "decay": {"decay": 0.101},
    "decay, last digits": {"decay": 0.1000001},
    "second momentum": {"betas": (0.9, 0.9991)},
    "first momentum, last digits": {"betas": (0.90000001, 0.999)},
    "clipping": {"clip": 0.0999},
    "clipping, last digits": {"clip": 0.0999999},
    "dropout": {"dropout": 0.101},
    "dropout, last digits": {"dropout": 0.1000001},
    "initial scale": {"std": 0.0200001},
    "initial scale, more": {"std": 0.021},
    "order of batches": {"order": [1, 0]},
    "targets not shifted": {"shift": True},
    "sum of losses": {"reduction": "sum"},
    "schedule": {"warm": 1},
    "residual of the MLP": {"mlp_residual": 0.9999},
    "residual, one ULP": {"mlp_residual": 0.99999994},
    "residual of attention": {"attn_residual": 1.0001},
    "tanh GELU": {"gelu": "tanh"},
    "scale of embeddings": {"embedding": 1.00000012},
    "no zero_grad": {"zeroed": False},
}


def draw_with_numpy(seed: int) -> None:
    """The weights at the beginning of the next model are numpy's."""
    import torch

    draw = np.random.default_rng(seed)

    def fill(param: Any, values: Any) -> None:
        with torch.no_grad():
            param.copy_(torch.from_numpy(values))

    made: Any = torch.nn.init
    made.normal_ = lambda param, std=1.0: fill(param, draw.normal(size=tuple(param.shape)) * std)
    made.uniform_ = lambda param, a=0.0, b=1.0: fill(param, draw.uniform(a, b, size=tuple(param.shape)))


def worker(name: str, folder: Path, seeds: int) -> None:
    """Train in this environment, right from each seed; where it is asked for, with each mistake."""
    from dgrr.tests.trace.frameworks.gpt import torch, train
    from dgrr.trace import Keep

    torch.set_float32_matmul_precision(os.environ.get("DGRR_BENCH_MATMUL", "highest"))
    torch.backends.mkldnn.enabled = os.environ.get("DGRR_BENCH_ONEDNN", "1") == "1"

    def recorded(path: Path, **made: Any) -> None:
        draw_with_numpy(made.get("seed", 0))
        train(Keep(path, record="full", ops="every"), steps=2, options={"level": "op"}, **{"clip": 0.1, **made})

    for seed in range(seeds):
        recorded(folder / f"{name}.{seed}.dgrr", seed=seed)
    if name == BEHIND:
        for i, made in enumerate(MISTAKES.values()):
            recorded(folder / f"mistake.{i}.dgrr", **made)


def judged(folder: Path, seeds: int) -> list[tuple[str, Counter[str]]]:
    """How each kind of pair is called."""
    from dgrr.trace import compare

    def verdict(a: str, b: str) -> str:
        return compare(folder / f"{a}.dgrr", folder / f"{b}.dgrr", policy="drift").verdict.value

    rows = [
        (name, Counter(verdict(f"reference.{seed}", f"{name}.{seed}") for seed in range(seeds)))
        for name in [*ENVIRONMENTS][1:]
    ]
    found = {name: verdict("reference.0", f"mistake.{i}") for i, name in enumerate(MISTAKES)}
    for name, said in found.items():
        if said != "diverged":
            print(f"{name}: {said}", file=sys.stderr)
    return [*rows, (f"a mistake, and {BEHIND}", Counter(found.values()))]


def main() -> None:
    """Start every environment, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--worker")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.folder, args.seeds)
        return
    with TemporaryDirectory() as folder:
        for name, settings in ENVIRONMENTS.items():
            command = [sys.executable, "-m", __spec__.name if __spec__ else "dgrr.tests.bench.torch_drift"]
            more = ["--worker", name, "--folder", folder, "--seeds", str(args.seeds)]
            subprocess.run([*command, *more], env=os.environ | settings, check=True)
        print("| other than the reference | pairs | equal | drift | change |\n|---|---|---|---|---|")
        for name, count in judged(Path(folder), args.seeds):
            print(f"| {name} | {count.total()} | {count['ok']} | {count['drift']} | {count['diverged']} |")


if __name__ == "__main__":
    main()
