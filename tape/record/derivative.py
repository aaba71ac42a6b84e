"""Derivative rules: functions written in ops, whose parameter names say what they need."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
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

    def __call__(self, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
        """Apply the rule; ``given`` is the cotangent, or the tangents in the order of the inputs."""
        return self.rule(*[source(given, inputs, output, attrs) for source in self.sources])


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


def _sources(signature: Signature, given: Sequence[str]) -> dict[str, Source]:
    known: dict[str, Source] = {"y": _output}
    for i, name in enumerate(signature.inputs):
        known[name] = partial(_input, i)
        known[f"{name}_shape"] = partial(_input_shape, i)
    for name in signature.attributes:
        known[name] = partial(_attribute, name)
    if len(given) == 1:
        return {**known, given[0]: _direction}
    return {**known, **{name: partial(_direction_of, i) for i, name in enumerate(given)}}


def _output(given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
    return output


def _input(i: int, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
    return inputs[i]


def _input_shape(i: int, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
    return shape_of(inputs[i])


def _attribute(name: str, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
    return attrs[name]


def _direction(given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
    return given


def _direction_of(i: int, given: Any, inputs: Sequence[Any], output: Any, attrs: Mapping[str, Any]) -> Any:
    return given[i]
