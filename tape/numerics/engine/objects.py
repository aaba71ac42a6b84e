"""Python objects as compiled code takes them: by their addresses, without looking at them."""

# numba's type classes carry no types.
# pyright: basic
from typing import Any

from numba import types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from .emit import I64


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
