"""Tolerances from recorded runs: how far apart those of one code are on several machines or libraries."""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations

from ....base.errors import DomainError
from ....base.printed import Printed
from ....base.system import FilePath
from ...json_value import Plain
from ...v2.read.reader import open_reader
from ...v2.read.recorded import What
from ..causes import schema_cause
from ..policy import ROUGHLY, Policy
from ..steps import Pair

MARGIN = 3
"""How many times what was met is allowed."""

_SHOWN = 8
_WHAT: tuple[What, ...] = ("grad", "after")


@dataclass(slots=True)
class Spread(Plain, Printed):
    """How far recorded runs are apart, and the tolerance that holds `MARGIN` times as much.

    Args:
        paths: of the traces.
        policy: the tolerance, as `compare` and a golden test take it: of the loss, and of every other tensor.
        loss: greatest relative distance of the losses of a step.
        relative: tensor → greatest distance as a whole, relative to its norm, after the last step or of its gradient
            there; by values or by sketches.
        absolute: tensor → greatest distance of an element, in any step in which values are recorded.
    """

    paths: list[str]
    policy: dict[str, str]
    loss: float
    relative: dict[str, float]
    absolute: dict[str, float]

    def __str__(self) -> str:
        text = f"{len(self.paths)} runs; a tolerance that holds {MARGIN} times their spread:"
        lines = [text, *(f"  {name}: {of}" for name, of in self.policy.items())]
        worst = sorted(self.relative.items(), key=lambda item: -item[1])[:_SHOWN]
        told = (f"  {name}: {relative:.2g} as a whole" for name, relative in worst)
        return "\n".join([*lines, f"  loss: {self.loss:.2g} relative", *told])


def spread(paths: Sequence[FilePath]) -> Spread:
    """How far runs of one code are apart, and a tolerance derived from that.

    Raises:
        DomainError: fewer than two traces, or of other models, settings or lengths.
        TraceFileError: a file cannot be read.
    """
    if len(paths) < 2:
        raise DomainError(f"spread: argument 'paths': expected two traces at least, got {len(paths)}")
    with ExitStack() as stack:
        traces = [stack.enter_context(open_reader(path)) for path in paths]
        met = _Met()
        for a, b in combinations(traces, 2):
            if schema_cause(a.schema, b.schema) is not None or len(a) != len(b):
                apart = f"{a.path} and {b.path} are of other models or lengths"
                raise DomainError(f"spread: argument 'paths': expected runs of one code; {apart}")
            met.add(Pair(a, b, Policy.parse("bitwise")))
        return Spread([trace.path for trace in traces], met.policy(), met.loss, met.relative, met.absolute)


class _Met:
    """The greatest distances that were met."""

    def __init__(self) -> None:
        self.loss, self.relative, self.absolute = 0.0, dict[str, float](), dict[str, float]()

    def add(self, pair: Pair) -> None:
        """Measure two runs."""
        for step in pair.steps:
            found = pair.step(step)
            if found.data or found.told:
                apart = f"step {step} of {pair.b.path} was given another batch or setting than that of {pair.a.path}"
                raise DomainError(f"spread: argument 'paths': expected runs of one code; {apart}")
            for tensor in (*found.forward, *found.after):
                if tensor.what == "loss":
                    self.loss = max(self.loss, tensor.max_rel or 0.0)
                elif tensor.max_abs is not None:
                    self.absolute[tensor.name] = max(self.absolute.get(tensor.name, 0.0), tensor.max_abs)
        last = len(pair.a) - 1
        for spec in pair.a.schema.tensors if last >= 0 else ():
            for what in _WHAT:
                measured = pair.apart(last, what, spec.name)
                if measured is not None and measured[1]:
                    self.relative[spec.name] = max(self.relative.get(spec.name, 0.0), measured[0] / measured[1])

    def policy(self) -> dict[str, str]:
        """The tolerance of the loss and of all else; of norms so much as `Tolerance.allows` makes of it."""
        relative, absolute = max(self.relative.values(), default=0.0), max(self.absolute.values(), default=0.0)
        return {"loss": _tolerance(self.loss, 0.0), "*": _tolerance(8 / ROUGHLY * relative, absolute)}


def _tolerance(relative: float, absolute: float) -> str:
    return f"rtol={_up(MARGIN * relative)},atol={_up(MARGIN * absolute)}" if relative or absolute else "bitwise"


def _up(figure: float) -> str:
    """Two figures, rounded up.

    >>> _up(0.001234), _up(0.0)
    ('1.3e-03', '0')
    """
    if not figure:
        return "0"
    last = 10.0 ** (math.floor(math.log10(figure)) - 1)
    return f"{math.ceil(figure / last) * last:.1e}"
