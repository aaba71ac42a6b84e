"""What lets one source serve both float types: constants, polynomials, integers of the float's width.

numba widens int32 arithmetic to int64, which would halve the vectors of float32 loops; these operations keep
the type of their first argument.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"
# pyright: basic
from numba import types
from numba.extending import intrinsic, overload

from .coefficients import FLOAT32, FLOAT64
from .intrinsics import FLOATS, fma

CONSTANTS = {types.float32: FLOAT32, types.float64: FLOAT64}


def constants(x):
    """The `Constants` of the type of ``x``."""


@overload(constants)
def _constants(x):
    table = CONSTANTS.get(x)
    return table and (lambda x: table)


@intrinsic
def constant(context, x, value):
    """``value`` in the type of ``x``; the value must be exact in both float types."""
    if x not in FLOATS:
        return None
    return x(x, value), lambda ctx, b, sig, args: ctx.cast(b, args[1], value, x)


@intrinsic
def polynomial(context, x, coefficients):
    """The polynomial with these coefficients, highest power first, by Horner's scheme with fma."""
    if coefficients != types.UniTuple(x, len(coefficients)):
        return None
    step = x(x, x, x)

    def generate(context, builder, signature, args):
        evaluate = context.get_function(context.typing_context.resolve_value_type(fma), step)
        value = builder.extract_value(args[1], 0)
        for power in range(1, len(coefficients)):
            value = evaluate(builder, [value, args[0], builder.extract_value(args[1], power)])
        return value

    return x(x, coefficients), generate


def _integer_operation(instruction, doc):
    def operation(context, x, y):
        if x not in (types.int32, types.int64) or not isinstance(y, types.Integer):
            return None

        def generate(context, builder, signature, args):
            return getattr(builder, instruction)(args[0], context.cast(builder, args[1], y, x))

        return x(x, y), generate

    operation.__doc__, operation.__name__ = doc, instruction
    return intrinsic(operation)


add = _integer_operation("add", "``x + y`` in the type of x, wrapping.")
sub = _integer_operation("sub", "``x - y`` in the type of x, wrapping.")
shl = _integer_operation("shl", "``x << y`` in the type of x.")
lshr = _integer_operation("lshr", "``x >> y`` in the type of x, filled with zeros.")
