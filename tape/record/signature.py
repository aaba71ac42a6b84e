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
from ..values.dtypes import DTYPES, DType, Float, element_dtype, f32, f64, i64
from ..values.shape import Bindings, Pattern
from ..values.spec import Spec
from ..var.foreign import ARGUMENTS
from ..var.var import Var
from .kinds import Kind, require_in_range

Specs = Sequence[Spec | None]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The annotation ``Var[D, *S]`` taken apart."""

    dtype: Any
    pattern: Pattern
    optional: bool = False

    @classmethod
    def of(cls, hint: object) -> "TensorType | None":
        """From a hint, which may be that of an `Operand`; None if it is not a Var's."""
        arms = get_args(hint) if _is_union(hint) else [hint]
        tensor = next((arm for arm in arms if get_origin(arm) is Var), None)
        if tensor is None:
            return None
        dtype, *axes = get_args(tensor)
        return cls(dtype, Pattern.of(*axes), type(None) in arms)

    def bind_dtype(self, where: str, dtype: np.dtype[Any], known: Bindings) -> dict[object, Any]:
        """``known`` with this type's dtype variable bound. Raises DTypeError if ``dtype`` does not fit."""
        marker = DTYPES[element_dtype(where, dtype)]
        want: Any = known.get(self.dtype, getattr(self.dtype, "__bound__", self.dtype))
        if want is not Any and not issubclass(marker, want):
            raise DTypeError(f"{where}: expected {_dtype_names(want)}, got {dtype}; {_conversion(want, dtype)}")
        return {**known, self.dtype: marker}


Case = tuple[Mapping[str, TensorType], TensorType]
"""The types of the inputs by name, and of the result: what one overload says."""


def _is_union(hint: object) -> bool:
    return get_origin(hint) in (Union, type(int | None))


def _dtype_names(want: type[DType]) -> str:
    return " or ".join(str(d) for d, t in DTYPES.items() if issubclass(t, want))


def _conversion(want: type[DType], dtype: np.dtype[Any]) -> str:
    """What to do about an element type; data come as numpy's float64, images as uint8, which is int64 on a tape."""
    data: dict[tuple[Any, Any], str] = {
        (Float, i64.dtype): ", images of whole numbers (uint8, int64 on a tape) with x.astype(np.float32) / 255",
        (f32, f64.dtype): ", data that numpy made float64 with x.astype(np.float32)",
    }
    return f"convert with ops.cast{data.get((want, dtype), '')}"


class Signature:
    """The inputs, attributes and shape rule of an op's function."""

    def __init__(self, function: Callable[..., Any], exact: bool) -> None:
        """``exact``: the annotations alone must decide the result's shape. Raises TypeError if they do not."""
        self.name = function.__name__
        hints = get_type_hints(function)
        self.python = inspect.signature(function)
        parameters = self.python.parameters
        types = {name: TensorType.of(hints[name]) for name in parameters}
        self.inputs = tuple(name for name, t in types.items() if t is not None)
        self.names = tuple(parameters)
        self.places = {name: place for place, name in enumerate(parameters)}
        self.attributes = tuple(name for name, t in types.items() if t is None)
        self.tail = tuple(p.default for p in parameters.values())
        self.required_names = {name for name, p in parameters.items() if p.default is p.empty}
        self.required = len(self.required_names)
        self.inputs_alone = len(self.inputs) if self.required <= len(self.inputs) else -1
        """How many arguments a call has that gives all inputs and no attribute; -1 if that is no whole call."""
        self.kinds = tuple(Kind(hints[name]) for name in self.attributes)
        """What each attribute may be."""
        self.indices = {name for name, t in types.items() if t is not None and t.dtype is i64}
        self.optional = {name for name, t in types.items() if t is not None and t.optional}
        dtypes = [t.dtype for t in types.values() if t is not None]
        self.own_dtypes = [d.dtype if isinstance(d, type) and issubclass(d, DType) else None for d in dtypes]
        """The element type that the annotation of each input says by itself."""
        self.alike = [[j for j, other in enumerate(dtypes) if other is d] for d in dtypes]
        """The positions of the inputs that have the element type of each, itself among them."""
        shown = [get_type_hints(v) for v in get_overloads(function)] if exact else []
        variants = [v for v in shown if all(TensorType.of(v[name]) for name in self.inputs)]  # others take constants
        self.cases = [_case(self.inputs, variant) for variant in variants or [hints]]
        if exact and not all(result.pattern.exact for _, result in self.cases):
            raise TypeError(f"op {self.name}: the annotations do not decide the result's shape; give infer=")

    def plain(self, values: Sequence[Any], instead: Mapping[str, str]) -> dict[str, Any]:
        """The attributes by name in plain form, from what a call gives for each.

        Raises DTypeError for one that is of no kind its annotation names, GradientError for a Var in place of a number;
        ``instead`` has the expressions that take a Var, by the names of attributes.
        """
        given = zip(self.attributes, self.kinds, values, strict=True)
        return {
            name: value if value.__class__ in kind.ready else kind(self.where(name), value, instead.get(name, ""))
            for name, kind, value in given
        }

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Every argument of a call by name, with the defaults of those left out. Raises DTypeError for a misfit."""
        many = len(args)
        made = dict(zip(self.names, args + self.tail[many:], strict=False))
        made.update(kwargs)
        if many > len(self.names) or len(made) > len(self.names) or any(self.places[name] < many for name in kwargs):
            self.require_fit(args, kwargs)
        if many < self.required and any(made[name] is inspect.Parameter.empty for name in self.required_names):
            self.require_fit(args, kwargs)
        return made

    def require_fit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise DTypeError, in Python's words under the op's name, for arguments that do not fit its function."""
        try:
            self.python.bind(*args, **kwargs)
        except TypeError as error:
            ours = {ARGUMENTS[name] for name in kwargs if name in ARGUMENTS} & self.places.keys()
            raise DTypeError(f"{self.name}: {error}{''.join(f'; write {name}=' for name in sorted(ours))}") from None

    def where(self, name: str) -> str:
        """What messages call an argument."""
        return f"{self.name}: argument {name!r}"

    def require_in_range(self, attrs: Mapping[str, Any], *, first: bool) -> None:
        """Raise DomainError for a whole number that kernels cannot take.

        Numbers and sizes are looked at ``first``, since nothing can be inferred from them; others when an op has said
        in its own words what it takes.
        """
        for name, kind in zip(self.attributes, self.kinds, strict=True):
            if first is (kind.number or attrs[name].__class__ is tuple):
                require_in_range(self.where(name), attrs[name], number=kind.number)

    def require_dtypes(self, *dtypes: np.dtype[Any] | None) -> None:
        """Raise DTypeError unless inputs of these dtypes go together; None is one that takes what others have."""
        self._dtypes(self.cases[0][0], [None if dtype is None else Spec((), dtype) for dtype in dtypes])

    def unify(self, specs: Specs) -> Spec | None:
        """The result, or None where the annotations do not decide it. Raises as `fitting` does."""
        (_, result), known = self.fitting(specs)
        return _result(result, known)

    def fitting(self, specs: Specs) -> tuple[Case, Bindings]:
        """The first overload that inputs of these specs fit, and what its names stand for then.

        Raises ShapeError or DTypeError for the first argument that does not fit any.
        """
        failures: list[tuple[int, ShapeError]] = []
        for case in self.cases:
            types, _ = case
            known = self._dtypes(types, specs)
            depth, outcome = self._shapes(types, specs, known)
            if not isinstance(outcome, ShapeError):
                return case, outcome
            failures.append((depth, outcome))
        raise max(failures, key=lambda failure: failure[0])[1]

    def _dtypes(self, types: Mapping[str, TensorType], specs: Specs) -> dict[object, Any]:
        known: dict[object, Any] = {}
        for name, spec in zip(self.inputs, specs, strict=True):
            if spec is not None:
                self._require_no_wider(name, spec, types, specs, known)
                known = types[name].bind_dtype(f"{self.name}: argument {name!r}", spec.dtype, known)
        return known

    def _require_no_wider(
        self, name: str, spec: Spec, types: Mapping[str, TensorType], specs: Specs, known: Bindings
    ) -> None:
        """Of float64 and float32 that must be alike the first is what is odd, whatever their order: numpy's default."""
        kind = types[name].dtype
        if spec.dtype == f32.dtype and known.get(kind) is f64:
            wide = next(n for n, s in zip(self.inputs, specs, strict=True) if s is not None and types[n].dtype is kind)
            types[wide].bind_dtype(self.where(wide), f64.dtype, {**known, kind: f32})

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
                return depth, ShapeError(f"{text}{_advice(pattern, known, spec.shape)}")
            known = extended
        return len(specs), known


def _advice(pattern: Pattern, known: Bindings, given: tuple[int, ...]) -> str:
    """What to do about a shape that operators would repeat."""
    try:
        np.broadcast_shapes(pattern.sizes(known), given)
    except (KeyError, ValueError):  # of axes that are not known yet, and of sizes that do not go together
        return ""
    return "; shapes do not broadcast here: give both one shape, with reshape or ops.broadcast_to"


def _case(inputs: Sequence[str], hints: Mapping[str, object]) -> Case:
    types = {name: TensorType.of(hints[name]) for name in (*inputs, "return")}
    made = {name: t for name, t in types.items() if t is not None}
    return made, made["return"]


def _result(result: TensorType, known: Bindings) -> Spec | None:
    if not result.pattern.exact:
        return None
    marker: type[DType] = known.get(result.dtype, result.dtype)
    return Spec(result.pattern.sizes(known), marker.dtype)
