"""What each of several processes runs: small models trained by PyTorch's ways to share the work, each recorded.

Started with the number of the process, how many there are, and a folder.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from dgrr.trace import Keep, record_torch


class Net(nn.Module):
    """Two layers and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(8, 16), nn.LayerNorm(8), nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        """Four numbers for eight."""
        return self.down(torch.relu(self.up(self.norm(x))))


def network() -> Any:
    """The same one each time."""
    torch.manual_seed(0)
    return Net()


def batches(count: int, part: int = 0) -> Iterator[tuple[Any, Any]]:
    """The same ones each time, for each process its own."""
    draw = torch.Generator().manual_seed(1 + part)
    for _ in range(count):
        yield torch.randn(4, 8, generator=draw), torch.randint(0, 4, (4,), generator=draw)


def train(path: str, model: Any, *, part: int = 0, swap: bool = False, break_at: int | None = None) -> None:
    """Three steps of AdamW; ``swap`` takes the last two batches the other way round, ``break_at`` spoils a param."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    data = list(batches(3, part))
    data = [data[0], data[2], data[1]] if swap else data
    with record_torch(model, optimizer, Keep(path, record="full", ops="every", overwrite=True)) as run:
        for step, (x, y) in enumerate(data):
            optimizer.zero_grad()
            run.loss(nn.functional.cross_entropy(model(x), y), batch=(x, y)).backward()
            if step == break_at:
                with torch.no_grad():
                    next(model.parameters()).add_(1.0)
            optimizer.step()


def sharded(policy: Any = None, **more: Any) -> Any:
    """FSDP2."""
    model = network()
    for part in (model.up, model.down, model):
        fully_shard(part, mp_policy=policy or MixedPrecisionPolicy(), **more)
    return model


def tensor_parallel(mesh: Any) -> Any:
    """The first layer by columns, the second by rows; the norm is on each rank."""
    return parallelize_module(network(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def both(count: int) -> Any:
    """FSDP2 over one axis of a mesh, tensor parallel over the other."""
    mesh = init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("dp", "tp"))
    return fully_shard(tensor_parallel(mesh["tp"]), mesh=mesh["dp"])


def step_in_parts(path: str, mesh: Any = None, *axes: int, spoiled: str = "", plain: str = "") -> None:
    """Three steps of given gradients, which no layout changes.

    Axis i of the mesh cuts axis ``axes[i]`` of each param that has one. Without a mesh params are plain tensors, and
    those of the layer ``plain`` in any case. In the second step a gradient, a buffer of the optimizer or a param is
    another, as ``spoiled`` says.
    """

    def laid(layer: str, tensor: Any) -> Any:
        placements: list[Placement] = [Shard(axis) if axis < tensor.dim() else Replicate() for axis in axes]
        return tensor if mesh is None or layer == plain else distribute_tensor(tensor, mesh, placements)

    model, draw = network(), torch.Generator().manual_seed(2)
    model.up = nn.Linear(8, 7)
    for layer, module in model.named_modules():
        for name, param in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(laid(layer, torch.randn(param.shape, generator=draw))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5, foreach=False)
    with record_torch(model, optimizer, path) as run:
        for step in range(3):
            for name, param in model.named_parameters():
                grad = torch.randn(param.shape, generator=draw)
                if (step, spoiled, name) == (1, "gradient", "up.weight"):
                    grad[-1, -1] += 1
                param.grad = laid(name.partition(".")[0], grad)
            with torch.no_grad():
                if (step, spoiled) == (1, "buffer"):
                    optimizer.state[model.up.weight]["momentum_buffer"] += 1
                if (step, spoiled) == (1, "param"):
                    model.up.weight += 1
            run.loss(1.0, batch=torch.ones(1))
            optimizer.step()


def refused(path: Path, mesh: Any) -> None:
    """A param that is a part of a sum: what is said of it."""
    model = nn.Linear(2, 1, bias=False)
    whole = distributed.tensor.DTensor.from_local(torch.ones(1, 2), mesh, [Partial()])
    model.weight = nn.Parameter(whole)
    try:
        record_torch(model, torch.optim.SGD(model.parameters(), lr=0.5), f"{path}/{{rank}}.dgrr")
    except ValueError as error:
        (path.parent / f"partial{distributed.get_rank()}.txt").write_text(str(error))


def main(rank: int, count: int, folder: Path) -> None:
    """Every way, each in a folder of its own."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    mesh = init_device_mesh("cpu", (count,), mesh_dim_names=("all",))
    bf16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    last = count - 1

    def to(name: str) -> str:
        return f"{folder}/{name}/{{rank}}.dgrr"

    train(to("ddp"), DistributedDataParallel(network()))
    train(to("ddp_broken"), DistributedDataParallel(network()), break_at=1 if rank == last else None)
    for name in ("fsdp", "fsdp_again"):
        train(to(name), sharded(), part=rank)
    train(to("fsdp_equal"), sharded())
    step_in_parts(to("rows"), mesh, 0)
    step_in_parts(to("columns"), mesh, 1)
    step_in_parts(to("spoiled"), mesh, 1, spoiled="gradient")
    step_in_parts(to("left"), mesh, 0, plain="norm")
    refused(folder / "partial", mesh)
    train(to("fsdp_swapped"), sharded(), part=rank, swap=rank == last)
    train(to("bf16"), sharded(bf16), part=rank)
    train(to("tp"), tensor_parallel(mesh))
    if count == 4:
        train(to("both"), both(count))
        step_in_parts(to("blocks"), init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b")), 0, 1)
        step_in_parts(to("twice"), init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b")), 0, 0)
    try:
        train(f"{folder}/one.dgrr", network())
    except ValueError as error:
        (folder / f"refused{rank}.txt").write_text(str(error))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
