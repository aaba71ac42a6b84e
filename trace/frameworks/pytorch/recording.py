"""Recording a training loop of PyTorch: what is asked for is checked, and the trace begun."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast, get_args

from ....base.errors import DomainError, DTypeError
from ....base.packages import package
from ....base.runs.keep import Keep, Mode
from ....base.runs.run import RuleGroup, Run
from ...v2.format.constants import FLOATS, FOREIGN_NUMERICS, SHARDS_EVENT
from ...v2.format.digest import FORMAT_NAMES
from ..shared import Framework, TraceTarget, begin
from .additive_digests import are_wanted
from .arrays import dtype_word
from .early_updates import as_one
from .part_sums import PartSums
from .ranks import is_of_ranks, of_rank, shards
from .restart import Restart, drawn_so_far
from .torch_modules import TorchModules
from .torch_optimizer import TorchOptimizer
from .torch_run import Level, TorchRun, state_of
from .torch_settings import commit, settings_of


def record_torch(
    model: Any,
    optimizer: Any,
    trace: TraceTarget,
    *,
    record: Mode | None = None,
    state_every: int | None = None,
    master_weights: Mapping[str, Any] | None = None,
    seed: int | None = None,
    level: Level | None = None,
    additive: bool | None = None,
) -> "TorchRun":
    """Record a PyTorch training loop: every ``optimizer.step()`` from now on, until the ``with`` block ends.

    Written down are, of every step, the loss, the gradients as the optimizer consumed them, the hyperparameters, the
    params after it, the model's buffers and a digest of the batch. ``SGD``, ``Adam`` and ``AdamW`` are recorded as the
    laws of these names, with their state, and `recompute` computes their updates again; of another optimizer, and with
    ``maximize`` or ``amsgrad``, the options and the number of steps are recorded, and it stays unproven.

    Shapes: params of any shape, and gradients as their params.
    Dtypes: floats of 64 to 8 bits and complex numbers, recorded as the bits they are. `recompute` knows the updates of
    float32 and float64.

    Args:
        model: the ``torch.nn.Module`` that holds all that the optimizer updates.
        optimizer: the ``torch.optim.Optimizer``. Parameter groups may have options of their own; schedulers may change
            them from step to step. Or a list of optimizers of one class that step in the backward pass, each once, in
            hooks of ``register_post_accumulate_grad_hook``: each backward pass is then a step of all of them.
        trace: a path; a `Keep`, which says besides the path what the trace keeps, its ``ops`` being what layers take
            and give, and their gradients; or what opens the recorder: ``golden_trace()``. In a path ``{rank}`` stands
            for the number of this process in ``torch.distributed``, 0 where there is one: each has a file of its own,
            of its shards.
        record: what is kept of each step where `trace` is a path: "full", the default, "grads" or "digest". Digests
            have no tolerance, and a framework that promises no bits needs one.
        state_every: after how many steps the whole state is recorded where `trace` is a path: with 1 `recompute` knows
            the state before every step. Default: as of `Keep`.
        master_weights: where the params of the model are roundings of others, which the optimizer updates: name of the
            param → its master weight. The trace has the master weights by the names of the params, and these as
            ``NAME.rounded`` among the buffers.
        seed: of the run, for people; default: ``torch.initial_seed()``.
        level: "op" records, at the steps of which the trace keeps the ``ops``, besides the layers every op that PyTorch
            calls in eager code, in the order of execution: its options, digests of what it takes and gives, its phase,
            layer and line. They are written while the step runs, so that a run that hangs or dies shows its last ops;
            that takes about a tenth of a millisecond a call. Default: "layer", or what a golden trace asks for.
        additive: whether digests of what is computed on the way are additive ones, made on the GPU that a tensor
            lies on and brought in one copy, where others are made of a copy of the tensor. Traces with and without
            can be compared in all but what layers and ops computed. Default: whether a param lies on an
            NVIDIA GPU, and NVRTC is installed, which comes with PyTorch and with the extra ``cuda``.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
        ImportError, CudaError: additive digests are asked for on a GPU that cannot make them.
        DTypeError: an argument is of another type.
        DomainError: the optimizer updates a tensor that is no parameter of the model, optimizers in a list are of
            several classes, a parameter is of another dtype or has no shape yet or is a part of a sum, the level is
            another, or one path is that of several processes.
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
    several = cast(Sequence[Any], optimizer) if isinstance(optimizer, list) else None
    one: Sequence[Any] = [optimizer]
    for each in one if several is None else several:
        _check("optimizer", each, torch.optim.Optimizer, "torch.optim.Optimizer")
    chosen = _level(trace, level, several)
    modules = TorchModules(model, master_weights)
    _check_params(torch, modules.params)
    reader = TorchOptimizer(torch, optimizer if several is None else as_one(several), modules.trained)
    restart: Restart | None = getattr(trace, "restart", None)
    if restart is not None and not restart.restore(torch, modules, reader):
        restart = None
    target, settings = of_rank(torch, trace), settings_of(torch, modules.params)
    sums = PartSums(torch, modules) if is_of_ranks(trace) else None
    if isinstance(target, str | Keep):  # what golden_trace() records is one file, whatever the commit
        settings["commit"] = commit()
    additive = are_wanted(modules.params, additive=additive)
    recorder = begin(
        "record_torch",
        target,
        _begun(torch, modules, reader, seed, calls=chosen == "op", additive=additive),
        Framework("torch", torch.__version__, settings, reader.groups, reader.counts),
        record,
        state_every=state_every,
    )
    for text in shards(torch, modules):
        recorder.event(SHARDS_EVENT, text)
    kind: dict[str, bool] = {"additive": additive, "is_golden": hasattr(trace, "level")}
    return TorchRun(torch, model, modules, optimizer, reader, recorder, chosen, sums, restart, **kind)


def _level(trace: TraceTarget, level: Level | None, several: Sequence[Any] | None) -> Level:
    """What is recorded on the way, as asked for here, or by what the trace is for."""
    if level not in (None, *get_args(Level)):
        raise DomainError(f"record_torch: argument 'level': expected 'layer' or 'op', got {level!r}")
    asked = getattr(trace, "level", None) if several is None else None
    return level or asked or "layer"


def _begun(
    torch: Any, modules: TorchModules, reader: TorchOptimizer, seed: int | None, *, calls: bool, additive: bool
) -> Run:
    """The run before its first step."""
    return Run(
        **state_of(modules, reader, 0, copy=False),
        rules=[RuleGroup(reader.rule, tuple(reader.hyper()))],
        numerics=FOREIGN_NUMERICS,
        seed=torch.initial_seed() % 2**64 if seed is None else seed,
        calls=calls,
        additive=additive,
        generators=partial(drawn_so_far, torch),
    )


def _check(argument: str, given: object, kind: type, name: str) -> None:
    if not isinstance(given, kind):
        raise DTypeError(f"record_torch: argument {argument!r}: expected a {name}, got {type(given).__name__}")


def _check_params(torch: Any, params: Mapping[str, Any]) -> None:
    for name, param in params.items():
        if torch.nn.parameter.is_lazy(param):
            raise DomainError(f"record_torch: parameter {name!r} has no shape yet; call the model once before")
        word = dtype_word(param.dtype)
        if FORMAT_NAMES.get(word) not in FLOATS:
            known = ", ".join(word for word, name in FORMAT_NAMES.items() if name in FLOATS)
            raise DomainError(f"record_torch: parameter {name!r}: expected {known}; got {word}")
