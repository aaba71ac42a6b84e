"""Public functions made of several ops, with a record of each: they have the properties that ops have."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import Any, TypeVar, cast, get_overloads

import numpy as np

from ..errors import DTypeError, TapeError
from ..values.dtypes import boolean, i64
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.op_table import COMPOSED as CALLEES, require_free
from ..var.var import AnyVar, Var, shape_of
from .description import Description, describe, require_docstring
from .kinds import Kind, require_in_range
from .kinds.values import Values
from .refusals import Kinds, derived, examples, require_kinds
from .samples import Bad, Samples
from .signature import Signature

F = TypeVar("F", bound=Callable[..., Any])

FITTING_KEPT = 1024
"""Calls (shapes and dtypes) that are known to fit the annotations of a composed function."""


@dataclass(frozen=True, eq=False)
class Composed:
    """One composed function. The fields mean what those of `dgrr.tape.record.op.Op` mean; `composed` makes records."""

    name: str
    doc: str
    function: Callable[..., Any]
    signature: Signature
    covers: tuple[str, ...]
    reference: Callable[..., Any]
    samples: Samples
    errors: Sequence[Bad]
    kinds: Kinds
    batch_axis: Mapping[str, int]
    excused: Mapping[str, str]
    instead: Mapping[str, str]

    def __reduce__(self) -> Any:
        """Copies and pickles are the one record of this name."""
        return _listed, (self.name,)

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Apply to the inputs in their order, which need not stand together, and to attributes by name."""
        return self.function(**dict(zip(self.signature.inputs, inputs, strict=False)), **attrs)

    @property
    def description(self) -> Description:
        """The docstring of the function: ``doc``, which its author wrote, and what the record knows."""
        return describe(self.doc, self.signature, [*examples(self.kinds), *self.errors])

    @cached_property
    def refused(self) -> Sequence[Bad]:
        """All that must be refused: what ``errors`` says, and what follows from annotations and kinds."""
        return [*self.errors, *derived(self.signature, self.kinds, self.samples)]

    @property
    def smooth(self) -> tuple[bool, ...]:
        """Which inputs have a derivative: all that may be floats."""
        types, _ = self.signature.cases[0]
        return tuple([types[name].dtype not in (i64, boolean) for name in self.signature.inputs])


COMPOSED = cast(dict[str, Composed], CALLEES)
"""Every record of a composed function by name: the table that names are kept free in."""


def _listed(name: str) -> Composed:
    """The record of this name."""
    return COMPOSED[name]


def composed(
    *,
    reference: Callable[..., Any],
    samples: Samples,
    errors: Sequence[Bad] = (),
    kinds: Kinds | None = None,
    covers: Sequence[str] = (),
    batch_axis: Mapping[str, int] | None = None,
    excused: Mapping[str, str] | None = None,
    instead: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Keep a record of a function of Vars that calls ops, and give the function back, described by its record.

    Its attributes reach it in plain form, or are refused under its name. It checks its arguments before it calls the
    first op, so that an error leaves nothing on the tape: `fitted` does it for shapes and dtypes. A private op of the
    same name is its plain form, and says in its words what does not fit that. ``reference`` and
    ``errors`` take the inputs in the order of the parameters and the attributes by name. Raises TypeError, at import,
    for a record with a part missing.
    """

    def keep(function: F) -> F:
        name = function.__name__
        require_free("composed function", name, over_private=True)
        require_docstring("composed function", function)
        signature = Signature(function, exact=bool(get_overloads(function)))
        checked = _with_plain_attributes(function, signature, instead or {}, kinds or {})
        COMPOSED[name] = record = Composed(
            name=name,
            doc=inspect.cleandoc(function.__doc__ or ""),
            function=checked,
            signature=signature,
            covers=tuple(covers),
            reference=reference,
            samples=samples,
            errors=errors,
            kinds=kinds or {},
            batch_axis=batch_axis or {},
            excused=excused or {},
            instead=instead or {},
        )
        checked.__doc__ = str(record.description)
        return cast(F, checked)

    return keep


def _with_plain_attributes(
    function: Callable[..., Any], signature: Signature, instead: Mapping[str, str], limits: Kinds
) -> Callable[..., Any]:
    """The function with its attributes in plain form. Raises DTypeError, in Python's words, for a call that misfits."""
    kinds = dict(zip(signature.attributes, signature.kinds, strict=True))
    limits = {name: kind for name, kind in limits.items() if name in kinds}  # those of inputs are for `fitted`
    places = [kinds.get(name) for name in signature.names]
    plain_alone = _right_by_itself(signature, limits)

    def plain(name: str, kind: Kind, value: Any) -> Any:
        made = kind(signature.where(name), value, instead.get(name, ""))
        require_in_range(signature.where(name), made, number=kind.number)
        return made

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for place, (kind, value) in enumerate(zip(places, args)):  # noqa: B905  (there may be too many: a misfit)
            if kind is not None and not kind.takes(value):
                args = (*args[:place], plain(signature.names[place], kind, value), *args[place + 1 :])
        for name, value in kwargs.items():
            kind = kinds.get(name)
            if kind is not None and not kind.takes(value):
                kwargs[name] = plain(name, kind, value)
        if limits and (kwargs or len(args) > plain_alone):
            require_kinds(signature, limits, _with_shapes(signature, limits, args, kwargs))
        try:
            return function(*args, **kwargs)
        except TypeError:
            signature.require_fit(args, kwargs)
            raise

    return checked


def _right_by_itself(signature: Signature, limits: Kinds) -> int:
    """How many arguments, in their order, a call has at most in which each limited attribute is its default."""
    if not all(isinstance(kind, Values) for kind in limits.values()):
        return -1
    return min([signature.places[name] for name in limits], default=len(signature.names))


def _with_shapes(
    signature: Signature, limits: Kinds, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of attributes by name, and the shapes of inputs where a kind asks for them.

    Raises DTypeError for a call that misfits.
    """
    given = signature.bound(args, kwargs)
    if all([isinstance(kind, Values) for kind in limits.values()]):  # noqa: C419  (a generator takes longer)
        return given
    inputs = {name: _operand(COMPOSED[signature.name], name, given[name]) for name in signature.inputs}
    return given | {name: None if x is None else shape_of(x) for name, x in inputs.items()}


def fitted(name: str, *inputs: Any) -> list[Any]:
    """The inputs of the composed function ``name`` in the order of its parameters, arrays as tensors.

    Raises ShapeError or DTypeError for inputs that do not fit its annotations, TapeError for Vars of different
    tapes and where there is neither a Var nor a tensor.
    """
    record = COMPOSED[name]
    if not any(isinstance(x, Var | AnyTensor) for x in inputs):
        raise TapeError(f"{name}: expected a Var among the arguments; put an array on a tape with tape.leaf")
    _require_one_tape(inputs)
    made = [_operand(record, i, x) for i, x in zip(record.signature.inputs, inputs, strict=True)]
    _require_fitting(record, tuple([None if x is None else Spec(shape_of(x), x.dtype) for x in made]))
    return made


def _require_one_tape(inputs: Sequence[Any]) -> None:
    given: list[AnyVar] = [x for x in inputs if isinstance(x, Var)]
    for x in given:
        given[0].tape.node(x)


def _operand(record: Composed, name: str, x: Any) -> Any:
    """A Var, a tensor or None as it is, an array as a tensor."""
    where = f"{record.name}: argument {name!r}"
    given: Any = x
    if isinstance(x, Var | AnyTensor) or (x is None and name in record.signature.optional):
        return given
    if isinstance(x, np.ndarray | list | tuple):
        return AnyTensor.leaf(given, where)
    raise DTypeError(f"{where}: expected a Var, a tensor or an array, got {type(x).__name__}")


@lru_cache(FITTING_KEPT)
def _require_fitting(record: Composed, specs: tuple[Spec | None, ...]) -> None:
    signature = record.signature
    signature.unify(specs)
    shapes = {name: None if spec is None else spec.shape for name, spec in zip(signature.inputs, specs, strict=True)}
    require_kinds(signature, {name: kind for name, kind in record.kinds.items() if name in shapes}, shapes)
