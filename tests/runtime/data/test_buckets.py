"""Batches of sequences of different lengths: few shapes, a mask, the same order in every run."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer, data
from dgrr.tape import DomainError, DTypeError, ShapeError, ops

LENGTHS = np.random.default_rng(0).integers(1, 37, 100)
SEQUENCES = [np.arange(1, n + 1, dtype=np.float32) + 100 * k for k, n in enumerate(LENGTHS)]
LABELS = np.arange(100)


def batches(**options: Any) -> data.Buckets:
    """Of all sequences, labelled by their numbers."""
    return data.buckets(SEQUENCES, LABELS, **{"size": 8, "lengths": [9, 18, 27, 36], "seed": 0, **options})


@pytest.mark.parametrize("options", [{}, {"seed": None}, {"lengths": 3}, {"lengths": 200}, {"size": 1000}], ids=str)
def test_every_sequence_comes_once_an_epoch_whole_and_with_its_label(options: dict[str, Any]) -> None:
    for epoch in range(3):
        seen = list[int]()
        for padded, mask, labels in batches(**options).epoch(epoch):
            assert mask.shape == padded.shape and not padded[~mask].any()
            for row, real, label in zip(padded, mask, labels, strict=True):
                assert row[real].tobytes() == SEQUENCES[label].tobytes()
                assert real.tolist() == sorted(real, reverse=True)
            seen += labels.tolist()
        assert sorted(seen) == LABELS.tolist()


def test_shapes_are_as_few_as_lengths() -> None:
    shapes = {padded.shape for padded, _, _ in batches(drop_last=True)}
    assert shapes == {(8, 9), (8, 18), (8, 27), (8, 36)}
    assert batches().lengths == [9, 18, 27, 36]
    assert all(n <= padded.shape[1] < n + 9 for padded, mask, _ in batches() for n in mask.sum(axis=1))


def test_a_count_makes_buckets_of_about_as_many() -> None:
    made = batches(lengths=4)
    counts = np.bincount(np.searchsorted(made.lengths, LENGTHS))
    assert len(made.lengths) == 4 and made.lengths[-1] == LENGTHS.max() and counts.min() > 15


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def order(made: data.Buckets, epoch: int) -> list[int]:
        return list(chain.from_iterable(labels.tolist() for _, _, labels in made.epoch(epoch)))

    used = batches()
    list(used)
    assert order(used, 0) == order(batches(), 0)
    assert len({tuple(order(batches(seed=seed), epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    assert order(batches(seed=None), 0) == order(batches(seed=None), 1)


@pytest.mark.parametrize("drop_last", [False, True])
def test_length_and_shares_are_those_of_the_epoch(drop_last: bool) -> None:
    made = batches(drop_last=drop_last)
    every = [labels.tolist() for _, _, labels in made.epoch(2)]
    assert len(every) == len(made)
    shares = [[labels.tolist() for _, _, labels in made.share(2, [k], rest=True).epoch(2)] for k in (0, 1)]
    assert [shares[i % 2][i // 2] for i in range(len(every))] == every


def test_the_digest_tells_what_decides() -> None:
    others = [{}, {"seed": 1}, {"size": 7}, {"lengths": 4}, {"drop_last": True}]
    assert len({batches(**options).digest() for options in others}) == len(others)
    assert batches().digest() == batches().digest()
    assert data.buckets(SEQUENCES[::-1], size=8).digest() != data.buckets(SEQUENCES, size=8).digest()


def test_a_masked_loss_is_what_it_is_without_padding() -> None:
    def loss_fn(p: Any, batch: Any) -> Any:
        padded, mask, _ = batch
        real = ops.cast(mask, np.float32)
        return (p["w"] * padded * real).sum() / real.sum()

    given = {"w": np.ones((), np.float32)}
    trainer = Trainer(loss_fn, given, SGD(0.0))
    losses = trainer.fit(batches(seed=None, size=1), progress=False).losses
    order = [int(labels[0]) for _, _, labels in batches(seed=None, size=1)]
    assert np.allclose(losses, [SEQUENCES[k].mean() for k in order])


@pytest.mark.parametrize(
    ("given", "options", "kind", "text"),
    [
        ([], {}, ShapeError, "buckets: argument 'sequences': expected at least one sequence, got none"),
        ([1.0], {}, ShapeError, "buckets: sequence 0: expected shape (n), as of the first, got ()"),
        (
            [np.ones((2, 3)), np.ones((2, 4))],
            {},
            ShapeError,
            "buckets: sequence 1: expected shape (n, 3), as of the first, got (2, 4)",
        ),
        (
            [np.ones(2), np.ones(2, np.float32)],
            {},
            DTypeError,
            "buckets: sequence 1: expected float64, as of the first, got float32",
        ),
        (
            [[1], [1, 2, 3]],
            {"lengths": [1, 2]},
            DomainError,
            "buckets: sequence 1: expected a length of at most 2, the last of 'lengths', got 3; cut it, or add a "
            "longer bucket",
        ),
        (
            [[1]],
            {"lengths": [2, 2]},
            DomainError,
            "buckets: argument 'lengths': expected them in ascending order, got [2, 2]",
        ),
        (
            [[1]],
            {"lengths": 0},
            DomainError,
            "buckets: argument 'lengths': expected a whole number of at least 1, got 0",
        ),
        ([[1]], {"size": 0}, DomainError, "buckets: argument 'size': expected a whole number of at least 1, got 0"),
        (
            [[1], [2, 3]],
            {"size": 3, "drop_last": True},
            DomainError,
            "buckets: expected 3 sequences in a bucket, with drop_last, got at most 1: no batch would be left",
        ),
    ],
)
def test_what_does_not_fit_is_refused(given: Any, options: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        data.buckets(given, **{"size": 2, **options})
    assert str(caught.value) == text


def test_targets_have_a_row_for_each_sequence() -> None:
    with pytest.raises(ShapeError) as caught:
        data.buckets([[1], [2, 3]], [1], size=2)
    assert str(caught.value) == "buckets: targets 0: expected a row for each of the 2 sequences, got shape (1,)"
