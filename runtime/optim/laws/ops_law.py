"""The update of a parameter as a function of tape ops: computed eagerly on arrays, recorded in captured steps."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array
from ....tape import AnyVar, DomainError, DTypeError, ShapeError, Tape, ops
from ....tape.transforms.symbolic_tape import SymbolicTape
from ....tape.values.spec import Spec
from .known import HYPER

FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)

Update = Callable[..., Any]
"""``update(p, g, *buffers, **scalars)``: the new parameter, and with buffers a tuple of it and the new buffers."""


class RecordedUpdate(NamedTuple):
    """An update on a tape, and ids: of parameter, buffers, gradient, rates, hyperparameters, count; of results."""

    tape: SymbolicTape
    inputs: list[int]
    results: list[int]


class OpsLaw(NamedTuple):
    """A function of ops that updates one parameter, and on what: its ``buffers``, and ``scalars`` by name.

    ``counts`` says that one of the scalars is the number of the update. Scalars have the dtype of the parameter, or are
    float64 where the law is ``precise``. ``shapes`` gives the specs of the buffers from that of the parameter; without
    it they are as that.
    """

    title: str
    update: Update
    buffers: tuple[str, ...]
    names: tuple[str, ...]
    counts: bool
    precise: bool = False
    shapes: Callable[[Spec], Sequence[Spec]] | None = None

    def kept(self, spec: Spec) -> Sequence[Spec]:
        """The specs of the buffers of a parameter."""
        return [spec] * len(self.buffers) if self.shapes is None else self.shapes(spec)

    def results(
        self, p: AnyVar, g: AnyVar, kept: Sequence[AnyVar], rates: AnyVar, hyper: AnyVar, step: AnyVar
    ) -> list[AnyVar]:
        """The parameter and its buffers after the update: Vars of the tape of ``p``.

        The first element of ``rates`` is the learning rate, ``hyper`` has the other hyperparameters, both float64;
        the function gets each as a value without axes, as it gets the count.

        Raises DomainError, ShapeError or DTypeError for other results than the function has to give; what it raises.
        """
        scalars = {name: ops.getitem(hyper if i else rates, i) for i, name in enumerate(self.names)}
        if self.counts:
            scalars["step"] = step
        dtype = FLOAT64 if self.precise else p.dtype
        given = {name: ops.cast(value, dtype) for name, value in scalars.items()}
        made: Any = self.update(p, g, *kept, **given)
        results: list[Any] = list(made) if made.__class__ is tuple else [made]
        self._require([p, *kept], results)
        return results

    def _require(self, before: Sequence[AnyVar], results: Sequence[Any]) -> None:
        names = ("the parameter", *[f"buffer {name!r}" for name in self.buffers])
        if len(results) != len(names):
            expected = "the new value of the parameter" + "".join(f", of {name}" for name in names[1:])
            raise DomainError(f"{self.title}: update: expected {expected}, got {len(results)} results")
        for name, old, result in zip(names, before, results, strict=True):
            if getattr(result, "tape", None) is not old.tape:
                expected = f"expected a value computed by ops for {name}"
                raise DomainError(f"{self.title}: update: {expected}, got {type(result).__name__}")
            if result.value.sizes != old.value.sizes:
                raise ShapeError(
                    f"{self.title}: update: {name}: expected the shape {old.value.sizes} of the parameter, got "
                    f"{result.value.sizes}"
                )
            if result.dtype != old.dtype:
                expected = f"expected {old.dtype}, got {result.dtype}"
                raise DTypeError(f"{self.title}: update: {name}: {expected}; use ops.cast")

    def recorded(self, spec: Spec) -> RecordedUpdate:
        """The update of a parameter of this shape and dtype, recorded and not run. Raises as `results` does."""
        tape = SymbolicTape()
        p, g = tape.symbol(spec, "parameter"), tape.symbol(spec, "gradient")
        kept = [tape.symbol(own, name) for name, own in zip(self.buffers, self.kept(spec), strict=True)]
        rates = tape.symbol(Spec((HYPER,), FLOAT64), "rates")
        hyper = tape.symbol(Spec((max(HYPER, len(self.names)),), FLOAT64), "hyperparameters")
        step = tape.symbol(Spec((), INT64), "step")
        made = self.results(p, g, kept, rates, hyper, step)
        return RecordedUpdate(tape, [v.id for v in (p, *kept, g, rates, hyper, step)], [v.id for v in made])

    def computed(self, p: Array, g: Array, kept: Sequence[Array], hyper: Array, step: Array) -> list[Array]:
        """The results on arrays, op by op, as fresh arrays. Raises as `results` does."""
        tape: Tape[Any] = Tape()
        vector = tape.const(hyper)
        given = [tape.const(array) for array in kept]
        made = self.results(tape.const(p), tape.const(g), given, vector, vector, tape.const(step))
        return [result.numpy() for result in made]
