"""Two folders with a trace for each process: which rank parts first, and where."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ...exit_codes import Exit
from ...file_version import TraceFileError
from ...v2.errors import InvalidTraceError
from ...v2.verdict import Verdict
from ..result import Cause, Comparison
from .part_sums import compare_parts
from .replicas import first_unequal, same_parts

Compare = Callable[[Path, Path], Comparison]
"""What compares two files."""

Damage = Callable[[Sequence[str]], Comparison | None]
"""What says of files, read to their ends, which of them is not whole."""


def compare_folders(a: Path, b: Path, compare: Compare, damage: Damage, *, proven: bool, bitwise: bool) -> Comparison:
    """Hold the traces of two folders against each other, name by name, and the replicas in each among themselves.

    The answer is that of the rank that differs first: by its step, and then by its number. ``ranks`` has all of them.
    Of runs on other processes, or with other parts on them, the tensors are compared as wholes, unless ``damage`` finds
    some in their files: it is asked first if they are to be ``proven``, else once one cannot be read.
    Raises TraceFileError for a folder without traces, and for a file of other parts that cannot be opened.
    """
    names = [_names(folder) for folder in (a, b)]
    is_alike = names[0] == names[1] and same_parts((a / name, b / name) for name in names[0])
    in_parts = None if is_alike else _in_parts(a, b, names, damage, proven=proven, bitwise=bitwise)
    if in_parts is not None:
        return in_parts
    if names[0] != names[1]:
        return Comparison(str(a), str(b), Verdict.DIVERGED, _other_files(*names), Cause.MODEL)
    found = [compare(a / name, b / name) for name in names[0]]
    first = min(found, key=_place)
    told = f"rank {Path(first.a).stem} first of {len(found)}: {first.sentence}"
    if first.same:
        unequal = _unequal(a, b, names[0])
        if unequal is not None:
            return replace(unequal, ranks=found)
        told = f"{len(found)} rank{'' if len(found) == 1 else 's'}; each {first.sentence}"
    return replace(first, sentence=told, notes=first.notes + _others(found, first), ranks=found)


def _in_parts(
    a: Path, b: Path, names: Sequence[Sequence[str]], damage: Damage, *, proven: bool, bitwise: bool
) -> Comparison | None:
    """What is said of runs in other parts: damage first, which may lie in what is to be read."""
    paths = [str(folder / name) for folder, of in zip((a, b), names, strict=True) for name in of]
    damaged = damage(paths) if proven else None
    if damaged is None:
        try:
            return compare_parts(a, b, names, bitwise=bitwise)
        except InvalidTraceError:  # a frame has no path: look for it
            damaged = damage(paths)
            if damaged is None:
                raise
    return replace(damaged, a=str(a), b=str(b))


def _names(folder: Path) -> list[str]:
    """The traces in a folder, `2.dgrr` before `10.dgrr`; those of runs that were not finished too.

    Raises TraceFileError if there is none.
    """
    found = [path.name for path in folder.iterdir() if path.name.endswith((".dgrr", ".dgrr.partial"))]
    if not found:
        raise TraceFileError(f"cannot open {folder}: it is a folder, and has no trace in it", Exit.IO)
    return sorted(found, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def _other_files(a: Sequence[str], b: Sequence[str]) -> str:
    lacks = {"a": sorted(set(a) - set(b)), "b": sorted(set(b) - set(a))}
    only = [f"{', '.join(names)} in {side} only" for side, names in lacks.items() if names]
    return f"expected a trace for each rank in both: {'; '.join(only)}"


def _place(found: Comparison) -> tuple[int, int, int]:
    """How early an answer counts: what cannot be read, then by its step; drift behind, and behind it what is equal.

    In one step what a rank was told, as another batch, comes before gradients, which all ranks share.
    """
    kind = 3 if found.same else 2 if found.verdict is Verdict.DRIFT else int(found.compared)
    cause = len(Cause) if found.cause is None else list(Cause).index(found.cause)
    return kind, -1 if found.step is None else found.step, cause


def _others(found: Sequence[Comparison], first: Comparison) -> list[str]:
    """A line for each other rank that differs."""
    others = [each for each in found if each is not first and not each.same]
    return [f"rank {Path(each.a).stem}: {each.word}, {each.sentence}" for each in others]


def _unequal(a: Path, b: Path, names: Sequence[str]) -> Comparison | None:
    """What is said where replicas in one of the folders are not equal."""
    for folder in (b, a):
        try:
            found = first_unequal([folder / name for name in names])
        except TraceFileError:  # the files were compared: what could not be read is said
            continue
        if found is not None:
            return Comparison(str(a), str(b), Verdict.DIVERGED, f"{folder}: {found[1]}", Cause.REPLICA, found[0])
    return None
