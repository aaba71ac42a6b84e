"""Every property on every op of the table."""

import pytest

from dgrr.tape.ops import OPS

from .properties.captured import CAPTURED
from .properties.forward import FORWARD
from .properties.gradients import GRADIENTS
from .properties.record import RECORD

PROPERTIES = {**FORWARD, **GRADIENTS, **RECORD, **CAPTURED}


@pytest.mark.parametrize("op", sorted(OPS))
@pytest.mark.parametrize("name", PROPERTIES)
def test_property(name: str, op: str) -> None:
    PROPERTIES[name](OPS[op])
