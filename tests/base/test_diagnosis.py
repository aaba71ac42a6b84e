"""What is worth a look: each finding on a planted fault, and silence on its repaired twin."""

import numpy as np
import pytest

from dgrr.base.diagnosis import Looks, Remark, clipping, equal_rows, short_batches, worth_a_look


def looked(params, gradients, updates=()):
    looks = Looks(params)
    for step, gradient in enumerate(gradients):
        looks.add(step, gradient)
    for before, after in updates:
        looks.add_update(before, after)
    return looks.findings()


def kinds(found):
    return [finding.kind for finding in found]


W = np.arange(1.0, 7.0).reshape(3, 2)


@pytest.mark.parametrize("gradient", [{}, {"w": np.zeros((3, 2))}])
def test_no_gradient_at_any_look(gradient):
    (finding,) = looked({"w": W}, [gradient] * 4)
    assert str(finding) == (
        "no gradient reached w: absent or all zero at all 4 steps examined; "
        "make sure that the loss depends on it, or freeze it"
    )
    assert (finding.names, finding.steps) == (("w",), (0, 3))


def test_a_gradient_at_one_look_of_four_is_one():
    none = {"w": np.zeros((3, 2))}
    assert looked({"w": W}, [none, none, {"w": W}, none]) == []


def test_three_looks_say_nothing():
    assert looked({"w": W}, [{}] * 3) == []


def layer(bias_of_first=0.0):
    weight = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    return {"a.weight": weight, "a.bias": np.array([bias_of_first, 0.0, 1.0])}


def test_dead_units():
    (finding,) = looked(layer(), [layer()] * 4)
    assert finding.kind == "dead units"
    assert finding.text == "2 of 3 units of a.weight got no gradient at all 4 steps examined"


def test_a_unit_whose_bias_has_a_gradient_lives():
    assert looked(layer(), [layer(bias_of_first=1.0)] * 4) == []


def test_few_dead_units_are_usual():
    alive = np.maximum(np.arange(64.0) - 16, 0)  # 17 of 64 are dead
    many = {"a.weight": np.ones((64, 2)) * alive[:, None], "a.bias": alive}
    assert looked(many, [many] * 4) == []


def test_rows_that_no_batch_uses_have_no_bias_and_are_not_dead():
    assert looked({"table.weight": W}, [{"table.weight": layer()["a.weight"]}] * 4) == []


def test_equal_by_symmetry():
    (finding,) = looked({"w": np.zeros((3, 2))}, [{"w": np.ones((3, 2))}] * 4)
    assert finding.text == "3 of 3 rows of w started equal and got equal gradients"


def test_zeros_that_part_at_one_look_are_not_equal():
    assert looked({"w": np.zeros((3, 2))}, [{"w": np.ones((3, 2))}] * 3 + [{"w": W}]) == []


def test_rows_that_begin_apart_are_not_equal():
    assert looked({"w": W}, [{"w": np.ones((3, 2))}] * 4) == []


def test_unused_rows_of_zeros_are_not_equal():
    gradient = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    assert looked({"w": np.zeros((3, 2))}, [{"w": gradient}] * 4) == []


def test_vectors_and_columns_have_no_equal_rows():
    assert equal_rows(np.zeros(3)) == equal_rows(np.zeros((3, 1))) == equal_rows(np.zeros((3, 0))) == []


def updated(*sizes):
    return looked({"w": W}, [{"w": W}] * 4, [({"w": W}, {"w": W * (1 + size)}) for size in sizes])


def test_updates_too_large():
    assert kinds(updated(0.2, 0.2, 0.2, 0.2)) == ["large updates"]
    assert updated(0.2, 0.2, 0.2, 0.05) == []
    assert updated(0.2, 0.2, 0.2) == []


def test_a_run_that_diverges_is_no_finding_and_no_warning():
    assert updated(1e200, np.inf, np.nan, 1e200) == []
    huge = {"w": W * 1e200}
    assert looked({"w": W}, [{"w": W}] * 4, [(huge, huge)] * 4) == []
    assert short_batches(np.where(ROWS == 8, np.nan, np.inf), EPOCHS, ROWS) == []


def test_updates_too_small():
    assert kinds(updated(1e-9, 1e-9, 1e-9, 1e-9)) == ["small updates"]
    assert updated(1e-6, 1e-9, 1e-9, 1e-9) == []


def test_a_rate_that_warms_up_is_not_too_small():
    assert updated(0.0, 1e-9, 2e-9, 3e-9) == []


def test_gradients_clipped_in_most_steps():
    (finding,) = clipping(np.array([0.5] * 15 + [1.0] * 5 + [0.5] * 10), first=100)
    assert finding.text == "gradients were clipped at 25 of 30 steps"
    assert finding.steps == (100, 129)


@pytest.mark.parametrize("scales", [[0.5] * 19, [0.5] * 10 + [1.0] * 10, [0.5] * 30 + [1.0] * 20, [1.0] * 30])
def test_gradients_clipped_in_the_beginning_or_seldom(scales):
    assert clipping(np.array(scales)) == []


EPOCHS = np.repeat(np.arange(5), 6)
ROWS = np.tile([32, 32, 32, 32, 32, 8], 5)


def test_a_sum_over_rows_falls_at_the_short_batch():
    (finding,) = short_batches(ROWS * 0.5, EPOCHS, ROWS)
    assert finding.text == "the loss fell to 0.25 times its size at the short last batch of every epoch"
    assert finding.steps == (5, 29)


def test_a_loss_that_rises_at_the_short_batch():
    (finding,) = short_batches(np.where(ROWS == 8, 3.0, 1.0), EPOCHS, ROWS)
    assert finding.text == "the loss rose to 3 times its size at the short last batch of every epoch"


def test_a_mean_over_rows_does_neither():
    rng = np.random.default_rng(0)
    assert short_batches(rng.uniform(0.5, 1.5, 30), EPOCHS, ROWS) == []


def test_batches_of_few_rows_equal_rows_or_few_epochs_say_nothing():
    assert short_batches(ROWS * 0.5, EPOCHS, np.where(ROWS == 8, 3, 32)) == []
    assert short_batches(ROWS * 0.5, EPOCHS, np.full(30, 32)) == []
    assert short_batches(ROWS[:18] * 0.5, EPOCHS[:18], ROWS[:18]) == []
    assert short_batches(np.zeros(0), np.zeros(0, int), np.zeros(0, int)) == []


def test_what_is_printed_is_short():
    found = [Remark("k", f"text {i}", "do this") for i in range(6)]
    assert worth_a_look([]) == {}
    assert worth_a_look(found)["worth a look"].splitlines()[-2:] == ["text 3; do this", "2 more"]
