"""The frames that add to a STEP: digests of its ops, elements of tensors, metrics and validations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Final, TypeAlias

from ....base.errors import DomainError
from ....base.runs.completed_step import TapeNode
from .constants import METRICS_BYTES, VALIDATION_BYTES
from .documents.nodes import decode_nodes, encode_nodes
from .fields import BITS, F32, F64, JSON, TEXT, U32, U64, Bounds, DigestField, Document, Field, Here, Texts, pairs, zero
from .frame_type import FramePlace, FrameType
from .layout import BodyExtent, FrameLayout
from .limits import Limits
from .schema import check_names
from .sketch import PROJECTIONS
from .step import StepRecord

_KINDS = ("grad", "after")


def _nodes(here: Here, said: dict[str, Any]) -> tuple[TapeNode, ...]:
    nodes: tuple[TapeNode, ...] = said["nodes"]
    return nodes


NODES: Final = FrameType(
    129,
    "NODES",
    FramePlace.AFTER,
    "what the digests of OPS are of",
    (Document("nodes", JSON, None, "what is listed", encode=encode_nodes, decode=decode_nodes),),
    _nodes,
)


@dataclass(frozen=True, slots=True)
class OpsRecord:
    """The digests in the order of the nodes; None for a value without a gradient.

    `nodes_at` is the offset of the NODES frame that lists what the digests are of.
    """

    nodes_at: int
    values: tuple[bytes, ...]
    grads: tuple[bytes | None, ...]


def encode_ops(layout: FrameLayout, nodes_at: int, values: Sequence[bytes], grads: Sequence[bytes | None]) -> bytes:
    """The front of OPS: digests of values, and of gradients where they arrived, of the nodes that are listed there."""
    arrived = {i: digest for i, digest in enumerate(grads) if digest is not None}
    return OPS.front(layout).encode(nodes_at=nodes_at, values=values, arrived=tuple(arrived), grads=[*arrived.values()])


def _ops(here: Here, said: dict[str, Any]) -> OpsRecord:
    grads = dict(zip(said["arrived"], said["grads"], strict=True))
    return OpsRecord(said["nodes_at"], said["values"], tuple(map(grads.get, range(said["n"]))))


OPS: Final = FrameType(
    128,
    "OPS",
    FramePlace.AFTER,
    "digests of every value and gradient of step k",
    (
        Field("nodes_at", U64, None, "offset of a NODES frame, at or before this one's step"),
        Field(
            "n",
            U32,
            None,
            "number n of nodes, as many as that frame lists",
            counts="values",
            at_most=lambda bounds: bounds.limits.nodes,
        ),
        zero(U32),
        Field("arrived", BITS, "n", "bit `i mod 64` of word `i div 64` says that a gradient of node i arrived"),
        DigestField("values", "n", "digest of the value of each node"),
        DigestField("grads", "arrived", "digest of each gradient that arrived, in order"),
    ),
    _ops,
)


@dataclass(frozen=True, slots=True)
class ValuesRecord:
    """The tensors that the body holds, as (position in the schema, 0: gradient, 1: after the step)."""

    step: int
    tensors: tuple[tuple[int, int], ...]


def recordable(layout: FrameLayout, step: StepRecord) -> dict[tuple[str, int], bytes]:
    """What a VALUES frame of a step may hold, (`grad` or `after`, position), and the digest of each."""
    found = {("grad", i): digest for i, digest in step.grad_digests().items()}
    buffers = step.digests[len(step.grads) :][: layout.schema.buffers]
    found |= {("after", layout.states + i): digest for i, digest in enumerate(buffers)}
    if step.root is not None:
        found |= {("after", i): digest for i, digest in enumerate(step.state_in_order(layout))}
    return found


def _recordable(bounds: Bounds) -> int:
    return len(bounds.layout.schema.tensors) + bounds.layout.schema.params


def _values_body(layout: FrameLayout, record: ValuesRecord, step: Callable[[], StepRecord]) -> list[BodyExtent]:
    digests = recordable(layout, step())
    parts = [(_KINDS[kind] if kind < len(_KINDS) else "", position) for position, kind in record.tensors]
    if len(set(parts)) < len(parts) or not digests.keys() >= set(parts):
        raise DomainError("it names a tensor that its STEP has no digest of, or names it twice")
    return layout.extents(parts, [digests[part] for part in parts])


def encode_values(layout: FrameLayout, chosen: Sequence[tuple[str, int]]) -> bytes:
    """The front of VALUES for tensors (`grad` or `after`, position), whose elements follow in this order."""
    return VALUES.front(layout).encode(tensors=[(position, _KINDS.index(what)) for what, position in chosen])


VALUES: Final = FrameType(
    130,
    "VALUES",
    FramePlace.AFTER,
    "elements of some tensors of step k",
    (
        Field("n", U32, None, "number n of tensors", counts="tensors", at_most=_recordable),
        zero(U32),
        Field(
            "tensors", pairs(U32), "n", "position in the schema, and what of it: 0 its gradient, 1 it after the step"
        ),
    ),
    lambda here, said: ValuesRecord(here.step, said["tensors"]),
    body=_values_body,
)


Sketches: TypeAlias = dict[tuple[int, str], tuple[float, ...]]
"""The sketch of each tensor, by its position in the schema and what of it: `grad` or `after` the step."""


def encode_sketches(layout: FrameLayout, sketches: Sketches) -> bytes:
    """The front of SKETCHES."""
    tensors = [(position, _KINDS.index(what)) for position, what in sketches]
    sums = [each for sketch in sketches.values() for each in sketch]
    return SKETCHES.front(layout).encode(tensors=tensors, sums=sums)


def _sketches(here: Here, said: dict[str, Any]) -> Sketches:
    tensors, sums = said["tensors"], said["sums"]
    schema = here.layout.schema
    known = {(i, 1) for i in range(len(schema.tensors))} | {(i, 0) for i in range(schema.params)}
    if len(set(tensors)) < len(tensors) or not known >= set(tensors) or len(sums) != PROJECTIONS * len(tensors):
        raise DomainError("it names a tensor twice or none of the schema's, or has not 16 sums for each")
    parts = [sums[i : i + PROJECTIONS] for i in range(0, len(sums), PROJECTIONS)]
    return {(position, _KINDS[kind]): part for (position, kind), part in zip(tensors, parts, strict=True)}


SKETCHES: Final = FrameType(
    135,
    "SKETCHES",
    FramePlace.AFTER,
    "sketches of tensors of step k, from which rough distances follow",
    (
        Field("n", U32, None, "number n of tensors", counts="tensors", at_most=_recordable),
        Field("m", U32, None, "16 n", counts="sums", at_most=lambda bounds: PROJECTIONS * _recordable(bounds)),
        Field(
            "tensors", pairs(U32), "n", "position in the schema, and what of it: 0 its gradient, 1 it after the step"
        ),
        Field("sums", F32, "m", "of each tensor its 16 sums"),
    ),
    _sketches,
    told="sketches",
)


Figures: TypeAlias = dict[str, float]
"""Numbers by name, in the order in which they were given."""


def _figures(code: int, name: str, about: str, largest: int, one: str, several: str) -> FrameType[Figures]:
    """A type whose fronts are figures, in the words for one of them and for several."""

    def record(here: Here, said: dict[str, Any]) -> Figures:
        names = said["names"]
        check_names(names, here.limits, several)
        if not names or len(set(names)) < len(names):
            raise DomainError(f"it has no {one}, or a name twice")
        return dict(zip(names, said["values"], strict=True))

    fields = (
        Field("n", U32, None, f"number n of {several}, at least 1", counts="values"),
        zero(U32),
        Field("values", F64, "n", "their values"),
        Texts("names", TEXT, "n", "their names, each behind its length as u32"),
    )
    word = name.lower()
    return FrameType(code, name, FramePlace.AFTER, about, fields, record, largest=largest, told=word, shown=dict)


METRICS: Final = _figures(131, "METRICS", "numbers that step k gave to be shown", METRICS_BYTES, "metric", "metrics")

VALIDATION: Final = _figures(
    132, "VALIDATION", "what was measured on other data behind step k", VALIDATION_BYTES, "figure", "figures"
)


def encode_figures(kind: FrameType[Figures], layout: FrameLayout, where: str, figures: Mapping[str, float]) -> bytes:
    """The front of METRICS or VALIDATION; a NaN in its canonical form.

    Raises:
        DomainError: a name that no tensor could have, no figure, or more than 64 KiB in all.
    """
    if not figures:
        raise DomainError(f"{where}: expected one at least, got none")
    try:
        check_names(list(figures), Limits(), where.rpartition(" ")[2])
    except ValueError as error:
        raise DomainError(f"{where}: {error}") from None
    numbers = [nan if isnan(value) else float(value) for value in figures.values()]
    return kind.front(layout).encode(values=numbers, names=list(figures))
