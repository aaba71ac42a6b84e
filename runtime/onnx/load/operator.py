"""One node of an ONNX graph as the functions that compute it see it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ....tape import AnyVar, Tape, Var
from ....tape.errors import DgrrError


class ImportedModelError(DgrrError, ValueError):
    """An ONNX file that is damaged, or that holds what dgrr has no op for."""


class Operator:
    """A node: its kind, its inputs, Vars or constant arrays and None for one that is left out, and its attributes."""

    def __init__(
        self,
        kind: str,
        name: str,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        tape: Tape[Any],
        opset: int,
        outputs: int,
    ) -> None:
        self.kind, self.name, self.inputs, self.attributes = kind, name, inputs, attributes
        self.opset, self.outputs, self._tape = opset, outputs, tape

    def has(self, place: int) -> bool:
        """Whether there is such an input."""
        return place < len(self.inputs) and self.inputs[place] is not None

    def var(self, place: int) -> AnyVar:
        """An input as a Var."""
        if not self.has(place):
            raise self.error(f"expected an input {place}, got none")
        return self.on_tape(self.inputs[place])

    def on_tape(self, value: Any) -> AnyVar:
        """A value as a Var; a constant becomes one."""
        made: Any = cast(Any, value) if isinstance(value, Var) else self._tape.const(value)
        return made  # type: ignore[no-any-return]

    def vars(self) -> list[AnyVar]:
        """All inputs as Vars."""
        return [self.var(place) for place in range(len(self.inputs))]

    def optional(self, place: int) -> AnyVar | None:
        """An input that may be left out."""
        return self.var(place) if self.has(place) else None

    def constant(self, place: int, default: Any = None) -> Array:
        """An input that must be known, such as a shape. Raises ImportedModelError for one that is computed of x."""
        value = self.inputs[place] if self.has(place) else default
        if isinstance(value, Var):
            raise self.error(
                f"expected input {place} to be constant, got one that depends on the input of the model or on its "
                "parameters; compute it from constants and shapes only"
            )
        return np.asarray(value)

    def numbers(self, place: int) -> tuple[int, ...] | None:
        """A constant list of whole numbers; None if it is left out."""
        return tuple(int(n) for n in self.constant(place).reshape(-1)) if self.has(place) else None

    def number(self, place: int, default: float) -> float:
        """A constant number."""
        return float(self.constant(place, default).reshape(()))

    def axes(self, place: int = 1) -> tuple[int, ...] | None:
        """Axes, an attribute in older versions of the standard and an input in newer ones."""
        return tuple(self.attributes["axes"]) if "axes" in self.attributes else self.numbers(place)

    def get(self, attribute: str, default: Any) -> Any:
        """An attribute."""
        return self.attributes.get(attribute, default)

    def error(self, reason: str) -> ImportedModelError:
        """An error that names the node."""
        return ImportedModelError(f"onnx.load: node {self.name!r} ({self.kind}): {reason}")


CONSTANTS: dict[str, tuple[int, ...]] = {}
"""Which inputs of an operator must be known, by its name: initialisers in these places are no parameters."""

Importer = Callable[[Operator], Any]
"""Computes a node: its output, or a tuple of several."""

IMPORTERS: dict[str, Importer] = {}
"""What computes each operator, by its name."""


def imports(*kinds: str, constants: tuple[int, ...] = ()) -> Callable[[Importer], Importer]:
    """Say which operators a function computes, and which of their inputs, if they are floats, are no parameters."""

    def add(importer: Importer) -> Importer:
        IMPORTERS.update(dict.fromkeys(kinds, importer))
        CONSTANTS.update(dict.fromkeys(kinds, constants))
        return importer

    return add
