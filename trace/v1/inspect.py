"""A step of a valid trace, shown whole: recorded fields, CRCs, and what can be derived from them."""

from ...base.ulp import ulp_distance
from .compiled import sample, updated
from .layout import FLOAT_FIELDS, HeaderV1, Record, record_crc32, record_offset
from .report import table, three_ways
from .validation.diagnosis import derived_error, derived_x


def header_rows(header: HeaderV1) -> list[tuple[str, str]]:
    """Return the header's fields for people."""
    return [
        ("seed", str(header.seed)),
        ("step_count", str(header.step_count)),
        ("learning_rate", three_ways(header.learning_rate)),
        ("file_crc32", f"{header.file_crc32:08x}"),
        ("header_crc32", f"{header.header_crc32:08x}"),
        ("created_at", str(header.created_at)),
    ]


def _derived_rows(header: HeaderV1, step: int, record: Record) -> list[tuple[str, str]]:
    seed_x, seed_y = sample(header.seed, step)
    x = derived_x(record)
    return [
        ("e = grad_b/2", three_ways(derived_error(record))),
        ("x = grad_w/grad_b", "not told by these gradients" if x is None else three_ways(x)),
        (f"x of seed {header.seed}", three_ways(seed_x)),
        (f"y of seed {header.seed}", three_ways(seed_y)),
    ]


def inspection(header: HeaderV1, step: int, raw: bytes) -> str:
    """Return header and record `raw` of `step` as text, every float in three ways."""
    record = Record.unpack(raw)
    fields = [("step_id", f"{record.step_id:<24} {'':<26} {record.step_id:016x}")]
    fields += [(name, three_ways(getattr(record, name))) for name in FLOAT_FIELDS]
    fields += [
        ("record_crc32", f"stored {record.record_crc32:08x}, computed {record_crc32(raw):08x}"),
        ("pad0", str(record.pad0)),
    ]
    parts = [
        "header",
        table(header_rows(header)),
        f"step {step}, at byte {record_offset(step)}",
        table(fields),
        "derived",
        table(_derived_rows(header, step, record)),
    ]
    return "\n".join(parts)


def replayed(header: HeaderV1, record: Record) -> str:
    """Return the update of a step, recomputed and compared with what is recorded, as text."""
    rows: list[tuple[str, str]] = []
    for name, before, gradient, stored in (
        ("w_after", record.w_before, record.grad_w, record.w_after),
        ("b_after", record.b_before, record.grad_b, record.b_after),
    ):
        recomputed = updated(before, header.learning_rate, gradient)
        rows.append((f"{name} recomputed", three_ways(recomputed)))
        rows.append((f"{name} stored", f"{three_ways(stored)}  {ulp_distance(recomputed, stored)} ULP"))
    return table(rows)
