"""Compiling faster gives the code that numba gives."""

# numba's own classes carry no types.
# pyright: basic, reportAttributeAccessIssue=false
import copy
import re
from typing import Any

import numpy as np
import pytest
from numba.core import inline_closurecall
from numba.core.caching import NullCache

from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.numba_internals import compiling


def code_of(name: str) -> str:
    """The machine code of a kernel, without the numbers by which numba tells functions apart."""
    version: Any = KERNELS[name]._version(np.dtype(np.float32))[0]  # pyright: ignore[reportPrivateUsage]
    version._cache = NullCache()
    version.compile()
    return re.sub(r"v\d+|_Z\w+|\.L\w+|\d{6,}|0x[0-9a-f]+", "", version._library.get_asm_str())


@pytest.mark.parametrize("name", ["scale", "tanh", "sum_rows"])
def test_the_code_is_the_same(name: str) -> None:
    expected = code_of(name)
    with compiling():
        assert inline_closurecall.copy is not copy
        assert code_of(name) == expected


def test_numba_is_left_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError), compiling():
        raise ZeroDivisionError
    assert inline_closurecall.copy is copy
