"""The callbacks of a trainer: what each is told, and the state that they have between them."""

from collections.abc import Callable, Sequence
from inspect import isclass, isroutine, signature
from json import dumps
from typing import Any, TypeVar, cast

from ...tape import DomainError

MOMENTS = ("on_begin", "on_step", "on_validation", "on_epoch", "on_end")
"""What a trainer calls, if a callback has it."""

Call = Callable[..., Any]

M = TypeVar("M", bound=Call)

_WHERE = "Trainer: argument 'callbacks'"

_NOTHING = set[Call]()


def nothing(method: M) -> M:
    """Mark a moment's method that does nothing: it is not called, so steps need not stop for it."""
    _NOTHING.add(method)
    return method


class CallbackList:
    """The callbacks of one trainer, in their order.

    Raises DomainError for what is no sequence, has none of the moments, or is a function of other arguments.
    """

    def __init__(self, callbacks: object) -> None:
        if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
            raise DomainError(f"{_WHERE}: expected a list of callbacks, got {callbacks!r}; write callbacks=[…]")
        self._callbacks: tuple[Any, ...] = tuple(cast(Any, callbacks))
        for callback in self._callbacks:
            _require_callback(callback)
        self.on_begin, self.on_step, self.on_validation, self.on_epoch, self.on_end = map(self._calls, MOMENTS)

    def _calls(self, moment: str) -> list[Call]:
        found = list[Call]()
        for callback in self._callbacks:
            if isroutine(callback):
                found += [callback] if moment == "on_epoch" else []
            elif callable(method := getattr(callback, moment, None)):
                found += [] if getattr(method, "__func__", None) in _NOTHING else [method]
        return found

    def state(self) -> list[tuple[str, Any]]:
        """Class and state of every callback that has a ``state_dict``, in their order.

        Raises DomainError for a state that no checkpoint can hold.
        """
        found = [(type(c).__name__, c.state_dict()) for c in self._callbacks if _has_state(c)]
        for name, state in found:
            try:
                dumps(state)
            except TypeError as error:
                raise DomainError(f"save: callback {name}: state_dict: expected what JSON holds, got {error}") from None
        return found

    def load_state(self, saved: Sequence[tuple[str, Any]]) -> None:
        """Hand every saved state to the callback of its class, the first to the first; one without stays as it is."""
        left: dict[str, list[Any]] = {}
        for name, state in saved:
            left.setdefault(name, []).append(state)
        for callback in self._callbacks:
            states = left.get(type(callback).__name__)
            if states and _has_state(callback):
                callback.load_state_dict(states.pop(0))


def _has_state(callback: Any) -> bool:
    return all(callable(getattr(callback, name, None)) for name in ("state_dict", "load_state_dict"))


def _require_callback(callback: Any) -> None:
    if isclass(callback):
        raise DomainError(f"{_WHERE}: expected an instance, got the class; write {callback.__name__}(…)")
    if isroutine(callback):
        _require_arguments(callback)
    elif not any(callable(getattr(callback, moment, None)) for moment in MOMENTS):
        raise DomainError(
            f"{_WHERE}: expected an object with one of {', '.join(MOMENTS)}, or a function of (trainer, epoch, loss), "
            f"got {callback!r}"
        )


def _require_arguments(function: Call) -> None:
    """A function is called as on_epoch: hold its arguments against that now, not after an epoch."""
    try:
        signature(function).bind(None, 0, 0.0)
    except TypeError:
        name = getattr(function, "__name__", repr(function))
        raise DomainError(
            f"{_WHERE}: expected a function of (trainer, epoch, loss), which is called after every epoch, got "
            f"{name}{signature(function)}; for other moments derive from Callback"
        ) from None
    except ValueError:  # a builtin without a signature
        return
