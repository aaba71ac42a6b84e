"""Values and gradients at zeros, subnormals, numbers near overflow, infinities and NaN are PyTorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops

torch = pytest.importorskip("torch")

SIZES = {np.float32: (1e-40, 1e-38, 1e-30, 1e-12, 1e-3, 0.5, 1.0, 2.0, 1e30)}
SIZES[np.float64] = (1e-310, 1e-307, 1e-200, *SIZES[np.float32][2:], 1e200)

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def grid(dtype: Any, special: tuple[float, ...] = (np.nan,)) -> Any:
    """Each of these numbers beside each."""
    sizes = (0.0, *SIZES[dtype], np.inf)
    each = np.array([*sizes, *(-x for x in sizes), *special], dtype)
    return [x.reshape(-1) for x in np.meshgrid(each, each)]


def assert_same(ours: Callable[..., Any], theirs: Callable[..., Any], *arrays: Any, atol: float = 0.0) -> None:
    """The same numbers up to rounding, and the same zeros, infinities and NaN; of the gradients too."""
    leaves = Tape().params({str(i): x for i, x in enumerate(arrays)}).values()
    made = ours(*leaves)
    grads = made.tape.backward_dense(ops.reduce_sum(made))
    given = [torch.tensor(x, requires_grad=True) for x in arrays]
    expected = theirs(*given)
    expected.sum().backward()
    pairs = [(made, expected.detach()), *((grads[x], x_.grad) for x, x_ in zip(leaves, given, strict=True))]
    least = np.finfo(arrays[0].dtype).smallest_subnormal
    for found, wanted in pairs:
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), TOLERANCE[arrays[0].dtype.type], max(atol, least))


both_types = pytest.mark.parametrize("dtype", SIZES, ids=["float32", "float64"])

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "atan2": (ops.atan2, torch.atan2),
    "div": (ops.div, torch.div),
    "pow": (ops.pow, torch.pow),
    **{name: (lambda a, b, name=name: getattr(ops, name)(a, b, reduction="none"),
              lambda a, b, name=name: getattr(torch.nn.functional, name)(a, b, reduction="none"))
       for name in ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")},
}  # fmt: skip


@both_types
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_two(name: str, dtype: Any) -> None:
    assert_same(*FUNCTIONS[name], *grid(dtype))


@both_types
@pytest.mark.parametrize("p", [1.5, 3.0, 4.0])
def test_of_norms(p: float, dtype: Any) -> None:
    """PyTorch's gradient at NaN is NaN, that of `absolute` 0."""
    x = np.stack(grid(dtype, special=()), axis=1)
    assert_same(lambda x: ops.norm(x, p, 1), lambda x: torch.linalg.vector_norm(x, p, 1), x)


@both_types
@pytest.mark.parametrize("p", [0.5, 1.5, 3.0, 7.0])
def test_norms_of_nothing_but_zeros_have_no_gradient(p: float, dtype: Any) -> None:
    tape = Tape[Any]()
    x = tape.leaf(np.array([[0.0, -0.0, SIZES[dtype][0]]], dtype) if p > 1 else np.zeros((1, 3), dtype))
    gradient: Any = tape.backward_dense(ops.norm(x, p))[x]
    assert gradient.numpy().tolist() == [[0.0, 0.0, 0.0]]


@both_types
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_of_the_cross_entropy_of_logits(reduction: str, dtype: Any) -> None:
    """Pair by pair, as one that is not finite decides a sum; a slope is the difference of two numbers up to 1."""
    loss: Any = ops.binary_cross_entropy_with_logits
    each = np.array([0.0, 1.0, -1.0, 1e-12, 1e30, -1e30, np.inf, np.nan], dtype)
    for x in each:
        for t in np.array([0.0, 0.25, 1.0], dtype):
            assert_same(
                lambda x, t: loss(x, t, reduction=reduction),
                lambda x, t: torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction=reduction),
                np.array([x]),
                np.array([t]),
                atol=1e-7,
            )


@both_types
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_of_logits_of_minus_infinity(reduction: str, dtype: Any) -> None:
    """Where PyTorch has NaN: the limits, ``-log(1 - 0)`` for the target 0 and infinity for one that is above."""
    for target, loss, slope in ((0.0, 0.0, 0.0), (0.25, np.inf, -0.25), (1.0, np.inf, -1.0)):
        tape = Tape[Any]()
        x = tape.leaf(np.array([-np.inf], dtype))
        made = ops.binary_cross_entropy_with_logits(x, np.array([target], dtype), reduction=reduction)
        gradient: Any = tape.backward_dense(ops.reduce_sum(made))[x]
        assert (made.item(), gradient.numpy().tolist()) == (loss, [slope])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", [ops.huber_loss, ops.smooth_l1_loss])
def test_a_nan_has_one_gradient_under_every_reduction(loss: Any, reduction: str) -> None:
    tape = Tape[Any]()
    a, b = tape.leaf([np.nan, 1.0]), tape.leaf([0.0, np.nan])
    grads: Any = tape.backward_dense(ops.reduce_sum(loss(a, b, reduction=reduction)))
    assert all(np.isnan(grads[x].numpy()).all() for x in (a, b))


MODES = {"wrap": "circular", "reflect": "reflect", "edge": "replicate"}


def assert_padded_alike(x: Any, before: int, after: int, mode: str) -> bool:
    """False if PyTorch does not take these widths."""

    def wanted(x: Any) -> Any:
        return torch.nn.functional.pad(x, (before, after), MODES[mode])

    try:
        wanted(torch.tensor(x))
    except RuntimeError:
        return False
    assert_same(lambda x: ops.pad(x, ((0, 0), (0, 0), (before, after)), mode=mode), wanted, x)
    return True


@pytest.mark.parametrize("mode", MODES)
def test_of_borders_that_are_cut_off(mode: str) -> None:
    """Every pair of widths that PyTorch takes."""
    tried = 0
    for n in (3, 4, 5):
        x = np.arange(1.0, n + 1)[None, None]
        for before in range(-3, 4):
            for after in range(-3, 4):
                if max(-before, 0) + max(-after, 0) < n and max(before, after) < n:
                    tried += assert_padded_alike(x, before, after, mode)
    assert tried > 80
