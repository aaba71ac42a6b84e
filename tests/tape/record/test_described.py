"""Classes whose fields have kinds: what they refuse, and what their docstrings say without a line about it."""

import subprocess
import sys
from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, GradientError, Tape
from dgrr.tape.record.described import Described
from dgrr.tape.record.kinds.values import NOT_NEGATIVE, POSITIVE, PROBABILITY, at_least

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Room(Described, kinds={"height": POSITIVE}):
    """What rooms have in common.

    Args:
        height: from the floor
            to the ceiling.
        width, length: along the walls.

    Shapes: x (*S) -> (*S)
    Raises:
        ValueError: when entered, it is locked.
    """

    height: float


@dataclass(frozen=True)
class Hall(Room, kinds={"doors": at_least(1), "share": PROBABILITY, "name": at_least(3)}):
    """A hall.

    Args:
        share, name: two
            words.
        doors: for people.

    Source: a book.
    Dtypes: any.

    >>> 1 + 1
    2
    """

    doors: int = 1
    _: KW_ONLY
    share: float = 0.5
    name: int | None = None
    other: Any = None


@dataclass(frozen=True)
class Cave(Hall, kinds={"height": NOT_NEGATIVE}):
    """A cave.

    Source: another book.
    Shapes: none
    Raises:
        ShapeError: when entered, it is too narrow.
    """


def test_a_docstring_has_what_it_does_not_say_from_its_base_and_from_kinds() -> None:
    assert Hall.__doc__ == (
        "A hall.\n\n"
        "Args:\n"
        "    height: from the floor to the ceiling; a positive finite number.\n"
        "    doors: for people; at least 1.\n"
        "    share, name: two words; a probability from 0 to 1.\n\n"
        "Source: a book.\n"
        "Shapes: x (*S) -> (*S)\n"
        "Dtypes: any.\n"
        "Raises:\n"
        "    DomainError: height, doors, share or name does not fit, as in\n"
        "        \"argument 'height': expected a positive finite number, got 0.0\".\n"
        "    ValueError: when entered, it is locked.\n\n"
        ">>> 1 + 1\n2"
    )


def test_what_a_class_says_itself_stands_in_place_of_what_its_base_says() -> None:
    assert Cave.__doc__ == (
        "A cave.\n\n"
        "Args:\n"
        "    height: from the floor to the ceiling; a finite number of at least 0.\n"
        "    doors: for people; at least 1.\n"
        "    share, name: two words; a probability from 0 to 1.\n\n"
        "Source: another book.\n"
        "Shapes: none\n"
        "Dtypes: any.\n"
        "Raises:\n"
        "    DomainError: height, doors, share or name does not fit, as in\n"
        "        \"argument 'height': expected a finite number of at least 0, got -1e-05\".\n"
        "    ShapeError: when entered, it is too narrow.\n"
        "    ValueError: when entered, it is locked."
    )


def test_an_error_that_a_class_names_itself_stands_in_place_of_that_of_its_base() -> None:
    class Vault(Cave):
        """A vault.

        Raises:
            ValueError: always.
            ValueError: at night twice.
        """

    assert Vault.__doc__ is not None and Vault.__doc__.endswith(
        "    ValueError: always.\n    ValueError: at night twice.\n    ShapeError: when entered, it is too narrow."
    )


def test_of_two_bases_the_first_counts() -> None:
    class Lit(Described, kinds={"watts": POSITIVE}):
        """What is lit.

        Shapes: another
        Dtypes: of lamps.
        """

        watts: float

    class LitRoom(Room, Lit):
        """A room with a lamp."""

    assert LitRoom.__doc__ == (
        "A room with a lamp.\n\n"
        "Args:\n"
        "    height: from the floor to the ceiling; a positive finite number.\n\n"
        "Shapes: x (*S) -> (*S)\n"
        "Dtypes: of lamps.\n"
        "Raises:\n"
        "    DomainError: height or watts does not fit, as in \"argument 'watts': expected a positive finite number, "
        'got 0.0".\n'
        "    ValueError: when entered, it is locked."
    )
    assert list(LitRoom.kinds) == ["watts", "height"]


def test_without_kinds_and_facts_a_docstring_is_as_written() -> None:
    class Bare(Described):
        """Text of

        two lines."""

    class Silent(Room):
        pass

    class Below(Hall):
        """No formula of its own."""

    assert Below.__doc__ is not None and "Source" not in Below.__doc__ and "Dtypes: any." in Below.__doc__
    assert Bare.__doc__ is not None and Bare.__doc__.endswith("two lines.") and "Raises" not in Bare.__doc__
    assert vars(Silent)["__doc__"] is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"height": 0}, "height': expected a positive finite number, got 0"),
        ({"height": float("nan")}, "height': expected a positive finite number, got nan"),
        ({"height": "low"}, "height': expected a number, got 'low'"),
        ({"doors": 0}, "doors': expected at least 1, got 0"),
        ({"doors": 1.0}, "doors': expected a whole number, got 1.0"),
        ({"doors": True}, "doors': expected a whole number, got True"),
        ({"doors": None}, "doors': expected a whole number, got None"),
        ({"doors": 1 << 70}, "doors': expected a number of at most 64 bits, got 1180591620717411303424"),
        ({"share": 1.5}, "share': expected a probability from 0 to 1, got 1.5"),
        ({"name": 2}, "name': expected at least 3, got 2"),
        ({"name": "a"}, "name': expected a whole number or None, got 'a'"),
    ],
)
def test_a_field_is_held_to_its_type_and_then_to_its_kind(given: dict[str, Any], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        Hall(**{"height": 2.0, **given})
    assert str(caught.value) == f"Hall: argument '{text}"


def test_a_var_is_no_number() -> None:
    with pytest.raises(GradientError, match="^Hall: argument 'height': expected a number, got a Var, whose gradient"):
        Hall(Tape().leaf(1.0))  # type: ignore[arg-type]


def test_a_class_below_has_the_kinds_of_its_base_and_may_have_others() -> None:
    assert Cave(0.0).height == 0.0
    assert {name: kind.example().expected for name, kind in Cave.kinds.items()} == {
        "height": "a finite number of at least 0",
        "doors": "at least 1",
        "share": "a probability from 0 to 1",
        "name": "at least 3",
    }
    with pytest.raises(DomainError, match="^Cave: argument 'doors'"):
        Cave(1.0, 0)


def test_numbers_of_numpy_become_pythons_and_the_rest_is_left() -> None:
    other = object()
    made = Hall(np.float32(0.5), np.int64(2), other=other)  # type: ignore[arg-type]
    assert [type(getattr(made, f.name)) for f in fields(made)] == [float, int, float, type(None), object]
    assert made == Hall(0.5, 2, other=other)
    with pytest.raises(FrozenInstanceError):
        made.doors = 3  # type: ignore[misc]


def test_a_kind_of_what_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Wrong: argument 'kinds': expected fields among .*'height'.*, got 'width'$"):

        class Wrong(Room, kinds={"width": POSITIVE}):
            pass


PROGRAM = """
from dataclasses import dataclass
from dgrr.tape.record.described import Described
from dgrr.tape.record.kinds.values import POSITIVE

@dataclass(frozen=True)
class Room(Described, kinds={"height": POSITIVE}):
    '''A room.'''
    height: float

try:
    Room(0)
except ValueError as error:
    print(error)
"""


@pytest.mark.long
def test_without_docstrings_nothing_fails() -> None:
    command = [sys.executable, "-OO", "-B", "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (
        "Room: argument 'height': expected a positive finite number, got 0\n",
        "",
    )
