"""Recording a training loop of PyTorch: hooks on the model and on the optimizer, and the loss from the user."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from os import PathLike
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from ....base.arrays import Array
from ....base.errors import DomainError, DTypeError
from ....base.packages import package
from ....base.runs.completed_step import CompletedStep
from ....base.runs.keep import Keep, Mode
from ....base.runs.run import RuleGroup, Run
from ....base.system import FilePath
from ....tape.location import CodePosition
from ...v2.format.constants import FOREIGN_NUMERICS
from ...v2.write.recorder import TraceRecorder
from ..run import RecordedRun
from ..shared import Framework, TraceTarget, begin, leaves, named_arrays
from .arrays import array
from .layer_tape import LayerTape
from .op_calls import OpCalls
from .torch_modules import TorchModules
from .torch_optimizer import TorchOptimizer

Level: TypeAlias = Literal["layer", "op"]
"""What is digested on the way: what layers take and give, or besides every op that is called."""


def record_torch(
    model: Any,
    optimizer: Any,
    trace: TraceTarget,
    *,
    record: Mode | None = None,
    seed: int | None = None,
    level: Level | None = None,
) -> "TorchRun":
    """Record a PyTorch training loop: every ``optimizer.step()`` from now on, until the ``with`` block ends.

    Written down are, of every step, the loss, the gradients as the optimizer consumed them, the hyperparameters, the
    params after it, the model's buffers and a digest of the batch. ``SGD``, ``Adam`` and ``AdamW`` are recorded as the
    laws of these names, with their state, and `recompute` computes their updates again; of another optimizer, and with
    ``maximize`` or ``amsgrad``, the options and the number of steps are recorded, and it stays unproven.

    Shapes: params of any shape, and gradients as their params.
    Dtypes: params float32 or float64. Under autocast they are, and what layers compute in less is kept as float32.

    Args:
        model: the ``torch.nn.Module`` that holds all that the optimizer updates.
        optimizer: the ``torch.optim.Optimizer``. Parameter groups may have options of their own; schedulers may change
            them from step to step.
        trace: a path; a `Keep`, which says besides the path what the trace keeps, its ``ops`` being what layers take
            and give, and their gradients; or what opens the recorder: ``golden_trace()``. In a path ``{rank}`` stands
            for the number of this process in ``torch.distributed``, 0 where there is one: each has a file of its own.
        record: what is kept of each step where `trace` is a path: "full", the default, "grads" or "digest". Digests
            have no tolerance, and a framework that promises no bits needs one.
        seed: of the run, for people; default: ``torch.initial_seed()``.
        level: "op" records, at the steps of which the trace keeps the ``ops``, besides the layers every op that PyTorch
            calls in eager code, in the order of execution: its options, digests of what it takes and gives, its phase,
            layer and line. They are written while the step runs, so that a run that hangs or dies shows its last ops;
            that takes some tenths of a millisecond a call. Default: "layer", or what a golden trace asks for.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
        DTypeError: an argument is of another type.
        DomainError: the optimizer updates a tensor that is no parameter of the model, a parameter is of another dtype
            or has no shape yet, or the level is another.
        TraceWriteError: the trace cannot be begun.

    >>> import tempfile, torch
    >>> from dgrr.trace import open_trace
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> path = tempfile.mkdtemp() + "/run.dgrr"
    >>> with record_torch(model, optimizer, path) as run:
    ...     for x in torch.ones(4, 8, 3):
    ...         optimizer.zero_grad()
    ...         loss = run.loss(model(x).square().mean(), batch=x)
    ...         loss.backward()
    ...         optimizer.step()
    >>> len(open_trace(path))
    4
    """
    torch = package("record_torch", "torch")
    _check("model", model, torch.nn.Module, "torch.nn.Module")
    _check("optimizer", optimizer, torch.optim.Optimizer, "torch.optim.Optimizer")
    chosen: Level = level or getattr(trace, "level", None) or "layer"
    if chosen not in get_args(Level):
        raise DomainError(f"record_torch: argument 'level': expected 'layer' or 'op', got {level!r}")
    modules = TorchModules(model)
    _check_params(torch, modules.params)
    reader = TorchOptimizer(torch, optimizer, modules.params)
    framework = Framework("torch", torch.__version__, _settings(torch, modules.params), reader.groups, reader.counts)
    begins = _state(modules, reader, 0)
    run = Run(
        **begins,
        rules=[RuleGroup(reader.rule, tuple(reader.hyper()))],
        numerics=FOREIGN_NUMERICS,
        seed=torch.initial_seed() % 2**64 if seed is None else seed,
    )
    recorder = begin("record_torch", _of_rank(torch, trace), run, framework, record)
    return TorchRun(torch, model, modules, optimizer, reader, recorder, chosen)


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
    ) -> None:
        super().__init__(recorder)
        self._handed = list[_Handed]()
        self._calls = list[dict[str, Array]]()
        self._first: Array | None = None
        self._stepped: CodePosition | None = None
        self._torch, self._modules, self._reader = torch, modules, reader
        self._params = modules.params
        self._layers = LayerTape(torch, modules, recorder.digest)
        self._ops = OpCalls(torch, self._layers, recorder.digest, recorder.calls) if level == "op" else None
        self._hooks = [
            model.register_forward_pre_hook(self._called, with_kwargs=True),
            optimizer.register_step_pre_hook(self._before),
            optimizer.register_step_post_hook(self._after),
        ]
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
        if all(param.grad is None for param in self._params.values()):
            self._handed = [handed for handed in self._handed if not handed.spent]
        given = None if batch is None else named_arrays("record_torch: argument 'batch'", batch, self._converted)
        handed = _Handed(self._scalar(loss), self._calls if given is None else [given])
        if isinstance(loss, self._torch.Tensor) and loss.requires_grad:
            loss.register_hook(handed.spend)
        self._handed.append(handed)
        self._calls = []
        self._layers.loss(loss)
        return loss

    def _detach(self) -> None:
        for hook in self._hooks:
            hook.remove()
        if self._ops is not None:
            self._ops.stop()
        self._layers.close()

    def _begin_step(self) -> None:
        self._handed, self._calls, self._first = [], [], None
        self._layers.clear()
        self._layers.noting = self._recorder.wants_tape(self.steps)
        if self._ops is not None and self._layers.noting:
            self._ops.start()

    def _called(self, model: Any, args: Any, kwargs: Any) -> None:
        """Note what the model is called with, where gradients are computed."""
        if not self._torch.compiler.is_compiling() and self._torch.is_grad_enabled():
            arrays = {name: self._converted(value) for name, value in leaves((*args, kwargs))}
            self._calls.append({name: value for name, value in arrays.items() if value is not None})

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Look for the loss before the update, and note that of a closure."""
        self._stepped = self._layers.user()
        if self._ops is not None:
            self._ops.is_optimizing = True
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._require_loss()
            return None

        def noted() -> Any:
            value = closure()
            if self._first is None and value is not None:
                self._first = self._scalar(value)
            return value

        if "closure" in kwargs:
            return args, {**kwargs, "closure": noted}
        return (args[0], noted, *args[2:]), kwargs

    def _require_loss(self) -> None:
        if self._first is None and not self._handed:
            raise DomainError(
                f"record_torch: step {self.steps}: expected its loss, got none; call run.loss(loss) before "
                "optimizer.step(), or hand the step a closure"
            )

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Record the step that was just done."""
        if self._ops is not None:
            self._ops.stop()
        self._require_loss()
        step, losses = self.steps, [handed.loss for handed in self._handed]
        losses = losses if self._first is None else [self._first]
        kept = {name: param.grad for name, param in self._params.items() if param.grad is not None}
        grads = {name: array(grad) for name, grad in kept.items() if name in self._reader.updated}
        self._layers.consumed(grads, self._stepped)
        done = CompletedStep(
            step=step,
            loss=reduce(np.add, losses),
            hyper=self._reader.hyper(),
            grads=grads,
            **_state(self._modules, self._reader, step + 1),
            batch=self._batch(),
            micro_batches=len(losses),
            tape=self._layers.taken() if self._layers.noting else None,
        )
        self._recorder.step(done)
        self._begin_step()

    def _batch(self) -> dict[str, Array]:
        """What was handed over as the batch, else what the model was called with; several with their numbers."""
        batches = [batch for handed in self._handed for batch in handed.batches] or self._calls
        if len(batches) == 1:
            return batches[0]
        return {f"{i}.{name}": value for i, batch in enumerate(batches) for name, value in batch.items()}

    def _converted(self, value: Any) -> Array | None:
        return array(value) if isinstance(value, self._torch.Tensor) else None

    def _scalar(self, loss: Any) -> Array:
        arrays = named_arrays("record_torch: argument 'loss'", loss, self._converted)
        if list(arrays) != ["0"] or arrays["0"].size != 1:
            shapes = [value.shape for value in arrays.values()]
            raise DomainError(f"record_torch: argument 'loss': expected one number, got shapes {shapes}")
        value = arrays["0"].reshape(())
        return value if value.dtype.kind == "f" else value.astype(np.float64)


def _of_rank(torch: Any, trace: TraceTarget) -> TraceTarget:
    """The file of this process: its number in the place of ``{rank}``."""
    if isinstance(trace, Keep):
        return replace(trace, path=cast(FilePath, _of_rank(torch, trace.path)))
    if not isinstance(trace, str | PathLike):
        return trace
    ranks = torch.distributed
    rank = ranks.get_rank() if ranks.is_available() and ranks.is_initialized() else 0
    return os.fspath(trace).replace("{rank}", str(rank))


def _check(argument: str, given: object, kind: type, name: str) -> None:
    if not isinstance(given, kind):
        raise DTypeError(f"record_torch: argument {argument!r}: expected a {name}, got {type(given).__name__}")


def _check_params(torch: Any, params: Mapping[str, Any]) -> None:
    for name, param in params.items():
        if torch.nn.parameter.is_lazy(param):
            raise DomainError(f"record_torch: parameter {name!r} has no shape yet; call the model once before")
        if param.dtype not in (torch.float32, torch.float64):
            raise DomainError(
                f"record_torch: parameter {name!r}: expected float32 or float64, got {param.dtype}; keep the params in "
                "float32 and compute in less under torch.autocast"
            )


def _state(modules: TorchModules, reader: TorchOptimizer, steps: int) -> dict[str, Any]:
    """Params, state of the optimizer and of the model after so many steps of the trace."""
    return {
        "params": {name: array(param) for name, param in modules.params.items()},
        "state": reader.state(steps),
        "model_state": {name: array(buffer) for name, buffer in modules.buffers.items()},
    }


def _settings(torch: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the results of PyTorch depend on."""
    return {
        "devices": sorted({str(param.device) for param in params.values()}),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "onednn": bool(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        "mkl": bool(torch.backends.mkl.is_available()),
        **(_cuda_settings(torch) if torch.cuda.is_available() else {}),
    }


def _cuda_settings(torch: Any) -> dict[str, Any]:
    """What results on NVIDIA's devices depend on."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": torch.version.cuda,
        "cudnn": cudnn.version(),
        "tf32": [bool(cuda.matmul.allow_tf32), bool(cudnn.allow_tf32)],
        "benchmark": bool(cudnn.benchmark),
        "attention": [
            bool(cuda.flash_sdp_enabled()),
            bool(cuda.mem_efficient_sdp_enabled()),
            bool(cuda.math_sdp_enabled()),
        ],
    }
