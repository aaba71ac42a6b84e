"""CTC: the probability summed over every path, what does not fit, and lengths."""

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

from dgrr.tape import BoundsError, DomainError, Tape, ops

rng = np.random.default_rng(0)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def by_paths(log_probs: Any, labels: list[int], blank: int) -> float:
    """Every path through the classes whose labels, without repetitions and blanks, are these."""
    total = 0.0
    for path in product(range(log_probs.shape[1]), repeat=len(log_probs)):
        if [label for label, _ in groupby(path) if label != blank] == labels:
            total += np.exp(sum(log_probs[t, label] for t, label in enumerate(path)))
    return float(-np.log(total)) if total else np.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_it_is_the_sum_over_all_paths(blank: int) -> None:
    log_probs = log_softmax(rng.standard_normal((5, 4, 3)))
    classes = [c for c in range(3) if c != blank]
    targets = np.array([[classes[0], classes[0], classes[1]]] * 4)
    inputs, lengths = np.array([5, 4, 3, 2]), np.array([3, 2, 1, 2])
    found = ops.ctc_loss(Tape().leaf(log_probs), targets, inputs, lengths, blank, "none").numpy()
    wanted = [
        by_paths(log_probs[:n, b], targets[b, :k].tolist(), blank)
        for b, (n, k) in enumerate(zip(inputs.tolist(), lengths.tolist(), strict=True))
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert wanted[3] == np.inf  # a blank must stand between two equal labels


def test_what_does_not_fit_has_no_gradient_and_by_zero_infinity_no_loss() -> None:
    log_probs, targets = log_softmax(rng.standard_normal((2, 2, 3))), np.array([[1, 1], [1, 2]])
    for zero, expected in ((False, np.inf), (True, 0.0)):
        tape = Tape[Any]()
        x = tape.leaf(log_probs)
        loss = ops.ctc_loss(x, targets, [2, 2], [2, 2], reduction="none", zero_infinity=zero)
        assert loss.numpy()[0] == expected
        gradient = tape.backward_dense(loss, np.ones(2))[x]
        assert gradient is not None and (gradient.numpy()[:, 0] == 0).all() and (gradient.numpy()[:, 1] != 0).any()


def test_an_input_of_no_length_says_nothing() -> None:
    x = Tape().leaf(log_softmax(rng.standard_normal((3, 2, 3))))
    assert ops.ctc_loss(x, [[1], [1]], [0, 0], [0, 1], reduction="none").numpy().tolist() == [0.0, np.inf]


@pytest.mark.parametrize(
    ("more", "error", "text"),
    [
        ({"blank": 3}, DomainError, "ctc_loss: argument 'blank': expected a class of log_probs, got 3"),
        ({"input_lengths": [5, 6]}, BoundsError, "expected -6 to 5, got 6 at position 1"),
        ({"target_lengths": [1, 3]}, BoundsError, "got 6 at position 1"),
        ({"targets": [[1, 2], [1, 3]]}, BoundsError, "got 3 at position"),
    ],
)
def test_what_is_refused(more: dict[str, Any], error: type[Exception], text: str) -> None:
    given: dict[str, Any] = {"targets": [[1, 2], [1, 1]], "input_lengths": [5, 5], "target_lengths": [2, 1], **more}
    with pytest.raises(error) as caught:
        ops.ctc_loss(Tape().leaf(np.zeros((5, 2, 3))), **given)
    assert text in str(caught.value)
