"""The laws of SGD, Adam and AdamW as traces of other frameworks hold them: one for all params, or group by group."""

from collections.abc import Mapping, Sequence

from ...runtime.optim import SGD, Adam, AdamW, Rule

FUSED: dict[str, type[Rule]] = {cls.rule: cls for cls in (SGD, Adam, AdamW)}
"""The rules that those of other frameworks are held against."""

_GROUPS = "_groups@1"
"""What the name of a law ends in where groups of params have hyperparameters of their own."""


def name_of(rule: str, groups: int) -> str:
    """What a trace calls a rule of so many groups.

    >>> name_of("adamw@1", 1), name_of("adamw@1", 2)
    ('adamw@1', 'adamw_groups@1')
    """
    return rule if groups == 1 else rule.partition("@")[0] + _GROUPS


def law_of(name: str) -> type[Rule] | None:
    """The law that a trace means; None for a rule that is none of ours."""
    return FUSED.get(f"{name.removesuffix(_GROUPS)}@1" if name.endswith(_GROUPS) else name)


def joined(groups: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The hyperparameters of all groups in one mapping.

    >>> joined([{"lr": 0.1}]), joined([{"lr": 0.1}, {"lr": 0.2}])
    ({'lr': 0.1}, {'lr/0': 0.1, 'lr/1': 0.2})
    """
    if len(groups) == 1:
        return dict(groups[0])
    return {f"{name}/{i}": value for i, group in enumerate(groups) for name, value in group.items()}


def parted(hyper: Mapping[str, float], names: Sequence[str], groups: int) -> list[dict[str, float]]:
    """The hyperparameters with these names, group by group, out of what `joined` made.

    >>> parted({"lr/0": 0.1, "lr/1": 0.2}, ["lr"], 2)
    [{'lr': 0.1}, {'lr': 0.2}]
    """
    if groups == 1:
        return [{name: hyper[name] for name in names}]
    return [{name: hyper[f"{name}/{i}"] for name in names} for i in range(groups)]


def corrections(hyper: Mapping[str, float], step: int) -> tuple[float, float]:
    """The bias corrections of Adam after so many steps."""
    return 1.0 - hyper["beta1"] ** step, 1.0 - hyper["beta2"] ** step
