"""The update: a replay updates parameters and state as the rule does, from the consumed gradients."""

from .....base.arrays import Arrays
from ..bits import copied, difference, require_same
from ..report import CheckError
from ..subject import Subject


def check_update(subject: Subject) -> str:
    """Each replay counts one step and gives the rule's own results on copies, to the bit; and something moves."""
    step, groups = subject.step, subject.step.groups
    expected_to_move = False
    for k in range(subject.replays):
        params, state = subject.state_copies()
        step.replay(1)
        consumed = copied(step.consumed)
        _require_counted(int(state["step"]), int(step.state["step"]), k)
        expected_to_move |= _moves(params, consumed, min(groups.rates(int(step.state["step"])).values()))
        groups.step(params, consumed, state)
        require_same(params, step.params, f"replay {k}: parameters")
        require_same(state, step.state, f"replay {k}: state")
    if expected_to_move:
        _require_moved(subject)
    return f"{subject.replays} updates of {len(step.params)} parameters and {len(step.state)} state arrays"


def _moves(params: Arrays, gradients: Arrays, rate: float) -> bool:
    """Whether a plain step along the gradients would change a parameter: tiny ones get lost in large numbers."""
    return any(
        bool((params[name] - params[name].dtype.type(rate) * g != params[name]).any()) for name, g in gradients.items()
    )


def _require_counted(before: int, after: int, k: int) -> None:
    if after != before + 1:
        raise CheckError(f"replay {k}: step counter: expected {before + 1}, got {after}")


def _require_moved(subject: Subject) -> None:
    """Gradients and rate were large enough, so training must have changed something."""
    before = subject.before["params"]
    if all(difference(array, subject.step.params[name]) is None for name, array in before.items()):
        raise CheckError(f"{subject.replays} replays with gradients that are not zero changed no parameter")
