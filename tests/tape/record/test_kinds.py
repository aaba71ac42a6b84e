"""Kinds of attributes: an op whose record says nothing of errors refuses what its annotations and its kinds say."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, Var, ops
from dgrr.tape.errors import DomainError, DTypeError, ShapeError
from dgrr.tape.record import F, Op, S, Sample, op, same
from dgrr.tape.record.kinds.values import AXES, AXIS, POSITIVE, PROBABILITY, PerAxis, Values, one_of, optional
from dgrr.tape.var.op_table import OPS

from ..ops.properties.record import check_errors

KINDS = {
    "width": POSITIVE,
    "p": PROBABILITY,
    "mode": one_of("none", "tanh"),
    "axis": AXIS,
    "stride": PerAxis(1, lambda given: len(given["x"])),
}


def kinds_square(
    x: Var[F, *S],
    width: float = 1.0,
    p: float = 0.5,
    mode: str = "none",
    axis: int = -1,
    stride: int | tuple[int, ...] = 1,
) -> Var[F, *S]:
    """``x * x``."""


@pytest.fixture
def made() -> Iterator[Callable[..., Op]]:
    """Makes the op with changed fields; its record has no ``errors``."""

    def make(**change: Any) -> Op:
        fields: dict[str, Any] = {
            "kinds": KINDS,
            "lower": lambda x, **_: x,
            "vjp": (lambda g: ops.scale(g, 1.0),),
            "jvp": lambda dx: ops.scale(dx, 1.0),
            "reference": same,
            "samples": lambda make: [Sample((make(2, 3),))],
        }
        op(**{**fields, **change})(kinds_square)
        return OPS["kinds_square"]

    yield make
    OPS.pop("kinds_square", None)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"width": 0.0}, DomainError, "argument 'width': expected a positive finite number, got 0.0"),
    ({"width": float("nan")}, DomainError, "argument 'width': expected a positive finite number, got nan"),
    ({"width": True}, DTypeError, "argument 'width': expected a number, got True"),
    ({"p": 1.5}, DomainError, "argument 'p': expected a probability from 0 to 1, got 1.5"),
    ({"mode": "tan"}, DomainError, "argument 'mode': expected one of none, tanh, got 'tan'"),
    ({"axis": 2}, ShapeError, "argument 'axis': expected an axis from -2 to 1, got 2"),
    ({"stride": 0}, ShapeError, "argument 'stride': expected a whole number of at least 1, or 2 of them, got 0"),
    ({"stride": (1, 1, 1)}, ShapeError, "'stride': expected a whole number of at least 1, or 2 of them, got (1, 1, 1)"),
    ({"stride": (1, -1)}, ShapeError, "'stride': expected a whole number of at least 1, or 2 of them, got (1, -1)"),
    ({"stride": 1.5}, DTypeError, "argument 'stride': expected a whole number or a tuple of whole numbers, got 1.5"),
]  # fmt: skip


@pytest.mark.parametrize(("attrs", "error", "text"), WRONG)
def test_an_op_with_no_line_about_errors_refuses(
    attrs: dict[str, Any], error: type[Exception], text: str, made: Callable[..., Op]
) -> None:
    record, tape = made(), Tape[Any]()
    x = tape.leaf(np.ones((2, 3), np.float32))
    with pytest.raises(error) as caught:
        record(x, **attrs)
    assert text in str(caught.value)
    assert str(caught.value).startswith("kinds_square: argument ")
    assert len(tape) == 1


def test_its_bad_samples_are_derived_and_refused(made: Callable[..., Op]) -> None:
    record = made()
    assert not record.errors
    check_errors(record)
    given = {name: {repr(bad.attrs[name]) for bad in record.refused if name in bad.attrs} for name in KINDS}
    assert given["width"] >= {"0.0", "-1.0", "nan", "inf", "True", "'22'"}
    assert given["p"] >= {"-0.5", "1.5", "nan"}
    assert given["axis"] >= {"2", "-3", "True", "2.5"}
    assert given["stride"] >= {"0", "-3", "()", "(0, 0)", "(1, 0)", "(1, 1, 1)", "(1,)", "True", "2.5", "(2.0, 2)"}
    inputs = [(bad.error, bad.arrays[0].dtype.name) for bad in record.refused if not bad.attrs]
    assert inputs == [(DTypeError, "int64"), (DTypeError, "bool")]


def test_its_docstring_says_what_it_refuses(made: Callable[..., Op]) -> None:
    text = " ".join(str(made().description).split())
    assert "DomainError: width, p or mode does not fit, as in \"argument 'width': expected a positive finite" in text
    assert "ShapeError: axis or stride does not fit, as in \"argument 'axis': expected an axis from -2 to 1" in text


def test_a_kind_that_takes_what_it_calls_wrong_is_caught(made: Callable[..., Op]) -> None:
    lax = replace(PROBABILITY, fits=lambda p: p >= 0)
    with pytest.raises(AssertionError, match="accepted what must fail with .*argument 'p'.* got 1.5"):
        check_errors(made(kinds={**KINDS, "p": lax}))


def test_several_axes_and_none() -> None:
    for axis, text in ((2, "an axis from -2 to 1, got 2"), ((0, -2), r"different axes, got \(0, -2\)")):
        with pytest.raises(ShapeError, match=f"f: argument 'axis': expected {text}"):
            AXES.require("f", "axis", {"x": (2, 3), "axis": axis})
    AXES.require("f", "axis", {"x": (2, 3), "axis": None})
    with pytest.raises(ShapeError, match="f: argument 'axis': expected no axis of a scalar, got -1"):
        AXIS.require("f", "axis", {"x": (), "axis": -1})


def test_numbers_for_each_side() -> None:
    kind = PerAxis(0, lambda given: 2, sides=True)
    for right in (0, (1, 2), ((0, 1), (2, 0))):
        kind.require("f", "padding", {"padding": right})
    for wrong in (-1, (1, 1, 1), ((0, 1),), ((0, -1), (1, 1))):
        with pytest.raises(ShapeError, match=r"or 2 of them, or \(before, behind\) for each, got "):
            kind.require("f", "padding", {"padding": wrong})


def test_an_optional_kind_takes_none() -> None:
    kind: Values = optional(POSITIVE)
    kind.require("f", "cap", {"cap": None})
    with pytest.raises(DomainError, match="f: argument 'cap': expected a positive finite number or None, got 0"):
        kind.require("f", "cap", {"cap": 0})
