"""The first infinity or NaN: found afterwards in both passes, or refused at the op that makes it."""

import re
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyVar, DomainError, NonFiniteError, NonFiniteReport, Tape, ops

pytestmark = pytest.mark.quick


def forward(tape: Tape[Any]) -> NonFiniteReport:
    report = tape.first_nonfinite()
    assert report is not None
    return report


def backward(tape: Tape[Any], out: AnyVar, seed: Any = None, **options: Any) -> NonFiniteReport:
    report = tape.backward_dense(out, seed, **options).first_nonfinite()
    assert report is not None
    return report


def test_finite_passes_report_nothing(tape: Tape[Any]) -> None:
    x, labels = tape.leaf([[1.0, 2.0]]), tape.const([1])
    loss = ops.cross_entropy(x, labels)
    assert tape.first_nonfinite() is None
    assert tape.backward_dense(loss).first_nonfinite() is None
    assert Tape[Any]().first_nonfinite() is None


def test_the_first_value_is_reported_with_its_op_shapes_and_line(tape: Tape[Any]) -> None:
    x = tape.leaf([[1.0, 0.0, -1.0]], name="x")
    y = x.log()
    _ = y.exp()
    report = forward(tape)
    node = report.node
    assert (report.what, node.id, node.op, node.name, node.inputs, node.shape) == (
        "value", y.id, "log", None, ((1, 3),), (1, 3),
    )  # fmt: skip
    assert (report.nans, report.infs, report.size, report.child) == (1, 1, 3, None)
    assert node.location is not None
    assert node.location.text == "y = x.log()"
    assert str(report) == (
        f"the first non-finite value is node 1 (log), shape (1, 3) from (1, 3), at {node.location}; "
        "1 NaN and 1 inf of 3 elements"
    )


def test_a_leaf_that_was_given_so_is_the_first(tape: Tape[Any]) -> None:
    tape.leaf([1.0])
    x = tape.leaf([np.inf, 1.0, -np.inf], name="x")
    _ = x * 2.0
    report = forward(tape)
    assert (report.node.id, report.nans, report.infs) == (x.id, 0, 2)
    assert str(report).startswith("the first non-finite value is node 1 (leaf 'x'), shape (3,), at ")
    assert str(report).endswith("; 2 inf of 3 elements")


def test_a_report_without_locations() -> None:
    tape: Tape[Any] = Tape(locations=False)
    tape.leaf([np.nan], name="x")
    text = "the first non-finite value is node 0 (leaf 'x'), shape (1,); 1 NaN of 1 elements"
    assert str(tape.first_nonfinite()) == text


def overflowing(tape: Tape[Any]) -> tuple[AnyVar, AnyVar, AnyVar]:
    """Finite values, and an infinite gradient that ``log`` brings: 1e200 / 1e-200."""
    x = tape.leaf([1.0, 1e-200], name="x")
    y = ops.log(x)
    return x, y, ops.scale(y, 1e200).sum()


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_first_gradient_and_the_child_that_brought_it(tape: Tape[Any], create_graph: bool) -> None:
    x, y, out = overflowing(tape)
    grads = tape.backward_dense(out, create_graph=create_graph)
    before = len(tape)
    report = grads.first_nonfinite()
    assert report is not None
    assert len(tape) == before
    assert (report.what, report.node.id, report.nans, report.infs, report.size) == ("gradient", x.id, 0, 1, 2)
    assert report.child is not None
    assert (report.child.id, report.child.op, report.child.inputs) == (y.id, "log", ((2,),))
    assert report.child.location is not None
    assert report.child.location.text == "y = ops.log(x)"
    assert str(report) == (
        f"the first non-finite gradient is of node 0 (leaf 'x'), shape (2,), at {report.node.location}; "
        f"1 inf of 2 elements; brought by node 1 (log), shape (2,) from (2,), at {report.child.location}"
    )


def test_of_two_children_the_one_that_made_it_is_named(tape: Tape[Any]) -> None:
    x = tape.leaf([1e-200], name="x")
    guilty = ops.log(x)
    innocent = ops.exp(x)
    report = backward(tape, ops.add(ops.scale(guilty, 1e200), innocent).sum())
    assert report.child is not None
    assert (report.node.id, report.child.id) == (x.id, guilty.id)


def test_the_first_in_time_is_found_though_its_node_has_a_lower_id(tape: Tape[Any]) -> None:
    """``late`` spoils the gradient of ``a``, which has the lowest id, before ``early`` spoils that of ``b``."""
    a, b = tape.leaf([1e-200]), tape.leaf([1e-200])
    c = b * 1.0
    early = ops.log(c)
    late = ops.log(a)
    report = backward(tape, ops.scale(early + late, 1e200).sum())
    assert report.child is not None
    assert (report.node.id, report.child.id) == (a.id, late.id)


def test_a_nan_of_a_zero_gradient(tape: Tape[Any]) -> None:
    """The famous one: the gradient of what ``where`` did not select is 0 * inf."""
    x = tape.leaf([0.0, 4.0])
    y = 1.0 / x
    out = ops.where(tape.const([False, True]), y, ops.scale(x, 1.0)).sum()
    report = backward(tape, out)
    assert report.child is not None
    assert (report.node.id, report.child.id, report.nans) == (x.id, y.id, 1)


def test_gradients_that_did_not_arrive_bring_nothing(tape: Tape[Any]) -> None:
    """The zero that stands for the gradient of ``inf * x`` would give NaN; the overflow is what did happen."""
    x, y, out = overflowing(tape)
    _ = ops.scale(x, np.inf)
    report = tape.backward_dense_all(out).first_nonfinite()
    assert report is not None
    assert report.child is not None
    assert (report.node.id, report.child.id, report.nans) == (x.id, y.id, 0)


def test_gradients_that_no_child_brought(tape: Tape[Any]) -> None:
    x = tape.leaf([1.0, 1.0], name="x")
    seeded = backward(tape, x * 1.0, [1.0, np.nan])
    assert (seeded.node.op, seeded.child, seeded.nans) == ("mul", None, 1)
    assert str(seeded).endswith("; 1 NaN of 2 elements; by the seed, a hook or the sum of finite contributions")
    tape.reset()
    x = tape.leaf([1e308])
    summed = backward(tape, (ops.scale(x, 1e308) + ops.scale(x, 1e308)).sum())
    assert (summed.node.id, summed.child, summed.infs) == (x.id, None, 1)
    tape.reset()
    x = tape.leaf([1.0])
    y = x * 2.0
    y.register_hook(lambda g: np.array([np.nan]))
    hooked = backward(tape, y.sum())
    assert (hooked.node.id, hooked.child) == (y.id, None)


def test_what_a_hook_mended_is_not_reported(tape: Tape[Any]) -> None:
    x, _, out = overflowing(tape)
    x.register_hook(lambda g: np.nan_to_num(g.numpy()))
    assert tape.backward_dense(out).first_nonfinite() is None


def test_of_two_bad_contributions_the_one_that_no_hook_mended_is_reported(tape: Tape[Any]) -> None:
    mended, x = tape.leaf([1e-200]), tape.leaf([1e-200])
    mended.register_hook(lambda g: np.ones(1))
    y = mended / x
    both = backward(tape, y, [1e300])
    assert both.child is not None
    assert (both.node.id, both.child.id) == (x.id, y.id)


# Refused at once.


def test_check_raises_at_the_op_and_appends_nothing() -> None:
    tape: Tape[Any] = Tape(check="finite")
    x = tape.leaf([[1.0, 0.0, -1.0]])
    before = len(tape)
    with pytest.raises(NonFiniteError) as caught:
        _ = x.log()
    assert len(tape) == before
    assert re.fullmatch(
        r"log: expected finite values, as Tape\(check='finite'\) demands, got 1 NaN and 1 inf of 3 elements "
        r"from inputs \(1, 3\); at \S*test_nonfinite\.py:\d+: _ = x\.log\(\)",
        str(caught.value),
    )
    with pytest.raises(NonFiniteError, match=r"^div: .* got 1 inf of 1 elements from inputs \(\), \(\)"):
        _ = tape.leaf(1.0) / 0.0
    assert len(tape) == before + 1


def test_check_says_if_an_input_was_not_finite_already() -> None:
    tape: Tape[Any] = Tape(check="finite", locations=False)
    x = tape.leaf([np.inf, 1.0])
    text = r"from inputs \(2,\), \(2,\), of which one had some already; at .*: _ = x \+ x$"
    with pytest.raises(NonFiniteError, match=text):
        _ = x + x


def test_check_lets_finite_values_and_what_removes_infinities_pass() -> None:
    tape: Tape[Any] = Tape(check="finite")
    x = tape.leaf([1.0, 2.0])
    assert ops.where(x > 0.0, x, np.array([np.inf, np.nan])).numpy().tolist() == [1.0, 2.0]
    assert (x > 1.5).numpy().tolist() == [False, True]
    assert tape.backward_dense((x * x).sum())[x] is not None


def test_check_raises_in_backward() -> None:
    tape: Tape[Any] = Tape(check="finite")
    _, _, out = overflowing(tape)
    with pytest.raises(NonFiniteError) as caught:
        tape.backward_dense(out)
    text = str(caught.value)
    assert text.startswith("backward of node 1 (log), shape (2,) from (2,), at ")
    assert text.endswith(
        ": y = ops.log(x): expected finite gradients, as Tape(check='finite') demands, got 1 inf of 2 elements "
        "for node 0 (leaf 'x')"
    )
    before = len(tape)
    with pytest.raises(NonFiniteError, match=r"^div: expected finite values|^mul: expected finite values"):
        tape.backward_dense(out, create_graph=True)
    assert all(np.isfinite(node.value.array).all() for node in list(tape)[before:])


def test_checks_that_are_not_known() -> None:
    with pytest.raises(DomainError) as caught:
        Tape(check="nan")  # type: ignore[call-overload]  # pyright: ignore
    assert str(caught.value) == "Tape: argument 'check': expected 'finite' or None, got 'nan'"
