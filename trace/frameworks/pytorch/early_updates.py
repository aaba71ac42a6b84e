"""Gradients that are used up while the backward pass still runs, which no optimizer's step could record."""

from collections.abc import Callable, Mapping
from typing import Any

from ....base.errors import DomainError


class EarlyUpdates:
    """Refuses hooks of a user's that free a gradient as soon as it is there: the optimizer in the backward pass.

    ``watch`` is to be called behind the user's last hook: hooks run in their order.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self._hooks = list[Any]()

    def watch(self) -> None:
        """Look at every gradient once it is there, from now on."""
        if not self._hooks:
            trained = {name: param for name, param in self._params.items() if param.is_leaf and param.requires_grad}
            self._hooks = [p.register_post_accumulate_grad_hook(_looker(name)) for name, p in trained.items()]

    def stop(self) -> None:
        """Look no more."""
        for hook in self._hooks:
            hook.remove()


def _looker(name: str) -> Callable[[Any], None]:
    def look(param: Any) -> None:
        if param.grad is None:
            raise early(f"a hook has freed the gradient of {name!r}")

    return look


def early(what: str) -> DomainError:
    """The refusal of an update in the backward pass."""
    return DomainError(
        f"record_torch: expected gradients that stay until optimizer.step() after backward(); {what} in the backward "
        "pass. For the recorded run, leave out the hooks of register_post_accumulate_grad_hook, and call the step of "
        "one optimizer for all params after backward(), which updates each param as they do"
    )
