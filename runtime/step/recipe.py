"""How the gradients of a step become an update: accumulation, clipping, the optimizer's rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, get_args

from ...base.arrays import Arrays
from ...base.runs.completed_step import Order
from ...base.runs.run import OnNonfinite
from ...tape.errors import DomainError
from ..optim.averages import require_decay
from ..optim.groups import Groups, Optimizer, frozen_names, grouped, require_frozen, require_optimizer
from ..optim.patterns import Pattern, Settled, settled_frozen, settled_rules


@dataclass(frozen=True)
class Recipe:
    """A rule, or rules by patterns of names or by predicates, and what is done to gradients before it.

    With ``accumulate`` of n, a step takes n micro-batches; their losses and gradients are added - by ``order`` one
    after the other ("chain") or level by level in pairs ("tree") - and divided by n once, which is not to the bit what
    one large batch would give. Then gradients are clipped by value, then by global norm of all parameters, where asked.
    Parameters that a pattern of ``frozen`` matches have no gradient and are not updated. ``ema`` is the decay of
    running averages of the others, None for none. A loss or gradient that is not finite stops the step before anything
    is changed, or, with ``on_nonfinite="record"``, is a value like others.
    """

    rule: Optimizer
    accumulate: int = 1
    clip_norm: float | None = None
    clip_value: float | None = None
    _: KW_ONLY
    frozen: Sequence[Pattern | Settled] = ()
    ema: float | None = None
    on_nonfinite: OnNonfinite = "stop"
    order: Order = "chain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", require_optimizer(self.rule))
        object.__setattr__(self, "frozen", require_frozen(self.frozen))
        object.__setattr__(self, "ema", require_decay(self.ema))
        if self.accumulate != int(self.accumulate) or self.accumulate < 1:
            raise DomainError(f"accumulate: expected a whole number of at least 1, got {self.accumulate!r}")
        if self.on_nonfinite not in get_args(OnNonfinite):
            raise DomainError(f"on_nonfinite: expected 'stop' or 'record', got {self.on_nonfinite!r}")
        if self.order not in get_args(Order):
            raise DomainError(f"order: expected 'chain' or 'tree', got {self.order!r}")
        for name in ("clip_norm", "clip_value"):
            bound = getattr(self, name)
            if bound is not None and not bound >= 0:
                raise DomainError(f"{name}: expected a number of at least 0 or None, got {bound!r}")

    def settled(self, params: Arrays) -> Self:
        """The recipe of a run that starts from these values: for each predicate stands what it chooses among them."""
        frozen, rule = settled_frozen(self.frozen, params), self.rule
        if isinstance(rule, Mapping):
            rule = settled_rules(rule, frozen, params)
        return replace(self, rule=rule, frozen=frozen)

    def groups(self, names: Iterable[str]) -> Groups:
        """Which rule updates which of the named parameters. Raises DomainError as `grouped` does."""
        return grouped(self.rule, self.frozen, names, self.ema)

    def frozen_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the named parameters that are frozen."""
        return frozen_names(self.frozen, names) if self.frozen else ()

    @property
    def law(self) -> dict[str, Any]:
        """All of it as numbers and texts, by which checkpoints know the run."""
        later = {  # which checkpoints of earlier versions have not
            "frozen": [p if isinstance(p, str) else repr(p) for p in self.frozen] or None,
            "on_nonfinite": "record" if self.on_nonfinite == "record" else None,
            "order": "tree" if self.order == "tree" else None,
        }
        return {**vars(self), "rule": repr(self.rule), **later}

    def micro_batches(self, batch: Any) -> Sequence[Any]:
        """The micro-batches of a step's batch. Raises DomainError if there are not as many as announced."""
        if self.accumulate == 1:
            return (batch,)
        if not isinstance(batch, tuple | list) or len(batch) != self.accumulate:  # pyright: ignore[reportUnknownArgumentType]
            given = f"{len(batch)} of them" if isinstance(batch, tuple | list) else type(batch).__name__  # pyright: ignore
            raise DomainError(f"batch: expected a tuple of {self.accumulate} micro-batches, got {given}")
        return batch  # pyright: ignore[reportUnknownVariableType]
