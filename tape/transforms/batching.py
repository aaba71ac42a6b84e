"""How an op is computed for all members of a batch at once: the rules of `vmap`.

An op's record tells which way it goes. ``linear(x: Var[F, *Bs, K], w: Var[F, N, K]) -> Var[F, *Bs, N]`` takes any
leading axes of x and gives them to its result; and it has a ``batch_axis``, so that no element of a batch sees another.
So it takes the members' axis as one more, if only x has it. This holds for every op whose result begins with such axes,
which has a batch axis, and whose attributes name no axis, no size and no place. All others are computed member by
member. Both give the bits that a member has alone.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVarTuple

from ..loops.call import BodyCall
from ..ops import broadcast_to, getitem, stack
from ..record.kinds import Kind
from ..record.op import Op
from ..record.signature import TensorType
from ..tape import Tape
from ..values.spec import Spec
from ..var.var import is_var, shape_of


class Members:
    """A value of which each member has its own: stacked along axis 0, or one by one; one is made of the other."""

    def __init__(self, size: int, stacked: Any = None, parts: Sequence[Any] = ()) -> None:
        self.size, self._stacked, self._parts = size, stacked, parts

    @cached_property
    def stacked(self) -> Any:
        """All of them, along axis 0."""
        return stack(self._parts) if self._stacked is None else self._stacked

    @cached_property
    def parts(self) -> Sequence[Any]:
        """Each alone."""
        return self._parts or [getitem(self._stacked, k) for k in range(self.size)]

    @property
    def together(self) -> bool:
        """Whether they lie along one axis without being copied there."""
        return self._stacked is not None


def apply(op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The op on inputs of which some are `Members`: Members too, or one value if none is."""
    found = [x for x in inputs if isinstance(x, Members)]
    if not found:
        return op.call(*inputs, **attrs)
    size = found[0].size
    leading = _leading(op, inputs) if all(x.together for x in found) else ()
    if leading:
        return Members(size, op.call(*_aligned(inputs, leading, size), **attrs))
    rows = [[x.parts[k] if isinstance(x, Members) else x for x in inputs] for k in range(size)]
    return Members(size, parts=[op.call(*row, **attrs) for row in rows])


def call_bodies(call: BodyCall, inputs: Sequence[Any]) -> dict[int, Any]:
    """The results of a call of bodies, by their ids: each member runs its own side, or as many steps as it needs."""
    size = next((x.size for x in inputs if isinstance(x, Members)), 0)
    rows = [[x.parts[k] if isinstance(x, Members) else x for x in inputs] for k in range(size or 1)]
    made = [_called(call, row) for row in rows]
    return {
        id: Members(size, parts=[one[key] for one in made]) if size else made[0][key]
        for key, id in call.results.items()
    }


def _called(call: BodyCall, inputs: Sequence[Any]) -> dict[str, Any]:
    """The results of a call by their keys: Vars, if one is among the inputs."""
    owner = next((x.tape for x in inputs if is_var(x)), None)
    tape: Any = Tape(locations=False) if owner is None else owner
    made = call.on(tape, [x if is_var(x) else tape.const(x) for x in inputs]).vars(list(call.results))
    return {key: x.value if owner is None else x for key, x in made.items()}


def _leading(op: Op, inputs: Sequence[Any]) -> Sequence[bool]:
    """Which inputs may have any axes in front that the result then has too: all that have members, or none is given."""
    if op.infer is not None or not op.batch_axis or not all(_names_no_place(kind) for kind in op.signature.kinds):
        return ()
    (types, result), _ = op.signature.fitting([_spec(x) for x in inputs])
    if not _opens(result):
        return ()
    leading = [_opens(types[name]) and types[name].pattern.pack is result.pattern.pack for name in op.signature.inputs]
    return leading if all(lead for lead, x in zip(leading, inputs, strict=True) if isinstance(x, Members)) else ()


def _opens(type: TensorType) -> bool:
    """Whether a type begins with any number of axes that have one name."""
    return not type.pattern.before and isinstance(type.pattern.pack, TypeVarTuple)


def _names_no_place(kind: Kind) -> bool:
    """Whether an attribute names no axis, no size and no place among the elements: a number, a truth or a word."""
    return kind.number or (bool(kind.ready) and int not in kind.ready)


def _spec(x: Any) -> Spec | None:
    """Shape and dtype that an input has for one member."""
    if isinstance(x, Members):
        return Spec(shape_of(x.stacked)[1:], x.stacked.dtype)
    return None if x is None else Spec(shape_of(x), x.dtype)


def _aligned(inputs: Sequence[Any], leading: Sequence[bool], size: int) -> list[Any]:
    """The inputs with one leading axis more, those that have no members repeated along it."""

    def aligned(x: Any, lead: bool) -> Any:
        if isinstance(x, Members):
            return x.stacked
        return broadcast_to(x, (size, *shape_of(x))) if lead and x is not None else x

    return [aligned(x, lead) for x, lead in zip(inputs, leading, strict=True)]
