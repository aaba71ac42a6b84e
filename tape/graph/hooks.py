"""Hooks: functions that see, and may replace, the gradient of a node while backward runs."""

from collections.abc import Callable
from itertools import count
from typing import Any

from ..errors import DgrrError, GradientError
from ..values.tensor import AnyTensor
from ..values.unique import Unique
from ..var.var import Var, shape_of
from .node import Node

Hook = Callable[[Any], Any]
"""``hook(gradient) -> replacement or None``; gradients are tensors, or Vars under ``create_graph=True``."""


class HookHandle(Unique):
    """Removes a hook."""

    instead = "add the hook to the other tape: tape.hook(x, function)"

    def __init__(self, hooks: "Hooks", node: int, key: int) -> None:
        self._hooks, self._node, self._key = hooks, node, key

    def __repr__(self) -> str:
        return f"<hook of node {self._node}>"

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.discard(self._node, self._key)


class Hooks:
    """The hooks of a tape's nodes, in the order in which they were added."""

    def __init__(self) -> None:
        self._of: dict[int, dict[int, Hook]] = {}
        self._keys = count()

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, node: Node, hook: Hook) -> HookHandle:
        """Add a hook to a node. Raises GradientError if no gradient can arrive there."""
        if not node.requires_grad:
            raise GradientError(
                f"hook: {node.title} requires no gradient, so none arrives; hook a node that depends on a parameter"
            )
        key = next(self._keys)
        self._of.setdefault(node.id, {})[key] = hook
        return HookHandle(self, node.id, key)

    def discard(self, node: int, key: int) -> None:
        """Take a hook away if it is still there."""
        hooks = self._of.get(node, {})
        hooks.pop(key, None)
        if not hooks:
            self._of.pop(node, None)

    def run(self, node: Node, gradient: Any, accept: Callable[[Any], Any]) -> Any:
        """The gradient after the node's hooks, each given what the one before it left.

        ``accept`` makes of a replacement what this backward pass holds. Raises GradientError for a replacement
        that does not fit.
        """
        for hook in tuple(self._of.get(node.id, {}).values()):
            given = hook(gradient)
            if given is not None:
                gradient = accept(_replacement(node, given))
        return gradient


def _replacement(node: Node, given: Any) -> Any:
    call = f"hook of {node.title}"
    made = _tensor(call, given)
    if shape_of(made) != node.value.sizes or made.dtype != node.value.dtype:
        raise GradientError(
            f"{call}: expected None or a gradient of shape {node.value.sizes} and {node.value.dtype}, "
            f"got shape {shape_of(made)} and {made.dtype}"
        )
    return made


def _tensor(call: str, given: Any) -> Any:
    made: Any = given
    if not isinstance(given, Var | AnyTensor):
        try:
            made = AnyTensor.leaf(given, call)
        except DgrrError as error:
            raise GradientError(str(error)) from None
    return made
