"""Vectors as values in kernels: a numba type whose values are LLVM vectors, and its arithmetic.

What is written with them happens in every lane exactly as it would in a scalar, so no result depends on the
number of lanes. A vector may be wider than the registers of the machine: LLVM splits it, and the parts run
interleaved, which hides the latency of long chains of operations. Scalars of the element type join in.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalCall=false
import operator

from numba import njit, types
from numba.extending import intrinsic, lower_builtin, models, register_model

from ..engine import emit
from ..engine.emit import I32, shuffled, splat
from ..engine.numba_internals import NO_WRAPPERS, AbstractTemplate, infer_global, ir, signature

inlined = njit(forceinline=True, error_model="numpy", **NO_WRAPPERS)
"""A part of a kernel: it leaves no call behind, and it cannot be called from Python, which saves compile time."""


class Lanes(types.Type):
    """``count`` elements of a scalar type; booleans are single bits."""

    def __init__(self, element, count):
        self.element, self.count = element, count
        super().__init__(f"Lanes({element}, {count})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """An LLVM vector."""

    def __init__(self, manager, kind):
        element = manager.lookup(kind.element).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, kind.count))


def element_of(kind):
    """The scalar type of a vector or of a scalar."""
    return kind.element if isinstance(kind, Lanes) else kind


def with_element(kind, element):
    """The type of as many lanes of another element; that element for a scalar."""
    return Lanes(element, kind.count) if isinstance(kind, Lanes) else element


def widest(*kinds):
    """The first type of vectors among some types, or the first type; None unless all have one element."""
    if any(element_of(kind) != element_of(kinds[0]) for kind in kinds):
        return None
    return next((kind for kind in kinds if isinstance(kind, Lanes)), kinds[0])


def widened(context, builder, value, kind, target):
    """A value of type ``kind`` as one of ``target``: vectors stay, scalars are converted and fill all lanes."""
    if isinstance(kind, Lanes):
        return value
    scalar = context.cast(builder, value, kind, element_of(target))
    return splat(builder, scalar, target.count) if isinstance(target, Lanes) else scalar


def _define(function, result, generate):
    """Teach numba ``function`` of one or two operands of which one is a vector of floats."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            vector = widest(*args)
            known = isinstance(vector, Lanes) and isinstance(vector.element, types.Float)
            return signature(result(vector), *args) if known else None

    def lower(context, builder, sig, args):
        vector = widest(*sig.args)
        operands = [widened(context, builder, a, k, vector) for a, k in zip(args, sig.args, strict=True)]
        return generate(builder, *operands)

    infer_global(function)(Template)
    for kinds in ((Lanes,), (Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(function, *kinds)(lower)


def _same(vector):
    return vector


def _mask(vector):
    return Lanes(types.boolean, vector.count)


_define(operator.add, _same, lambda builder, a, b: builder.fadd(a, b))
_define(operator.sub, _same, lambda builder, a, b: builder.fsub(a, b))
_define(operator.mul, _same, lambda builder, a, b: builder.fmul(a, b))
_define(operator.truediv, _same, lambda builder, a, b: builder.fdiv(a, b))
_define(operator.neg, _same, lambda builder, x: builder.fneg(x))
_define(abs, _same, emit.absolute)
_define(operator.lt, _mask, lambda builder, a, b: builder.fcmp_ordered("<", a, b))
_define(operator.le, _mask, lambda builder, a, b: builder.fcmp_ordered("<=", a, b))
_define(operator.gt, _mask, lambda builder, a, b: builder.fcmp_ordered(">", a, b))
_define(operator.eq, _mask, lambda builder, a, b: builder.fcmp_ordered("==", a, b))
_define(operator.ne, _mask, lambda builder, a, b: builder.fcmp_unordered("!=", a, b))


@intrinsic(prefer_literal=True)
def filled(context, x, count):
    """A vector of ``count`` lanes (a constant) that all hold ``x``."""
    kind = Lanes(x, count.literal_value)
    return kind(x, count), lambda ctx, b, sig, args: splat(b, args[0], kind.count)


@intrinsic
def any_negative(context, x):
    """Whether an integer in any lane is negative."""

    def generate(context, builder, signature, args):
        signs = builder.icmp_signed("<", args[0], ir.Constant(args[0].type, None))
        bits = builder.bitcast(signs, ir.IntType(x.count))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(x), generate


@intrinsic
def below(context, x, left):
    """The mask of the lanes of ``x`` whose number is less than ``left``."""
    mask = Lanes(types.boolean, x.count)
    return mask(x, types.int64), lambda ctx, b, sig, args: emit.first_lanes(b, args[1], x.count)


@intrinsic(prefer_literal=True)
def half(context, x, which):
    """The lower (0) or the upper (1) half of the lanes; of two lanes one scalar."""
    count = x.count // 2
    result = Lanes(x.element, count) if count > 1 else x.element

    def generate(context, builder, signature, args):
        start = count * which.literal_value
        if count == 1:
            return builder.extract_element(args[0], I32(start))
        return shuffled(builder, range(start, start + count), args[0])

    return result(x, which), generate


@inlined
def fold(lanes):
    """The sum of sixteen lanes: ``lane[l] + lane[l + h]`` for h = 8, 4, 2, 1."""
    eight = half(lanes, 0) + half(lanes, 1)
    four = half(eight, 0) + half(eight, 1)
    two = half(four, 0) + half(four, 1)
    return half(two, 0) + half(two, 1)


@intrinsic
def accumulated(context, lanes, values):
    """``lanes`` plus the first group of as many values, plus the next, and so on."""

    def generate(context, builder, signature, args):
        total = args[0]
        for start in range(0, values.count, lanes.count):
            total = builder.fadd(total, shuffled(builder, range(start, start + lanes.count), args[1]))
        return total

    return lanes(lanes, values), generate
