"""A captured forward pass: recorded once for each signature of its batches, then run from fixed tables."""

from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.arrays import Array
from ...base.collector import collector_paused
from ...tape import DomainError
from ..ir.forward import ForwardRecording, forward_graph, record_forward
from ..ir.same import same_recording
from ..library.source import LibrarySource, Weights, closed_over, names_of
from ..lower.bind import BoundPlan, Fault
from ..lower.compile import compile_alone, compile_graph
from ..step.batch import BatchSignature, batch_signature, map_batch
from ..step.forward import Forward, eager_forward
from ..step.loss_call import RunPoint
from ..step.training_step import StateDict
from .buffers import InputBuffers, bound_on
from .held import hold, hold_alike
from .kept import PLAN_BYTES, KeptPlans
from .plans import refused
from .purity import PurityLooks, require_equal
from .reads import Reads

if TYPE_CHECKING:
    from ..cuda.mirror import Mirror


class CapturedForward:
    """A function of parameters and a batch, to the bit what `eager_forward` gives; nothing is trained or changed.

    Args:
        function: see `Forward`.
        arrays: parameters, state and the model's state; read at each call where they lie, never copied.
        seed: of ``ctx.random``.
        plan_bytes: how much memory the tables of batches of different shapes may take.
        mirror: that of ``arrays`` on the GPU that runs it; None where it runs here.
    """

    def __init__(
        self,
        function: Forward,
        arrays: StateDict,
        seed: int = 0,
        plan_bytes: int = PLAN_BYTES,
        mirror: "Mirror | None" = None,
    ) -> None:
        self._function, self._arrays, self._seed, self._mirror = function, arrays, seed, mirror
        self._known = KeptPlans[_Table]("capture_function", plan_bytes)
        self._table: _Table | None = None

    def __call__(self, batch: Any) -> Any:
        """The result on a batch, with arrays in place of Vars: views that are valid until the next call.

        Raises what the function raises; TapeError if it reads a value, which is not there while it is recorded;
        CaptureError if it does another thing when it is recorded once more, at first or before the runs 2, 4, 8, …;
        BoundsError for an index out of range.
        """
        table = self._table
        flat = None if table is None else table.flat(batch)
        if table is not None and flat is not None and table.looks.count() and table.run(flat):
            return table.result
        key = batch_signature(batch)
        if self._mirror is None and not self._known.is_worth(key):
            return self._op_by_op(batch)
        table = self._bound_to(batch, key)
        while not table.looks.count():
            self._known.drop(key)
            table = self._bound_to(batch, key)
        table.feed(batch)
        table.run()
        return table.result

    def source(self, function: Any, name: str, weights: Weights) -> LibrarySource:
        """What a library is made of, for the signature that came last. Raises DomainError if none has come."""
        if self._table is None:
            raise DomainError(
                "export_library: argument 'captured': expected a function that was captured for some arrays, got "
                "one for none; give an example: capture_function(function, x)"
            )
        return self._table.source(function, name, weights)

    def _op_by_op(self, batch: Any) -> Any:
        state = self._arrays["state"]
        step = int(state["step"]) if "step" in state else 0
        point = RunPoint(step, self._seed, self._arrays["model_state"], training=False)
        return eager_forward(self._function, self._arrays["params"], batch, point)

    def _bound_to(self, batch: Any, key: BatchSignature) -> "_Table":
        """The table for batches like this one; recorded at the first of its signature."""
        table = self._known.get(key)
        if table is None:
            table = _Table(self._function, self._arrays, self._seed, batch, key, self._mirror)
            self._known.put(key, table)
        self._table = table
        return table


class _Table(InputBuffers):
    """What runs for batches of one signature."""

    @collector_paused()
    def __init__(
        self,
        function: Forward,
        arrays: StateDict,
        seed: int,
        example: Any,
        signature: BatchSignature,
        mirror: "Mirror | None",
    ) -> None:
        super().__init__(example, signature, mirror)
        given = (function, arrays["params"], self.bound, arrays["model_state"], seed)
        self._record, self._here = partial(record_forward, *given, unrolls=mirror is not None), mirror is None
        self._recording = recording = self._record()
        reads = Reads(function)
        again = self._record()
        compared = hold(recording, again, (), here=self._here)
        self._graph, constants = forward_graph(recording)
        self._require_same(again, "the second time", arrays=True)
        self.looks = PurityLooks(reads, compared, self._look)
        plan = compile_graph(self._graph, constants, on_gpu=mirror is not None)
        self._bound: BoundPlan = bound_on(mirror, plan, recording, self.inputs, constants, arrays)
        self._views = self._made()

    def source(self, function: Any, name: str, weights: Weights) -> LibrarySource:
        """What a library is made of; ``function`` is what closes over arrays."""
        recording, where = self._recording, [place for place, _, _ in self.signature]
        graph, constants = forward_graph(recording)
        inputs = dict(zip(names_of(where, "in", "in0"), recording.inputs, strict=True))
        outputs = dict(zip(names_of(graph.outputs, "out", "out"), graph.outputs, strict=True))
        arrays = recording.tape.held if weights == "state" else {}
        names = closed_over(function, list(arrays.values()))
        held = {id: (known, array) for known, (id, array) in zip(names, arrays.items(), strict=True)}
        return LibrarySource(name, graph, constants, inputs, outputs, held, compile_alone)

    @property
    def nbytes(self) -> int:
        """Of the input buffers and the arena."""
        return super().nbytes + self._bound.plan.arena_bytes

    def _look(self, when: str) -> None:
        again = self._record()
        hold_alike(self._recording, again)
        self._require_same(again, when, arrays=False)

    def _require_same(self, again: ForwardRecording, when: str, *, arrays: bool) -> None:
        if not same_recording(self._recording, again):
            require_equal("the function", self._graph, forward_graph(again)[0], again, when, arrays=arrays)

    @property
    def result(self) -> Any:
        """What the last run has made: views, into which a GPU's is copied."""
        return self._views if self._here else self._made()

    def _made(self) -> Any:
        outputs = self._bound.plan.program.graph.outputs
        return map_batch(lambda where, id: self._view(outputs[where]), self._recording.result, "result")

    def _view(self, id: int) -> Array:
        array = self._bound.value(id)
        array.flags.writeable = False
        return array

    def run(self, flat: tuple[Any, ...] | None = None) -> bool:
        """Run on the batch that lies in the buffers, or is copied there first; False if it does not fit."""
        try:
            if flat is not None:
                return self._bound.run_fed(self.feeds, flat)
            self._bound.run()
        except Fault as fault:
            raise refused(self._bound, fault, self._recording.tape) from None
        return True
