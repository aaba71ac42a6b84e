"""A recorded state from which a training of PyTorch is begun again, in the place of its first step."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ....base.arrays import Array, Arrays
from ....base.runs.completed_step import LOSS_SCALE
from ...v2.format.constants import FRAMEWORK_EVENT
from ...v2.read.reader import TraceReader
from ..shared import Framework
from .arrays import array, local_part, reading, tensor_of
from .torch_modules import TorchModules
from .torch_optimizer import TorchOptimizer


@dataclass(frozen=True, slots=True, eq=False)
class Restart:
    """What a trace knows of a run before a step.

    Args:
        step: which step it is.
        values: params, state of the optimizer and buffers, by the names of the trace.
        counts: how often each param was updated.
        generators: the state of PyTorch's generators, as `drawn_so_far` gives it.
        scale: the scale of a gradient scaler at that step, and how many steps before it had the same; None if the loss
            is not scaled.
    """

    step: int
    values: Arrays
    counts: Mapping[str, int]
    generators: bytes
    scale: tuple[float, int] | None

    @classmethod
    def read(cls, trace: TraceReader, step: int) -> Self:
        """From the KEYFRAME before a step that is recorded. Raises NotRecordedError if it has no values."""
        values = trace.keyframe(step)
        return cls(step, values, _updates(trace, step), trace.generators(step), _scale(trace, step))

    def restore(self, torch: Any, modules: TorchModules, reader: TorchOptimizer) -> bool:
        """Set model and optimizer to that state; False, with nothing changed, where they have no place for it."""
        tensors = modules.trained | modules.buffers
        if not all(name in self.values and _fits(tensor, self.values[name]) for name, tensor in tensors.items()):
            return False
        if not reader.restore(self.values, self.counts):
            return False
        with reading(), torch.no_grad():
            for name, tensor in tensors.items():
                local_part(tensor).copy_(tensor_of(torch, self.values[name], tensor.dtype))
        return True

    def draw_on(self, torch: Any) -> None:
        """Set PyTorch's generators to that state."""
        for device, said in json.loads(self.generators or b"{}").items():
            state = torch.frombuffer(bytearray(b64decode(said)), dtype=torch.uint8)
            if device == "cpu":
                torch.set_rng_state(state)
            else:
                torch.cuda.set_rng_state(state, device)

    def scale_on(self, scaler: Any) -> None:
        """Set a gradient scaler to that state; one that is switched off has none."""
        state = scaler.state_dict()
        if self.scale is not None and state:
            scale, steps = self.scale
            scaler.load_state_dict({**state, "scale": scale, "_growth_tracker": steps % state["growth_interval"]})


def drawn_so_far(torch: Any) -> bytes:
    """The state of PyTorch's own generators: of the CPU, and of each GPU that is in use."""
    with reading():
        states = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_initialized():
            states |= {f"cuda:{i}": torch.cuda.get_rng_state(i) for i in range(torch.cuda.device_count())}
        said = {device: b64encode(array(state).tobytes()).decode() for device, state in states.items()}
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def _fits(tensor: Any, values: Array) -> bool:
    there = array(tensor, copy=False)
    return (there.shape, there.dtype) == (values.shape, values.dtype)


def _updates(trace: TraceReader, step: int) -> dict[str, int]:
    """How often each param was updated before a step: as often as it had a gradient, and before the trace."""
    text = next(event.text for _, event in trace.events() if event.kind == FRAMEWORK_EVENT)
    before, start = Framework.decode(text).counts, trace.keyframe(0).get("step", 0)
    names = [tensor.name for tensor in trace.schema.tensors[: trace.schema.params]]
    counts = {name: before.get(i, int(start)) for i, name in enumerate(names)}
    for k in range(step):
        for name in trace[k].grad_digests:
            counts[name] += 1
    return counts


def _scale(trace: TraceReader, step: int) -> tuple[float, int] | None:
    """The scale at a step, and how many steps in a row before it had the same."""
    scales = [trace.metrics(k).get(LOSS_SCALE) for k in range(step + 1)]
    now = scales.pop()
    if now is None:
        return None
    return now, next((i for i, scale in enumerate(reversed(scales)) if scale != now), step)
