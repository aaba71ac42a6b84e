"""How close two runs must be: to the bit, within some ULP, or within a relative and an absolute tolerance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array, is_float
from ...base.errors import DomainError
from ...base.ulp import same_bits, ulp_distances

ROUGHLY = 1.6
"""The factor within which a sketch says a distance."""

GRAMMAR = "'bitwise', 'ulp=4' or 'rtol=1e-5,atol=1e-8'"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far two values of one tensor may be apart: by bits (the default), by `ulp`, or by `rtol` and `atol`.

    Of `rtol` and `atol` the rule is |a - b| <= atol + rtol * |a|, where a is the first trace, the reference. Equal
    infinities agree, and so do two NaNs. Integers and booleans are equal or not.
    """

    ulp: int | None = None
    rtol: float | None = None
    atol: float | None = None

    @property
    def bitwise(self) -> bool:
        """Whether no bit may differ."""
        return self == BITWISE

    def differs(self, a: Array, b: Array) -> npt.NDArray[np.bool_]:
        """Element by element, whether two arrays of one dtype and shape are further apart than this.

        >>> Tolerance(ulp=1).differs(np.array([1.0, 2.0]), np.array([1.0 + 2**-52, 2.5]))
        array([False,  True])
        """
        same = same_bits(a, b)
        if self.bitwise or not is_float(a.dtype):
            return ~same
        if self.ulp is not None:
            return ulp_distances(a, b) > self.ulp
        with np.errstate(all="ignore"):
            x, y = a.astype(np.float64), b.astype(np.float64)
            close = np.isfinite(x) & np.isfinite(y) & (abs(x - y) <= (self.atol or 0) + (self.rtol or 0) * abs(x))
        return ~(same | close)

    def allows(self, distance: float, norm: float, count: int) -> bool | None:
        """Whether two tensors so far apart are within this as a whole, by their norms; None where norms say nothing.

        If every element is, |a - b| <= atol + rtol * |a|, then ||a - b|| <= atol * sqrt(n) + rtol * ||a||; and far less
        where differences are spread over all elements, as those of rounding are: the worst was about ten times the root
        mean square. So an eighth of that is allowed, and `ROUGHLY` as much, since sketches say no more.

        >>> Tolerance(rtol=1e-3).allows(1e-4, 1.0, 100), Tolerance(rtol=1e-3).allows(1e-3, 1.0, 100)
        (True, False)
        """
        if self.bitwise or self.ulp is not None:
            return None
        return distance <= ROUGHLY / 8 * ((self.atol or 0) * math.sqrt(count) + (self.rtol or 0) * norm)

    def __str__(self) -> str:
        given = [("ulp", self.ulp), ("rtol", self.rtol), ("atol", self.atol)]
        return ",".join(f"{name}={value!r}" for name, value in given if value is not None) or "bitwise"


BITWISE = Tolerance()

PolicyLike: TypeAlias = "Policy | str | Mapping[str, str]"
"""What `Policy.parse` takes."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A tolerance for every tensor: that of the first pattern that matches its name; bitwise if none does.

    Patterns are those of `fnmatch`. A gradient has the name of its param, the loss the name "loss".

    >>> policy = Policy.parse({"*.bias": "ulp=4", "loss": "rtol=1e-5"})
    >>> str(policy.of("fc1.bias")), str(policy.of("fc1.weight"))
    ('ulp=4', 'bitwise')
    """

    patterns: tuple[tuple[str, Tolerance], ...] = ()
    drift: bool = False
    """Whether a run that differs as another machine or library makes it differ is told from one of other code."""

    @classmethod
    def parse(cls, policy: PolicyLike) -> "Policy":
        """A policy from its text, or from tensor patterns with a text for each.

        Raises DomainError for what is neither; the text says what was expected.

        >>> str(Policy.parse("ulp=4"))
        'ulp=4'
        """
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            given = cast(Mapping[Any, Any], policy)
            return cls(tuple((_pattern(name), _tolerance(text, f" for {name!r}")) for name, text in given.items()))
        if policy == "drift":
            return cls((("*", BITWISE),), drift=True)
        return cls((("*", _tolerance(policy, "")),))

    def of(self, name: str) -> Tolerance:
        """The tolerance of a tensor."""
        return next((tolerance for pattern, tolerance in self.patterns if fnmatchcase(name, pattern)), BITWISE)

    @property
    def bitwise(self) -> bool:
        """Whether no bit of anything may differ."""
        return all(tolerance.bitwise for _, tolerance in self.patterns)

    @property
    def by_norm(self) -> bool:
        """Whether sketches can decide it: something has a tolerance, and none is in ULP."""
        return not self.bitwise and all(tolerance.ulp is None for _, tolerance in self.patterns)

    def __str__(self) -> str:
        if self.drift:
            return "drift"
        if [pattern for pattern, _ in self.patterns] == ["*"]:
            return str(self.patterns[0][1])
        return ", ".join(f"{pattern}: {tolerance}" for pattern, tolerance in self.patterns) or "bitwise"


def _pattern(given: Any) -> str:
    if not isinstance(given, str):
        raise DomainError(f"policy: expected patterns of names of tensors, such as '*.bias', got {given!r}")
    return given


def _tolerance(text: Any, where: str) -> Tolerance:
    if text == "bitwise":
        return BITWISE
    given: dict[str, str] = {}
    for part in text.split(",") if isinstance(text, str) else ():
        name, sign, value = part.partition("=")
        if not sign or name.strip() in given:
            raise _refused(text, where)
        given[name.strip()] = value.strip()
    if set(given) == {"ulp"} and given["ulp"].isascii() and given["ulp"].isdecimal():
        return Tolerance(ulp=int(given["ulp"]))
    if not given or not given.keys() <= {"rtol", "atol"}:
        raise _refused(text, where)
    return Tolerance(rtol=_bound(given, "rtol", where), atol=_bound(given, "atol", where))


def _bound(given: Mapping[str, str], name: str, where: str) -> float | None:
    if name not in given:
        return None
    try:
        value = float(given[name])
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise DomainError(f"policy{where}: {name}: expected a finite number of at least 0, got {given[name]!r}")
    return value


def _refused(text: object, where: str) -> DomainError:
    also = "" if where else ", or a dict of tensor patterns to these; or 'drift'"
    return DomainError(f"policy{where}: expected {GRAMMAR}{also}; got {text!r}")
