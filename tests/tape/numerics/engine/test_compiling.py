"""Compiling faster gives the code that numba gives."""

# numba's own classes carry no types.
# pyright: basic, reportAttributeAccessIssue=false
import copy
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import inline_closurecall
from numba.core.caching import NullCache

from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.numba_compiler import compiling, for_the_level, replacements
from dgrr.tape.numerics.engine.numba_internals import NO_WRAPPERS


def code_of(name: str) -> str:
    """The machine code of a kernel, without the numbers by which numba tells functions apart."""
    version: Any = KERNELS[name]._version(np.dtype(np.float32))[0]  # pyright: ignore[reportPrivateUsage]
    version._cache = NullCache()
    type(version).compile(version)
    return re.sub(r"v\d+|_Z\w+|\.L\w+|\d{6,}|0x[0-9a-f]+", "", version._library.get_asm_str())


@pytest.mark.parametrize("name", ["scale", "tanh", "sum_rows"])
def test_the_code_is_the_same(name: str) -> None:
    with for_the_level():
        expected = code_of(name)
    with compiling():
        assert inline_closurecall.copy is not copy
        assert code_of(name) == expected


def in_place() -> list[object]:
    """What stands now in numba where something is replaced."""
    return [getattr(owner, name) for owner, name, _ in replacements()]


def test_numba_is_left_as_it_was() -> None:
    before = in_place()
    with compiling():
        assert in_place() == [ours for *_, ours in replacements()]
    with pytest.raises(ZeroDivisionError), compiling():
        raise ZeroDivisionError
    assert in_place() == before and before[0] is copy


def has_machine_code(dispatcher: Any) -> bool:
    (compiled,) = dispatcher.overloads.values()
    return compiled.library._codegen._engine.is_symbol_defined(compiled.fndesc.llvm_func_name)  # type: ignore[no-any-return]


def test_what_only_compiled_code_calls_is_linked_and_no_more() -> None:
    inner: Any = njit(**NO_WRAPPERS)(lambda x: x + 1)
    middle: Any = njit(**NO_WRAPPERS)(lambda x: inner(x) * 2)
    outer: Any = njit(lambda x: middle(x) - 3)
    with compiling():
        assert outer(4) == 7
    assert [has_machine_code(each) for each in (inner, middle, outer)] == [False, False, True]


def test_others_may_call_what_was_only_linked() -> None:
    inner: Any = njit(**NO_WRAPPERS)(lambda x: x + 1)
    outer: Any = njit(lambda x: inner(x) * 2)
    with compiling():
        assert outer(4) == 10
    later: Any = njit(lambda x: inner(x) * 3)
    assert later(4) == 15


def test_what_python_calls_is_made_ready_with_its_globals() -> None:
    given = {"a": 1}  # that a function returns a string or raises asks for its environment
    outer: Any = njit(lambda name: name + "b")
    with compiling():
        assert outer(next(iter(given))) == "ab"
        made: Any = njit(lambda n: [str(i) for i in range(n)])
        assert made(3) == ["0", "1", "2"]


def test_the_runtime_of_numba_is_made_ready_as_ever() -> None:
    program = """
from numba import njit
from numba.core.runtime import rtsys
from dgrr.tape.numerics.engine.numba_compiler import compiling
with compiling():
    njit(lambda x: x)(1)
assert rtsys.library.get_pointer_to_function("nrt_unresolved_abort")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
