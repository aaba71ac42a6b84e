"""Gradients that are used up while the backward pass still runs: recorded where it is said, refused where it is not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from ....base.errors import DomainError
from .arrays import reading


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
        "pass. Where each optimizer steps in a hook of register_post_accumulate_grad_hook, give record_torch all of "
        "them, in a list"
    )


class BackwardSteps:
    """Optimizers that step in the backward pass, each once: what they take, and the end of the pass.

    ``ended`` is called behind the last of them.
    """

    def __init__(
        self, torch: Any, params: Mapping[str, Any], optimizers: Sequence[Any], ended: Callable[[], None]
    ) -> None:
        self._torch, self._params, self._ended = torch, params, ended
        self._names = {id(param): name for name, param in params.items()}
        self._taken = dict[str, Any]()
        self._hooks = [optimizer.register_step_pre_hook(self._before) for optimizer in optimizers]

    def taken(self) -> dict[str, Any]:
        """The gradients of this pass, as they were taken, in the order of the params; the next begins empty."""
        taken, self._taken = self._taken, {}
        return {name: taken[name] for name in self._params if name in taken}

    def stop(self) -> None:
        """Look no more."""
        for hook in self._hooks:
            hook.remove()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._torch._C._current_graph_task_id() == -1:
            raise DomainError(
                "record_torch: expected optimizers that step in the backward pass, as a list of them says; a step was "
                "called outside of it. To step after backward(), use one optimizer"
            )
        if not self._taken:
            self._torch.autograd.Variable._execution_engine.queue_callback(self._ended)
        for param in (param for group in optimizer.param_groups for param in group["params"]):
            if param.grad is not None:
                self._take(self._names[id(param)], param.grad)

    def _take(self, name: str, grad: Any) -> None:
        if name in self._taken:
            raise DomainError(
                f"record_torch: expected one step of each param in a backward pass, got a second one of {name!r}; let "
                "the hook of each param call the step of its own optimizer"
            )
        with reading():
            self._taken[name] = grad.detach().clone()


def as_one(optimizers: Sequence[Any]) -> Any:
    """Optimizers of one class as one that has their groups and states, to be read.

    Raises DomainError if there are none, or of several classes.
    """
    kinds = list(dict.fromkeys(type(optimizer).__name__ for optimizer in optimizers))
    if len(kinds) != 1:
        expected = "expected one optimizer, or a list of optimizers of one class"
        raise DomainError(
            f"record_torch: argument 'optimizer': {expected}; got {' and '.join(kinds) or 'an empty list'}"
        )
    one = copy(optimizers[0])
    one.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    one.state = _States(optimizers)
    return one


class _States(Mapping[Any, Any]):
    """What several optimizers keep of each param."""

    def __init__(self, optimizers: Sequence[Any]) -> None:
        self._owners = {param: one for one in optimizers for group in one.param_groups for param in group["params"]}

    def __getitem__(self, param: Any) -> Any:
        return self._owners[param].state[param]

    def get(self, param: Any, default: Any = None) -> Any:
        """What is kept of a param, where something is."""
        return self._owners[param].state.get(param, default)

    def update(self, kept: Mapping[Any, Any]) -> None:
        """Set what is kept of some params."""
        for param, value in kept.items():
            self._owners[param].state[param] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)
