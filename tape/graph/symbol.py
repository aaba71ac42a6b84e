"""Symbols: values that are not known yet, of which only shape and element type are."""

from typing import NamedTuple, NoReturn

from ..errors import TapeError
from ..location import Location, caller
from ..values.spec import Spec
from ..values.tensor import AnyTensor


class Why(NamedTuple):
    """What messages say of a value that is not known: who records, and what to do instead."""

    call: str
    recording: str
    instead: str


CAPTURE = Why("capture", "the step is being recorded: a captured step holds ops, not values", "run the step eagerly")
VMAP = Why(
    "vmap", "the function is being recorded: it is recorded once for all members", "call it for each member in turn"
)
SCAN, WHILE_LOOP = (
    Why(call, "the body is being recorded: it is recorded once for all steps", "write the loop as a loop of Python")
    for call in ("scan", "while_loop")
)
COND = Why("cond", "the sides are being recorded: both are, whichever runs", "write the choice as an if of Python")
CHECKPOINT = Why(
    "checkpoint", "the function is being recorded: it is computed again on the way back", "call it without checkpoint"
)


class Symbol(AnyTensor):
    """A value that is not known yet."""

    __slots__ = ("_why",)

    def __init__(self, spec: Spec, why: Why = CAPTURE) -> None:
        self.spec, self._why = spec, why

    @property
    def array(self) -> NoReturn:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """There is none: raises TapeError."""
        place, why = caller(), self._why
        where = "" if place is None else f"; it was read at {Location.of(place)}"
        raise TapeError(
            f"{why.call}: the value of a {self.spec.dtype} tensor of shape {self.spec.shape} was read while "
            f"{why.recording}, so Python cannot branch on them; "
            f"use ops (ops.where, comparisons, slicing), or {why.instead}{where}"
        )

    def __len__(self) -> int:
        if not self.sizes:
            raise TypeError("len() of a value without axes")
        return self.sizes[0]

    def __repr__(self) -> str:
        return f"Symbol({self.spec.dtype}, {self.spec.shape})"
