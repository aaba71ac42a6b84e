"""Layers: frozen descriptions of functions of named parameters, and how they are joined. They hold no values."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Generic, TypeVarTuple, cast, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar

from ...base.arrays import Array, Arrays
from ..errors import DomainError, DTypeError
from ..record.described import Described
from ..values.dtypes import Float
from ..values.shape import Dim
from ..values.tables import PlainTable
from ..var.method_types import UnknownAxis
from ..var.var import AnyVar, Var
from .context import Context
from .on_arrays import on_arrays
from .parameters import Having, Initialiser, Parameter, Parameters, having, initialised, overridden
from .parts import applied, held, unique
from .scope import Params
from .summary import summary

F = TypeVar("F", bound=Float)
S = TypeVarTuple("S")
In = TypeVar("In", bound=Dim, default=Any)
"""The last axis of what a layer takes."""
Out = TypeVar("Out", bound=Dim, default=Any)
"""The last axis of what it gives."""
Features = TypeVar("Features", bound=Dim, default=Any)
"""The last axis of both."""
Function = Callable[[AnyVar], AnyVar]
"""What may stand where a container takes a layer: a function of x alone."""
L1 = TypeVar("L1", bound=Dim)
L2 = TypeVar("L2", bound=Dim)
L3 = TypeVar("L3", bound=Dim)
L4 = TypeVar("L4", bound=Dim)
L5 = TypeVar("L5", bound=Dim)
L6 = TypeVar("L6", bound=Dim)
L7 = TypeVar("L7", bound=Dim)


class Layer(Described, ABC, Generic[In, Out]):
    """A function ``layer(p, x, ctx)`` of parameters ``p``, a Var and a context, described by frozen data.

    A ``Layer[In, Out]`` changes the last axis and keeps those before it. A plain ``Layer`` may change any: type
    checkers know nothing of its result. Parameters and state of a layer's parts stand under the part's name:
    ``"0.weight"``, ``"attention.wq"``. Every layer raises DomainError, when called, for a parameter that ``p`` lacks,
    and DTypeError for a third argument that is no context: what else a layer takes, it takes by name.

    >>> from dgrr.tape import Tape, nn
    >>> class Double(nn.Layer):
    ...     def __call__(self, p, x, ctx=None):
    ...         return x + x
    >>> Double()({}, Tape().leaf([1.0, 2.0])).numpy()
    array([2., 4.])

    With plain arrays in ``p`` a model is evaluated, ``training=False``, and of an array it gives an array. The state of
    a model that has one stands among them: ``model(params | state, x)``. `dgrr.runtime.capture_function` makes a fast
    function of it.

    >>> Double()({}, np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the class evaluate plain arrays. Raises DomainError for a field with the name of a method.

        A dataclass would take the method for the field's default.
        """
        super().__init_subclass__(**options)
        for name in vars(cls).get("__annotations__", {}):
            if hasattr(Layer, name):
                raise DomainError(f"{cls.__name__}: a layer has a method {name!r}; choose another name for the field")
        if "__call__" in vars(cls) and not getattr(cls.__call__, "__isabstractmethod__", False):
            cls.__call__ = on_arrays(cls.__call__)  # type: ignore[method-assign]

    def own_parameters(self) -> Parameters:
        """The layer's own parameters by name, without those of its parts: the attributes that are `Parameter`, unless
        overridden."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Parameter)}

    def own_state(self) -> Parameters:
        """What the layer itself keeps from step to step and no optimizer trains; none unless overridden."""
        return {}

    def children(self) -> "Mapping[str, Layer]":
        """The parts by name: the attributes that are layers, in the order in which they were set, unless overridden.

        Layers in a list, a tuple or a dict have names behind its own: ``blocks.0``, ``heads.left``.
        Raises DomainError for two of one name, as in ``{1: a, "1": b}``.
        """
        found = [named for name, value in vars(self).items() for named in held(Layer, name, value)]
        return unique(self, "parts", found)

    @overload
    def __call__(self: "AnyLayer", p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar: ...
    @overload
    def __call__(self, p: Params, x: Var[F, *S, In], ctx: Context | None = None) -> Var[F, *S, Out]: ...
    @abstractmethod
    def __call__(self, p: Params, x: Any, ctx: Context | None = None) -> Any:
        """The layer's output. ``p`` may hold more names than the layer asks for."""

    @overload
    def __rshift__(self, then: "SameShape") -> "Sequential[In, Out]": ...
    @overload
    def __rshift__(self, then: "Layer[Out, L1]") -> "Sequential[In, L1]": ...
    @overload
    def __rshift__(self, then: Function) -> "Sequential[In, Any]": ...
    def __rshift__(self, then: Any) -> Any:
        """This layer and then another, or a function of x: ``a >> b >> c`` is ``Sequential(a, b, c)``."""
        return Sequential(*_steps(self), *_steps(as_layer(">>", then)))

    def __rrshift__(self, first: Function) -> "Sequential[Any, Out]":
        """A function of x and then this layer."""
        return Sequential(*_steps(as_layer(">>", first)), *_steps(self))

    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name, in the order in which they are initialised and listed: own ones first.

        Raises DomainError for two of one name.
        """
        return self._all(self.own_parameters(), {n: c.parameters() for n, c in self.children().items()})

    def states(self) -> dict[str, Parameter]:
        """The state by name, own entries first. Raises DomainError for an own entry named as an own parameter."""
        unique(self, "parameters and state", [*self.own_parameters().items(), *self.own_state().items()])
        return self._all(self.own_state(), {n: c.states() for n, c in self.children().items()})

    def _all(self, own: Parameters, parts: Mapping[str, Parameters]) -> dict[str, Parameter]:
        """Own entries and those of the parts, whose names begin with the part's."""
        below = [(f"{part}.{name}", p) for part, named in parts.items() for name, p in named.items()]
        return unique(self, "parameters and state", [*own.items(), *below])

    def roles(self) -> dict[str, str]:
        """What each parameter is to its layer: "weight", "bias", "norm", "embedding", "slope", or a word of its own."""
        return {name: parameter.role for name, parameter in self.parameters().items()}

    def having(self, *roles: str) -> Having:
        """A predicate that is true of the parameters with one of the roles, for groups of a `Trainer` and ``frozen``.

        Raises DomainError without a role and for one that is not known; when called, for a name that is none of the
        model's.

        >>> from dgrr.tape import nn
        >>> model = nn.Linear(2, 3) >> nn.LayerNorm(3)
        >>> without_decay = model.having("bias", "norm")
        >>> [name for name, value in model.init(seed=0).items() if without_decay(name, value)]
        ['0.bias', '1.weight', '1.bias']
        """
        return having(type(self).__name__, roles, self.roles())

    def init(
        self, seed: int, dtype: npt.DTypeLike = np.float32, overrides: Mapping[str, Initialiser] | None = None
    ) -> dict[str, Array]:
        """Fresh parameters, a function of the seed alone: name to float32 or float64 array, in a fixed order.

        ``overrides`` maps patterns of names (``"*.weight"``) to other starts; of several that match the last counts.
        Raises DTypeError for another dtype, DomainError for a pattern that no name matches.

        >>> from dgrr.tape import nn
        >>> nn.Linear(2, 3).init(0, overrides={"bias": nn.init.zeros()})["bias"]
        array([0., 0., 0.], dtype=float32)
        """
        return initialised("init", overridden(self.parameters(), overrides or {}), seed, dtype)

    def init_state(self, dtype: npt.DTypeLike = np.float32) -> dict[str, Array]:
        """The state before the first step, such as running statistics: name to array, in a fixed order.

        Raises DTypeError for another dtype than float32 and float64.
        """
        return initialised("init_state", self.states(), 0, dtype)

    def part(self, name: str, p: Params, x: AnyVar, ctx: Context | None, **more: Any) -> AnyVar:
        """The output of one of the parts, which sees its own parameters and state only.

        ``more`` is what else the part takes by name. What it raises says where: ``3.attention: linear: argument …``.
        Raises DomainError for a name that no part has.
        """
        parts = self.children()
        if name not in parts:
            have = ", ".join(map(repr, parts)) or "none; parts are attributes that are layers"
            raise DomainError(f"{type(self).__name__}: part: argument 'name': expected one of {have}, got {name!r}")
        return applied(parts[name], name, p, x, ctx, more)

    def table(self) -> PlainTable:
        """One row per layer that has no parts, and the total."""
        return summary(self)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().to_html()


AnyLayer = Layer[UnknownAxis, Any] | Layer[Any, UnknownAxis]
"""What only a layer is of which one end, at least, is not known."""


class SameShape(Layer[Features, Features]):
    """A layer whose output has the shape of its input; between others it keeps what is known of their axes.

    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.

    >>> from dgrr.tape import Tape, nn
    >>> class Double(nn.SameShape):
    ...     def __call__(self, p, x, ctx=None):
    ...         return x + x
    >>> (Double() >> nn.ReLU())({}, Tape().leaf([-1.0, 2.0])).numpy()
    array([0., 4.])
    """

    @abstractmethod
    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""


Step = Layer[In, Out] | Function
"""What may stand in a `Sequential`; a function tells type checkers nothing of its axes."""


@dataclass(frozen=True, init=False, repr=False)
class Sequential(Layer[In, Out]):
    """Layers applied one after the other; names of parameters begin with the position of a layer, as ``"0.weight"``.

    Functions of x may stand among them, and one list or tuple may hold them all.
    The last axes of up to 8 layers are held against each other by type checkers; ``>>`` has no such bound.

    Source: torch.nn.Sequential.
    Shapes: x as the first layer takes it -> as the last one gives it; without layers x itself
    Dtypes: those of its layers.
    Raises:
        DTypeError: what is given is neither a layer nor a function of x alone.

    >>> from dgrr.tape import nn
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> {name: value.shape for name, value in model.init(seed=0).items()}
    {'0.weight': (2, 3), '0.bias': (2,)}
    >>> model == nn.Linear(3, 2) >> nn.ReLU()
    True
    """

    layers: tuple[Layer, ...]

    # fmt: off
    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self: "Sequential", layers: Sequence[Step], /) -> None: ...
    @overload
    def __init__(self, a: Step[In, Out], /) -> None: ...
    @overload
    def __init__(self, a: Step[In, L1], b: Step[L1, Out], /) -> None: ...
    @overload
    def __init__(self, a: Step[In, L1], b: Step[L1, L2], c: Step[L2, Out], /) -> None: ...
    @overload
    def __init__(self, a: Step[In, L1], b: Step[L1, L2], c: Step[L2, L3], d: Step[L3, Out], /) -> None: ...
    @overload
    def __init__(
        self, a: Step[In, L1], b: Step[L1, L2], c: Step[L2, L3], d: Step[L3, L4], e: Step[L4, Out], /
    ) -> None: ...
    @overload
    def __init__(
        self, a: Step[In, L1], b: Step[L1, L2], c: Step[L2, L3], d: Step[L3, L4],
        e: Step[L4, L5], f: Step[L5, Out], /,
    ) -> None: ...
    @overload
    def __init__(
        self, a: Step[In, L1], b: Step[L1, L2], c: Step[L2, L3], d: Step[L3, L4],
        e: Step[L4, L5], f: Step[L5, L6], g: Step[L6, Out], /,
    ) -> None: ...
    @overload
    def __init__(
        self, a: Step[In, L1], b: Step[L1, L2], c: Step[L2, L3], d: Step[L3, L4],
        e: Step[L4, L5], f: Step[L5, L6], g: Step[L6, L7], h: Step[L7, Out], /,
    ) -> None: ...
    @overload
    def __init__(
        self, a: Step, b: Step, c: Step, d: Step, e: Step, f: Step, g: Step, h: Step, i: Step, /, *more: Step
    ) -> None: ...
    # fmt: on
    def __init__(self, *layers: Any) -> None:
        given = cast(Sequence[Any], layers[0] if len(layers) == 1 and isinstance(layers[0], list | tuple) else layers)
        made = tuple(as_layer(f"Sequential: layer {i}", each) for i, each in enumerate(given))
        object.__setattr__(self, "layers", made)

    def children(self) -> Mapping[str, Layer]:
        """The layers by their positions."""
        return {str(i): layer for i, layer in enumerate(self.layers)}

    @overload
    def __call__(self: AnyLayer, p: Params | Arrays, x: AnyVar, ctx: Context | None = None) -> AnyVar: ...
    @overload
    def __call__(self, p: Params | Arrays, x: Var[F, *S, In], ctx: Context | None = None) -> Var[F, *S, Out]: ...
    @overload
    def __call__(self, p: Arrays, x: Array, ctx: Context | None = None) -> Array: ...
    @overload
    def __call__(self, p: Params, x: Array, ctx: Context | None = None) -> AnyVar: ...
    def __call__(self, p: Any, x: Any, ctx: Context | None = None) -> Any:
        """The last layer's output."""
        for name, layer in self.children().items():
            x = applied(layer, name, p, x, ctx, {})
        return x

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"


@dataclass(frozen=True, repr=False)
class Applied(Layer):
    """A function of x as a layer: it has no parameters, and is printed as the function is called."""

    function: Function

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """function(x)."""
        return self.function(x)

    def __repr__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))


def as_layer(where: str, given: Any) -> Layer:
    """A layer, or a function of x as one. Raises DTypeError for anything else."""
    if isinstance(given, Layer):
        layer: Layer = cast(Any, given)
        return layer
    if isinstance(given, type) or not callable(given):
        hint = f"; write {given.__name__}(…)" if isinstance(given, type) and issubclass(given, Layer) else ""
        got = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise DTypeError(f"{where}: expected a layer or a function of x, got {got}{hint}")
    made = Applied(cast(Function, given))
    try:
        signature(given).bind(None)
    except TypeError as error:
        raise DTypeError(
            f"{where}: expected a function of x alone, got {made!r}: {error}; write lambda x: {made!r}(x, …)"
        ) from None
    return made


def _steps(layer: Any) -> tuple[Layer, ...]:
    return layer.layers if isinstance(layer, Sequential) else (layer,)
