"""What is said of a run of another framework that parts on another machine or library: drift, or change."""

from ..v2.verdict import Verdict
from .calls.drift import NEAR, elsewhere, first_change
from .result import Cause, Comparison
from .settings import Differing, framework_of, shown
from .steps import Pair


def tell_drift(pair: Pair, environment: Differing, result: Comparison) -> None:
    """Say where runs that part have other machines or libraries whether the code is the same."""
    moved = elsewhere(environment, framework_of(pair.a))
    if not moved or not framework_of(pair.a) or result.step is None:
        return
    where = ", ".join(f"{key}: {shown(x)} -> {shown(y)}" for key in moved for x, y in [environment[key]])
    if result.cause is Cause.ENVIRONMENT:
        _judge(pair, result, where, result.step)
    elif result.call is None and result.cause in (Cause.GRADIENT, Cause.UPDATE):
        cure = "record_torch(…, level='op')"
        result.notes.append(f"drift or change: no calls of ops are recorded at step {result.step}, {cure}; {where}")


def _judge(pair: Pair, result: Comparison, where: str, step: int) -> None:
    """Call it drift if no later step shows other code, and losses are near each other."""
    later = range(step + 1, pair.steps.stop)
    changed = next(((k, text) for k in later if (text := _changed(pair, k))), None)
    if changed is not None:
        result.cause = Cause.MODEL
        result.sentence = f"step {changed[0]} is not the same code: {changed[1]}; before it, drift: {result.sentence}"
        return
    result.notes.append(f"drift: every recorded op is called with the same arguments as before; {where}")
    sized = [tensor for tensor in result.tensors if tensor.what == "grad" and tensor.eps is not None]
    if sized:
        most = max(sized, key=lambda tensor: tensor.eps or 0.0)
        result.notes.append(f"drift: by up to {most.eps:.2g} eps of the largest element, in the {most.title}")
    if not all(_near(*(view.loss for view in pair.views(k))) for k in pair.steps):
        result.notes.append(f"more than drift: losses are more than {NEAR} apart, relatively")
    elif pair.policy.drift:
        result.verdict = Verdict.DRIFT
        result.sentence += "; what follows is compared by its losses alone"


def _changed(pair: Pair, k: int) -> str:
    """What shows that other code ran in a step, whatever the values are; empty if nothing does."""
    found, calls = pair.step(k), pair.calls(k)
    told = [f"another {key}: {shown(x)} -> {shown(y)}" for key, (x, y) in found.told.items()]
    call = None if calls is None else first_change(*calls)
    return "; ".join([*told, *(["another batch"] if found.data else []), *([] if call is None else [call.short])])


def _near(a: float, b: float) -> bool:
    return abs(float(a) - float(b)) <= NEAR * max(abs(float(a)), abs(float(b)))
