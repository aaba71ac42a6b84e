"""The built-in rules by the names that traces have for them, and the names that are left to users."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ....tape.errors import DomainError
from .rule import Rule

HOME = __name__.removesuffix("rules.registry") + "methods."
"""Where the built-in rules stand."""


class Named(NamedTuple):
    """A rule and its hyperparameters in the version of a name."""

    rule: type[Rule]
    names: tuple[str, ...]


RULES: dict[str, Named] = {}
"""Every built-in rule by name: classes enter themselves."""


def enter(rule: type[Rule], name: str, names: tuple[str, ...]) -> None:
    """Note the name of a rule and its hyperparameters, if it is built in."""
    if rule.__module__.startswith(HOME):
        RULES[name] = Named(rule, names)


NAME = re.compile(r"[a-z][a-z0-9_]*@[1-9][0-9]*")
"""What a rule may be called."""

LONGEST = 64
"""Characters of a name."""

TAKEN = ("clip_value", "frozen", "ema")
"""What else is built in."""


def require_own_name(where: str, name: object) -> str:
    """The name of a user's rule. Raises DomainError for what is no name and version, or is built in."""
    if not isinstance(name, str) or len(name) > LONGEST or not NAME.fullmatch(name):
        expected = f"expected a name and a version, such as 'mine@1', of at most {LONGEST} characters"
        raise DomainError(f"{where}: {expected}, got {name!r}")
    own = name.partition("@")[0]
    if own in TAKEN or any(own == known.partition("@")[0] for known in RULES):
        raise DomainError(f"{where}: expected a name that is not built in, got {name!r}; choose another")
    return name


def make_rule(name: str, hyper: Mapping[str, float], rules: Mapping[str, type[Rule]] | None = None) -> Rule:
    """The rule of a name and its `hyperparameters`, as traces record them.

    ``rules`` are classes by name, in addition to the built-in ones.

    Raises:
        KeyError: no rule has this name.
        DomainError: a hyperparameter is missing, unknown or out of bounds.

    >>> from dgrr.runtime import Adam, make_rule
    >>> make_rule("adam@1", Adam(3e-4).hyperparameters()) == Adam(3e-4)
    True
    """
    known = {**{own: Named(rule, rule.names) for own, rule in (rules or {}).items()}, **RULES}
    if name not in known:
        raise KeyError(f"make_rule: expected one of {', '.join(sorted(known))}, got {name!r}")
    rule, expected = known[name]
    if set(hyper) != set(expected):
        given = ", ".join(hyper) or "nothing"
        raise DomainError(f"make_rule: {name}: expected {', '.join(expected)}, got {given}")
    return rule.from_hyperparameters(hyper)
