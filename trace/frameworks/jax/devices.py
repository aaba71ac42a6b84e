"""Arrays of JAX that lie on several devices: a file for each, and in it which part of every array it has."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from ....base.errors import DomainError
from ....base.runs.keep import Keep
from ....base.system import FilePath
from ..shard_events import ShardLayout, shard_events
from ..shared import TraceTarget


class Devices:
    """The devices on which the params lie, in their order; the first one of all where no param is an array of JAX's.

    Args:
        jax: the package.
        leaves: the params.
    """

    def __init__(self, jax: Any, leaves: Mapping[str, Any]) -> None:
        self._jax = jax
        found = {device for leaf in leaves.values() if isinstance(leaf, jax.Array) for device in leaf.devices()}
        self.all = sorted(found or jax.local_devices()[:1], key=lambda device: device.id)

    def traces(self, trace: TraceTarget) -> Iterator[tuple[Any, TraceTarget]]:
        """Each device of this process, and its file: the place among all in that of ``{rank}``.

        Without ``{rank}`` there is one file, for no device, with whole arrays. Raises DomainError where several
        processes would write it.
        """
        path = trace.path if isinstance(trace, Keep) else trace
        if not isinstance(path, str | PathLike) or "{rank}" not in fspath(path):
            self._require_one(path)
            yield None, trace
            return
        Path(fspath(path)).parent.mkdir(parents=True, exist_ok=True)
        for rank, device in enumerate(self.all):
            if device.process_index == self._jax.process_index():
                there = cast(FilePath, fspath(path).replace("{rank}", str(rank)))
                yield device, replace(trace, path=there) if isinstance(trace, Keep) else there

    def _require_one(self, path: object) -> None:
        count = len({device.process_index for device in self.all})
        if count > 1:
            raise DomainError(
                f"record_jax: argument 'trace': expected a path with {{rank}} in it, since the params lie on devices "
                f"of {count} processes, and each device has a file of its own; got {path!r}"
            )

    def shards(self, device: Any, leaves: Mapping[str, Any]) -> Iterator[str]:
        """The texts of EVENTs that say which part of every array a device has; none of arrays on one device alone."""
        laid = {name: self._layout(device, leaf) for name, leaf in leaves.items() if isinstance(leaf, self._jax.Array)}
        told = {name: layout for name, layout in laid.items() if layout is not None}
        yield from shard_events(self.all.index(device), len(self.all), told)

    def _layout(self, device: Any, array: Any) -> ShardLayout | None:
        """Where an array lies: on the mesh of its sharding, or as a replica on all of its devices."""
        sharding = array.sharding
        if len(sharding.device_set) == 1:
            return None
        if isinstance(sharding, self._jax.sharding.NamedSharding):
            mesh = sharding.mesh
            at = [int(place[0]) for place in (mesh.device_ids == device.id).nonzero()]
            return ShardLayout(array.shape, _placements(sharding), mesh.device_ids.shape, mesh.axis_names, at)
        if sharding.is_fully_replicated:
            return ShardLayout(array.shape, ["R"], [len(self.all)], ["devices"], [self.all.index(device)])
        return None


def _placements(sharding: Any) -> list[str]:
    """For each axis of the mesh, the axis of the array that is cut along it, as in ``S(0)``; else ``R``."""
    cut = {
        name: i
        for i, names in enumerate(sharding.spec)
        for name in ([names] if isinstance(names, str) else names or ())
    }
    return [f"S({cut[name]})" if name in cut else "R" for name in sharding.mesh.axis_names]
