"""Runs of several processes: a file for each, and in it which part of every tensor it has."""

import os
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

from ....base.errors import DomainError
from ....base.runs.keep import Keep
from ....base.system import FilePath
from ..shard_events import ShardLayout, shard_events
from ..shared import TraceTarget
from .torch_modules import TorchModules


def of_rank(torch: Any, trace: TraceTarget) -> TraceTarget:
    """The file of this process: its number in the place of ``{rank}``.

    Raises DomainError where there are several processes and the path is one for all of them.
    """
    if isinstance(trace, Keep):
        return replace(trace, path=cast(FilePath, of_rank(torch, trace.path)))
    if not isinstance(trace, str | PathLike):
        return trace
    path, (rank, count) = os.fspath(trace), rank_of(torch)
    if count > 1 and "{rank}" not in path:
        raise DomainError(
            f"record_torch: argument 'trace': expected a path with {{rank}} in it, since each of {count} processes "
            f"writes a file of its own; got {path!r}"
        )
    if "{rank}" in path:  # a folder for them is made: that of one run
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    return path.replace("{rank}", str(rank))


def is_of_ranks(trace: TraceTarget) -> bool:
    """Whether the path is that of a file for each process."""
    path = trace.path if isinstance(trace, Keep) else trace
    return isinstance(path, str | PathLike) and "{rank}" in os.fspath(path)


def rank_of(torch: Any) -> tuple[int, int]:
    """The number of this process, and how many there are."""
    ranks = torch.distributed
    started = ranks.is_available() and ranks.is_initialized()
    return (ranks.get_rank(), ranks.get_world_size()) if started else (0, 1)


def shards(torch: Any, modules: TorchModules) -> Iterator[str]:
    """The texts of EVENTs that say of tensors which part this process has; none where it has all of all.

    Of each its whole shape, where it lies on the mesh of processes, and the mesh with the place of this one. What the
    optimizer keeps of a param lies as the param does.
    """
    rank, count = rank_of(torch)
    if count == 1:
        return
    replicated = modules.trained.keys() if modules.is_replicated else ()
    laid = {
        name: _layout(torch, tensor, replicated=name in replicated)
        for name, tensor in {**modules.trained, **modules.buffers}.items()
    }
    yield from shard_events(rank, count, {name: layout for name, layout in laid.items() if layout is not None})


def _layout(torch: Any, tensor: Any, *, replicated: bool) -> ShardLayout | None:
    """Where a tensor lies; None if other processes say nothing of it."""
    if hasattr(tensor, "device_mesh"):
        mesh = tensor.device_mesh
        placements = [str(placement) for placement in tensor.placements]
        return ShardLayout(tensor.shape, placements, mesh.shape, mesh.mesh_dim_names or (), mesh.get_coordinate())
    if replicated:
        rank, count = rank_of(torch)
        return ShardLayout(tensor.shape, ["R"], [count], ["ddp"], [rank])
    return None
