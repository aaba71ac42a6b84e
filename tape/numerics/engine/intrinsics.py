"""What compiled code needs besides numbers: objects, words, addresses, room on the stack, calls, the environment."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from typing import Any

from numba import carray, njit, types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from .emit import I1, I32, I64, POINTER, TRIPLE, VOID, at, declare, word_at
from .numba_internals import ir, room

DATA_FIELD = object.__basicsize__
"""Offset of the data pointer in a numpy array object: the first field after the object head.

It is part of numpy's ABI (``PyArrayObject_fields``, inlined by ``PyArray_DATA`` into every compiled
extension), and it is a hundred times cheaper to read than ``array.ctypes.data``.
"""

NDIM, SIZES, DTYPE, FLAGS = 1, 2, 5, 6
"""Words of a numpy array object from its data pointer on (``PyArrayObject_fields``, part of numpy's ABI): rank,
address of the sizes, dtype object, flags. Rank and flags are the low halves of their words."""
ALIGNED, ROW_MAJOR = 0x100, 0x101
"""The flags of an array whose elements are aligned, and of one that is contiguous in row-major order, too."""
WRITEABLE = 0x400
"""The flag of an array that may be written."""

MXCSR_DEFAULT = 0x1F80
"""x86 control word: round to nearest, subnormals kept (no FTZ, no DAZ), all exceptions masked."""

MXCSR_CONTROL = 0xFFC0
"""The bits of the x86 control word that change results; the others only report what happened."""


@intrinsic
def word(context, words, i):
    """The ``i``-th int64 of the block at address ``words``."""

    def generate(context, builder, signature, args):
        return builder.load(word_at(builder, *args), typ=I64)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def move(context, target, source, nbytes):
    """Copy bytes from one address to another; the two do not overlap."""

    def generate(context, builder, signature, args):
        copy = declare(builder, "llvm.memcpy.p0.p0.i64", VOID, [POINTER, POINTER, I64, I1])
        builder.call(copy, [builder.inttoptr(args[0], POINTER), builder.inttoptr(args[1], POINTER), args[2], I1(0)])
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


@intrinsic
def pointer(context, table, k, offset):
    """The ``k``-th address of a typed pointer table, advanced by ``offset`` elements of the table's type."""

    def generate(context, builder, signature, args):
        address = builder.load(word_at(builder, args[0], args[1]), typ=I64)
        element = context.get_data_type(signature.return_type.dtype)
        moved = builder.gep(builder.inttoptr(address, POINTER), [args[2]], source_etype=element)
        return builder.bitcast(moved, context.get_value_type(signature.return_type))

    return table(table, types.int64, types.int64), generate


@intrinsic
def retyped(context, table, like):
    """The same pointer table, its entries read as pointers to the type of ``like``."""
    target = types.CPointer(like)

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(target))

    return target(table, like), generate


@intrinsic
def real(context, table, x):
    """``x`` converted to the element type of a pointer table: constants in the kernel's own precision."""
    return table.dtype(table, x), lambda ctx, b, sig, args: ctx.cast(b, args[1], x, table.dtype)


@intrinsic(prefer_literal=True)
def _stack(context, table, n):
    """Address of ``n`` elements of the table's type on the stack of the calling function."""
    if not isinstance(n, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):
        element = context.get_data_type(table.dtype)
        area = room(builder, ir.ArrayType(element, n.literal_value))
        return builder.bitcast(area, context.get_value_type(table))

    return table(table, n), generate


@njit(inline="always")
def stack(table, n):
    """An array of ``n`` elements (a constant) of the table's type on the stack; its contents are junk."""
    return carray(_stack(table, n), n)


@intrinsic
def entry(context, table, k):
    """The ``k``-th address of a pointer table as an int64."""

    def generate(context, builder, signature, args):
        return builder.load(word_at(builder, *args), typ=I64)

    return types.int64(table, types.int64), generate


@intrinsic
def table_at(context, like, address):
    """The pointer table at an address, of the type of another."""
    return like(like, types.int64), lambda ctx, b, sig, args: b.inttoptr(args[1], ctx.get_value_type(like))


@intrinsic(prefer_literal=True)
def stack_words(context, n):
    """Address of ``n`` (a constant) int64 words on the stack of the calling function; their contents are junk."""
    if not isinstance(n, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):
        area = room(builder, ir.ArrayType(I64, n.literal_value))
        return builder.ptrtoint(area, I64)

    return types.int64(n), generate


@intrinsic
def put_word(context, words, i, value):
    """Store the ``i``-th int64 of the block at address ``words``."""

    def generate(context, builder, signature, args):
        builder.store(args[2], word_at(builder, args[0], args[1]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


@intrinsic
def addresses(context, arrays):
    """Address of a table, on the stack of the calling function, of the data of numpy arrays given by ``id``."""

    def generate(context, builder, signature, args):
        table = room(builder, ir.ArrayType(I64, arrays.count))
        entries = ir.Constant(table.type.pointee, ir.Undefined)
        for k in range(arrays.count):
            field = at(builder, builder.extract_value(args[0], k), DATA_FIELD)
            entries = builder.insert_value(entries, builder.load(field, typ=I64), k)
        builder.store(entries, table)
        return builder.ptrtoint(table, I64)

    return types.int64(arrays), generate


@intrinsic
def invoke(context, kernel, table, ints, part, parts):
    """Call the kernel at an address. The call is opaque to the optimiser: nothing moves across it."""

    def generate(context, builder, signature, args):
        function = ir.FunctionType(I64, [I64] * 4)
        return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])

    return types.int64(kernel, table, ints, part, parts), generate


@intrinsic
def enter_environment(context):
    """Make the IEEE default current: round to nearest, subnormals kept. Returns what `leave_environment` takes.

    The rounding mode and FTZ/DAZ are flags of the calling thread that other libraries set.
    """
    enter = _for_target(_enter_x86, _enter_aarch64)
    return types.int64(), lambda context, builder, signature, args: enter(builder)


@intrinsic
def leave_environment(context, old):
    """Put back what was current before `enter_environment`."""
    leave = _for_target(_leave_x86, _leave_aarch64)

    def generate(context, builder, signature, args):
        leave(builder, args[0])
        return context.get_dummy_value()

    return types.none(old), generate


def _for_target(x86, aarch64):
    if TRIPLE.startswith("x86_64"):
        return x86
    if TRIPLE.startswith(("aarch64", "arm64")):
        return aarch64
    raise ImportError(f"dgrr: no way known to set the floating-point environment of {TRIPLE}")


def _enter_x86(builder):
    old, new = room(builder, I32), room(builder, I32)
    builder.call(declare(builder, "llvm.x86.sse.stmxcsr", VOID, [POINTER]), [old])
    control = builder.load(old, typ=I32)
    builder.store(I32(MXCSR_DEFAULT), new)
    _load_x86(builder, control, new)
    return builder.zext(control, I64)


def _leave_x86(builder, old):
    word = room(builder, I32)
    control = builder.trunc(old, I32)
    builder.store(control, word)
    _load_x86(builder, control, word)


def _load_x86(builder, outer, word):
    """Load the control word if the outer environment is not the default, which it nearly always is."""
    foreign = builder.icmp_unsigned("!=", builder.and_(outer, I32(MXCSR_CONTROL)), I32(MXCSR_DEFAULT))
    with builder.if_then(foreign, likely=False):
        builder.call(declare(builder, "llvm.x86.sse.ldmxcsr", VOID, [POINTER]), [word])


def _enter_aarch64(builder):
    old = builder.call(declare(builder, "llvm.aarch64.get.fpcr", I64, []), [])
    _leave_aarch64(builder, I64(0))
    return old


def _leave_aarch64(builder, old):
    builder.call(declare(builder, "llvm.aarch64.set.fpcr", VOID, [I64]), [old])


# ------------------------------------------------------------------ objects


class ObjectType(types.Type):
    """A Python object; the caller keeps it alive."""

    def __init__(self) -> None:
        super().__init__(name="Object")


OBJECT = ObjectType()


@register_model(ObjectType)
class _ObjectModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, I64)


@unbox(ObjectType)
def _unbox(kind, found, context):
    return NativeValue(context.builder.ptrtoint(found, I64))


@intrinsic
def address_of(context, found):
    """What ``id`` gives for an object."""
    return types.int64(found), lambda ctx, builder, signature, args: args[0]
