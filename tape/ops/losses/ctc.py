"""Connectionist temporal classification: the loss of a sequence of labels whose places are not known."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError
from ...record.composed import composed, fitted
from ...record.kinds.values import Beside
from ...record.samples import Make, Sample, bad
from ...record.types import B, C, F, K, N, Operand
from ...values.dtypes import i64
from ...var.var import Gradual, Var, shape_of
from ..elementwise.arithmetic import add, div, neg, sub
from ..elementwise.select import cast, equal, greater, not_equal, where
from ..indices.along import take_along_axis
from ..indices.take import take
from ..reduce.moments import logsumexp
from ..reduce.reduce import broadcast_to
from ..shape.joining import append, stack
from ..shape.padding import pad
from ..shape.reshape import reshape
from ..shape.slicing import getitem, narrow
from .reduction import REDUCTION, formula, reduced, reference_reduced

NEVER: Any = -np.inf
"""The logarithm of the probability of what cannot be."""
BLANK = Beside(
    "a class of log_probs",
    lambda given: not given["log_probs"] or 0 <= given["blank"] < given["log_probs"][-1],
    lambda given: (-1, given["log_probs"][-1]),
    -1,
)


def _held(array: Any) -> Any:
    """An array in the place of a Var, which ops take."""
    return array


def _between(blanks: Any, labels: Any) -> Any:
    """A blank before each label and one behind the last: (batch, 2 labels + 1)."""
    batch, count = shape_of(labels)
    pairs = reshape(stack([np.broadcast_to(blanks, (batch, count)), labels], -1), (batch, 2 * count))
    return append(pairs, _held(np.broadcast_to(blanks, (batch, 1))), -1)


def _skips(targets: Any) -> Any:
    """Which places may follow the one before the last: labels that are not that label, as its blank must stand."""
    batch, count = shape_of(targets)
    if count < 2:
        return np.zeros((batch, 2 * count + 1), np.bool_)
    others = not_equal(narrow(targets, 1, count - 1, 1), narrow(targets, 0, count - 1, 1))
    return _between(np.False_, append(_held(np.zeros((batch, 1), np.bool_)), others, -1))


def _moved(x: Any, by: int) -> Any:
    """``x`` so many places further along, with what cannot be in the first ones."""
    return pad(x, ((0, 0), (by, -by)), NEVER)


def _forward(log_probs: Any, targets: Any, input_lengths: Any, blank: int) -> Any:
    """The logarithms of the probabilities of all beginnings, at the end of each input: (batch, 2 labels + 1)."""
    times, batch, _ = shape_of(log_probs)
    places = _between(np.int64(blank), targets)
    count = shape_of(places)[1]
    found = take_along_axis(log_probs, broadcast_to(reshape(places, (1, batch, count)), (times, batch, count)), -1)
    skips, lengths = _skips(targets), broadcast_to(reshape(input_lengths, (batch, 1)), (batch, count))
    numbers = np.broadcast_to(np.arange(count), (batch, count))
    alpha: Any = np.where(numbers == 0, 0.0, NEVER).astype(log_probs.dtype)
    for t in range(times):
        now = getitem(found, t)
        new = add(_joined(alpha, skips, count), now) if t else where(_held(numbers < 2), now, NEVER)
        alpha = where(greater(lengths, _held(np.full((batch, count), t))), new, alpha)
    return alpha


def _joined(alpha: Any, skips: Any, count: int) -> Any:
    """Of the beginnings that end at a place, at the one before it, or at the label before."""
    beginnings = [alpha, _moved(alpha, 1)]
    if count > 2:
        beginnings.append(where(skips, _moved(alpha, 2), NEVER))
    return logsumexp(stack(beginnings), 0)


def _reference(
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """Place after place, one sequence after the other."""
    real, losses = log_probs.dtype.type, list[Any]()
    for b, labels in enumerate(targets):
        said = [blank, *(x for label in labels for x in (label, blank))]
        alpha = [real(0.0 if place == 0 else NEVER) for place in range(len(said))]
        for t in range(input_lengths[b]):
            alpha = [_reached(alpha, said, place, t) + log_probs[t, b, said[place]] for place in range(len(said))]
        last = 2 * int(target_lengths[b])
        ends = [alpha[last], alpha[last - 1] if last else real(NEVER)]
        losses.append(-formula("logsumexp")(np.array(ends, real)))
    made = np.array(losses, real)
    if zero_infinity:
        made = np.where(made == np.inf, real(0), made)
    if reduction == "mean":
        made = made / np.maximum(target_lengths, 1).astype(real)
    return reference_reduced(made, reduction)


def _reached(alpha: list[Any], said: list[Any], place: int, t: int) -> Any:
    """The logarithm of the probability of all that may stand before a place."""
    real = alpha[0].dtype.type
    if t == 0:
        return real(0.0 if place < 2 else NEVER)
    skipped = place > 2 and place % 2 == 1 and said[place] != said[place - 2]
    before = [alpha[place], alpha[place - 1] if place else real(NEVER), alpha[place - 2] if skipped else real(NEVER)]
    return formula("logsumexp")(np.array(before if len(said) > 2 else before[:2], real))


def _samples(make: Make) -> list[Sample]:
    labels, full = np.array([[1, 2, 2], [3, 3, 1]]), np.array([7, 7])
    return [
        Sample((make(7, 2, 4), labels, full, np.array([3, 3]))),
        Sample((make(7, 2, 4), labels, np.array([5, 4]), np.array([2, 0])), {"reduction": "none"}),
        Sample((make(3, 2, 4), labels, np.array([3, 0]), np.array([3, 1])), {"zero_infinity": True}),
        Sample((make(3, 1, 3), np.array([[0]]), np.array([3]), np.array([1])), {"blank": 2, "reduction": "sum"}),
        Sample((make(2, 2, 3), np.zeros((2, 0), np.int64), np.array([2, 0]), np.array([0, 0]))),
    ]


@composed(
    reference=_reference,
    samples=_samples,
    errors=(
        bad(
            ShapeError,
            "ctc_loss: argument 'targets': expected shape (2, K), got (3,)",
            (4, 2, 3),
            np.zeros(3, np.int64),
            np.full(2, 4),
            np.full(2, 1),
        ),
    ),
    kinds={"blank": BLANK, "reduction": REDUCTION},
    excused={"batch": "the mean is over the batch"},
)
def ctc_loss(
    log_probs: Var[F, N, B, C],
    targets: Var[i64, B, K],
    input_lengths: Operand[i64, B],
    target_lengths: Operand[i64, B],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Gradual[F]:
    """``-log`` of the probability that an input says its labels, wherever they stand, with blanks between them.

    "mean" divides each by its number of labels, or by 1, before the mean; "sum" and "none" do not. Where the labels do
    not fit into an input the loss is infinite, with ``zero_infinity`` 0, and the gradient 0. What stands behind the
    lengths is not read.

    Source: Graves, Fernández, Gomez and Schmidhuber (2006); torch.nn.functional.ctc_loss, of targets in rows.
    Shapes: log_probs (N, B, C), the logarithms of a softmax, targets (B, K), input_lengths and target_lengths (B) ->
        (), or (B) by "none"

    >>> from dgrr.tape import Tape, ops
    >>> log_probs = ops.log_softmax(Tape().leaf(np.zeros((2, 1, 2))))
    >>> ops.ctc_loss(log_probs, [[1]], [2], [1]).item() == -float(np.log(0.75))
    True
    """
    log_probs, targets, input_lengths, target_lengths = fitted(
        "ctc_loss", log_probs, targets, input_lengths, target_lengths
    )
    times, batch, _ = shape_of(log_probs)
    zeros, ones = _held(np.zeros(batch, np.int64)), _held(np.ones(batch, np.int64))
    known = take(_held(np.arange(times + 1)), input_lengths)  # a length beyond the input has no place there
    alpha = _forward(log_probs, targets, known, blank)
    some, twice = greater(target_lengths, zeros), add(target_lengths, target_lengths)
    before = where(some, sub(twice, ones), zeros)
    behind_blank, behind_label = (
        reshape(take_along_axis(alpha, reshape(place, (batch, 1)), 1), (batch,)) for place in (twice, before)
    )
    losses: Any = neg(logsumexp(stack([behind_blank, where(some, behind_label, NEVER)]), 0))
    if zero_infinity:
        infinite = _held(np.full(batch, np.inf, log_probs.dtype))
        losses = where(equal(losses, infinite), _held(0.0), losses)
    if reduction == "mean":
        losses = div(losses, cast(where(some, target_lengths, ones), log_probs.dtype))
    made: Gradual[F] = reduced(losses, reduction)
    return made
