"""Runs of several processes: a file for each, and in it which part of every tensor it has."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

from ....base.errors import DomainError
from ....base.runs.keep import Keep
from ....base.system import FilePath
from ..shared import TraceTarget
from .torch_modules import TorchModules

TOGETHER = 256
"""How many tensors an EVENT tells of: with names and shapes as long as they may be it is within its bounds."""


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
    told = [(name, layout) for name, layout in laid.items() if layout is not None]
    for begin in range(0, len(told), TOGETHER):
        part = told[begin : begin + TOGETHER]
        known = {mesh: i for i, mesh in enumerate(dict.fromkeys(mesh for _, (_, _, mesh) in part))}
        where = {name: [shape, placements, known[mesh]] for name, (shape, placements, mesh) in part}
        said = {"rank": rank, "ranks": count, "meshes": [json.loads(mesh) for mesh in known], "tensors": where}
        yield json.dumps(said, sort_keys=True, separators=(",", ":"))


def _layout(torch: Any, tensor: Any, *, replicated: bool) -> tuple[list[int], list[str], str] | None:
    """The whole shape, the placements, and the mesh as text; None of a tensor of which other processes say nothing."""
    if hasattr(tensor, "device_mesh"):
        mesh = tensor.device_mesh
        at, names = mesh.get_coordinate(), mesh.mesh_dim_names
        said = {"shape": list(mesh.shape), "names": list(names or ()), "at": None if at is None else list(at)}
        return list(tensor.shape), [str(placement) for placement in tensor.placements], json.dumps(said)
    if replicated:
        rank, count = rank_of(torch)
        return list(tensor.shape), ["R"], json.dumps({"shape": [count], "names": ["ddp"], "at": [rank]})
    return None
