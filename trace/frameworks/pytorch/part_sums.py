"""What a process of several adds to the additive digests of whole tensors, so that runs in other parts compare."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ....base.arrays import Array
from ....base.errors import DomainError
from ....base.runs.completed_step import CompletedStep
from ...v2.format.additive import additive_digest
from ...v2.format.digest import dtype_name
from ..shard_events import TOGETHER
from .ranks import rank_of
from .torch_modules import TorchModules


class PartSums:
    """The params that count here: of replicas the first alone, so that the sum over all processes is the whole's.

    So do their gradients and what the optimizer keeps of them, where these lie as the params do.
    Of a plain tensor on several processes, unless it is DDP's, nobody knows what the others have: it does not count.
    Raises DomainError for a param that is a part of a sum.
    """

    def __init__(self, torch: Any, modules: TorchModules) -> None:
        self._rank, self._ranks = rank_of(torch)
        self._counted = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]()
        self._placed = {name: _placements(param) for name, param in modules.trained.items()}
        for name, param in modules.trained.items():
            if hasattr(param, "device_mesh"):
                offsets = _offsets(torch, name, param)
            else:
                counts = self._ranks == 1 or (modules.is_replicated and self._rank == 0)
                offsets = (0,) * param.dim() if counts else None
            if offsets is not None:
                self._counted[name] = tuple(param.shape), offsets

    def texts(self, done: CompletedStep, grads: Mapping[str, Any]) -> Iterator[str]:
        """The texts of EVENTs, one at least, with the digests of what this process has of params, gradients and state.

        ``grads`` are the gradients as tensors, which say how they lie.
        """
        parts = [*self._parts(done, grads)]
        for begin in range(0, len(parts) or 1, TOGETHER):
            told = defaultdict[str, dict[str, Any]](dict, sums={})
            for kind, name, param, part in parts[begin : begin + TOGETHER]:
                whole, offsets = self._counted[param]
                told[kind][name] = [dtype_name(part.dtype), whole, additive_digest(part, whole, offsets).hex()]
            said = {"rank": self._rank, "ranks": self._ranks, **told}
            yield json.dumps(said, sort_keys=True, separators=(",", ":"))

    def _parts(self, done: CompletedStep, grads: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Array]]:
        """Of each tensor that counts its kind, its name, the param that it lies as, and what is here of it."""
        for name in self._counted:
            yield "sums", name, name, done.params[name]
        for name, grad in grads.items():
            if name in self._counted and _placements(grad) == self._placed[name]:
                yield "grads", name, name, done.grads[name]
        for name, part in done.state.items():
            param = name.partition("/")[2]
            if param in self._counted and part.shape == done.params[param].shape:
                yield "state", name, param, part


def _placements(tensor: Any) -> Any:
    """How a distributed tensor lies; None of a plain one."""
    return getattr(tensor, "placements", None)


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
