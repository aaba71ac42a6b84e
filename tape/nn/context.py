"""What a model needs beside its parameters and its input: whether it trains, random numbers, running statistics."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.arrays import Arrays
from ..errors import DomainError, DTypeError, ShapeError
from ..record.op import OPS
from ..record.types import F, S
from ..var.var import AnyVar, Var


class Random:
    """The random numbers of one micro-batch of one step.

    Each draw is a function of the seed, the step (a Var: an int64 scalar), the micro-batch and the number of
    draws before it, and of nothing else, so a replay can repeat it. A shape is a tuple of sizes. For other errors, see
    the op of the same name in `dgrr.tape.ops`.

    >>> from dgrr.tape import Tape
    >>> tape = Tape()
    >>> random = Random(tape.const(0), seed=7)
    >>> random.uniform((2,)).numpy()
    array([0.9545971, 0.7501522], dtype=float32)
    """

    def __init__(self, step: AnyVar, seed: int = 0, micro_batch: int = 0) -> None:
        self._step, self._seed, self._micro_batch = step, seed, micro_batch
        self._drawn = 0

    def uniform(self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> AnyVar:
        """Independent numbers from [0, 1). Raises DTypeError for another dtype than float32 and float64."""
        drawn: AnyVar = OPS["uniform"](self._step, shape, dtype=_kind("uniform", dtype), **self._key())
        return drawn

    def normal(
        self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32, mean: float = 0.0, std: float = 1.0
    ) -> AnyVar:
        """Independent normally distributed numbers.

        Raises DTypeError for another dtype than float32 and float64, DomainError unless both numbers are finite and
        ``std >= 0``.
        """
        kind = _kind("normal", dtype)
        drawn: AnyVar = OPS["normal"](self._step, shape, dtype=kind, mean=mean, std=std, **self._key())
        return drawn

    def bernoulli(self, p: float, shape: tuple[int, ...]) -> AnyVar:
        """Independent coin flips, true with probability ``p``: a bool mask, which `cast` makes numbers of.

        Raises DomainError unless ``p`` is a number from 0 to 1.
        """
        drawn: AnyVar = OPS["bernoulli"](self._step, p, shape, **self._key())
        return drawn

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> AnyVar:
        """Independent whole numbers from ``low`` to ``high - 1``, int64.

        Raises DomainError unless both are integers with ``-2**63 <= low < high <= 2**63``.
        """
        drawn: AnyVar = OPS["integers"](self._step, low, high, shape, **self._key())
        return drawn

    def permutation(self, n: int) -> AnyVar:
        """The numbers below ``n`` in random order, int64. Raises DomainError unless ``n`` is an integer from 0 on."""
        drawn: AnyVar = OPS["permutation"](self._step, n, **self._key())
        return drawn

    def dropout(self, x: Var[F, *S], p: float = 0.5) -> Var[F, *S]:
        """``x`` with each element replaced by 0 with probability ``p`` and else divided by ``1 - p``."""
        kept: Var[F, *S] = OPS["dropout"](x, self._step, p, **self._key())
        return kept

    def afresh(self, seed: int | None = None) -> "Random":
        """The same micro-batch of the same step before any draw, with another seed if one is given."""
        return Random(self._step, self._seed if seed is None else seed, self._micro_batch)

    def _key(self) -> dict[str, int]:
        self._drawn += 1
        return {"seed": self._seed, "micro_batch": self._micro_batch, "ordinal": self._drawn - 1}


def _kind(draw: str, dtype: npt.DTypeLike) -> str:
    """The name of a dtype. Raises DTypeError for what is none, as the second of sizes that are given one by one."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        raise DTypeError(
            f"{draw}: argument 'dtype': expected float32 or float64, got {dtype!r}; a shape is one tuple: (64, 2)"
        ) from None


class PlaceInSequence(NamedTuple):
    """Where the one element stands that a model is given, of a sequence of which layers keep what came before."""

    position: AnyVar
    """An int64 without axes."""
    length: int
    """How many positions there may be."""


class Context:
    """What a step passes to a model: ``loss_fn(p, batch, ctx)``, and from there ``model(p, x, ctx)``.

    ``ctx.training`` tells training from evaluation, ``ctx.step`` counts steps, ``ctx.random`` draws, ``ctx.state``
    maps names to the Vars of what is neither parameter nor input, such as running statistics. A layer that changes
    one calls ``ctx.update``; the step returns ``(loss, ctx.state)``. ``ctx.place`` is the position in the sequence of
    the element given to a model that caches earlier ones, as in `dgrr.runtime.Generator`; else None.
    """

    def __init__(
        self,
        training: bool = False,
        random: Random | None = None,
        state: Mapping[str, AnyVar] | Arrays | None = None,
        step: AnyVar | None = None,
        place: PlaceInSequence | None = None,
    ) -> None:
        self.training, self.place = training, place
        self._random, self._state, self._step, self._prefix = random, State(state or {}), step, ""

    @property
    def step(self) -> AnyVar:
        """How many steps came before this one: an int64 scalar, the same for all micro-batches of a step.

        It is a Var, which a captured step reads again each time: compute with ``ops.cast(ctx.step, np.float32)``,
        choose with ``ops.where(ctx.step > 10, a, b)``. In evaluation it is the count of the steps so far. Raises
        DomainError if the context was made without.
        """
        if self._step is None:
            raise DomainError(
                "Context: argument 'step': expected a Var that counts the steps before, got None; "
                "write Context(step=tape.const(0))"
            )
        return self._step

    @property
    def random(self) -> Random:
        """The draws of this step. Raises DomainError if the context was made without."""
        if self._random is None:
            raise DomainError("Context: argument 'random': expected a Random to draw from, got None")
        return self._random

    @property
    def state(self) -> "State":
        """The state by name, with the updates so far."""
        return self._state.scope(self._prefix)

    def update(self, name: str, value: AnyVar) -> None:
        """Set an entry of the state to its value after this step.

        Raises DomainError for an unknown name, ShapeError or DTypeError for a value unlike the present one.
        """
        self._state.update(self._prefix + name, value)

    def scope(self, prefix: str) -> "Context":
        """The same context for a part of the model, whose state names begin with ``prefix``."""
        return self._scoped(prefix, self._random)

    def member(self, prefix: str, seed: int | None = None) -> "Context":
        """The context for one of several models of a step: its state under ``prefix``, its draws those it has alone.

        They are the draws of a run of this seed, by default of the run's own.
        """
        return self._scoped(prefix, None if self._random is None else self._random.afresh(seed))

    def _scoped(self, prefix: str, random: Random | None) -> "Context":
        scoped = Context(self.training, random, step=self._step, place=self.place)
        scoped._state, scoped._prefix = self._state, self._prefix + prefix
        return scoped


def context(ctx: Context | None, layer: object) -> Context:
    """``ctx``, for a layer that cannot do without. Raises DomainError, naming the layer, for None."""
    if ctx is None:
        raise DomainError(
            f"{layer!r}: argument 'ctx': expected a Context, got None; "
            "write loss_fn(p, batch, ctx) and call the model as model(p, x, ctx)"
        )
    return ctx


class State(Mapping[str, AnyVar]):
    """Vars by name; a view of the entries under a prefix sees every update of the whole."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values, self._prefix = dict[str, AnyVar](values), ""
        self.updated: set[str] = set()
        """The names, in full, that were given a new value."""

    def scope(self, prefix: str) -> "State":
        """The entries whose names begin with ``prefix``, under the names without it."""
        scoped = State({})
        scoped._values, scoped.updated, scoped._prefix = self._values, self.updated, self._prefix + prefix
        return scoped

    def update(self, name: str, value: AnyVar) -> None:
        """See `Context.update`."""
        old = self[name]
        if tuple(value.shape) != tuple(old.shape):
            given = tuple(value.shape)
            raise ShapeError(f"update: argument 'value' of {name!r}: expected shape {tuple(old.shape)}, got {given}")
        if value.dtype != old.dtype:
            raise DTypeError(f"update: argument 'value' of {name!r}: expected {old.dtype}, got {value.dtype}")
        self._values[self._prefix + name] = value
        self.updated.add(self._prefix + name)

    def __getitem__(self, name: str) -> AnyVar:
        try:
            return self._values[self._prefix + name]
        except KeyError:
            have = ", ".join(map(repr, self._values)) or "none; make them with model.init_state()"
            raise DomainError(f"state: expected an entry {self._prefix + name!r}, got {have}") from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._prefix + name in self._values

    def get(self, name: str, /, default: Any = None) -> Any:
        """The entry of this name, or ``default``."""
        return self._values.get(self._prefix + name, default)

    def __iter__(self) -> Iterator[str]:
        n = len(self._prefix)
        return (name[n:] for name in self._values if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
