"""What is worth a look in a run: faults that change no verdict and raise no error, found in what was measured.

Each finding is a sentence that holds of all that was looked at; what is not certain is not said.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .arrays import Array, Arrays

LOOKS = 4
"""Fewer steps looked at give no finding: a gradient may rightly be zero for a step or two."""

DEAD = 0.5
"""A smaller share of dead units is usual behind a ReLU."""

STEPS = 20
"""Fewer steps do not say how often gradients are clipped."""

NAMED = 3
"""Parameters that a sentence names; more are counted."""

Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something worth a look.

    `kind` is its name, `names` the parameters it is about, `steps` the first and the last that it was seen at.
    """

    kind: str
    text: str
    advice: str
    names: tuple[str, ...] = ()
    steps: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return f"{self.text}; {self.advice}"


def is_looked_at(count: int) -> bool:
    """Whether gradients are looked at after so many steps: the first 8, then at powers of two less one.

    >>> [count for count in range(70) if is_looked_at(count)]
    [0, 1, 2, 3, 4, 5, 6, 7, 15, 31, 63]
    """
    return looked_at_from(count) == count


def looked_at_from(count: int) -> int:
    """After how many steps, at least ``count``, gradients are looked at next.

    >>> [looked_at_from(count) for count in (3, 7, 8, 15, 16)]
    [3, 7, 15, 15, 31]
    """
    return count if count < 8 else (1 << count.bit_length()) - 1


class Looks:
    """What is seen of the gradients, and updates, of trained parameters at some steps.

    Args:
        params: the parameters before the first step; those that are not trained left out.
    """

    def __init__(self, params: Arrays) -> None:
        self._shapes = {name: array.shape for name, array in params.items()}
        self._twins = {name: twins for name, array in params.items() if (twins := equal_rows(array))}
        self._alive: dict[str, Rows] = {}
        self._ratios: dict[str, list[float]] = {}
        self._steps = list[int]()

    def add(self, step: int, gradients: Arrays) -> None:
        """See the gradients of a step, as the optimizer consumed them."""
        self._steps.append(step)
        for name, gradient in gradients.items():
            if name not in self._shapes:
                continue
            alive: Rows = np.asarray(_rows(gradient).any(axis=1))
            self._alive[name] = np.logical_or(self._alive.get(name, False), alive)
            if name in self._twins:
                self._twins[name] = [p for i, j in self._twins[name] for p in _still(gradient, i, j)]

    @np.errstate(all="ignore")  # of a run that diverges
    def add_update(self, before: Arrays, after: Arrays) -> None:
        """See what an update made of matrices, relative to their norm."""
        for name, old in before.items():
            norm = _norm(old)
            if 0 < norm < np.inf:
                change = _norm(after[name] - old)
                self._ratios.setdefault(name, []).append(change / norm)

    def findings(self) -> list[Remark]:
        """What is worth a look; nothing where too few steps were seen."""
        if len(self._steps) < LOOKS:
            return []
        found = [self._untouched(), *self._dead(), *self._equal(), self._fast(), self._slow()]
        return [finding for finding in found if finding is not None]

    # ------------------------------------------------------------------ one kind each

    def _untouched(self) -> Remark | None:
        names = [name for name in self._shapes if name not in self._reached()]
        text = f"no gradient reached {_named(names)}: absent or all zero at all {len(self._steps)} steps examined"
        advice = "make sure that the loss depends on it, or freeze it"
        return self._finding("no gradient", text, advice, names) if names else None

    def _dead(self) -> list[Remark]:
        """Rows of a weight whose biases get no gradient either: an embedding, whose rows may be unused, has none."""
        found = list[Remark]()
        for weight in self._reached():
            bias = f"{weight.removesuffix('weight')}bias"
            if not weight.endswith("weight") or self._shapes.get(bias) != self._shapes[weight][:1]:
                continue
            dead = ~(self._alive[weight] | self._alive.get(bias, True))
            if dead.mean() >= DEAD:
                text = f"{dead.sum()} of {dead.size} units of {weight} got no gradient at all {len(self._steps)} steps"
                advice = "a unit that a ReLU holds at zero does not learn: start from other weights, or lower the rate"
                found.append(self._finding("dead units", f"{text} examined", advice, [weight, bias]))
        return found

    def _equal(self) -> list[Remark]:
        found = list[Remark]()
        for name in self._reached():
            rows = {row for i, j in self._twins.get(name, []) if self._alive[name][i] for row in (i, j)}
            if rows:
                text = f"{len(rows)} of {self._shapes[name][0]} rows of {name} started equal and got equal gradients"
                advice = "equal units stay equal: start from random weights"
                found.append(self._finding("equal by symmetry", text, advice, [name]))
        return found

    def _fast(self) -> Remark | None:
        """Not by the first updates, before which weights may be small."""
        names = [name for name, seen in self._seen_updates() if min(seen[2:]) > 0.1]
        text = f"every update examined except the first two changed {_named(names)} by more than 10 % of its norm"
        return self._finding("large updates", text, "try a lower learning rate", names) if names else None

    def _slow(self) -> Remark | None:
        """Not while a rate still rises, nor where no gradient is."""
        seen = [(name, ratios) for name, ratios in self._seen_updates() if name in self._reached()]
        names = [name for name, ratios in seen if max(ratios) < 1e-7 and ratios[-1] <= ratios[1]]
        text = f"no update examined changed {_named(names)} by more than 1e-7 of its norm"
        return (
            self._finding("small updates", text, "check the learning rate and the scale of the loss", names)
            if names
            else None
        )

    # ------------------------------------------------------------------ what was seen

    def _reached(self) -> list[str]:
        return [name for name, alive in self._alive.items() if alive.any()]

    def _seen_updates(self) -> list[tuple[str, list[float]]]:
        return [(name, ratios) for name, ratios in self._ratios.items() if len(ratios) >= LOOKS]

    def _finding(self, kind: str, text: str, advice: str, names: Sequence[str]) -> Remark:
        return Remark(kind, text, advice, tuple(names), (self._steps[0], self._steps[-1]))


def equal_rows(array: Array) -> list[tuple[int, int]]:
    """Pairs of neighbours in groups of equal rows of a matrix; none of a vector or of rows of one element.

    >>> equal_rows(np.array([[1, 2], [3, 4], [1, 2]]))
    [(0, 2)]
    """
    if array.ndim < 2 or _rows(array).shape[1] < 2:
        return []
    last, pairs = dict[bytes, int](), list[tuple[int, int]]()
    for i, row in enumerate(_rows(array)):
        key = row.tobytes()
        if key in last:
            pairs.append((last[key], i))
        last[key] = i
    return pairs


def clipping(scales: npt.NDArray[np.floating], first: int = 0) -> list[Remark]:
    """Whether the gradients of most steps, and of most of the later half, were cut by what multiplied them."""
    cut, half = scales < 1, scales[len(scales) // 2 :] < 1
    if len(scales) < STEPS or cut.mean() <= 0.5 or half.mean() <= 0.5:
        return []
    text = f"gradients were clipped at {cut.sum()} of {len(scales)} steps"
    advice = "then the bound sets the step length: raise clip_norm or lower the learning rate"
    return [Remark("clipped", text, advice, steps=_ends(np.flatnonzero(cut), first))]


@np.errstate(all="ignore")  # of losses that are not finite
def short_batches(
    losses: npt.NDArray[np.floating], epochs: npt.NDArray[np.integer], rows: npt.NDArray[np.integer], first: int = 0
) -> list[Remark]:
    """Whether the loss falls or rises at the short last batch of every epoch, as that of a sum over rows does.

    Of batches of fewer than 4 rows nothing is said: their losses differ by chance.
    """
    ends = np.append(np.flatnonzero(np.diff(epochs)), len(losses) - 1) if len(losses) else np.zeros(0, int)
    full = int(rows.max(initial=0))
    short = [int(i) for i in ends if 4 <= rows[i] <= 0.75 * full and i >= 4 and (rows[i - 4 : i] == full).all()]
    if len(short) < LOOKS or len(short) < len(ends) - 1:
        return []
    usual = np.array([losses[i - 4 : i].mean() for i in short])
    if not (np.isfinite(usual).all() and (usual > 0).all()):
        return []
    ratios, shares = losses[short] / usual, rows[short] / full
    if (np.abs(np.log(np.maximum(ratios, 1e-9) / shares)) < np.log(1.25)).all():
        word, advice = "fell", "a sum over rows does that: take the mean, or pass drop_last=True"
    elif (ratios > 2).all():
        word, advice = "rose", "make sure that the model copes with so few rows, or pass drop_last=True"
    else:
        return []
    text = f"the loss {word} to {np.median(ratios):.2g} times its size at the short last batch of every epoch"
    return [Remark("short batches", text, advice, steps=_ends(short, first))]


def worth_a_look(found: Collection[Remark], most: int = 4) -> dict[str, str]:
    """Findings as a fact to be printed; no entry if there are none."""
    lines = [str(finding) for finding in list(found)[:most]]
    if len(found) > most:
        lines.append(f"{len(found) - most} more")
    return {"worth a look": "\n".join(lines)} if lines else {}


def _norm(array: Array) -> float:
    """Without BLAS, whose threads would take turns with those of the run."""
    return float(np.sqrt(np.square(array, dtype=np.float64).sum()))


def _rows(array: Array) -> Array:
    return array.reshape(len(array), -1) if array.ndim and array.size else array.reshape(array.size, 1)


def _still(gradient: Array, i: int, j: int) -> list[tuple[int, int]]:
    return [(i, j)] if gradient[i].tobytes() == gradient[j].tobytes() else []


def _ends(places: Sequence[int] | npt.NDArray[np.integer], first: int) -> tuple[int, int]:
    return int(places[0]) + first, int(places[-1]) + first


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
