"""What recording PyTorch costs: times of a step and peaks of memory, in the form of docs/golden_traces_pytorch.md.

    python -m dgrr.tests.bench.torch_recording [--models NAME …] [--rounds N] [--steps N] [--memory]

A model in the manner of nanoGPT is trained plainly, with records at the boundaries of steps (digests of loss, batch,
gradients, params and state), of every layer at every step, and of every op at every step, on one thread. The rounds
alternate, and the table has the median over the rounds of the median step, as a multiple of the plain one's of the same
round. Below each stands the least that hashing leaves possible: the bytes that are digested, at the rate at which this
machine hashes a mebibyte. With ``--memory`` it is the peaks of memory (the most that was resident, `ru_maxrss`), each
of a process of its own that has trained a small model before, over what it held then: the median over the rounds. Of
what is resident the C library holds some that is free, in pieces; "in use" leaves it out: glibc gives each block of 64
KiB and more back at once there.
"""

import argparse
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from dgrr.tape.numerics.prepared.places import address_of
from dgrr.tape.numerics.xxh3.anywhere import DigestAnywhere
from dgrr.trace import Keep, record_torch
from dgrr.trace.frameworks.pytorch.tensor_digests import TensorDigests

F = torch.nn.functional
WORDS, HEADS = 65, 4
WARM = 2
"""Steps of a run before its time is taken."""


class Size(NamedTuple):
    """How large a model and its batch are, and in how many parts the batch is computed."""

    blocks: int
    width: int
    batch: int
    length: int
    parts: int = 1


SIZES = {
    "small": Size(2, 64, 4, 32),
    "short": Size(4, 128, 8, 64),
    "long": Size(4, 128, 16, 128),
    "accumulating": Size(4, 128, 64, 128, 4),
}
IN_USE = {"MALLOC_MMAP_THRESHOLD_": str(64 << 10)}
HOW = ("plain", "boundaries", "layers", "ops")


class Attention(nn.Module):
    """Each place looks at those before it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        seen: torch.Tensor = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(seen.transpose(1, 2).flatten(-2))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and a perceptron, each added to what it takes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class GPT(nn.Module):
    """A language model over characters."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, size.width), nn.Embedding(size.length, size.width)
        self.blocks = nn.Sequential(*(Block(size.width) for _ in range(size.blocks)))
        self.ln_f, self.head = nn.LayerNorm(size.width), nn.Linear(size.width, WORDS, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.wte(ids[:, :-1]) + self.wpe.weight
        logits: torch.Tensor = self.head(self.ln_f(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


class Unrecorded(nullcontext[Any]):
    """Stands for a run that is recorded."""

    def __init__(self) -> None:
        super().__init__(self)

    def loss(self, loss: Any, batch: Any = None) -> Any:
        """Give a loss back."""
        return loss


def train(size: Size, how: str, folder: Path, steps: int) -> float:
    """Train some steps, and give the median seconds of those behind the first."""
    torch.manual_seed(0)
    model, took = GPT(size), list[float]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = torch.randint(0, WORDS, (size.batch, size.length + 1))
    with recorded(model, optimizer, how, folder) as run:
        for _ in range(WARM + steps):
            began = perf_counter()
            optimizer.zero_grad()
            for ids in batch.chunk(size.parts):
                run.loss(model(ids) / size.parts, batch=ids).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            took.append(perf_counter() - began)
    return median(took[WARM:])


def recorded(model: Any, optimizer: Any, how: str, folder: Path) -> Any:
    """What records a run in one way, or not at all."""
    if how == "plain":
        return Unrecorded()
    keep = Keep(folder / f"{how}.dgrr", record="digest", ops=None if how == "boundaries" else "every", overwrite=True)
    return record_torch(model, optimizer, keep, level="op" if how == "ops" else "layer")


def digested(size: Size, how: str, folder: Path) -> float:
    """Bytes that are digested in a step: params, gradients and two moments, and what is met on the way."""
    own = 4 * sum(param.nbytes for param in GPT(size).parameters())
    if how == "plain":
        return 0
    found, of = [0], TensorDigests.of

    def counted(self: TensorDigests, tensor: Any, kind: Any) -> bytes:
        found[0] += kind.nbytes
        return of(self, tensor, kind)

    with patch.object(TensorDigests, "of", counted):
        train(size, how, folder, 1)
    return own + found[0] / (WARM + 1)


def hash_rate() -> float:
    """Bytes that are hashed in a second, of a mebibyte that is hashed again and again."""
    array, took = np.ones(1 << 18, np.float32), list[float]()
    made = DigestAnywhere(bytes(16), array.shape, 4, array.dtype)
    for _ in range(100):
        began = perf_counter()
        made(address_of(array))
        took.append(perf_counter() - began)
    return array.nbytes / median(took)


def show_times(names: list[str], rounds: int, steps: int) -> None:
    """Print the table of times."""
    print(f"| on one thread | plain | {' | '.join(HOW[1:])} |\n|---|---|---|---|---|")
    for name in names:
        size, found = SIZES[name], list[dict[str, float]]()
        with TemporaryDirectory() as folder:
            for _ in range(rounds):
                found.append({how: train(size, how, Path(folder), steps) for how in HOW})
            least = {how: digested(size, how, Path(folder)) / hash_rate() for how in HOW[1:]}
        plain = median(one["plain"] for one in found)
        ratios = [median(one[how] / one["plain"] for one in found) for how in HOW[1:]]
        print(f"| {name} | {1e3 * plain:.0f} ms | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
        print(f"| {name}, hashing alone | | {' | '.join(f'{1 + least[how] / plain:.2f}' for how in HOW[1:])} |")


def show_memory(names: list[str], rounds: int) -> None:
    """Print the table of memory."""
    print(f"| peak | plain | {' | '.join(HOW[1:])} |\n|---|---|---|---|---|")
    for name in names:
        for said, settings in ((name, {}), (f"{name}, in use", IN_USE)):
            peaks = {how: median(peak_alone(name, how, settings) for _ in range(rounds)) for how in HOW}
            ratios = " | ".join(f"{peaks[how] / peaks['plain']:.2f}" for how in HOW[1:])
            print(f"| {said} | {peaks['plain'] / 1024:.0f} MiB | {ratios} |", flush=True)


def peak_alone(name: str, how: str, settings: dict[str, str]) -> int:
    """`peak` in a process of its own, with these settings of the C library."""
    code = "import sys; from dgrr.tests.bench.torch_recording import peak; print(peak(*sys.argv[1:]))"
    command = [sys.executable, "-c", code, name, how]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | settings).stdout)


def peak(name: str, how: str) -> int:
    """KiB that training takes at most, over what a process has that has trained a small model."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        train(SIZES["small"], how, Path(folder), 1)
        before = getrusage(RUSAGE_SELF).ru_maxrss
        train(SIZES[name], how, Path(folder), 2)
    return getrusage(RUSAGE_SELF).ru_maxrss - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=SIZES, default=["small", "short", "long"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="of a run")
    parser.add_argument("--memory", action="store_true", help="peaks of memory instead")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.memory:
        show_memory(args.models, args.rounds)
    else:
        show_times(args.models, args.rounds, args.steps)


if __name__ == "__main__":
    main()
