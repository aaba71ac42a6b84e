"""Labels in the forms of other libraries: each is refused with what to write instead, and that does what they do."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import DgrrError, Tape, ops

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, (2, 4))
WORDS = RNG.standard_normal((2, 4, 3))
FLAT = "ops.reshape(labels, (-1,))"

# shape of the logits, labels, what is advised
FORMS: list[tuple[npt.NDArray[Any], npt.NDArray[Any], str]] = [
    (
        WORDS.transpose(0, 2, 1),
        LABELS,
        f"move the classes last: ops.reshape(ops.permute(…, (0, 2, 1)), (-1, 3)) and {FLAT}",
    ),
    (
        WORDS.reshape(2, 2, 2, 3).transpose(0, 3, 1, 2),
        LABELS.reshape(2, 2, 2),
        f"move the classes last: ops.reshape(ops.permute(…, (0, 2, 3, 1)), (-1, 3)) and {FLAT}",
    ),
    (WORDS.reshape(8, 3), LABELS.reshape(8, 1), f"drop the axis with {FLAT}"),
    (
        WORDS.reshape(8, 3),
        np.eye(3, dtype=np.int64)[LABELS.reshape(8)],
        "of one-hot rows take ops.argmax(ops.cast(labels, np.float32), -1)",
    ),
    (
        WORDS.reshape(8, 3),
        LABELS.reshape(8).astype(np.float32),
        "labels are whole numbers: ops.cast(labels, np.int64)",
    ),
    (
        WORDS.reshape(8, 3),
        np.eye(3)[LABELS.reshape(8)],
        "give probabilities to ops.soft_cross_entropy, or labels as ops.argmax(labels, -1)",
    ),
]


def advised(logits: Any, labels: Any, advice: str) -> Any:
    """The loss that the advice gives: its expressions as they stand, with the logits in place of the dots."""
    rows, wanted = logits, labels
    for text in advice.replace(" and ", ", or ").split(", or "):
        code = text[text.index("ops.") :].replace("…", "logits") if "ops." in text else ""
        if code.endswith("soft_cross_entropy"):
            continue
        made = eval(code, {"ops": ops, "np": np, "logits": logits, "labels": labels})
        rows, wanted = (made, wanted) if "logits" in code else (rows, made)
    return ops.cross_entropy(rows, wanted)


@pytest.mark.parametrize(("logits", "labels", "advice"), FORMS)
def test_the_advice_is_given_and_works(logits: Any, labels: Any, advice: str) -> None:
    tape: Tape[Any] = Tape()
    given = tape.leaf(logits), tape.const(labels)
    with pytest.raises(DgrrError) as caught:
        ops.cross_entropy(*given)
    assert str(caught.value).startswith("cross_entropy: argument '")
    assert str(caught.value).endswith(f"; {advice}")
    expected = ops.cross_entropy(tape.leaf(WORDS.reshape(8, 3)), tape.const(LABELS.reshape(8)))
    assert advised(*given, advice).item() == expected.item()


def test_axes_before_the_classes_are_a_batch() -> None:
    tape: Tape[Any] = Tape()
    flat = ops.cross_entropy(tape.leaf(WORDS.reshape(8, 3)), tape.const(LABELS.reshape(8)))
    assert ops.cross_entropy(tape.leaf(WORDS), tape.const(LABELS)).item() == flat.item()
    row, label = tape.leaf(WORDS[0, 0]), tape.const(np.array(1))
    alone = ops.cross_entropy(row, label)
    assert alone.item() == ops.cross_entropy(ops.reshape(row, (1, -1)), ops.reshape(label, (1,))).item()


def test_probabilities_are_soft_labels() -> None:
    tape: Tape[Any] = Tape()
    logits, labels = tape.leaf(WORDS.reshape(8, 3)), LABELS.reshape(8)
    soft = ops.soft_cross_entropy(logits, tape.const(np.eye(3)[labels]))
    assert soft.item() == pytest.approx(ops.cross_entropy(logits, tape.const(labels)).item(), rel=1e-15)


def test_what_no_advice_helps() -> None:
    tape: Tape[Any] = Tape()
    with pytest.raises(DgrrError, match=r"^cross_entropy: argument 'labels': expected shape \(8,\), got \(7,\)$"):
        ops.cross_entropy(tape.leaf(WORDS.reshape(8, 3)), tape.const(np.zeros(7, np.int64)))


@pytest.mark.parametrize("loss", [ops.cross_entropy, ops.nll_loss])
def test_the_mean_divides_by_the_weights_of_the_labels_that_count(loss: Any) -> None:
    tape: Tape[Any] = Tape()
    rows, weight = tape.leaf(WORDS.reshape(8, 3)), np.array([0.5, 2.0, 4.0])
    labels = np.array([0, 2, -1, 1, 1, -1, 0, 2])
    each = loss(rows, labels, ignore_index=-1, weight=weight, reduction="none").numpy()
    total = weight[labels[labels >= 0]].sum()
    assert not each[labels < 0].any()
    mean = loss(rows, labels, ignore_index=-1, weight=weight)
    assert mean.item() == pytest.approx(each.sum() / total)
    assert loss(rows, labels, ignore_index=-1, weight=weight, reduction="sum").item() == pytest.approx(each.sum())
    ones = loss(rows, labels, ignore_index=-1, weight=np.ones(3))
    assert ones.item() == pytest.approx(loss(rows, labels, ignore_index=-1).item())


def test_the_plain_form_is_one_op() -> None:
    """So old traces and new ones show the same node."""
    tape: Tape[Any] = Tape()
    loss = ops.cross_entropy(tape.leaf(WORDS.reshape(8, 3)), tape.const(LABELS.reshape(8)))
    node = tape.node(loss)
    assert (node.op_name, dict(node.attrs)) == ("cross_entropy", {"label_smoothing": 0.0, "ignore_index": None})


@pytest.mark.parametrize("loss", [ops.cross_entropy, ops.nll_loss])
def test_an_error_of_a_weighted_loss_names_the_loss(loss: Any) -> None:
    tape: Tape[Any] = Tape()
    text = f"^{loss.__name__}: argument 'labels': expected a class from 0 to 2, got 3 at position 1"
    with pytest.raises(DgrrError, match=text):
        loss(tape.leaf(WORDS[0, :2]), np.array([0, 3]), weight=np.ones(3))
