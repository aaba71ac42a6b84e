"""What a plan is bound to: the input buffers for batches of one signature, and arrays at fixed addresses."""

from collections.abc import Mapping, Sequence
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.engine import machine
from ..data.samples import SampleBatches, Samples
from ..ir.graph import Role
from ..ir.record import Recorded
from ..lower.bind import ARRAYS, Bound, BoundPlan, bind
from ..lower.lower import stored
from ..lower.plan import BindingPlan
from ..step.batch import BatchSignature, batch_arrays, batch_signature, map_batch
from ..step.memory import line_aligned, side_by_side
from ..step.training_step import StateDict

if TYPE_CHECKING:
    from ..cuda.mirror import Mirror


class Sources(NamedTuple):
    """Where the batches of several steps lie."""

    table: Array
    """What `machine.run_steps` takes."""
    steps: int
    held: Any
    """What it has addresses of."""


NOWHERE = Sources(np.empty((0, machine.SOURCE), np.int64), 0, None)


class InputBuffers:
    """Memory that batches of one signature are copied into, for plans here or on the GPU of a mirror."""

    def __init__(self, example: Any, signature: BatchSignature, mirror: "Mirror | None" = None) -> None:
        self.signature = signature
        block = line_aligned if mirror is None else mirror.gpu.pinned
        self.inputs = side_by_side([(shape, dtype) for _, shape, dtype in signature], block)
        buffers = iter(self.inputs)
        self.bound = map_batch(lambda where, leaf: next(buffers), example)
        """The batch that is bound: the input buffers in the form of a batch."""
        self._sizes = [np.array(shape, np.int64) for _, shape, _ in signature]
        self._feeds = np.array([_feed(*pair) for pair in zip(self.inputs, self._sizes, strict=True)], np.int64)
        self.feeds = int(self._feeds.ctypes.data)
        """The address of what `machine.run_fed` needs to know of the inputs."""
        places = [where for where, _, _ in signature]
        self._single = places == ["batch"]
        self._flat = len(places) if places and places == [f"batch[{i}]" for i in range(len(places))] else -1
        kind = example.__class__
        self._names: list[Any] = list(example) if kind is dict else []
        n = len(self.inputs)
        whole = [(address(b), 0, 1, 8 * k, n, 1, b.nbytes) for k, b in enumerate(self.inputs)]
        self._whole = np.array(whole, np.int64).reshape(-1, machine.SOURCE)
        """What `machine.run_steps` needs to know of inputs that lie whole, their places counted from the first one."""
        self._samples: Samples[Any] | None = None
        self._in_place: Array | None = None
        self._named = bool(places) and places == [f"batch[{name!r}]" for name in self._names]

    @property
    def nbytes(self) -> int:
        """Of the buffers; those that derive from this add what they hold besides."""
        return sum(array.nbytes for array in self.inputs)

    def flat(self, batch: Any) -> tuple[Any, ...] | None:
        """What a batch of one array, or a tuple, list or dict of as many as here, holds; None for any other."""
        kind = batch.__class__
        if kind is tuple and self._flat == len(batch):
            return batch  # type: ignore[no-any-return]
        if kind is tuple or kind is list:
            found = tuple(batch) if self._flat > 0 else ()
        elif kind is dict:
            found = tuple(batch.values()) if self._named and list(batch) == self._names else ()
        else:
            found = (batch,) if self._single else ()
        return found if found and len(found) == len(self.inputs) else None

    def sources(self, batches: Sequence[Any]) -> "Sources":
        """Where the first of several steps' batches lie, as many as can be copied from there as they are."""
        if isinstance(batches, SampleBatches):
            return self._of_samples(cast(Any, batches))
        return self.of_arrays(list(takewhile(lambda flat: flat is not None, map(self.flat, batches))))

    def of_arrays(self, batches: Sequence[Any]) -> "Sources":
        """The same of batches as `flat` gives them."""
        n = len(self.inputs)
        objects = np.fromiter(chain.from_iterable(batches), object, n * len(batches))
        places = np.empty((len(batches), n), np.int64)
        found: int = machine.find_arrays(address(objects), len(batches), n, ARRAYS, self.feeds, address(places))
        if not found:
            return NOWHERE
        table = self._whole.copy()
        table[:, machine.PLACES] += address(places)
        return Sources(table, found, (objects, places))

    def _of_samples(self, batches: SampleBatches[Any]) -> "Sources":
        if not batches.full_steps:
            return NOWHERE
        if self._samples is not batches.samples:
            self._samples, self._in_place = batches.samples, self._lie_in(batches)
        if self._in_place is None:
            return NOWHERE
        places = np.ascontiguousarray(batches.places)
        table = self._in_place.copy()
        table[:, machine.PLACES] += address(places)
        return Sources(table, batches.full_steps, (places, batches.samples))

    def _lie_in(self, batches: SampleBatches[Any]) -> Array | None:
        """What `machine.run_steps` needs to know of the inputs, the places of samples counted from the first one."""
        size, together, columns = batches.size, batches.together, batches.samples.columns
        if batch_signature(batches[0]) != self.signature:
            return None
        lie = [(column, k) for k in range(together) for column in columns]
        if any(column.dtype != buffer.dtype for (column, _), buffer in zip(lie, self.inputs, strict=True)):
            return None
        rows = [
            (address(b), address(c), c.strides[0], 8 * size * k, size * together, size, b.nbytes // size)
            for (c, k), b in zip(lie, self.inputs, strict=True)
        ]
        return np.array(rows, np.int64)

    def feed(self, batch: Any) -> None:
        """Copy a batch of this signature into the input buffers; lists, numbers and other integers are converted."""
        for array, buffer in zip(batch_arrays(batch), self.inputs, strict=True):
            np.copyto(buffer, np.asarray(array))


def outside_of(
    plan: BindingPlan, recorded: Recorded, inputs: Sequence[Array], constants: Mapping[int, Array], arrays: StateDict
) -> dict[int, Array]:
    """The arrays of all roots that no op of a plan makes: these inputs and constants, and parameters and states."""
    outside: dict[int, Array] = dict(zip(recorded.inputs, inputs, strict=True))
    outside |= {id: arrays["params"][name] for name, id in recorded.params.items()}
    for id, value in plan.program.graph.values.items():
        if id in constants:
            outside[id] = stored(constants[id])[0]
        elif value.role is Role.STATE:
            outside[id] = arrays["state"][value.name]
        elif value.role is Role.MODEL_STATE:
            outside[id] = arrays["model_state"][value.name]
    return outside


def bound_to(
    plan: BindingPlan,
    recorded: Recorded,
    inputs: Sequence[Array],
    constants: Mapping[int, Array],
    arrays: StateDict,
    results: Mapping[int, Array] | None = None,
) -> Bound:
    """A plan over these inputs and constants, and over the very arrays of parameters and states.

    ``results`` are arrays in which values that ops make are to lie, by their roots.
    """
    return bind(plan, outside_of(plan, recorded, inputs, constants, arrays) | {**(results or {})})


def bound_on(
    mirror: "Mirror | None",
    plan: BindingPlan,
    recorded: Recorded,
    inputs: Sequence[Array],
    constants: Mapping[int, Array],
    arrays: StateDict,
) -> BoundPlan:
    """The same on the GPU of a mirror; here without one."""
    if mirror is None:
        return bound_to(plan, recorded, inputs, constants, arrays)
    from ..cuda.bind import bind_to_gpu  # most programs have no GPU to ask for

    return bind_to_gpu(plan, outside_of(plan, recorded, inputs, constants, arrays), mirror)


def address(array: Array) -> int:
    """Where the elements of an array lie."""
    return int(array.ctypes.data)


def _feed(buffer: Array, sizes: Array) -> tuple[int, ...]:
    """What `machine.run_fed` needs to know of an input."""
    return buffer.ctypes.data, buffer.nbytes, buffer.ndim, sizes.ctypes.data, id(buffer.dtype)
