"""Steps and products on an NVIDIA GPU beside PyTorch and JAX, in float32: ``python tests/bench/gpu.py``.

Every engine copies a batch of numpy arrays in and reads its loss, step by step. PyTorch and JAX multiply in full
float32 ("highest", no TF32) but in the column that says otherwise. Medians of single steps, in microseconds; peers that
are not installed are left out.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from typing import Any

from engines.dgrr_models import loss_fn_of, renamed
from engines.larger import NETWORKS, Net
from engines.models import LEARNING_RATE, Batch, Model, Transformer
from rich.console import Console
from rich.table import Table

from dgrr.runtime import Adam, Trainer, capture
from dgrr.runtime.captured.profile import KernelCall
from dgrr.runtime.cuda.driver import gpu
from dgrr.runtime.cuda.measure import SquareProduct

Step = Callable[[Batch], float]

CHARACTERS = Transformer(65, 256, 384, 6, 1536, 6, 32, goal=0.95)
SIZES = (512, 1024, 2048, 4096, 8192)
REPEATS = 20
"""Products of a graph."""

WITNESSED = 300
"""Steps by which the cost of a witness is measured."""

COMPILED = ("784-512-512-10", "cnn-28x28", "transformer")
"""Models that torch.compile is asked for: it takes half a minute each."""


def ours(model: Model) -> Step:
    step = capture(loss_fn_of(model), renamed(model.params()), Adam(LEARNING_RATE), model.batches()[0], device="cuda")
    return lambda batch: float(step(batch))


def torch_step(model: Model, *, graph: bool, compiled: bool = False, tf32: bool = False) -> Step:
    import torch
    from engines import torch_models

    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    params = {n: torch.from_numpy(a).cuda().requires_grad_() for n, a in model.params().items()}
    held = [torch.from_numpy(a).cuda() for a in model.batches()[0]]
    optimizer = torch.optim.Adam(params.values(), lr=LEARNING_RATE, fused=True, capturable=graph)
    loss_of = torch_models.loss_of(model)
    run = torch.compile(loss_of, fullgraph=True, dynamic=False) if compiled else loss_of

    def step() -> Any:
        optimizer.zero_grad(set_to_none=False)
        loss = run(params, *held)
        loss.backward()
        optimizer.step()
        return loss

    if not graph:
        return lambda batch: [_copied(held, batch), float(step().item())][1]  # type: ignore[func-returns-value]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        loss = step()

    def replay(batch: Batch) -> float:
        _copied(held, batch)
        recorded.replay()
        return float(loss.item())

    return replay


def _copied(held: list[Any], batch: Batch) -> None:
    import torch

    for tensor, array in zip(held, batch, strict=True):
        tensor.copy_(torch.from_numpy(array))


def jax_step(model: Model) -> Step:
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    from engines.jax_engine import make

    return make(model, model.params(), 1)


ENGINES: dict[str, Callable[[Model], Step]] = {
    "dgrr": ours,
    "torch eager": lambda model: torch_step(model, graph=False),
    "torch graph": lambda model: torch_step(model, graph=True),
    "torch compiled graph": lambda model: torch_step(model, graph=True, compiled=True),
    "jax": jax_step,
    "torch graph, TF32": lambda model: torch_step(model, graph=True, tf32=True),
}


def microseconds(step: Step, batches: list[Batch], seconds: float) -> float:
    """The median of single steps."""
    every, times, end = cycle(batches), list[float](), time.perf_counter() + seconds
    for _ in range(5):
        step(next(every))
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        step(next(every))
        times.append(time.perf_counter() - start)
    return median(times) * 1e6


def steps(models: dict[str, Model], engines: list[str], seconds: float) -> Iterator[tuple[str, dict[str, float | str]]]:
    """For each model the time of a step by engine, or why there is none."""
    for name, model in models.items():
        found: dict[str, float | str] = {}
        for engine in engines:
            if ("compiled" in engine and name not in COMPILED) or (engine == "jax" and isinstance(model, Net)):
                continue
            try:
                found[engine] = microseconds(ENGINES[engine](model), model.batches(), seconds)
            except Exception as error:  # a peer that cannot run is a line, not the end
                found[engine] = f"{type(error).__name__}: {str(error)[:60]}"
        yield name, found


def slowest(model: Model, count: int) -> Table:
    """The calls of a step that take longest, alike ones together, with their share of what the GPU reaches."""
    step = capture(loss_fn_of(model), renamed(model.params()), Adam(LEARNING_RATE), model.batches()[0], device="cuda")
    found, groups = step.profile(model.batches()[0]), dict[tuple[str, int, int], list[KernelCall]]()
    for call in found.calls:
        groups.setdefault((call.kernel, call.nbytes, call.flops), []).append(call)
    table = Table("kernel", "calls", "us each", "us", "bytes", "of the bandwidth", "of the peak")
    for (kernel, nbytes, flops), calls in sorted(groups.items(), key=lambda g: -sum(c.seconds for c in g[1]))[:count]:
        total = sum(call.seconds for call in calls)
        each = total / len(calls)
        shares = (f"{nbytes / each / found.bandwidth:.0%}", f"{flops / each / found.peak:.0%}")
        table.add_row(kernel, str(len(calls)), f"{each * 1e6:.1f}", f"{total * 1e6:.0f}", str(nbytes), *shares)
    table.title = f"{found.seconds * 1e6:.0f} us in {len(found.calls)} calls"
    return table


def witnessed(model: Model, share: float | None, steps: int) -> float:
    """Microseconds a step of a trainer whose CPU recomputes a share of them, all recomputed at the end."""
    batches = [batch for batch, _ in zip(cycle(model.batches()), range(steps), strict=False)]
    trainer = Trainer(loss_fn_of(model), renamed(model.params()), Adam(LEARNING_RATE), device="cuda", witness=share)
    trainer.fit(batches[:5], progress=False)
    return trainer.fit(batches, progress=False).seconds / steps * 1e6


def products() -> Iterator[tuple[int, float, float | None]]:
    """Size, microseconds of ours, and of PyTorch's product if there is one: each in a graph of many."""
    for n in SIZES:
        yield n, SquareProduct(gpu(), n).seconds(REPEATS) * 1e6, _torch_product(n)


def _torch_product(n: int) -> float | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_float32_matmul_precision("highest")
    a = torch.randn(n, n, device="cuda")
    out = torch.empty_like(a)
    torch.mm(a, a, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            torch.mm(a, a, out=out)

    def run() -> None:
        graph.replay()
        torch.cuda.synchronize()

    return _median(run) / REPEATS


def _median(run: Callable[[], object]) -> float:
    """Microseconds of a run: the median of nine."""
    times = list[float]()
    for _ in range(10):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times[1:]) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each engine and model")
    parser.add_argument("--models", nargs="*", default=[*NETWORKS, "characters"])
    parser.add_argument("--slowest", type=int, default=5, help="calls of each model that are shown; 0: no profile")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--witness", nargs="*", type=float, default=[], help="shares of steps that the CPU recomputes")
    parser.add_argument("--no-products", action="store_true", help="leave out the products of n x n")
    args = parser.parse_args()
    console = Console(width=160)
    models = {**NETWORKS, "characters": CHARACTERS}
    table = Table("model", *ENGINES, "best peer over dgrr", title=f"a step on {gpu().name}, us")
    for name, found in steps({name: models[name] for name in args.models}, args.engines, args.seconds):
        peers = [t for e, t in found.items() if e != "dgrr" and "TF32" not in e and isinstance(t, float)]
        mine = found["dgrr"]
        ratio = f"{min(peers) / mine:.2f}" if peers and isinstance(mine, float) else "-"
        cells = [f"{t:.0f}" if isinstance(t, float) else t for t in (found.get(e, "-") for e in ENGINES)]
        table.add_row(name, *cells, ratio)
        console.print(name, *cells, ratio)
        if args.slowest:
            console.print(slowest(models[name], args.slowest))
    console.print(table)
    if args.witness:
        costs = Table("model", "none", *map(str, args.witness), title="a step of a trainer with a witness, us")
        for name in args.models:
            costs.add_row(name, *[f"{witnessed(models[name], s, WITNESSED):.0f}" for s in (None, *args.witness)])
        console.print(costs)
    if args.no_products:
        return
    shown = Table("n", "dgrr", "torch", "torch over dgrr", title="products of n x n, us")
    for n, mine, other in products():
        beside = ("-", "-") if other is None else (f"{other:.1f}", f"{other / mine:.2f}")
        shown.add_row(str(n), f"{mine:.1f}", *beside)
    console.print(shown)


if __name__ == "__main__":
    main()
