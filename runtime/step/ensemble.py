"""Several models that train as one step: an ensemble, whose members have the bits that each has alone."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...base.arrays import Array, Arrays
from ...tape import AnyVar, Context, DomainError
from ...tape.nn.scope import Scope
from .loss_call import LossFn, call_loss


def ensemble(loss_fn: LossFn, seeds: Sequence[int]) -> LossFn:
    """The loss function of one model per seed: the sum of their losses on the same batch.

    Parameters and state of member k have names that begin with ``k.``: make them with `joined`, separate them with
    `parted`. Each member draws what it draws in a run of its seed, and gets the gradient that it gets alone. Its loss
    and metrics are metrics ``loss k``, ``accuracy k``. A rule for names such as ``"0.*"`` gives it a rate of its own.
    Operations on all parameters at once, such as clipping by the global norm, see those of all members. Raises
    DomainError without seeds.

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Trainer
    >>> loss_fn = lambda p, batch: ((p["w"] - batch) ** 2.0).sum()
    >>> params = joined([{"w": np.array([1.0])}, {"w": np.array([3.0])}])
    >>> trainer = Trainer(ensemble(loss_fn, seeds=[0, 1]), params, SGD(0.25))
    >>> result = trainer.fit([np.array([2.0])], steps=1)
    >>> [parted(trainer.params, k)["w"].tolist() for k in range(2)]
    [[1.5], [2.5]]
    """
    if not seeds:
        raise DomainError("ensemble: argument 'seeds': expected a seed for each member, got none")

    def members(p: Mapping[str, AnyVar], batch: Any, ctx: Context) -> Any:
        total: Any = None
        shown: dict[str, AnyVar] = {}
        for k, seed in enumerate(seeds):
            own = partial(ctx.member, f"{k}.", seed)
            loss, _, metrics = call_loss(loss_fn, Scope(p, f"{k}."), batch, own)
            total = loss if total is None else total + loss
            shown |= {f"{name} {k}": value for name, value in {"loss": loss, **metrics}.items()}
        return (total, ctx.state, shown) if len(ctx.state) else (total, shown)

    return members


def joined(members: Sequence[Arrays]) -> dict[str, Array]:
    """Parameters, or states, of several models in one dict: ``{"0.weight": …, "1.weight": …}``.

    >>> import numpy as np
    >>> list(joined([{"w": np.zeros(1)}, {"w": np.ones(1)}]))
    ['0.w', '1.w']
    """
    return {f"{k}.{name}": value for k, arrays in enumerate(members) for name, value in arrays.items()}


def parted(arrays: Arrays, member: int) -> dict[str, Array]:
    """One member of what `joined` made, under its own names.

    Raises DomainError for a member that is not there.

    >>> import numpy as np
    >>> parted(joined([{"w": np.zeros(1)}, {"w": np.ones(1)}]), 1)
    {'w': array([1.])}
    """
    prefix = f"{member}."
    found = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
    if not found:
        raise DomainError(
            f"parted: argument 'member': expected one with names {prefix}*, got {', '.join(arrays) or 'none'}"
        )
    return found
