"""What a process of several adds to the additive digests of the params, so that runs in other parts compare."""

import json
from collections.abc import Iterator
from typing import Any

from ....base.arrays import Arrays
from ....base.errors import DomainError
from ...v2.format.additive import additive_digest
from ...v2.format.digest import dtype_name
from ..shard_events import TOGETHER
from .ranks import rank_of
from .torch_modules import TorchModules


class PartSums:
    """The params that count here: of replicas the first alone, so that the sum over all processes is the whole's.

    Of a plain tensor on several processes, unless it is DDP's, nobody knows what the others have: it does not count.
    Raises DomainError for a param that is a part of a sum.
    """

    def __init__(self, torch: Any, modules: TorchModules) -> None:
        self._rank, self._ranks = rank_of(torch)
        self._counted = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]()
        for name, param in modules.trained.items():
            if hasattr(param, "device_mesh"):
                offsets = _offsets(torch, name, param)
            else:
                counts = self._ranks == 1 or (modules.is_replicated and self._rank == 0)
                offsets = (0,) * param.dim() if counts else None
            if offsets is not None:
                self._counted[name] = tuple(param.shape), offsets

    def texts(self, params: Arrays) -> Iterator[str]:
        """The texts of EVENTs, one at least, with the digests of what this process has of the params."""
        names = list(self._counted)
        for begin in range(0, len(names) or 1, TOGETHER):
            sums = {name: self._told(name, params) for name in names[begin : begin + TOGETHER]}
            said = {"rank": self._rank, "ranks": self._ranks, "sums": sums}
            yield json.dumps(said, sort_keys=True, separators=(",", ":"))

    def _told(self, name: str, params: Arrays) -> list[Any]:
        (whole, offsets), part = self._counted[name], params[name]
        return [dtype_name(part.dtype), whole, additive_digest(part, whole, offsets).hex()]


def _offsets(torch: Any, name: str, param: Any) -> tuple[int, ...] | None:
    """Where in a distributed tensor the part of this process begins; None where another counts for it."""
    mesh, placements = param.device_mesh, param.placements
    if any(placement.is_partial() for placement in placements):
        raise DomainError(
            f"record_torch: parameter {name!r}: expected shards or replicas, got {list(placements)}, of which each "
            "process has a part of a sum; redistribute it first"
        )
    at = mesh.get_coordinate()
    if at is None or any(i for i, placement in zip(at, placements, strict=True) if placement.is_replicate()):
        return None
    laid = torch.distributed.tensor._utils.compute_local_shape_and_global_offset(param.shape, mesh, placements)
    return tuple(laid[1])
