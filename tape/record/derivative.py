"""Derivative rules: functions written in ops, whose parameter names say what they need."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, Final

from ..var.var import shape_of
from .signature import Signature


class NoGradient:
    """The word for "no derivative exists here": a constant result, or an input of integers."""

    def __repr__(self) -> str:
        return "NO_GRAD"


NO_GRAD: Final = NoGradient()

RecordFunction = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any], Any]
)
"""A function of a record. The arities are written out so that type checkers see through lambdas."""

Source = Callable[[Any, Sequence[Any], Any, Mapping[str, Any]], Any]


class Derivative:
    """A derivative rule and where each name it takes comes from.

    ``g`` is the cotangent (or ``dX`` the tangent of input X), ``y`` the op's output, an input's or an
    attribute's name its value, ``X_shape`` the sizes of input X. The names a rule takes are what is saved.
    """

    def __init__(self, op: str, rule: RecordFunction, signature: Signature, given: Sequence[str]) -> None:
        self.rule: Callable[..., Any] = rule
        self.names = names_of(rule)
        known = _sources(signature, given)
        unknown = [name for name in self.names if name not in known]
        if unknown:
            raise TypeError(f"op {op}: a derivative takes {unknown[0]!r}; it may take {', '.join(known)}")
        self.sources = [known[name] for name in self.names]

    @cached_property
    def pull(self) -> Source:
        """What ``__call__`` does, as one function: it finds what each name of the rule stands for where it calls it."""
        found = ", ".join(self.sources)
        known = {"rule": self.rule, "shape_of": shape_of}
        made: Source = eval(f"lambda given, inputs, output, attrs: rule({found})", known)
        return made

    def __call__(self, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
        """Apply the rule; ``given`` is the cotangent, or the tangents in the order of the inputs."""
        return self.pull(given, inputs, output, attrs)


def names_of(rule: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a rule takes, in order."""
    code = rule.__code__  # what `inspect.signature` reads too, thirty times slower
    taken: tuple[str, ...] = rule.__dict__.get("taken") or code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return taken


def taking(names: Sequence[str], rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of any number of arguments, said to take those of these names."""
    rule.__dict__["taken"] = tuple(names)
    return rule


class AlongAll:
    """The tangent of an output: the sum of what the tangents of the inputs become, each along its own direction."""

    def __init__(self, rules: Sequence[Derivative | NoGradient], add: Callable[[], Callable[[Any, Any], Any]]) -> None:
        self.rules, self.add = [(i, rule) for i, rule in enumerate(rules) if isinstance(rule, Derivative)], add
        self.alone = len(rules) == 1

    def __call__(self, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
        """Apply the rules to the tangents in the order of the inputs, or to that of the only one."""
        tangents = [given] if self.alone else given
        moved = [rule(tangents[i], inputs, output, attrs) for i, rule in self.rules if tangents[i] is not None]
        return reduce(self.add(), moved)


def _sources(signature: Signature, given: Sequence[str]) -> dict[str, str]:
    """Where each name that a rule may take comes from, as an expression of what `Derivative` is called with."""
    known = {"y": "output"}
    for i, name in enumerate(signature.inputs):
        known |= {name: f"inputs[{i}]", f"{name}_shape": f"shape_of(inputs[{i}])"}
    known |= {name: f"attrs[{name!r}]" for name in signature.attributes}
    alone = len(given) == 1
    return known | {name: "given" if alone else f"given[{i}]" for i, name in enumerate(given)}
