"""The first difference of two traces."""

from dataclasses import dataclass

import numpy as np

from ...base.ulp import ulp_distance, ulp_distances
from .compiled import Words
from .layout import FLOAT_FIELDS
from .reader import BLOCK_RECORDS, TraceReaderV1

COMPARED_FIELDS = ("w_after", "b_after", "loss")
_COLUMNS = [1 + FLOAT_FIELDS.index(name) for name in COMPARED_FIELDS]


@dataclass(frozen=True)
class Divergence:
    """Where two traces first differ by more than is allowed."""

    step: int
    field: str
    a: float
    b: float
    ulps: int


def _first_in_block(a: Words, b: Words, ulp_tol: int) -> tuple[int, int] | None:
    """Return (row, index of the field) of the first difference of two blocks of one length."""
    distances = ulp_distances(a[:, _COLUMNS].view(np.float64), b[:, _COLUMNS].view(np.float64))
    rows, fields = np.nonzero(distances > np.uint64(ulp_tol))
    return (int(rows[0]), int(fields[0])) if len(rows) else None


def first_divergence(a: TraceReaderV1, b: TraceReaderV1, ulp_tol: int) -> Divergence | None:
    """Walk two valid traces in lockstep over the steps that both have; None where they agree throughout."""
    common = min(a.whole_records, b.whole_records)
    for index, (left, right) in enumerate(zip(a.blocks(common), b.blocks(common), strict=True)):
        found = _first_in_block(left, right, ulp_tol)
        if found is not None:
            row, field = found
            values = (block[row, _COLUMNS[field]].view(np.float64) for block in (left, right))
            return _divergence(BLOCK_RECORDS * index + row, COMPARED_FIELDS[field], *values)
    return None


def _divergence(step: int, field: str, a: np.float64, b: np.float64) -> Divergence:
    return Divergence(step, field, float(a), float(b), ulp_distance(a, b))
