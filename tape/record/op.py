"""The op record: everything that is known of an op, in one place.

Eager execution, recording, backward, capture, the docs table and the property tests all derive from it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

from ...base.arrays import Array
from ..errors import DTypeError, ShapeError
from ..values.attributes import Attributes, exact_key
from ..values.shape import Bindings, Pattern
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.broadcasting import together
from ..var.op_table import OPS as CALLEES
from ..var.var import Var
from .arguments import no_tensor, tensors_of
from .derivative import AlongAll, Derivative, NoGradient
from .description import Description, describe
from .lowering import Runner, Slot, prepare
from .refusals import Kinds, derived, examples, require_kinds
from .samples import Bad, Samples
from .signature import Signature

V = TypeVar("V")

PREPARED_KEPT = 4096
"""Signatures (shapes, dtypes, attributes) whose result and lowering an op keeps; the oldest are dropped first."""

TENSORS = frozenset({AnyTensor, type(None)})
"""What ops compute with."""

PLAIN = frozenset({int, tuple})
"""What an attribute that may be given as ``Shape[...]`` is otherwise."""

MOST_ELEMENTS = (1 << 60) - 1
"""Of eight bytes each, as many as memory has addresses for."""

Computation = tuple[Runner, Spec]
"""What an op does with the arrays of inputs of certain specs, under certain attributes, and the spec of the result."""

Meaning = Callable[[Pattern, str, Bindings], Any]
"""``meaning(pattern, where, known)``: the plain value of an attribute that is given as ``Shape[...]``."""


Advice = Callable[..., str]
"""What to do about inputs of these specs, which do not fit; an empty text if there is nothing to say."""


@dataclass(eq=False)
class Op:
    """One op. See the op tables in the docs for what each field means; the decorator `op` makes records."""

    name: str
    doc: str
    function: Callable[..., Any]
    signature: Signature
    infer: Callable[..., Spec] | None
    lower: Callable[..., Slot]
    vjp: tuple[Derivative | NoGradient, ...]
    jvp: Derivative | AlongAll | NoGradient
    reference: Callable[..., Any]
    samples: Samples
    errors: Sequence[Bad]
    kinds: Kinds
    covers: tuple[str, ...]
    batch_axis: Mapping[str, int]
    excused: Mapping[str, str]
    private: bool
    named: tuple[str, Meaning] | None
    advice: Advice | None
    instead: Mapping[str, str]
    repeats: bool
    prepared: dict[Any, Computation] = field(default_factory=dict[Any, Computation])
    _bound: dict[Any, Attributes] = field(default_factory=dict[Any, Attributes], init=False)
    _inferred: dict[Any, Spec] = field(default_factory=dict[Any, Spec], init=False)
    _lowered: dict[Any, tuple[list[Slot], Slot]] = field(default_factory=dict[Any, Any], init=False)

    def __reduce__(self) -> Any:
        """Copies and pickles are the one record of this name."""
        return _listed, (self.name,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply to Vars (recorded on their tape) or to tensors (computed)."""
        return self.call(*args, **kwargs)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """What ``__call__`` does; the public function is this very function."""
        inputs_alone, repeats, named = self.signature.inputs_alone, self.repeats, self.named

        def call(*args: Any, **kwargs: Any) -> Any:
            inputs: Sequence[Any]
            attrs: Mapping[str, Any]
            if len(args) == inputs_alone and not kwargs:
                inputs, attrs = args, self.default
            else:
                inputs, attrs = self.bind(args, kwargs)
            if repeats:
                inputs = together(self.name, inputs)
            for x in inputs:
                if x.__class__ is Var:
                    return x.tape.apply(self, inputs, attrs)
            if TENSORS.issuperset(map(type, inputs)) and (named is None or attrs[named[0]].__class__ in PLAIN):
                return self.compute(inputs, attrs)
            return self._compute_alone(inputs, attrs)

        return call

    def _compute_alone(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> AnyTensor:
        """The value of the op on inputs of no tape."""
        shape = None
        if self.named:
            attrs, shape = self.resolve(attrs, {})
        out = self.compute(self.tensors(inputs), attrs)
        if shape is not None:
            shape.require(self.where_named, out.sizes, {})
        return out

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The inputs in order and every attribute by name, as plain hashable values."""
        signature, given = self.signature, len(args)
        if kwargs or not signature.required <= given <= len(signature.names):
            args = self._in_order(args, kwargs)
            given = len(args)
        n = len(signature.inputs)
        if given <= n:
            return args + signature.tail[given:n], self.default
        return args[:n], self._attributes(args[n:] + signature.tail[given:])

    def _in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments given by name, in their places. Raises DTypeError, in Python's words, for what does not fit."""
        signature, given = self.signature, len(args)
        values = [*args, *signature.tail[given:]]
        for name, value in kwargs.items():
            place = signature.places.get(name, -1)
            if place < given:
                signature.require_fit(args, kwargs)
            values[place] = value
        missing = any(v is inspect.Parameter.empty for v in values)  # not `in`, which would compare Vars
        if missing or len(values) > len(signature.names):
            signature.require_fit(args, kwargs)
        return tuple(values)

    @cached_property
    def default(self) -> "Attributes":
        """The attributes of a call that gives none."""
        return self._attributes(self.signature.tail[len(self.signature.inputs) :])

    def _attributes(self, values: Sequence[Any]) -> "Attributes":
        """The attributes as plain values. Raises DTypeError or GradientError for one that is of no kind it takes."""
        key = tuple(map(exact_key, values))
        known = self._bound.get(key)
        if known is None:
            known = Attributes(self.signature.plain(values, self.instead))
            if all(part.__class__ is tuple for part in key):  # a list is no key
                _keep(self._bound, key, known)
        return known

    def resolve(self, attrs: Mapping[str, Any], known: Bindings) -> tuple[Mapping[str, Any], Pattern | None]:
        """The attributes, plain values for one given as ``Shape[...]``, and that shape: the result must have it.

        Raises ShapeError for what is no shape, and for one that says too little.
        """
        assert self.named, "the caller asks whether there is such an attribute"
        name, meaning = self.named
        if attrs[name].__class__ in PLAIN:
            return attrs, None
        pattern = Pattern.named(self.name, attrs[name])
        return {**attrs, name: meaning(pattern, self.where_named, known)}, pattern

    @property
    def where_named(self) -> str:
        """What messages call the attribute that may be given as ``Shape[...]``."""
        return f"{self.name}: argument {self.named[0]!r}" if self.named else self.name

    def tensors(self, inputs: Sequence[Any]) -> Sequence[AnyTensor | None]:
        """Every input as a tensor; see `tensors_of`."""
        if TENSORS.issuperset(map(type, inputs)):
            return inputs
        return tensors_of(self.signature, inputs)

    def compute(self, values: Sequence[AnyTensor | None], attrs: Mapping[str, Any]) -> AnyTensor:
        """The value of the op on tensors. What is decided by their specs is kept, so that it is decided once."""
        specs: list[Spec | None] = []
        arrays: list[Array] = []
        for value in values:
            if value is None:
                specs.append(None)
            else:
                specs.append(value.spec)
                arrays.append(value.array)
        key = tuple(specs), attrs.key if type(attrs) is Attributes else self._key(attrs)
        run, spec = self.prepared.get(key) or self._prepare(key, specs, attrs)
        return AnyTensor(run(arrays), spec)

    def _key(self, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
        """What tells attributes apart, as the ``key`` of `Attributes` does, in whatever order they are given."""
        return tuple([exact_key(attrs[name]) for name in self.signature.attributes])

    def infer_spec(self, specs: Sequence[Spec | None], attrs: Mapping[str, Any]) -> Spec:
        """Shape and dtype of the result, inferred once. Raises ShapeError, DTypeError or DomainError."""
        key = tuple(specs), attrs.key if type(attrs) is Attributes else self._key(attrs)
        return self._inferred.get(key) or _keep(self._inferred, key, self._infer(specs, attrs))

    def _infer(self, specs: Sequence[Spec | None], attrs: Mapping[str, Any]) -> Spec:
        for name, spec in zip(self.signature.inputs, specs, strict=True):
            if spec is None and name not in self.signature.optional:
                raise no_tensor(f"{self.name}: argument {name!r}", None)
        unified = self._unified(specs)
        self.signature.require_in_range(attrs, first=True)
        if self.kinds:
            shapes = {n: None if s is None else s.shape for n, s in zip(self.signature.inputs, specs, strict=True)}
            require_kinds(self.signature, self.kinds, {**shapes, **attrs})
        made = unified if self.infer is None else self.infer(*specs, **attrs)
        assert made is not None, "checked when the op was made"
        self.signature.require_in_range(attrs, first=False)
        if made.size > MOST_ELEMENTS:
            raise ShapeError(f"{self.name}: expected a result of less than 2**63 bytes, got shape {made.shape}")
        return made

    def _unified(self, specs: Sequence[Spec | None]) -> Spec | None:
        try:
            return self.signature.unify(specs)
        except (ShapeError, DTypeError) as error:
            advice = self.advice(*specs) if self.advice else ""
            if not advice:
                raise
            raise type(error)(f"{str(error).partition('; ')[0]}; {advice}") from None

    def lowered(self, specs: Sequence[Spec | None], attrs: Mapping[str, Any]) -> tuple[list[Slot], Slot]:
        """The input slots that are given and the slot of the result, the same ones at every call."""
        key = tuple(specs), attrs.key if type(attrs) is Attributes else self._key(attrs)
        return self._lowered.get(key) or _keep(self._lowered, key, self._lower(specs, attrs))

    def _lower(self, specs: Sequence[Spec | None], attrs: Mapping[str, Any]) -> tuple[list[Slot], Slot]:
        slots = [None if spec is None else Slot(spec) for spec in specs]
        result = self.lower(*slots, **attrs)
        return [s for s in slots if s is not None], result

    def _prepare(self, key: Any, specs: Sequence[Spec | None], attrs: Mapping[str, Any]) -> Computation:
        spec = self.infer_spec(specs, attrs)
        slots, result = self.lowered(specs, attrs)
        if result.spec is not spec:
            raise ShapeError(f"op {self.name}: its lowering gives {result.spec}, its infer {spec}; fix the op")
        return _keep(self.prepared, key, (prepare(slots, result), spec))

    @property
    def description(self) -> Description:
        """The docstring of the public function: ``doc``, which its author wrote, and what the record knows."""
        return describe(self.doc, self.signature, [*examples(self.kinds), *self.errors])

    @cached_property
    def refused(self) -> Sequence[Bad]:
        """All that must be refused: what ``errors`` says, and what follows from annotations and kinds."""
        return [*self.errors, *derived(self.signature, self.kinds, self.samples, repeats=self.repeats)]

    @cached_property
    def smooth(self) -> tuple[bool, ...]:
        """Which inputs have a derivative."""
        return tuple(isinstance(rule, Derivative) for rule in self.vjp)

    @cached_property
    def stops(self) -> bool:
        """Whether some input has no derivative."""
        return not all(self.smooth)

    def pull(
        self, g: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any], needs: Sequence[bool]
    ) -> list[tuple[int, Any]]:
        """The cotangents of the inputs that need one and have one, as (position, cotangent), given the output's."""
        found: list[tuple[int, Any]] = []
        for i, rule in enumerate(self.vjp):
            if needs[i] and isinstance(rule, Derivative):
                found.append((i, rule.pull(g, inputs, output, attrs)))
        return found

    def push(self, tangents: Sequence[Any], inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
        """The tangent of the output given those of the inputs, None for one that is zero; None if it is zero."""
        if isinstance(self.jvp, NoGradient) or output.dtype.kind != "f" or all(t is None for t in tangents):
            return None
        given = [_zero(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)]
        return self.jvp(given if len(given) > 1 else given[0], inputs, output, attrs)


OPS = cast(dict[str, Op], CALLEES)
"""Every op record by name: the table that operators call through."""


def _keep(kept: dict[Any, V], key: Any, made: V) -> V:
    """Keep what was made for a signature, in the place of the oldest if there are many."""
    if len(kept) >= PREPARED_KEPT:
        kept.pop(next(iter(kept)), None)
    kept[key] = made
    return made


def _listed(name: str) -> Op:
    """The record of this name."""
    return OPS[name]


def _zero(x: Any) -> AnyTensor | None:
    """The tangent of an input that does not move; None for an omitted one and for what holds no floats."""
    return None if x is None or x.dtype.kind != "f" else AnyTensor.number(0.0, x.dtype, tuple(x.shape))
