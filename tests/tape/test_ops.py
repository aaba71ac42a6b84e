"""Every property on every op of the table and on every function composed of them."""

import pytest

from dgrr.tape.ops import OPS
from dgrr.tape.table import COMPOSED

from .properties.captured import CAPTURED
from .properties.forward import FORWARD
from .properties.gradients import GRADIENTS
from .properties.record import RECORD

PROPERTIES = {**FORWARD, **GRADIENTS, **RECORD, **CAPTURED}
OF_COMPOSED = [name for name in PROPERTIES if name != "adjoint"]
"""A composed function has no JVP of its own."""

PAIRS = [
    *[(name, op) for name in PROPERTIES for op in sorted(OPS)],
    *[(name, function) for name in OF_COMPOSED for function in sorted(COMPOSED)],
]


@pytest.mark.parametrize(("name", "record"), PAIRS)
def test_property(name: str, record: str) -> None:
    PROPERTIES[name](OPS[record] if record in OPS else COMPOSED[record])
