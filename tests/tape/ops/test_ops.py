"""Every property on every op of the table and on every function composed of them."""

import pytest

from dgrr.tape.ops import OPS
from dgrr.tape.var.op_table import COMPOSED

from .properties.captured import CAPTURED
from .properties.forward import FORWARD
from .properties.gradients import GRADIENTS
from .properties.masks import MASKS
from .properties.members import MEMBERS
from .properties.record import RECORD
from .properties.third_order import THIRD_ORDER

PROPERTIES = {**FORWARD, **GRADIENTS, **MASKS, **THIRD_ORDER, **RECORD, **MEMBERS, **CAPTURED}
MARKS = {"reference": pytest.mark.quick} | dict.fromkeys(("captured", "masks", "third order"), pytest.mark.long)
RECORDS = {**OPS, **{name if name not in OPS else f"{name} of any form": c for name, c in COMPOSED.items()}}


@pytest.mark.parametrize("record", sorted(RECORDS))
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in PROPERTIES])
def test_property(name: str, record: str) -> None:
    PROPERTIES[name](RECORDS[record])
