"""The built-in rules by the names that traces have for them, and the names that are left to users."""

import re
from collections.abc import Mapping

from ...tape.errors import DomainError
from .methods.adadelta import Adadelta
from .methods.adafactor import Adafactor
from .methods.adagrad import Adagrad
from .methods.adamax import Adamax
from .methods.lamb import LAMB
from .methods.lion import Lion
from .methods.muon import Muon
from .methods.nadam import NAdam
from .methods.radam import RAdam
from .methods.rmsprop import RMSprop
from .methods.rules import FUSED, SGD, Adam, AdamW
from .rule import Rule

_CLASSES = (RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam, Lion, LAMB, Adafactor, Muon)

_VERSIONS = {law.rule: (cls, law.names) for cls in (SGD, Adam, AdamW) for law in cls.laws}

RULES: dict[str, type[Rule]] = {
    **FUSED,
    **{name: cls for name, (cls, _) in _VERSIONS.items()},
    **{cls.rule: cls for cls in _CLASSES},
}
"""Every rule by name."""


NAME = re.compile(r"[a-z][a-z0-9_]*@[1-9][0-9]*")
"""What a rule may be called."""

LONGEST = 64
"""Characters of a name."""

TAKEN = {"clip_value", "frozen", "ema", *[name.partition("@")[0] for name in RULES]}
"""What is built in, in every version."""


def require_own_name(where: str, name: object) -> str:
    """The name of a user's rule. Raises DomainError for what is no name and version, or is built in."""
    if not isinstance(name, str) or len(name) > LONGEST or not NAME.fullmatch(name):
        expected = f"expected a name and a version, such as 'mine@1', of at most {LONGEST} characters"
        raise DomainError(f"{where}: {expected}, got {name!r}")
    if name.partition("@")[0] in TAKEN:
        raise DomainError(f"{where}: expected a name that is not built in, got {name!r}; choose another")
    return name


def make_rule(name: str, hyper: Mapping[str, float], rules: Mapping[str, type[Rule]] | None = None) -> Rule:
    """The rule of a name and its `hyperparameters`, as traces record them.

    ``rules`` are classes by name besides those that are built in.

    Raises:
        KeyError: no rule has this name.
        DomainError: a hyperparameter is missing, unknown or out of bounds.

    >>> from dgrr.runtime import Adam, make_rule
    >>> make_rule("adam@1", Adam(3e-4).hyperparameters()) == Adam(3e-4)
    True
    """
    known = {**(rules or {}), **RULES}
    if name not in known:
        raise KeyError(f"make_rule: expected one of {', '.join(known)}, got {name!r}")
    expected = _VERSIONS[name][1] if name in _VERSIONS else known[name].names
    if set(hyper) != set(expected):
        given = ", ".join(hyper) or "nothing"
        raise DomainError(f"make_rule: {name}: expected {', '.join(expected)}, got {given}")
    return known[name].from_hyperparameters(hyper)
