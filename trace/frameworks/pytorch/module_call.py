"""Calls of modules and where in the source they stand, so that code between two of them has a name."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ....tape.location import WINGS, CodePosition, Location


@dataclass(slots=True, eq=False)
class ModuleCall:
    """A call of a module, and the call within which it stands.

    ``scope``: the path of the module; ``at``: the line that calls it; ``taken``: the nodes that it takes;
    ``has_inner``: whether it has called other modules.
    """

    scope: str
    module: Any
    within: "ModuleCall | None"
    at: CodePosition | None
    taken: set[int] = field(default_factory=set[int])
    has_inner: bool = False

    @property
    def name(self) -> str:
        """What a person calls the module."""
        return self.scope or "the model"

    def enclosing(self) -> "Iterator[ModuleCall]":
        """This call, and those that it stands in, the innermost first."""
        call: ModuleCall | None = self
        while call is not None:
            yield call
            call = call.within


@dataclass(frozen=True, slots=True)
class CodeBetween:
    """Code that lies between what was called last and what takes its value: in which module, where in the source."""

    said: str
    place: str


class Frames:
    """Looks for lines: those of the user, and those that call a module."""

    def __init__(self, torch: Any) -> None:
        installed = Path(torch.__file__).parent
        around = ("nn/modules/module.py", "_dynamo", "utils")
        self._machinery = _Passed((*WINGS, *(str(installed / part) for part in around)))
        self._elsewhere = _Passed((*WINGS, str(installed.parent)))

    def caller(self) -> CodePosition | None:
        """The line that called a module: the first outside of what PyTorch puts around every call."""
        return self._machinery.first()

    def user(self) -> CodePosition | None:
        """The first line that is neither this package's nor installed beside PyTorch."""
        return self._elsewhere.first()


def is_inside(file: str) -> bool:
    """Whether the code that is at work was called from a file whose path ends so."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not frame.f_code.co_filename.endswith(file):
        frame = frame.f_back
    return frame is not None


def loss_scale() -> float | None:
    """By what the loss was multiplied, where a gradient scaler takes the step; else None."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_filename.endswith("amp/grad_scaler.py") and "self" in frame.f_locals:
            return float(frame.f_locals["self"].get_scale())
        frame = frame.f_back
    return None


_MOST_SHOWN = 1 << 14
_SHOWN = dict[tuple[Any, ...], tuple[Any, str]]()
"""Texts of places by what made them and the identity of their code, which takes long to hash, and is kept."""


def _once(make: Callable[..., str], *places: CodePosition) -> str:
    """What a function makes of places, made once."""
    key = make, *[part for code, offset in places for part in (id(code), offset)]
    known = _SHOWN.get(key)
    if known is None:
        if len(_SHOWN) >= _MOST_SHOWN:
            _SHOWN.clear()
        known = _SHOWN[key] = places, make(*places)
    return known[1]


def shown(place: CodePosition | None) -> str:
    """A line as a trace has it: ``gpt.py:28: return x * base``; empty if there is none."""
    return "" if place is None else _once(_line, place)


def _line(place: CodePosition) -> str:
    return str(Location.of(place))


class _Passed:
    """Files whose lines are passed over; of each that was met it is remembered."""

    def __init__(self, files: tuple[str, ...]) -> None:
        self._files, self._known = files, dict[str, bool]()

    def first(self) -> CodePosition | None:
        """The first line at work that is elsewhere."""
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            file = frame.f_code.co_filename
            passed = self._known.get(file)
            if passed is None:
                passed = self._known[file] = file.startswith(self._files)
            if not passed:
                return frame.f_code, frame.f_lasti
            frame = frame.f_back
        return None


def before(taker: ModuleCall, made: ModuleCall | None) -> CodeBetween:
    """The code that made what a call takes, from what the call ``made`` gave; None: from nothing that a layer gave."""
    last, end = _beside(made, taker)
    name = taker.name if end is None else end.name
    return _between(last, name, taker.at if end is None else end.at)


def behind(call: ModuleCall, made: ModuleCall | None) -> CodeBetween:
    """The code at the end of a module, which makes what it gives of what its inner modules gave."""
    last = None if made is None else next((each for each in made.enclosing() if each.within is call), None)
    code = getattr(call.module.forward, "__code__", None)
    end = None if code is None else (code, len(code.co_code))
    return _between(last, f"the end of {call.name}", end)


def until(said: str, at: CodePosition | None, made: ModuleCall | None) -> CodeBetween:
    """The code from a call, or the outermost around it, to a line outside of all modules."""
    last = None if made is None else [*made.enclosing()][-1]
    return _between(last, said, at)


def _beside(made: ModuleCall | None, taker: ModuleCall) -> tuple[ModuleCall | None, ModuleCall | None]:
    """The calls around both that stand in one and the same call."""
    around: dict[ModuleCall | None, ModuleCall] = {each.within: each for each in taker.enclosing()}
    for each in () if made is None else made.enclosing():
        if each.within in around:
            return each, around[each.within]
    return None, None


def _between(last: ModuleCall | None, name: str, end: CodePosition | None) -> CodeBetween:
    said = f"before {name}" if last is None else f"between {last.name} and {name}"
    return CodeBetween(said, lines(None if last is None else last.at, end))


def lines(begin: CodePosition | None, end: CodePosition | None) -> str:
    """Where code lies from one place to another: ``gpt.py:37-49: CausalAttn.forward``; empty if it is not known.

    Where the second lies before the first, as in a loop, or nothing is known of the first, it is the whole function.
    """
    if end is None:
        return ""
    return _once(_up_to, end) if begin is None else _once(_from_to, begin, end)


def _up_to(end: CodePosition) -> str:
    return _within(end, end[0].co_firstlineno, _last_line(end))


def _from_to(begin: CodePosition, end: CodePosition) -> str:
    if begin[0] is not end[0]:
        here, there = replace(Location.of(begin), text=""), Location.of(end)
        return f"{here} to {_file(there)}{there.line}: {there.function}"
    if begin[1] < end[1]:
        return _within(end, Location.of(begin).line, _last_line(end))
    return _within(end, end[0].co_firstlineno, max(_lines_of(end[0])))


def _within(end: CodePosition, first: int, last: int) -> str:
    there = Location.of(end)
    return f"{_file(there)}{first}{f'-{last}' if last > first else ''}: {there.function}"


def _file(there: Location) -> str:
    return str(replace(there, line=0, text="")).removesuffix("0")


def _last_line(end: CodePosition) -> int:
    """The line of a place; behind the last instruction, the last line."""
    return Location.of(end).line if end[1] < len(end[0].co_code) else max(_lines_of(end[0]))


def _lines_of(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line is not None}
