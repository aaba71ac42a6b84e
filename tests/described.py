"""What all classes whose fields have kinds are held to: layers, rules, schedules."""

from dataclasses import fields, replace
from typing import Any

import pytest

from dgrr.tape import DomainError


def called_wrong(made: Any) -> list[tuple[str, Any]]:
    """What the kinds of its fields call wrong, each with the field's name."""
    given = {field.name: getattr(made, field.name) for field in fields(made) if field.init}
    return [(name, wrong) for name, kind in made.kinds.items() for wrong in kind.wrong(given)]


def without_kind(made: Any) -> set[str]:
    """Its fields that hold numbers or words and have no kind."""
    held = {f.name for f in fields(made) if "int" in str(f.type) or "float" in str(f.type) or "str" in str(f.type)}
    return held - made.kinds.keys()


def require_refused(made: Any) -> None:
    """What a kind calls wrong is refused, in its words."""
    for name, wrong in called_wrong(made):
        with pytest.raises(DomainError) as caught:
            replace(made, **{name: wrong.value})
        assert str(caught.value) == f"{type(made).__name__}: {wrong.text(name)}"
