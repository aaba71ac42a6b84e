"""What compiled code makes of the operations: LLVM code, one source for both float types, for scalars and for vectors.

Each has the arguments that numba gives an intrinsic: the typing context, then the types of the operation's own. numba
widens int32 arithmetic to int64, which would halve the vectors of float32; these keep the type of their first argument.
"""

# ruff: noqa: D103 - what each does, `operations` says

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc,untyped-decorator"
# pyright: basic, reportCallIssue=false, reportOperatorIssue=false
from numba import types
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model

from ..coefficients import FLOAT32, FLOAT64
from ..engine import emit
from ..engine.numba_internals import AttributeTemplate
from .lanes import Lanes, element_of, widened, widest, with_element

CONSTANTS = {types.float32: FLOAT32, types.float64: FLOAT64}
INTEGER_OF = {types.float32: types.int32, types.float64: types.int64}
FLOAT_OF = {integer: floating for floating, integer in INTEGER_OF.items()}


class ConstantsOf(types.Type):
    """The table of constants of a type of numbers or vectors; its attributes are LLVM constants."""

    def __init__(self, kind):
        self.kind, self.table = kind, CONSTANTS[element_of(kind)]
        super().__init__(f"ConstantsOf({kind})")


register_model(ConstantsOf)(models.OpaqueModel)


def constants(context, x):
    if element_of(x) not in CONSTANTS:
        return None
    return ConstantsOf(x)(x), lambda ctx, b, sig, args: ctx.get_dummy_value()


@infer_getattr
class ConstantsAttributes(AttributeTemplate):
    """The types of the fields."""

    key = ConstantsOf

    def generic_resolve(self, kind, name):  # type: ignore[override]
        """The type of one field."""
        value = getattr(kind.table, name)
        if isinstance(value, tuple):
            return types.UniTuple(kind.kind, len(value))
        return types.int64 if isinstance(value, int) else kind.kind


@lower_getattr_generic(ConstantsOf)
def _lower_constant(context, builder, kind, _, name):
    value, llvm = getattr(kind.table, name), context.get_value_type(kind.kind)
    if isinstance(value, tuple):
        numbers = [emit.constant(llvm, number) for number in value]
        return context.make_tuple(builder, types.UniTuple(kind.kind, len(value)), numbers)
    return emit.I64(value) if isinstance(value, int) else emit.constant(llvm, value)


def constant(context, x, value):
    if element_of(x) not in INTEGER_OF:
        return None
    return x(x, value), lambda ctx, b, sig, args: widened(ctx, b, args[1], value, x)


def fma(context, a, b, c):
    result = widest(a, b, c)
    if result is None or element_of(result) not in INTEGER_OF:
        return None

    def generate(context, builder, signature, args):
        operands = [widened(context, builder, v, k, result) for v, k in zip(args, (a, b, c), strict=True)]
        return emit.fma(builder, *operands)

    return result(a, b, c), generate


def sqrt(context, x):
    if element_of(x) not in INTEGER_OF:
        return None
    return x(x), lambda ctx, b, sig, args: emit.sqrt(b, args[0])


def select(context, condition, yes, no):
    result = widest(yes, no)
    if result is None:
        return None
    result = with_element(condition, element_of(result)) if isinstance(condition, Lanes) else result

    def generate(context, builder, signature, args):
        flag = args[0] if isinstance(condition, Lanes) else context.cast(builder, args[0], condition, types.boolean)
        sides = [widened(context, builder, v, k, result) for v, k in ((args[1], yes), (args[2], no))]
        return builder.select(flag, *sides)

    return result(condition, yes, no), generate


def bits_of(context, x):
    if element_of(x) not in INTEGER_OF:
        return None
    integer = with_element(x, INTEGER_OF[element_of(x)])
    return integer(x), lambda ctx, b, sig, args: b.bitcast(args[0], ctx.get_value_type(integer))


def float_of(context, x):
    if element_of(x) not in FLOAT_OF:
        return None
    floating = with_element(x, FLOAT_OF[element_of(x)])
    return floating(x), lambda ctx, b, sig, args: b.bitcast(args[0], ctx.get_value_type(floating))


def polynomial(context, x, coefficients):
    if coefficients != types.UniTuple(x, len(coefficients)):
        return None

    def generate(context, builder, signature, args):
        value = builder.extract_value(args[1], 0)
        for power in range(1, len(coefficients)):
            value = emit.fma(builder, value, args[0], builder.extract_value(args[1], power))
        return value

    return x(x, coefficients), generate


def integer(instruction):
    """The form of an instruction on whole numbers, in the type of the first."""

    def form(context, x, y):
        if element_of(x) not in FLOAT_OF or not isinstance(element_of(y), types.Integer):
            return None

        def generate(context, builder, signature, args):
            return getattr(builder, instruction)(args[0], widened(context, builder, args[1], y, x))

        return x(x, y), generate

    return form
