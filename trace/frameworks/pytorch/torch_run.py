"""A training loop of PyTorch that is being recorded: hooks on the model and on the optimizer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from ....base.arrays import Array
from ....base.errors import DomainError
from ....base.runs.completed_step import LOSS_SCALE, CompletedStep, DigestedTape
from ....tape.location import CodePosition
from ...v2.format.constants import SUMS_EVENT
from ...v2.write.recorder import TraceRecorder
from ..run import RecordedRun
from ..shared import leaves, named_arrays, scalar_loss
from .additive_digests import AdditiveDigests
from .calls import WHOLE_STEP, OpCalls
from .early_updates import BackwardSteps, EarlyUpdates, early
from .layer_tape import LayerTape
from .module_call import loss_scale
from .part_sums import PartSums
from .restart import Restart
from .tensor_digests import TensorDigests
from .torch_modules import TorchModules
from .torch_optimizer import TorchOptimizer

Level: TypeAlias = Literal["layer", "op"]
"""What is digested on the way: what layers take and give, or besides every op that is called."""


def state_of(modules: TorchModules, reader: TorchOptimizer, steps: int, *, copy: bool) -> dict[str, Any]:
    """Params, state of the optimizer and of the model after so many steps of the trace."""
    held = reader.arrays.held
    return {
        "params": {name: held(name, param, copy=copy) for name, param in modules.trained.items()},
        "state": reader.state(steps, copy=copy),
        "model_state": {name: held(name, buffer, copy=copy) for name, buffer in modules.buffers.items()},
    }


@dataclass(slots=True, eq=False)
class _Handed:
    """A loss that was handed over, the batches it was computed from, and whether ``backward`` came through it."""

    loss: Array
    batches: list[dict[str, Array]]
    spent: bool = False

    def spend(self, grad: Any) -> None:
        """What a tensor calls when its gradient arrives."""
        self.spent = True


class TorchRun(RecordedRun):
    """A training loop of PyTorch that is being recorded; made by `record_torch`, and used in a ``with`` statement.

    Of a golden trace (``is_golden``), which is to be small, the calls of ops stand in the place of the layers.

    At the end of the block the hooks are taken away and the trace is sealed. After an error it stays unfinished and
    readable; where a loss or a gradient was not finite it is sealed.
    """

    def __init__(
        self,
        torch: Any,
        model: Any,
        modules: TorchModules,
        optimizer: Any,
        reader: TorchOptimizer,
        recorder: TraceRecorder,
        level: Level,
        sums: PartSums | None,
        restart: Restart | None,
        *,
        additive: bool,
        is_golden: bool,
    ) -> None:
        super().__init__(recorder)
        self._handed, self._own = list[_Handed](), list[_Handed]()
        self._calls = list[dict[str, Array]]()
        self._first: Array | None = None
        self._stepped: CodePosition | None = None
        self._scale: float | None = None
        self._torch, self._modules, self._reader = torch, modules, reader
        self._params, self._sums = modules.trained, sums
        self._restart, self._skipped = restart, 0
        self._early: EarlyUpdates | BackwardSteps = EarlyUpdates(self._params)
        made = (AdditiveDigests if additive else TensorDigests)(torch, recorder.algorithm)
        self._layers = LayerTape(torch, modules, made, labels=level == "op")
        together = WHOLE_STEP if is_golden else None
        ops: OpCalls | None = None
        if level == "op":
            behind = isinstance(optimizer, list)
            ops = OpCalls(torch, self._layers, made, recorder.calls, together, behind=behind)
        self._ops, self._tells_layers = ops, ops is None or not is_golden
        self._hooks = [
            model.register_forward_pre_hook(self._called, with_kwargs=True),
            model.register_forward_hook(self._gave),
        ]
        if isinstance(optimizer, list):
            several = cast(Sequence[Any], optimizer)
            self._early = BackwardSteps(torch, self._params, several, self._behind)
            for one in several if self._ops is not None else ():
                self._hooks.append(one.register_step_pre_hook(self._switcher(is_optimizing=True)))
                self._hooks.append(one.register_step_post_hook(self._switcher(is_optimizing=False)))
        else:
            self._hooks.append(optimizer.register_step_pre_hook(self._before))
            self._hooks.append(optimizer.register_step_post_hook(self._after))
        self._begin_step()

    def loss(self, loss: Any, batch: Any = None) -> Any:
        """Hand over the loss of the step, before ``optimizer.step()``; gives it back as it is.

        Where gradients are accumulated it is called once for each micro-batch, with what ``backward`` is called on: the
        sum is recorded, whose gradients they are. What was lost by ``zero_grad()``, as after a step that a gradient
        scaler left out, does not count. Where ``optimizer.step`` takes a closure, the first value of the closure is the
        loss of the step.

        Args:
            loss: a tensor of one element, or a number.
            batch: what the loss was computed from, of which the trace holds a digest: tensors, arrays and numbers, in
                mappings, lists and tuples. Default: what the model was called with since the last loss.

        Raises:
            DTypeError: the loss or the batch is something else.
            DomainError: the loss has more than one element.
        """
        where = "record_torch: argument 'batch'"
        given = None if batch is None else named_arrays(where, batch, self._converted, texts=True)
        self._hand_over(self._handed, loss, self._calls if given is None else [given])
        self._own, self._calls = [], []
        self._layers.loss(loss)
        return loss

    def skips(self, scaler: Any = None) -> bool:
        """Whether the loop is to go on with the next step: this one lies before the state that the run begins from.

        Always false but where `bisect_torch` begins from a recorded state: params, the optimizer and PyTorch's
        generators are set to it. What the loop has of its own, such as batches and a scheduler, it moves on itself.

        Args:
            scaler: a ``torch.amp.GradScaler``, which gets its recorded scale.

        >>> import tempfile, torch
        >>> from dgrr.trace import record_torch
        >>> model = torch.nn.Linear(3, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with record_torch(model, optimizer, tempfile.mkdtemp() + "/run.dgrr") as run:
        ...     for x in torch.ones(4, 8, 3):
        ...         if run.skips():
        ...             continue
        ...         run.loss(model(x).sum()).backward()
        ...         optimizer.step()
        >>> run.steps
        4
        """
        if self._restart is None or self._skipped == self._restart.step:
            return False
        self._skipped += 1
        if self._skipped == self._restart.step:
            self._restart.draw_on(self._torch)
            if scaler is not None:
                self._restart.scale_on(scaler)
        return True

    def _hand_over(self, losses: list["_Handed"], loss: Any, batches: list[dict[str, Array]]) -> None:
        """Note a loss; those before it that are spent do not count if no gradients are left of them."""
        if isinstance(self._early, EarlyUpdates):
            self._early.watch()
        if all(param.grad is None for param in self._params.values()):
            losses[:] = [handed for handed in losses if not handed.spent]
        handed = _Handed(self._scalar(loss), batches)
        if isinstance(loss, self._torch.Tensor) and loss.requires_grad:
            loss.register_hook(handed.spend)
        losses.append(handed)

    def _detach(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._early.stop()
        if self._ops is not None:
            self._ops.stop()
            self._ops.leave()
        self._layers.stop()

    def _begin_step(self) -> None:
        self._handed, self._own, self._calls, self._first = [], [], [], None
        if not self._recorder.wants_tape(self.steps):
            self._layers.stop()
            return
        self._layers.clear()
        self._layers.start()
        if self._ops is not None:
            self._ops.start()

    def _called(self, model: Any, args: Any, kwargs: Any) -> None:
        """Note what the model is called with, where gradients are computed."""
        if not self._torch.compiler.is_compiling() and self._torch.is_grad_enabled():
            arrays = {name: self._converted(value) for name, value in leaves((*args, kwargs))}
            self._calls.append({name: value for name, value in arrays.items() if value is not None})

    def _gave(self, model: Any, args: Any, output: Any) -> None:
        """Note a loss that the model itself gives, as those of `transformers` do; one that is handed over counts."""
        if self._torch.compiler.is_compiling() or not self._torch.is_grad_enabled():
            return
        loss: Any = cast(Mapping[str, Any], output).get("loss") if isinstance(output, Mapping) else output
        if isinstance(loss, self._torch.Tensor) and loss.numel() == 1 and loss.requires_grad and not loss.is_complex():
            self._hand_over(self._own, loss, self._calls[-1:])

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Look for the loss before the update, and note that of a closure."""
        if self._layers.is_backward():
            raise early("it is called")
        self._stepped, self._scale = self._layers.user(), loss_scale()
        if self._ops is not None:
            self._ops.is_optimizing = True
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._require_loss()
            return None

        first, handed = True, self._handed

        def noted() -> Any:
            nonlocal first
            before = list(handed)
            value = closure()
            if not first:
                handed[:] = before
            elif len(handed) == len(before) and value is not None:
                self._first = self._scalar(value)
            first = False
            return value

        if "closure" in kwargs:
            return args, {**kwargs, "closure": noted}
        return (args[0], noted, *args[2:]), kwargs

    def _require_loss(self) -> None:
        if self._first is None and not self._losses:
            raise DomainError(
                f"record_torch: step {self.steps}: expected its loss, got none; call run.loss(loss) before "
                "optimizer.step(), hand the step a closure, or let the model give its loss"
            )

    @property
    def _losses(self) -> list["_Handed"]:
        """Those that were handed over; if there are none, those that the model gave."""
        return self._handed or self._own

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Record the step that was just done."""
        if self._ops is not None:
            self._ops.stop()
        kept = {name: param.grad for name, param in self._params.items() if param.grad is not None}
        self._record({name: grad for name, grad in kept.items() if name in self._reader.updated})

    def _switcher(self, *, is_optimizing: bool) -> Callable[[Any, Any, Any], None]:
        """What is called where an optimizer begins, or ends, in the backward pass."""

        def switch(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self._ops is not None:
                self._ops.is_optimizing = is_optimizing

        return switch

    def _behind(self) -> None:
        """Record the step that was done in the backward pass that ends."""
        if self._ops is not None:
            self._ops.stop()
        if isinstance(self._early, BackwardSteps):
            self._record(self._early.taken())

    def _record(self, grads: Mapping[str, Any]) -> None:
        self._require_loss()
        step, losses = self.steps, [handed.loss for handed in self._losses]
        losses = losses if self._first is None else [self._first]
        self._layers.consumed(grads, self._stepped)
        read, copy = self._reader.arrays, self._recorder.keeps_values
        done = CompletedStep(
            step=step,
            loss=reduce(np.add, losses),
            hyper=self._reader.hyper(),
            grads={name: read(grad, copy=copy) for name, grad in grads.items()},
            **state_of(self._modules, self._reader, step + 1, copy=copy),
            batch=self._batch(),
            micro_batches=len(losses),
            metrics={} if self._scale is None else {LOSS_SCALE: self._scale},
            tape=self._tape(),
        )
        if self._sums is not None and self._recorder.digests_state(step):
            for text in self._sums.texts(done, grads):
                self._recorder.event(SUMS_EVENT, text)
        self._recorder.step(done)
        self._recorder.settle()
        self._begin_step()

    def _tape(self) -> DigestedTape | None:
        """What layers took and gave, where it is noted; where calls stand for it, only that a model is compiled."""
        if not self._layers.noting:
            return None
        tape = self._layers.taken()
        return tape if self._tells_layers or tape.is_compiled else None

    def _batch(self) -> dict[str, Array]:
        """What was handed over as the batch, else what the model was called with; several with their numbers."""
        batches = [batch for handed in self._losses for batch in handed.batches] or self._calls
        if len(batches) == 1:
            return batches[0]
        return {f"{i}.{name}": value for i, batch in enumerate(batches) for name, value in batch.items()}

    def _converted(self, value: Any) -> Array | None:
        return self._reader.arrays(value, copy=True) if isinstance(value, self._torch.Tensor) else None

    def _scalar(self, loss: Any) -> Array:
        arrays = named_arrays("record_torch: argument 'loss'", loss, self._converted)
        if list(arrays) != ["0"] or arrays["0"].size != 1:
            shapes = [value.shape for value in arrays.values()]
            raise DomainError(f"record_torch: argument 'loss': expected one number, got shapes {shapes}")
        return scalar_loss(arrays["0"].reshape(()))
