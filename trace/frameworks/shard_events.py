"""Which part of its tensors a trace of several has, as EVENTs say it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

TOGETHER = 256
"""How many tensors an EVENT tells of: with names and shapes as long as they may be it is within its bounds."""


class ShardLayout(NamedTuple):
    """How a tensor lies on a mesh: its whole shape, a placement for each axis of the mesh, and the mesh.

    ``at`` is the place of the trace's own process or device on the mesh; None if it is not there.
    """

    shape: Sequence[int]
    placements: Sequence[str]
    mesh: Sequence[int]
    names: Sequence[str]
    at: Sequence[int] | None


def shard_events(rank: int, ranks: int, laid: Mapping[str, ShardLayout]) -> Iterator[str]:
    """The texts of the EVENTs, each with some of the tensors and their meshes.

    >>> print(*shard_events(1, 2, {"w": ShardLayout([4], ["S(0)"], [2], ["data"], [1])}))
    {"meshes":[{"at":[1],"names":["data"],"shape":[2]}],"rank":1,"ranks":2,"tensors":{"w":[[4],["S(0)"],0]}}
    """
    told = list(laid.items())
    for begin in range(0, len(told), TOGETHER):
        part = [(name, layout, _mesh(layout)) for name, layout in told[begin : begin + TOGETHER]]
        known = {mesh: i for i, mesh in enumerate(dict.fromkeys(mesh for _, _, mesh in part))}
        where = {name: [list(layout.shape), list(layout.placements), known[mesh]] for name, layout, mesh in part}
        said = {"rank": rank, "ranks": ranks, "meshes": [json.loads(mesh) for mesh in known], "tensors": where}
        yield json.dumps(said, sort_keys=True, separators=(",", ":"))


def _mesh(layout: ShardLayout) -> str:
    at = None if layout.at is None else list(layout.at)
    return json.dumps({"shape": list(layout.mesh), "names": list(layout.names), "at": at})
