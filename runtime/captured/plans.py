"""The plans of a captured step for batches of one signature."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ...arrays import Array
from ...tape import AnyTensor, BoundsError
from ...tape.graph.backward import DenseGrads
from ..ir.graph import IRGraph, Role, gradient_name
from ..ir.record import Recording, gradients_graph, metric_name, record, step_graph
from ..lower.bind import Bound, Fault, bind
from ..lower.lower import stored
from ..lower.plan import BindingPlan
from ..step.batch import BatchSignature, batch_arrays, map_batch
from ..step.eager import TrainingStep, mean_metrics
from ..step.memory import empty

Compiler = Callable[[IRGraph, Mapping[int, Array]], BindingPlan]

Kind = Literal["step", "gradients", "dense"]


class Plans:
    """One recording of the loss function, and what is made of it: the step, its gradients, its dense gradients.

    All share the parameters, the state and the input buffers; each has an arena of its own.
    """

    def __init__(self, step: TrainingStep, example: Any, signature: BatchSignature, compile: Compiler) -> None:
        self.signature, self._step, self._compile = signature, step, compile
        self.recording = record(step.loss_fn, step.params, example, step.recipe, step.model_state, step.seed)
        self.inputs = [empty(shape, dtype) for _, shape, dtype in signature]
        buffers = iter(self.inputs)
        self.bound = map_batch(lambda where, leaf: next(buffers), example)
        """The batch that is bound: the input buffers in the form of a batch."""
        self._sizes = [np.array(shape, np.int64) for _, shape, _ in signature]
        self._feeds = np.array([_feed(*pair) for pair in zip(self.inputs, self._sizes, strict=True)], np.int64)
        self.feeds = int(self._feeds.ctypes.data)
        """The address of what `machine.run_fed` needs to know of the inputs."""
        places = [where for where, _, _ in signature]
        self._single = places == ["batch"]
        self._flat = bool(places) and places == [f"batch[{i}]" for i in range(len(places))]
        kind = example.__class__
        self._names: list[Any] = list(example) if kind is dict else []
        self._named = bool(places) and places == [f"batch[{name!r}]" for name in self._names]

    def flat(self, batch: Any) -> tuple[Any, ...] | None:
        """What a batch of one array, or a tuple, list or dict of as many as here, holds; None for any other."""
        kind = batch.__class__
        if kind is tuple or kind is list:
            found = tuple(batch) if self._flat else ()
        elif kind is dict:
            found = tuple(batch.values()) if self._named and list(batch) == self._names else ()
        else:
            found = (batch,) if self._single else ()
        return found if found and len(found) == len(self.inputs) else None

    def feed(self, batch: Any) -> None:
        """Copy a batch of this signature into the input buffers; lists, numbers and other integers are converted."""
        for array, buffer in zip(batch_arrays(batch), self.inputs, strict=True):
            np.copyto(buffer, np.asarray(array))

    @cached_property
    def _recorded(self) -> tuple[IRGraph, dict[int, Array]]:
        return step_graph(self.recording, self._step.recipe, self._step.state)

    @property
    def graph(self) -> IRGraph:
        """The whole step, as recorded."""
        return self._recorded[0]

    def executable(self, kind: Kind) -> "Executable":
        """One of the three plans, compiled at its first use."""
        return getattr(self, kind)  # type: ignore[no-any-return]

    @cached_property
    def step(self) -> "Executable":
        """Forward, loss, backward, optimizer."""
        return self._bound(*self._recorded)

    @cached_property
    def gradients(self) -> "Executable":
        """Loss and the gradients of the parameters, without an update."""
        return self._bound(*gradients_graph(self.recording, dense=False))

    @cached_property
    def dense(self) -> "Executable":
        """Loss and the gradient of every value that depends on a parameter, without an update."""
        return self._bound(*gradients_graph(self.recording, dense=True))

    def _bound(self, graph: IRGraph, constants: dict[int, Array]) -> "Executable":
        plan = self._compile(graph, constants)
        outside: dict[int, Array] = dict(zip(self.recording.inputs, self.inputs, strict=True))
        outside |= {id: self._step.params[name] for name, id in self.recording.params.items()}
        values = plan.program.graph.values
        for id, value in values.items():
            if id in constants:
                outside[id] = stored(constants[id])[0]
            elif value.role is Role.STATE:
                outside[id] = self._step.state[value.name]
            elif value.role is Role.MODEL_STATE:
                outside[id] = self._step.model_state[value.name]
        return Executable(bind(plan, outside), self.recording)

    @cached_property
    def dense_gradients(self) -> DenseGrads[AnyTensor]:
        """The gradients that the dense plan leaves in its arena, by name or id of the recorded tape."""
        tape, outputs = self.recording.tape, self.dense.bound.plan.program.graph.outputs
        found: list[AnyTensor | None] = [None] * len(tape)
        for id in self.recording.dense:
            found[id] = AnyTensor(self.dense.bound.value(outputs[gradient_name(id)]))
        return DenseGrads(list(tape), found, tape.node)


class Executable:
    """A bound plan with its loss, its gradients and its metrics as arrays at fixed addresses."""

    def __init__(self, bound: Bound, recording: Recording) -> None:
        params = recording.params
        self.bound = bound
        outputs = bound.plan.program.graph.outputs
        self.loss = bound.value(outputs["loss"])
        self.grads = {n: bound.value(outputs[g]) for n, id in params.items() if (g := gradient_name(id)) in outputs}
        self.clip = bound.value(outputs["clip"]) if "clip" in outputs else None
        """The norm of all gradients and what they were multiplied by, where they are clipped by norm."""
        shown = [
            {name: bound.value(outputs[o]) for name in made if (o := metric_name(name, k)) in outputs}
            for k, made in enumerate(recording.metrics)
        ]
        self._metrics = [made for made in shown if made]
        for array in (self.loss, *self.grads.values()):
            array.flags.writeable = False

    @property
    def metrics(self) -> dict[str, float]:
        """What the loss function gave to be shown in the last run: the means over its micro-batches."""
        return mean_metrics([{name: float(array[()]) for name, array in made.items()} for made in self._metrics])


def _feed(buffer: Array, sizes: Array) -> tuple[int, ...]:
    """What `machine.run_fed` needs to know of an input."""
    return buffer.ctypes.data, buffer.nbytes, buffer.ndim, sizes.ctypes.data, id(buffer.dtype)


def refused(bound: Bound, fault: Fault) -> BoundsError:
    """The error that a kernel's status stands for: an index out of range."""
    indices = bound.value(fault.op.inputs[1])
    position = fault.status - 1
    return BoundsError(fault.op.refusal.format(position=position, value=indices.flat[position]))
