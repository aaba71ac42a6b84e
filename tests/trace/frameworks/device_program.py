"""Runs of JAX on four devices, each in a folder with a trace for each device: started with the folder's path.

With the number of a process and a port, two processes have two of the devices each.
"""

import os
import sys
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={2 if len(sys.argv) > 2 else 4}"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from dgrr.trace import Keep, record_jax

untyped: Any = jax
tree = untyped.tree


def train(
    path: Any,
    *,
    level: Any = None,
    split: bool = True,
    swapped: bool = False,
    broken: bool = False,
    scale: float = 1.0,
) -> None:
    """Three steps of Adam, whose state lies otherwise than one of the params."""
    mesh = untyped.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def laid(value: Any, *axes: Any) -> Any:
        return jax.device_put(value, NamedSharding(mesh, PartitionSpec(*axes))) if split else jnp.asarray(value)

    rng = np.random.default_rng(0)
    axes = {"up": (None, "model"), "down": ("model", None), "bias": ()}
    shapes = {"up": (4, 8), "down": (8, 2), "bias": (4,)}
    params = {name: laid(rng.standard_normal(shape).astype("f"), *axes[name]) for name, shape in shapes.items()}
    kept = {**axes, "bias": (("data", "model"),)}
    m, v = ({name: laid(np.zeros(shapes[name], "f"), *kept[name]) for name in params} for _ in range(2))

    def loss_fn(params: Any, x: Any) -> Any:
        return jnp.mean((jnp.tanh((x + params["bias"]) @ params["up"] * scale) @ params["down"]) ** 2)

    where = tree.map(lambda leaf: leaf.sharding, (params, m, v, params)) if split else (None,) * 4

    @untyped.jit(out_shardings=(*where, None))
    def step(params: Any, m: Any, v: Any, count: Any, x: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_fn)(params, x)
        m = tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        c1, c2 = 1 - 0.9**count, 1 - 0.999**count
        params = tree.map(lambda p, m, v: p - 0.01 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), params, m, v)
        return params, m, v, grads, loss

    start = {"rule": "adam@1", "hyper": {"lr": 0.01}, "state": {"m": m, "v": v}}
    with record_jax(params, Keep(path, ops="first"), level=level, **start) as run:
        for i in range(3):
            batch = rng.standard_normal((4, 4)).astype("f")
            if swapped and i == 1:
                batch[[2, 3]] = batch[[3, 2]]
            x = laid(batch, "data", None)
            params, m, v, grads, loss = run.call(step, params, m, v, np.float32(i + 1), x)
            if broken and i == 1:
                params = {**params, "bias": _broken(params["bias"])}
            run.step(params, grads, loss, batch=x, state={"m": m, "v": v})


def _broken(array: Any) -> Any:
    """Replicas of which one has another element."""
    parts = [shard.data + (shard.device == jax.devices()[3]) for shard in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    runs: dict[str, dict[str, Any]] = {
        "right": {"level": "op"},
        "again": {},
        "swapped": {"swapped": True},
        "broken": {"broken": True},
        "scale": {"scale": 1.5, "level": "op"},
    }
    if len(sys.argv) > 2:
        untyped.config.update("jax_cpu_collectives_implementation", "gloo")
        untyped.distributed.initialize(f"127.0.0.1:{sys.argv[3]}", 2, int(sys.argv[2]))
    for name, how in runs.items():
        train(folder / name / "{rank}.dgrr", **how)
    train(folder / "whole.dgrr")
    train(folder / "one.dgrr", split=False)
