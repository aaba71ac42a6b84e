"""Words that lie at any address, and the products of XXH3, on int64 in the place of unsigned words."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from numba import types
from numba.extending import intrinsic

from ..engine import emit
from ..engine.emit import I8, I32, I64
from ..engine.numba_internals import ir
from .constants import SECRET, secret_word

I128 = ir.IntType(128)


def _reader(kind):
    """What loads an integer of any width from an address, without its sign."""

    def read(context, address):
        def generate(context, builder, signature, args):
            found = emit.load(builder, emit.at(builder, args[0]), kind, align=1)
            return found if kind is I64 else builder.zext(found, I64)

        return types.int64(types.int64), generate

    return intrinsic(read)


read64, read32, read8 = _reader(I64), _reader(I32), _reader(I8)


def secret_table(builder):
    """The secret as constant data of the module being built."""
    words = [secret_word(offset) for offset in range(0, len(SECRET), 8)]
    value = ir.Constant(ir.ArrayType(I64, len(words)), words)
    known = builder.module.globals.get("dgrr.xxh3.secret")
    if known is None:
        known = ir.GlobalVariable(builder.module, value.type, "dgrr.xxh3.secret")
        known.initializer, known.global_constant, known.linkage = value, True, "internal"
    return known


@intrinsic
def secret64(context, offset):
    """The word at an offset of the secret."""

    def generate(context, builder, signature, args):
        return emit.load(builder, emit.at(builder, secret_table(builder), args[0]), I64, align=1)

    return types.int64(types.int64), generate


@intrinsic
def write64(context, address, value):
    """Store a word at an address."""

    def generate(context, builder, signature, args):
        builder.store(args[1], builder.bitcast(emit.at(builder, args[0]), I64.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), generate


@intrinsic
def times(context, a, b):
    """The lower word of the product of two words, which ``*`` promises LLVM that it holds the whole."""
    return types.int64(types.int64, types.int64), lambda ctx, b, sig, args: b.mul(*args)


@intrinsic
def swapped(context, x):
    """The bytes in the other order."""

    def generate(context, builder, signature, args):
        return builder.call(emit.declare(builder, "llvm.bswap.i64", I64, [I64]), args)

    return types.int64(types.int64), generate


def _product(builder, args):
    a, b = (builder.zext(word, I128) for word in args)
    product = builder.mul(a, b)
    return builder.trunc(product, I64), builder.trunc(builder.lshr(product, I128(64)), I64)


@intrinsic
def upper(context, a, b):
    """The upper word of the product of two unsigned words."""
    return types.int64(types.int64, types.int64), lambda ctx, b, sig, args: _product(b, args)[1]


@intrinsic
def folded(context, a, b):
    """The words of the product of two unsigned words, xor'ed."""
    return types.int64(types.int64, types.int64), lambda ctx, b, sig, args: b.xor(*_product(b, args))
