"""What numba and llvmlite do not promise to keep, of which code is written: nothing else imports them for it.

The rest uses numba's public names alone: ``numba.njit``, ``numba.types``, ``numba.extending``. What stands here, and in
`numba_compiler`, may break with any new version of numba; so the versions allowed are those that the tests have run
with.
"""

# numba's own classes and functions carry no types.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer,
    infer_global,
    make_intrinsic_template,
    signature,
)

__all__ = [
    "NO_WRAPPERS",
    "AbstractTemplate",
    "AttributeTemplate",
    "array_data",
    "compiled_as",
    "counted",
    "formula",
    "infer_global",
    "ir",
    "room",
    "signature",
]

NO_WRAPPERS: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of `numba.njit` for a function that only compiled code calls; numba's stubs lack both."""

# ------------------------------------------------------------------ one text for Python and for compiled code

F = TypeVar("F", bound=Callable[..., Any])


def compiled_as(form: Callable[..., Any]) -> Callable[[F], F]:
    """A function of which Python runs the text below, and compiled code has ``form`` in its place.

    The form is what `numba.extending.intrinsic` takes: of a typing context and types it gives a signature and a writer.
    """

    def registered(text: F) -> F:
        template = make_intrinsic_template(text, form, text.__name__)
        infer(template)
        infer_global(text, types.Function(template))
        return text

    return registered


INLINED: dict[Callable[..., Any], Any] = {}
"""What stands for each formula in compiled code. numba's type of it holds no reference, so it is kept here."""


def formula(text: F) -> F:
    """A function written in operations and formulas: Python runs it, and compiled code inlines it."""
    INLINED[text] = numba.njit(forceinline=True, error_model="numpy", **NO_WRAPPERS)(text)
    infer_global(text, types.Dispatcher(INLINED[text]))
    return text


# ------------------------------------------------------------------ writing code


def room(builder: Any, kind: Any) -> Any:
    """A pointer to room for a value on the stack of the function being written, made at its entry; it holds junk.

    numba's own is zeroed, which LLVM writes out element by element before it finds that nobody reads it.
    """
    with builder.goto_entry_block():
        return builder.alloca(kind)


def array_data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """The pointer to the elements of numba's array."""
    return cgutils.create_struct_proxy(kind)(context, builder, value=array).data


def counted(builder: Any, times: Any) -> AbstractContextManager[Any]:
    """A loop around what is written in the ``with`` block, whose value holds the ``index``."""
    return cgutils.for_range(builder, times)
