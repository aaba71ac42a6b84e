"""An op's annotations, enforced at run time: one signature for the type checker and for the values.

``def matmul(a: Var[D, *Bs, M, K], b: Var[D, K, N]) -> Var[D, *Bs, M, N]`` says that the last axis of a and
the first of b have one size; the same names bound from real shapes give the shape of the result.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_overloads, get_type_hints

import numpy as np

from ..errors import DTypeError, ShapeError
from ..values.dtypes import DTYPES, DType, Float, i64
from ..values.shape import Bindings, Pattern
from ..values.spec import Spec
from ..var.var import Var

Specs = Sequence[Spec | None]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The annotation ``Var[D, *S]`` taken apart."""

    dtype: Any
    pattern: Pattern
    optional: bool = False

    @classmethod
    def of(cls, hint: object) -> "TensorType | None":
        """From a hint; None if it is not a Var's."""
        arms = [a for a in get_args(hint) if a is not type(None)] if _is_optional(hint) else [hint]
        if get_origin(arms[0]) is not Var:
            return None
        dtype, *axes = get_args(arms[0])
        return cls(dtype, Pattern.of(*axes), _is_optional(hint))

    def bind_dtype(self, where: str, dtype: np.dtype[Any], known: Bindings) -> dict[object, Any]:
        """``known`` with this type's dtype variable bound. Raises DTypeError if ``dtype`` does not fit."""
        want: Any = known.get(self.dtype, getattr(self.dtype, "__bound__", self.dtype))
        if want is not Any and not issubclass(DTYPES[dtype], want):
            raise DTypeError(f"{where}: expected {_dtype_names(want)}, got {dtype}; {_conversion(want, dtype)}")
        return {**known, self.dtype: DTYPES[dtype]}


def _is_optional(hint: object) -> bool:
    return get_origin(hint) in (Union, type(int | None)) and type(None) in get_args(hint)


def _takes_tuples(hint: object) -> bool:
    return any(get_origin(arm) is tuple for arm in (hint, *get_args(hint)))


def _dtype_names(want: type[DType]) -> str:
    return " or ".join(str(d) for d, t in DTYPES.items() if issubclass(t, want))


def _conversion(want: type[DType], dtype: np.dtype[Any]) -> str:
    """What to do about an element type; images come as uint8, which the engine holds as int64."""
    images = ", images of whole numbers with x.astype(np.float32) / 255" if (want, dtype) == (Float, i64.dtype) else ""
    return f"convert with ops.cast{images}"


class Signature:
    """The inputs, attributes and shape rule of an op's function."""

    def __init__(self, function: Callable[..., Any], exact: bool) -> None:
        """``exact``: the annotations alone must decide the result's shape. Raises TypeError if they do not."""
        self.name = function.__name__
        hints = get_type_hints(function)
        parameters = inspect.signature(function).parameters
        types = {name: TensorType.of(hints[name]) for name in parameters}
        self.inputs = tuple(name for name, t in types.items() if t is not None)
        self.python = inspect.signature(function)
        self.names = tuple(parameters)
        self.places = {name: place for place, name in enumerate(parameters)}
        self.attributes = tuple(name for name, t in types.items() if t is None)
        self.tail = tuple(p.default for p in parameters.values())
        self.required = sum(p.default is p.empty for p in parameters.values())
        self.inputs_alone = len(self.inputs) if self.required <= len(self.inputs) else -1
        """How many arguments a call has that gives all inputs and no attribute; -1 if that is no whole call."""
        self.sequences = {name for name in self.attributes if _takes_tuples(hints[name])}
        self.indices = {name for name, t in types.items() if t is not None and t.dtype is i64}
        self.optional = {name for name, t in types.items() if t is not None and t.optional}
        variants = (get_overloads(function) if exact else []) or [function]
        self.cases = [_case(self.inputs, get_type_hints(v)) for v in variants]
        if exact and not all(result.pattern.exact for _, result in self.cases):
            raise TypeError(f"op {self.name}: the annotations do not decide the result's shape; give infer=")

    def require_dtypes(self, *dtypes: np.dtype[Any]) -> None:
        """Raise DTypeError unless inputs of these dtypes go together."""
        self._dtypes(self.cases[0][0], [Spec((), dtype) for dtype in dtypes])

    def unify(self, specs: Specs) -> Spec | None:
        """The result, or None where the annotations do not decide it.

        Raises ShapeError or DTypeError for the first argument that does not fit any overload.
        """
        failures: list[tuple[int, ShapeError]] = []
        for types, result in self.cases:
            known = self._dtypes(types, specs)
            depth, outcome = self._shapes(types, specs, known)
            if not isinstance(outcome, ShapeError):
                return _result(result, outcome)
            failures.append((depth, outcome))
        raise max(failures, key=lambda failure: failure[0])[1]

    def _dtypes(self, types: Mapping[str, TensorType], specs: Specs) -> dict[object, Any]:
        known: dict[object, Any] = {}
        for name, spec in zip(self.inputs, specs, strict=True):
            if spec is not None:
                known = types[name].bind_dtype(f"{self.name}: argument {name!r}", spec.dtype, known)
        return known

    def _shapes(
        self, types: Mapping[str, TensorType], specs: Specs, known: dict[object, Any]
    ) -> tuple[int, dict[object, Any] | ShapeError]:
        for depth, (name, spec) in enumerate(zip(self.inputs, specs, strict=True)):
            if spec is None:
                continue
            pattern = types[name].pattern
            extended = pattern.unify(spec.shape, known)
            if extended is None:
                text = f"{self.name}: argument {name!r}: expected shape {pattern.render(known)}, got {spec.shape}"
                return depth, ShapeError(text)
            known = extended
        return len(specs), known


def _case(inputs: Sequence[str], hints: Mapping[str, object]) -> tuple[dict[str, TensorType], TensorType]:
    types = {name: TensorType.of(hints[name]) for name in (*inputs, "return")}
    made = {name: t for name, t in types.items() if t is not None}
    return made, made["return"]


def _result(result: TensorType, known: Bindings) -> Spec | None:
    if not result.pattern.exact:
        return None
    marker: type[DType] = known.get(result.dtype, result.dtype)
    return Spec(result.pattern.sizes(known), marker.dtype)
