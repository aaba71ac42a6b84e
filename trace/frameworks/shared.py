"""What the recorders of other frameworks share: how a trace is begun, what it says of the framework, batches."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias, cast

import numpy as np

from ...base.arrays import Array, is_float
from ...base.errors import DomainError, DTypeError
from ...base.runs.keep import Keep, Mode
from ...base.runs.run import Run
from ...base.system import FilePath
from ...runtime import RecorderFactory
from ..v2.format.constants import FRAMEWORK_EVENT
from ..v2.format.digest import FORMAT_NAMES
from ..v2.write.open_recorder import open_recorder
from ..v2.write.recorder import TraceRecorder

POLICY = "rtol=1e-4,atol=1e-6"
"""How close two runs of a framework that promises no bits are by default."""


_NESTS = (Mapping, list, tuple)

TraceTarget: TypeAlias = FilePath | Keep | RecorderFactory
"""Where a run is recorded: the path of its trace, what is kept there, or what opens its recorder."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What computed a run.

    Args:
        name, version: of the framework.
        settings: what else its results depend on, such as the number of threads.
        groups: the params of each group that has hyperparameters of its own, by place; empty if there is one group.
        counts: how often a param was updated before the trace began, by place, where the state's ``step`` says else.
    """

    name: str
    version: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    groups: tuple[tuple[int, ...], ...] = ()
    counts: Mapping[int, int] = field(default_factory=dict[int, int])

    def encode(self) -> str:
        """The text of the EVENT."""
        said = {
            "name": self.name,
            "version": self.version,
            "policy": POLICY,
            "settings": dict(self.settings),
            "groups": [list(group) for group in self.groups],
            "counts": sorted(self.counts.items()),
        }
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> "Framework":
        """From the text of an EVENT. Raises DomainError for another text."""
        try:
            said = json.loads(text)
            groups = tuple(tuple(int(place) for place in group) for group in said["groups"])
            counts = {int(place): int(count) for place, count in said["counts"]}
            return cls(str(said["name"]), str(said["version"]), dict(said["settings"]), groups, counts)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DomainError(f"the EVENT {FRAMEWORK_EVENT!r} is not what a recorder writes: {error}") from None


def begin(
    command: str,
    trace: TraceTarget,
    run: Run,
    framework: Framework,
    record: Mode | None,
    *,
    state_every: int | None = None,
) -> TraceRecorder:
    """Open the recorder of a run, and write down which framework computes it.

    A factory that has an attribute ``default_policy`` finds `POLICY` there before it is asked for a recorder.

    Raises:
        DTypeError: what is no path, no `Keep` and opens no recorders.
        DomainError, TraceWriteError: as `open_recorder`; a `record`, or steps, beside what says itself what is kept.
    """
    recorder = _opened(command, trace, run, record, state_every)
    recorder.event(FRAMEWORK_EVENT, framework.encode())
    return recorder


def _opened(command: str, trace: TraceTarget, run: Run, record: Mode | None, state_every: int | None) -> TraceRecorder:
    if isinstance(trace, str | PathLike):
        return open_recorder(Keep(trace, record=record or "full", state_every=state_every), run)
    if not isinstance(cast(object, trace), Keep | RecorderFactory):
        expected = "expected a path, a Keep, or an object that opens recorders, such as golden_trace()"
        raise DTypeError(f"{command}: argument 'trace': {expected}; got {trace!r}")
    for name, given in (("record", record), ("state_every", state_every)):
        if given is not None:
            expected = "expected None with a 'trace' that says what it keeps"
            raise DomainError(f"{command}: argument {name!r}: {expected}, got {given!r}")
    if isinstance(trace, Keep):
        return open_recorder(trace, run)
    if hasattr(trace, "default_policy"):
        cast(Any, trace).default_policy = POLICY
    return cast(TraceRecorder, trace.open_recorder(run))


def scalar_loss(loss: Array) -> Array:
    """A loss as a trace holds it: float32, into which smaller floats go exactly, or float64.

    >>> scalar_loss(np.array(0.5, np.float16)).dtype, scalar_loss(np.array(2)).dtype
    (dtype('float32'), dtype('float64'))
    """
    is_short = is_float(loss.dtype) and loss.dtype.itemsize <= 4
    return loss.astype(np.float32 if is_short else np.float64)


def named_arrays(
    where: str, batch: object, convert: Callable[[Any], Array | None], *, texts: bool = False
) -> dict[str, Array]:
    """The arrays in a nest of mappings, lists and tuples, by the keys and places that lead to them.

    ``convert`` makes an array of a framework's own, or gives None. Numbers and numpy's arrays are taken too, and
    ``texts`` if asked, as their UTF-8.

    Raises DTypeError for anything else.

    >>> named_arrays("here", ({"x": np.ones(2)}, 3), lambda value: None)
    {'0.x': array([1., 1.]), '1': array(3)}
    """
    read = _read_texts(convert) if texts else convert
    return {path or "0": _array(where, path, leaf, read) for path, leaf in leaves(batch)}


def _read_texts(convert: Callable[[Any], Array | None]) -> Callable[[Any], Array | None]:
    """Texts as bytes, and else what another function makes of a leaf."""

    def read(leaf: Any) -> Array | None:
        said = leaf.encode() if isinstance(leaf, str) else leaf
        return np.frombuffer(said, np.uint8) if isinstance(said, bytes) else convert(leaf)

    return read


def leaves(nest: object, path: str = "") -> Iterator[tuple[str, object]]:
    """What is in a nest of mappings, lists and tuples, each with the keys and places that lead to it; None is nothing.

    >>> list(leaves({"x": (1, 2), "y": None}))
    [('x.0', 1), ('x.1', 2)]
    """
    if isinstance(nest, _NESTS):
        inside = cast(Mapping[Any, Any] | Sequence[Any], nest)
        for key, item in inside.items() if isinstance(inside, Mapping) else enumerate(inside):
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif nest is not None:
        yield path, nest


def _array(where: str, path: str, leaf: Any, convert: Callable[[Any], Array | None]) -> Array:
    found = convert(leaf)
    if found is None and _is_number(leaf):
        found = np.asarray(leaf)
    if found is None or found.dtype.name not in FORMAT_NAMES:
        at = f" at {path!r}" if path else ""
        expected = "expected numbers and arrays of them, in mappings, lists and tuples"
        raise DTypeError(f"{where}: {expected}; got {type(leaf).__name__}{at}")
    return found


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, np.ndarray | np.generic | bool | int | float)
