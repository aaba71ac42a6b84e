"""Writes the tables of trace_format.md from the declarations of frame types: ``python docs/generate_trace_format.py``.

A table stands between ``<!-- fields of NAME -->``, or ``<!-- frame types -->``, and ``<!-- end -->``.
"""

import re
import struct
from pathlib import Path
from typing import Any

from dgrr.trace.v2.format.fields import BITS, BYTES, DIGEST, JSON, PADDING, TEXT, Field, Size, Texts
from dgrr.trace.v2.format.frame_type import FrameType
from dgrr.trace.v2.format.frames import FRAMES

PAGE = Path(__file__).with_name("trace_format.md")


def page(text: str) -> str:
    """The page with all its tables made anew."""
    by_name = {declared.name: declared for declared in FRAMES.values()}

    def made(match: re.Match[str]) -> str:
        name = match[1].removeprefix("fields of ")
        rows = types() if match[1] == "frame types" else fields(by_name[name])
        return f"<!-- {match[1]} -->\n\n{rows}\n<!-- end -->"

    return re.sub(r"<!-- (frame types|fields of \w+) -->\n.*?<!-- end -->", made, text, flags=re.DOTALL)


def types() -> str:
    """The table of all types."""
    rows = [
        f"| {t.code} | {t.name} | {t.place.value} | {_chained(t)} | {t.about} |\n"
        for t in sorted(FRAMES.values(), key=lambda t: t.code)
    ]
    return "".join(["| type | name | step field | in the state chain | |\n|---|---|---|---|---|\n", *rows])


def _chained(declared: FrameType[Any]) -> str:
    return f"from `{declared.chained}` on" if declared.chained else ""


def fields(declared: FrameType[Any]) -> str:
    """The table of the fields of a front."""
    rows, digests, length, known = ["| offset | type | field | |\n|---|---|---|---|\n"], 0, 0, True
    for field in declared.fields:
        offset = " + ".join(
            [*(["D"] if digests == 1 else [f"{digests} D"] if digests else []), *([str(length)] if length else [])]
        )
        condition = f"*{field.when.text}*: " if field.when else ""
        rows.append(
            f"| {(offset or '0') if known else ''} | {_type(field)} | `{field.name}` | {condition}{field.about} |\n"
        )
        known = known and field.unit is not JSON and not isinstance(field.times, str | Size) and field.when is None
        if known and field.unit is DIGEST:
            digests += 1
        elif known:
            length += struct.calcsize(f"<{field.unit.form(field.times if isinstance(field.times, int) else None, 0)}")
    return "".join(rows)


def _type(field: Field) -> str:
    times = field.times.text if isinstance(field.times, Size) else field.times
    if isinstance(field, Texts):
        return f"`{times}` × (u32, UTF-8)"
    if field is PADDING:
        return ""
    if field.unit is BITS:
        return f"ceil({times} / 64) × u64"
    if times is None or field.unit is TEXT or field.unit is BYTES:
        return field.unit.name if times is None else f"`{times}` B" if isinstance(times, str) else f"{times} B"
    return f"{times if isinstance(field.times, Size) else f'`{times}`'} × {field.unit.name}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
