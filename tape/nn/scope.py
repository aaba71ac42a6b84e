"""The parameters of a part of a model, and the error for one that is not there."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...base.suggest import did_you_mean
from ..errors import DomainError
from ..var.var import AnyVar

Params: TypeAlias = Mapping[str, AnyVar]
"""What a loss function and a layer are given as parameters: by name a Var of any shape."""

SHOWN = 8
"""How many names an error lists."""


class MissingParameterError(DomainError, KeyError):
    """A parameter that is not there: a KeyError too, as of every mapping."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # a KeyError shows its text in quotes


class Scope(Mapping[str, AnyVar]):
    """The parameters whose names begin with a prefix, under the names without it.

    ``layer`` is the one that asks for them, which an error names.
    """

    def __init__(self, p: Params, prefix: str, layer: Any = None) -> None:
        self.whole: Params = p
        """The parameters of the whole model."""
        self.prefix = prefix
        self.layer = layer
        if type(p) is Scope:  # isinstance of a Mapping takes as long as the rest
            self.whole, self.prefix = p.whole, p.prefix + prefix

    def __getitem__(self, name: str) -> AnyVar:
        try:
            return self.whole[self.prefix + name]
        except (KeyError, TypeError, IndexError):
            raise missing(self.layer, self, name) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.prefix + name in self.whole

    def get(self, name: str, /, default: Any = None) -> Any:
        """The parameter of this name, or ``default``."""
        return self.whole.get(self.prefix + name, default)  # without making an error, whose text takes long

    def __iter__(self) -> Iterator[str]:
        n = len(self.prefix)
        return (name[n:] for name in self.whole if name.startswith(self.prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def parameter(p: Params, layer: Any, name: str) -> AnyVar:
    """``p[name]``. Raises DomainError, naming the layer and what there is, if it is missing."""
    try:
        return p[name]
    except (KeyError, TypeError, IndexError):
        raise missing(layer, p, name) from None


def missing(layer: Any, p: Params, name: str) -> MissingParameterError:
    """The error for a name that is not among the parameters that a layer, or without one a function, asks for."""
    whole, prefix = (p.whole, p.prefix) if isinstance(p, Scope) else (p, "")
    wanted = prefix + name
    who = f"p[{name!r}]" if layer is None else f"{layer!r}: argument 'p'"
    own = {prefix + each for each in (() if layer is None else layer.own_parameters())}
    return MissingParameterError(f"{who}: expected a parameter {wanted!r}, got {_listed(whole, wanted, prefix, own)}")


def _listed(whole: Any, wanted: str, prefix: str, own: Collection[str]) -> str:
    """What there is, and what was meant perhaps."""
    if not _is_mapping(whole):
        return f"{type(whole).__name__}; give a dict of Vars by name, as tape.params makes it"
    names = [str(name) for name in whole]
    nested = next((n for n in names if wanted.startswith(f"{n}.") and _is_mapping(whole[n])), None)
    if nested is not None:
        return f"a dict under {nested!r}; parameters are one flat dict, {{{wanted!r}: …}}"
    near = [name for name in names if name.startswith(prefix)] or names
    listed = ", ".join(map(repr, near[:SHOWN])) + (f" and {len(near) - SHOWN} more" if len(near) > SHOWN else "")
    return (listed or "none") + _hint(wanted, prefix, [name for name in near if name not in own])


def _hint(wanted: str, prefix: str, others: Sequence[str]) -> str:
    """What to do, where the names that there are tell."""
    ending = "." + wanted.removeprefix(prefix)
    if any(name.startswith(prefix) and name.endswith(ending) for name in others):
        return "; a layer's part is applied by self.part(name, p, x, ctx), which finds the part's own"
    return did_you_mean(wanted, others)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)
