"""Operations on int64 words that several threads share, given by address."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from numba import types
from numba.extending import intrinsic

from .emit import I32, I64, TRIPLE, VOID, declare
from .numba_internals import ir

WORD = I64.as_pointer()


@intrinsic
def load(context, address):
    """The word, with all that the thread that stored it wrote before."""

    def generate(context, builder, signature, args):
        return builder.load_atomic(builder.inttoptr(args[0], WORD), "acquire", 8, typ=I64)

    return types.int64(types.int64), generate


@intrinsic
def store(context, address, value):
    """Store the word after all that this thread wrote before."""

    def generate(context, builder, signature, args):
        builder.store_atomic(args[1], builder.inttoptr(args[0], WORD), "release", 8)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), generate


@intrinsic
def add(context, address, value):
    """Add to the word; what it was before."""

    def generate(context, builder, signature, args):
        return builder.atomic_rmw("add", builder.inttoptr(args[0], WORD), args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def least(context, address, value):
    """The smaller of the word and a value becomes the word; what it was before."""

    def generate(context, builder, signature, args):
        return builder.atomic_rmw("min", builder.inttoptr(args[0], WORD), args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def swap(context, address, expected, value):
    """Store ``value`` if the word is ``expected``; whether it was."""

    def generate(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], WORD)
        return builder.extract_value(builder.cmpxchg(pointer, args[1], args[2], "acq_rel", "acquire"), 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic
def pause(context):
    """Tell the core that this thread is waiting for a word to change."""

    def generate(context, builder, signature, args):
        if TRIPLE.startswith("x86_64"):
            builder.call(declare(builder, "llvm.x86.sse2.pause", VOID, []), [])
        else:
            builder.call(declare(builder, "llvm.aarch64.hint", VOID, [I32]), [I32(1)])
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def call_without_arguments(context, function):
    """What a C function ``int f(void)`` at an address gives."""

    def generate(context, builder, signature, args):
        kind = ir.FunctionType(I32, [])
        return builder.sext(builder.call(builder.inttoptr(args[0], kind.as_pointer()), []), I64)

    return types.int64(types.int64), generate


@intrinsic
def call_with(context, function, argument):
    """Call a C function ``void f(int)`` at an address."""

    def generate(context, builder, signature, args):
        kind = ir.FunctionType(VOID, [I32])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [builder.trunc(args[1], I32)])
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), generate
