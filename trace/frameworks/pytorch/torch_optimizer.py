"""A PyTorch optimizer as a trace holds it: the law it follows, its hyperparameters and its state."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, cast

import numpy as np

from ....base.arrays import Array, Arrays
from ....runtime.optim import SGD, Adam, AdamW, Rule
from ....tape.errors import DomainError
from ..laws import corrections, joined, name_of
from ..shared import leaves
from .arrays import PlainArrays, reading, tensor_of

_BUFFERS = {"momentum": "momentum_buffer", "m": "exp_avg", "v": "exp_avg_sq"}
"""What a law calls a buffer, and what PyTorch calls it."""


class TorchOptimizer:
    """Reads the optimizer of a model whose params have these names.

    ``rule`` is the name of the law, or one that no law has; ``updated`` are the params that the optimizer has, and
    ``groups`` their places, group by group, where there are several; ``start`` is how many updates there were before,
    ``counts`` how many of the params for which it was another number; ``arrays`` reads tensors.

    Raises DomainError for a tensor that is updated and is no parameter of the model.
    """

    def __init__(self, torch: Any, optimizer: Any, params: Mapping[str, Any]) -> None:
        self._torch, self._optimizer, self._params = torch, optimizer, params
        self.arrays = PlainArrays(torch)
        self._like = dict[tuple[str, str], tuple[Any, Any]]()
        self._names = _grouped(optimizer, params)
        small = any(param.dtype not in (torch.float32, torch.float64) for param in params.values())
        self._law = None if small else _law_of(torch, optimizer)
        self._buffers = dict(self._laid_out() if self._law else self._own_state())
        self.rule = name_of(self._law.rule if self._law else _own_name(optimizer), len(self._names))
        place = {name: i for i, name in enumerate(params)}
        several = self._names if len(self._names) > 1 else []
        self.groups = tuple(tuple(place[name] for name in names) for names in several)
        self.updated = {name for names in self._names for name in names}
        self._begin({name: self._count(name) for names in self._names for name in names})

    def _begin(self, counts: Mapping[str, int]) -> None:
        """Count from so many updates of each param on."""
        updated = {i: counts[name] for i, name in enumerate(self._params) if name in self.updated}
        self.start = max(updated.values(), default=0)
        self.counts = {i: count for i, count in updated.items() if count != self.start}

    def hyper(self) -> dict[str, float]:
        """The hyperparameters of all groups as they are now.

        Raises DomainError if the groups are not those of the beginning.
        """
        if _grouped(self._optimizer, self._params) != self._names:
            raise DomainError("record_torch: the optimizer has other parameter groups than before; begin a new trace")
        read = _law_hyper if self._law else _numbers
        return joined([read(group) for group in self._optimizer.param_groups])

    def state(self, steps: int, *, copy: bool = True) -> dict[str, Array]:
        """The state after so many steps of the trace, by the names of the law: zeros where there is nothing yet.

        Of an optimizer that follows no law it is the count of its steps, and by its own names every tensor that it
        keeps of a param.
        """
        step = self.start + steps
        found: dict[str, Array] = {"step": np.array(step)}
        if self._law is not None and issubclass(self._law, Adam) and len(self._names) == 1:
            found["corrections"] = np.array(corrections(self.hyper(), step))
        return found | {key: self._buffer(key, *place, copy=copy) for key, place in self._buffers.items()}

    def restore(self, values: Arrays, counts: Mapping[str, int]) -> bool:
        """Set what the optimizer keeps to recorded values, of each param after so many updates.

        False, with nothing changed, where it keeps something that the trace does not hold.
        """
        recorded = {owner: values[key] for key, owner in self._buffers.items() if key in values}
        if self._law is not None:
            recorded |= {("step", name): np.array(float(count)) for name, count in counts.items()}
        probed, updated = self._probed(), [name for names in self._names for name in names if counts[name]]
        kept = {
            name: {key: value for key, value in probed.get(name, {}).items() if value is not None} for name in updated
        }
        if not all(name in probed and (key, name) in recorded for name in updated for key in kept[name]):
            return False
        for name in updated:
            found = {key: self._like_probed(name, like, recorded[key, name]) for key, like in kept[name].items()}
            self._optimizer.state[self._params[name]] = found
        self._begin(counts)
        return True

    def _like_probed(self, name: str, like: Any, values: Array) -> Any:
        """A recorded tensor of a param's, where one without memory tells its dtype and its device."""
        made = tensor_of(self._torch, values, getattr(self._torch, values.dtype.name))
        return made.to(like.dtype).to(self._params[name].device if like.is_meta else like.device)

    def _laid_out(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Every buffer as the law names it, with PyTorch's name and the param; buffer by buffer."""
        groups: list[dict[str, Any]] = self._optimizer.param_groups
        laws = [self._law.from_hyperparameters(_law_hyper(group)).law for group in groups if self._law]
        for buffer, theirs in _BUFFERS.items():
            for law, names in zip(laws, self._names, strict=False):
                if buffer in law.buffers:
                    yield from ((f"{buffer}/{name}", (theirs, name)) for name in names)

    def _own_state(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """The same of an optimizer that follows no law: what a step of its copy, on params without memory, keeps."""
        for name, kept in self._probed().items():
            for key, value in kept.items():
                if self._is_tensor(value):
                    self._like[key, name] = value.shape, value.dtype
                    yield f"{key}/{name}", (key, name)

    def _probed(self) -> Mapping[str, Mapping[str, Any]]:
        """What a copy keeps of each param after a step; nothing of one that makes none so, as with a closure."""
        torch, names = self._torch, [name for names in self._names for name in names]
        blank = {name: torch.nn.Parameter(torch.empty_like(self._params[name], device="meta")) for name in names}
        try:
            with reading():
                memory = {id(self._params[name]): blank[name] for name in names}
                copied = deepcopy(self._optimizer, {**memory, id(self._optimizer.state): defaultdict(dict)})
                for param in blank.values():
                    param.grad = torch.empty_like(param)
                copied.step()
        except Exception:
            return {}
        return {name: copied.state.get(param, {}) for name, param in blank.items()}

    def _is_tensor(self, value: object) -> bool:
        return isinstance(value, self._torch.Tensor)

    def _buffer(self, key: str, theirs: str, name: str, *, copy: bool) -> Array:
        kept = self._kept(name).get(theirs)
        return self._zeros(theirs, name) if kept is None else self.arrays.held(key, kept, copy=copy)

    def _zeros(self, theirs: str, name: str) -> Array:
        """What stands for a buffer that is not there yet; not held, as it would be as long as that is so."""
        param = self._params[name]
        shape, dtype = self._like.get((theirs, name), (param.shape, param.dtype))
        blank = self._torch.zeros_like(param) if shape == param.shape else self._torch.zeros(shape)
        return self.arrays(blank.to(dtype), copy=False)

    def _count(self, name: str) -> int:
        kept = self._kept(name)
        if self._law is SGD:  # it keeps no count, but a buffer says that there was a step
            return int(kept.get("momentum_buffer") is not None)
        return int(kept.get("step", 0))

    def _kept(self, name: str) -> Mapping[str, Any]:
        kept: Mapping[str, Any] = self._optimizer.state.get(self._params[name], {})
        return kept


def _grouped(optimizer: Any, params: Mapping[str, Any]) -> list[list[str]]:
    """The names of the params of each group."""
    names = {id(param): name for name, param in params.items()}
    for group in optimizer.param_groups:
        for param in group["params"]:
            if id(param) not in names:
                raise DomainError(
                    f"record_torch: argument 'optimizer': it updates a tensor of shape {tuple(param.shape)} that is no "
                    "parameter of the model; give the module that holds all that it updates"
                )
    return [[names[id(param)] for param in group["params"]] for group in optimizer.param_groups]


def _law_of(torch: Any, optimizer: Any) -> type[Rule] | None:
    """The law that an optimizer follows; None if it follows none of ours, or steps outside its bounds."""
    groups = optimizer.param_groups
    adams = (torch.optim.Adam, torch.optim.AdamW)
    if type(optimizer) not in (torch.optim.SGD, *adams) or any(g["maximize"] or g.get("amsgrad") for g in groups):
        return None
    decoupled = {type(optimizer) is adams[1] or bool(g.get("decoupled_weight_decay")) for g in groups}
    law: type[Rule] = SGD if type(optimizer) not in adams else AdamW if True in decoupled else Adam
    try:
        for group in groups:
            law.from_hyperparameters(_law_hyper(group))
    except DomainError:
        return None
    return law if len(decoupled) == 1 else None


def _law_hyper(group: Mapping[str, Any]) -> dict[str, float]:
    if "betas" in group:
        beta1, beta2 = group["betas"]
        given = {"lr": group["lr"], "beta1": beta1, "beta2": beta2, "eps": group["eps"]}
    else:
        given = {name: group[name] for name in ("lr", "momentum", "dampening", "nesterov")}
    return {name: float(value) for name, value in {**given, "weight_decay": group["weight_decay"]}.items()}


def _own_name(optimizer: Any) -> str:
    """The name of an optimizer that follows no law, such as ``torch_rmsprop@1``.

    >>> class RMSprop: ...
    >>> _own_name(RMSprop())
    'torch_rmsprop@1'
    """
    return f"torch_{re.sub('[^a-z0-9]', '', type(optimizer).__name__.lower())[:48]}@1"


def _numbers(group: Mapping[str, Any]) -> dict[str, float]:
    """Every number among the options of a group, those in tuples by their places."""
    options = {name: value for name, value in group.items() if name != "params"}
    return {name: float(cast(Any, value)) for name, value in leaves(options) if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (hasattr(value, "numel") and value.numel() == 1)
