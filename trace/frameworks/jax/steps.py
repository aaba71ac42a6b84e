"""Recording the steps of a JAX program: pytrees of arrays before and after each of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

from ....base.arrays import Array
from ....base.errors import DomainError, DTypeError
from ....base.packages import package
from ....base.runs.completed_step import CompletedStep
from ....base.runs.keep import Mode
from ....base.runs.run import RuleGroup, Run
from ....runtime.optim import Rule
from ...v2.format.constants import FLOATS, FOREIGN_NUMERICS, SHARDS_EVENT
from ...v2.format.digest import FORMAT_NAMES
from ...v2.write.recorder import TraceRecorder
from ..laws import FUSED, corrections
from ..run import RecordedRun
from ..shared import Framework, TraceTarget, begin, named_arrays, scalar_loss
from .devices import Devices
from .ops import JaxOps

_Given = TypeVar("_Given")

JaxLevel: TypeAlias = Literal["op"]
"""What is digested on the way: every op of the function that a step calls."""


def record_jax(
    params: Any,
    trace: TraceTarget,
    *,
    rule: str,
    hyper: Mapping[str, float],
    state: Any = None,
    model_state: Any = None,
    count: int = 0,
    record: Mode | None = None,
    seed: int = 0,
    level: JaxLevel | None = None,
) -> "JaxRun":
    """Record a JAX program, which passes params, gradients and loss after every step, outside of ``jax.jit``.

    Tensors have the names of their paths in the pytrees, such as ``dense.0.w``. Of arrays on several devices the trace
    holds the whole; if its path has ``{rank}`` in it, there is a trace for each device, with the part there.

    Shapes: params of any shape, and gradients as their params.
    Dtypes: floats of 64 to 8 bits and complex numbers, recorded as the bits they are.

    Args:
        params: a pytree of arrays, before the first step.
        trace: a path; a `Keep`, which says besides the path what the trace keeps; or what opens the recorder:
            ``golden_trace()``.
        rule: ``sgd@1``, ``adam@1`` or ``adamw@1`` for an optimizer that follows the law of that name, whose updates
            `recompute` computes again; a name and a version of your own, such as ``my_lion@1``, for any other.
        hyper: its hyperparameters, such as ``{"lr": 1e-3}``. Of a law those that are left out have its defaults.
        state: of the optimizer. Of a law, a mapping of pytrees like the params: ``{"m": …, "v": …}`` for Adam and AdamW
            (optax: ``mu`` and ``nu``), ``{"momentum": …}`` for SGD with momentum; of any other rule, any pytree.
        model_state: a pytree of what the model keeps besides its params.
        count: how many updates there were before.
        record: what is kept of each step where `trace` is a path: "full", the default, "grads" or "digest". Digests
            have no tolerance, and a framework that promises no bits needs one.
        seed: of the run, for people.
        level: "op" records, at the steps of which the trace keeps the ``ops``, every op of the function that
            ``run.call`` calls: its parameters, digests of what it takes and gives, its phase, scope and line. Default:
            none, or what a golden trace asks for.

    Raises:
        ModuleNotFoundError: JAX is not installed.
        DTypeError: a leaf of a pytree is no array of a dtype that is recorded, or is traced.
        DomainError: the state or the hyperparameters are not those of the law, a name breaks a rule of the format, the
            level is another, or one path is that of several processes.
        TraceWriteError: the trace cannot be begun.

    >>> import tempfile, jax
    >>> from dgrr.trace import open_trace
    >>> params, path = {"w": jax.numpy.ones(3)}, tempfile.mkdtemp() + "/run.dgrr"
    >>> gradient = jax.value_and_grad(lambda params, x: (params["w"] * x).sum() ** 2)
    >>> with record_jax(params, path, rule="sgd@1", hyper={"lr": 0.1}) as run:
    ...     for x in jax.numpy.eye(3):
    ...         loss, grads = gradient(params, x)
    ...         params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    ...         run.step(params, grads, loss, batch=x)
    >>> open_trace(path).loss.tolist()
    [1.0, 1.0, 1.0]
    """
    jax = package("record_jax", "jax")
    chosen: JaxLevel | None = level or getattr(trace, "level", None)
    if chosen not in (None, "op"):
        raise DomainError(f"record_jax: argument 'level': expected 'op' or None, got {level!r}")
    framework = Framework("jax", jax.__version__, _settings(jax))
    whole = _Trees(jax)
    devices = Devices(jax, whole.named(params))
    traces = list[_Trace]()
    for device, target in devices.traces(trace):
        trees = _Trees(jax, device)
        told = _Rule(trees, rule, hyper, count)
        run = Run(
            trees.params(params),
            told.state(state, 0),
            [RuleGroup(rule, tuple(told.hyper))],
            numerics=FOREIGN_NUMERICS,
            model_state=trees.arrays("model_state", model_state),
            seed=seed,
            calls=chosen == "op",
        )
        recorder = begin("record_jax", target, run, framework, record)
        if device is not None:
            leaves = {**trees.named(params), **told.named(state), **trees.named(model_state)}
            for text in devices.shards(device, leaves):
                recorder.event(SHARDS_EVENT, text)
        traces.append(_Trace(trees, told, recorder))
    return JaxRun(jax, traces, chosen)


@dataclass(frozen=True, slots=True)
class _Trace:
    """One trace of a run: how it reads pytrees, the rule as it has it, and what writes it."""

    trees: "_Trees"
    rule: "_Rule"
    recorder: TraceRecorder


class JaxRun(RecordedRun):
    """A JAX program that is being recorded; made by `record_jax`, and used in a ``with`` statement.

    At the end of the block the trace is sealed. After an error it stays unfinished and readable; where a loss or a
    gradient was not finite it is sealed.
    """

    def __init__(self, jax: Any, traces: Sequence[_Trace], level: JaxLevel | None) -> None:
        super().__init__(*(each.recorder for each in traces))
        self._traces, self._ops = traces, None
        if level == "op":
            self._ops = JaxOps(jax, self._digests, [each.recorder.calls for each in traces])

    def call(self, function: Callable[..., _Given], *args: Any, **kwargs: Any) -> _Given:
        """What a function gives, such as the jitted one that does the step; with ``level="op"`` its ops are recorded.

        For that its jaxpr is evaluated equation by equation, besides the call itself, at the steps of which the trace
        keeps the ops. What is recorded so is not the program that XLA has fused, and may be rounded otherwise.

        Args:
            function: as it is called at each step, with ``jax.jit`` or without.
            args, kwargs: its arguments. What is no array is a constant of the program.
        """
        if self._ops is not None and self._recorder.wants_tape(self.steps):
            self._ops.evaluate(function, *args, **kwargs)
        return function(*args, **kwargs)

    def _digests(self, value: Any) -> tuple[bytes, ...]:
        """Those of a value, in each of the traces."""
        return tuple([each.recorder.digest(each.trees.storable(value)) for each in self._traces])

    def step(
        self,
        params: Any,
        grads: Any,
        loss: Any,
        *,
        batch: Any = None,
        hyper: Mapping[str, float] | None = None,
        state: Any = None,
        model_state: Any = None,
    ) -> None:
        """Record a step that was done.

        Args:
            params: after the update.
            grads: as the optimizer consumed them, a pytree like the params; None for a leaf that was not updated.
            loss: a number.
            batch: what the loss was computed from, of which the trace holds a digest: arrays and numbers, in mappings,
                lists and tuples.
            hyper: the hyperparameters that differ from those of the beginning, such as the rate of a schedule.
            state: of the optimizer, after the update.
            model_state: what the model keeps besides its params, after the step.

        Raises:
            DTypeError: a leaf is no array of a dtype that is recorded, or is traced.
            DomainError: a name, dtype or shape is another than at the beginning.
            NonFiniteStepError: the loss or a gradient is not finite.
        """
        for trace in self._traces:
            trees, rule = trace.trees, trace.rule
            told = rule.hyperparameters(hyper or {})
            done = CompletedStep(
                step=trace.recorder.steps,
                loss=scalar_loss(trees.leaf("loss", loss).reshape(())),
                hyper=told,
                grads=trees.arrays("grads", grads),
                params=trees.arrays("params", params),
                state=rule.state(state, trace.recorder.steps + 1, told),
                model_state=trees.arrays("model_state", model_state),
                batch=named_arrays("record_jax: argument 'batch'", batch, trees.converted, texts=True),
            )
            trace.recorder.step(done)
        if self._ops is not None:
            self._ops.begin_step()


class _Rule:
    """The rule of a run as it was told: its hyperparameters, and how its state is laid out."""

    def __init__(self, trees: "_Trees", rule: str, hyper: Mapping[str, float], count: int) -> None:
        self._trees, self._count = trees, count
        self._law: type[Rule] | None = FUSED.get(rule)
        given = {name: float(value) for name, value in hyper.items()}
        self.hyper = given if self._law is None else _complete(self._law, given)

    def hyperparameters(self, changed: Mapping[str, float]) -> dict[str, float]:
        """All hyperparameters of a step."""
        unknown = ", ".join(sorted(changed.keys() - self.hyper.keys()))
        if unknown:
            known = ", ".join(self.hyper) or "nothing"
            raise DomainError(f"record_jax: argument 'hyper': expected {known} as at the beginning, got {unknown} too")
        return self.hyper | {name: float(value) for name, value in changed.items()}

    def state(self, state: Any, steps: int, hyper: Mapping[str, float] | None = None) -> dict[str, Array]:
        """The state after so many steps of the trace, by the names of the law."""
        found, step = dict[str, Array](), self._count + steps
        if self._law is not None:
            found["step"] = np.array(step)
            if "corrections" in self._law.scalars:
                found["corrections"] = np.array(corrections(hyper or self.hyper, step))
        return found | self._trees.read("state", self.named(state))

    def named(self, state: Any) -> dict[str, Any]:
        """What the user keeps of the state, by the names of the trace."""
        if self._law is None:
            return {f"state/{name}": leaf for name, leaf in self._trees.named(state).items()}
        buffers = self._law.from_hyperparameters(self.hyper).law.buffers
        given: Mapping[str, Any] = {} if state is None else state
        if not isinstance(cast(object, given), Mapping) or set(given) != set(buffers):
            expected = ", ".join(map(repr, buffers)) or "nothing"
            raise DomainError(
                f"record_jax: argument 'state': expected a mapping with {expected}, got {_said(given)}; the law "
                f"{self._law.rule} keeps these, each a pytree like the params"
            )
        named = {buffer: self._trees.named(given[buffer]) for buffer in buffers}
        return {f"{buffer}/{name}": leaf for buffer, leaves in named.items() for name, leaf in leaves.items()}


def _complete(law: Any, given: Mapping[str, float]) -> dict[str, float]:
    """All hyperparameters of a law, with its defaults. Raises DomainError for an unknown one, or no rate."""
    if "lr" not in given or not given.keys() <= set(law.names):
        names = ", ".join(law.names)
        raise DomainError(f"record_jax: argument 'hyper': expected lr, and of {names} what is told; got {_said(given)}")
    hyper: dict[str, float] = law.from_hyperparameters(law(given["lr"]).hyperparameters() | given).hyperparameters()
    return hyper


def _said(given: Mapping[str, Any]) -> str:
    is_mapping = isinstance(cast(object, given), Mapping)
    return (", ".join(map(repr, given)) or "nothing") if is_mapping else type(given).__name__


def _settings(jax: Any) -> dict[str, Any]:
    """What the results of JAX depend on."""
    return {
        "backend": jax.default_backend(),
        "devices": jax.device_count(),
        "x64": bool(jax.config.jax_enable_x64),
        "matmul": str(jax.config.jax_default_matmul_precision),
        "jaxlib": jax.lib.__version__,
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


_VARIABLES = ("XLA_FLAGS", "NVIDIA_TF32_OVERRIDE", "NCCL_ALGO", "NCCL_PROTO")
"""What people set in the environment of a process to have other kernels."""


class _Trees:
    """Pytrees as arrays by name: whole ones, or what one device has of them."""

    def __init__(self, jax: Any, device: Any = None) -> None:
        self._jax, self._device = jax, device

    def params(self, tree: Any) -> dict[str, Array]:
        """The params. Raises DTypeError for what is no float or complex number."""
        for name, leaf in self.named(tree).items():
            dtype = str(getattr(leaf, "dtype", type(leaf).__name__))
            if FORMAT_NAMES.get(dtype) not in FLOATS:
                known = ", ".join(word for word, name in FORMAT_NAMES.items() if name in FLOATS)
                raise DTypeError(f"record_jax: parameter {name!r}: expected {known}; got {dtype}")
        return self.arrays("params", tree)

    def arrays(self, argument: str, tree: Any) -> dict[str, Array]:
        """The leaves of a pytree by the names of their paths."""
        return self.read(argument, self.named(tree))

    def read(self, argument: str, leaves: Mapping[str, Any]) -> dict[str, Array]:
        """Leaves as arrays."""
        return {name: self.leaf(argument, leaf, name) for name, leaf in leaves.items()}

    def named(self, tree: Any) -> dict[str, Any]:
        """The leaves by the names of their paths; an array that is no tree is called ``value``."""
        util = self._jax.tree_util
        found = util.tree_flatten_with_path(tree)[0]
        return {util.keystr(path, simple=True, separator=".") or "value": leaf for path, leaf in found}

    def leaf(self, argument: str, leaf: Any, name: str = "") -> Array:
        """One leaf. Raises DTypeError for what is no array of numbers."""
        return named_arrays(
            f"record_jax: argument {argument!r}", {name: leaf} if name else leaf, self.converted
        ).popitem()[1]

    def converted(self, value: Any) -> Array | None:
        """A copy of an array of JAX's, as it may be donated to the next step; None for anything else."""
        jax = self._jax
        if isinstance(value, jax.core.Tracer):
            raise DTypeError("record_jax: expected arrays, got a tracer; record steps outside of jax.jit and jax.grad")
        if not isinstance(value, jax.Array):
            return None
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        return np.array(self._here(value))

    def _here(self, array: Any) -> Any:
        """What the device has of an array; the whole of one that does not lie there."""
        if self._device is None:
            return array
        shards = {shard.device: shard.data for shard in array.addressable_shards}
        return shards.get(self._device, array)

    def storable(self, value: Any) -> Array:
        """Any value of a program, that of a dtype which no trace has as its bytes."""
        read = self.converted(value)
        array = np.asarray(value) if read is None else read
        return array if array.dtype.name in FORMAT_NAMES else np.frombuffer(array.tobytes(), np.uint8)
