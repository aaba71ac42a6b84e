"""Kernels of laws and of rates, and what they read from memory once: what counts steps, hyperparameters."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator,import-untyped"
# pyright: basic, reportArgumentType=false, reportCallIssue=false
from typing import Any

from numba import types
from numba.extending import intrinsic

from ....tape.errors import DomainError
from ....tape.numerics.engine.emit import F64, I64, word_at
from ....tape.numerics.engine.kernel import KERNELS, Kernel
from ....tape.numerics.simd.pointwise import kernel_of

HYPER = 5
"""Elements of a vector of hyperparameters; the learning rate is the first."""

NOTHING, STEP, CORRECTIONS = range(3)
"""What stands before the hyperparameters: no array, the number of the step (int64), two numbers (float64)."""


@intrinsic(prefer_literal=True)
def known(context, table, k, first, behind, count):
    """Numbers in float64: those of what stands ``first``, and ``count`` hyperparameters, the rate of the step in front.

    The arrays are the ``k``-th of a table and those behind it; ``behind`` is how many of them the rate, the first of
    its array, stands behind the others. All but ``table`` are constants. One intrinsic, as each function that compiled
    code calls takes 20 ms to compile.
    """
    place, kind, apart, n = (argument.literal_value for argument in (k, first, behind, count))
    hyper = place + (kind != NOTHING)

    def generate(context, builder, signature, args):
        def load(array, i, typ=F64):
            address = builder.load(word_at(builder, args[0], I64(array)), typ=I64)
            return builder.load(word_at(builder, address, I64(i)), typ=typ)

        numbers = [builder.sitofp(load(place, 0, I64), F64)] if kind == STEP else []
        numbers = [load(place, 0), load(place, 1)] if kind == CORRECTIONS else numbers
        numbers += [load(hyper + apart, 0), *[load(hyper, i) for i in range(1, n)]]
        return context.make_tuple(builder, signature.return_type, numbers)

    return types.UniTuple(types.float64, kind + n)(table, k, first, behind, count), generate


def kernel_again(loop: Any, text: Any, name: str, **names: Any) -> Kernel:
    """The kernel of a formula, also where the same was made before, as by a notebook's cell that is run again.

    Raises DomainError for a name that another kernel has.
    """
    before = KERNELS.get(name)
    if before is not None and _home(before.formula) != _home(text):
        given = f"got {text.__name__!r}, which makes the kernel {name!r}"
        raise DomainError(f"{text.__module__}: expected a formula with a name of its own, {given}; rename it")
    KERNELS.pop(name, None)
    return kernel_of(loop, text, name=name, **names)


def _home(text: Any) -> Any:
    return text and (text.__module__, text.__qualname__)
