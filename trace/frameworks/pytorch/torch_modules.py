"""The parts of a PyTorch model by names that stay the same however it is wrapped: compiled, on ranks, checkpointed."""

from collections.abc import Iterator, Mapping
from typing import Any

from ....base.errors import DomainError

_WRAPPERS = {
    "OptimizedModule": "_orig_mod",
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
}
"""The classes of PyTorch that hold one module and compute what it does, and what they call it."""


class TorchModules:
    """The modules, params and buffers of a model, as if nothing were wrapped.

    ``layers`` are the modules that are no wrappers, by their paths; of a compiled module, whose code must not be
    looked into, the wrapper stands for all that is inside. ``trained`` are what the optimizer updates: the params, or
    by their names the master weights, of which the model's own params are roundings; these count as buffers then.

    Raises DomainError for master weights of no param, or of another shape.
    """

    def __init__(self, model: Any, masters: Mapping[str, Any] | None = None) -> None:
        self.layers = dict(_layers(model))
        self.params: dict[str, Any] = {_plain(model, name): param for name, param in model.named_parameters()}
        self.buffers: dict[str, Any] = {_plain(model, name): buffer for name, buffer in model.named_buffers()}
        named = {_plain(model, name): tensor for name, tensor in (masters or {}).items()}
        for name, tensor in named.items():
            if name not in self.params or self.params[name].shape != tensor.shape:
                expected = "names of the model's params, each with a tensor of its shape"
                raise DomainError(f"record_torch: argument 'master_weights': expected {expected}; got {name!r}")
        self.trained: dict[str, Any] = self.params | named
        self.buffers |= {f"{name}.rounded": self.params[name] for name in named}
        self.is_replicated = any(_is(module, "DistributedDataParallel") for module in model.modules())


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    compiled = tuple(f"{name}." if name else "" for name, m in model.named_modules() if _is(m, "OptimizedModule"))
    for name, module in model.named_modules():
        inside = any(name != prefix.rstrip(".") and name.startswith(prefix) for prefix in compiled)
        if not inside and (_wrapped(module) is None or _is(module, "OptimizedModule")):
            yield _plain(model, name), module


def _wrapped(module: Any) -> str | None:
    return next((_WRAPPERS[c.__name__] for c in type(module).__mro__ if c.__name__ in _WRAPPERS and _ours(c)), None)


def _is(module: Any, name: str) -> bool:
    return any(c.__name__ == name and _ours(c) for c in type(module).__mro__)


def _ours(cls: type) -> bool:
    """Whether a class is PyTorch's own."""
    return cls.__module__.partition(".")[0] == "torch"


def _plain(model: Any, name: str) -> str:
    """A path without what wrappers call the modules they hold."""
    parts, module = list[str](), model
    for part in name.split(".") if name else ():
        if _wrapped(module) != part:
            parts.append(part)
        module = getattr(module, part, None)
    return ".".join(parts)


def class_name(module: Any) -> str:
    """What the class of a module is called, also where ``fully_shard`` has put one of its own in front.

    >>> class Linear: ...
    >>> class FSDPLinear(dict, Linear): ...
    >>> class_name(FSDPLinear()), class_name(Linear())
    ('Linear', 'Linear')
    """
    names = [cls.__name__ for cls in type(module).__mro__]
    plain = names[0].removeprefix("FSDP")
    return plain if plain in names else names[0]
