"""Rules of ops: their bits, the classes that are made, and what is refused at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, EagerStep, Trainer, capture
from dgrr.runtime.ir import Role
from dgrr.runtime.optim import Cosine, OpsRule, Rule, WarmUp, ops_rule
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError, DTypeError, ShapeError, TapeError, ops

from .user_rules import Plain, RMSprop, Unit, Waves

Array = npt.NDArray[Any]
SHAPES = {"w": (3, 2), "b": (2,), "s": (), "none": (0, 2), "unused": (4,)}
FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def params(dtype: Any, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: np.asarray(rng.standard_normal(shape), dtype) for name, shape in SHAPES.items()}


def copied(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def loss_fn(p: Any, x: Any) -> Any:
    return ops.reduce_mean(ops.tanh(ops.linear(x, p["w"].T, p["b"])) * p["s"]) + p["none"].sum()


def batches(dtype: Any, count: int = 6) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((4, 3)).astype(dtype) for _ in range(count)]


# ------------------------------------------------------------------ bits


@FLOATS
@pytest.mark.parametrize("lr", [0.01, WarmUp(Cosine(0.1, steps=8), steps=3)], ids=str)
def test_numpy_gives_the_same_bits(dtype: Any, lr: Any) -> None:
    rule, rng, p = RMSprop(lr, alpha=0.9), np.random.default_rng(2), params(dtype)
    state, expected = rule.init(p), copied(p)
    square = {name: np.zeros_like(array) for name, array in p.items()}
    for step in range(1, 12):
        grads = {
            name: np.asarray(rng.standard_normal(a.shape[::-1]), dtype).T for name, a in p.items() if name != "unused"
        }
        rule.step(p, grads, state)
        rate, alpha, eps = (dtype(value) for value in rule.hyperparameters(step).values())
        for name, g in grads.items():
            square[name] = alpha * square[name] + (1 - alpha) * (g * g)
            expected[name] = expected[name] - rate * (g / (np.sqrt(square[name]) + eps))
        for name in p:
            assert p[name].tobytes() == np.asarray(expected[name]).tobytes(), (step, name)
            assert state[f"square/{name}"].tobytes() == np.asarray(square[name]).tobytes(), (step, name)
    assert int(state["step"]) == 11


def torch_rmsprop(p: Array, g: Array, square: Array, lr: float, alpha: float, eps: float) -> tuple[Array, Array]:
    """torch/optim/rmsprop.py, _single_tensor_rmsprop: square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha);
    avg = square_avg.sqrt().add_(eps); param.addcdiv_(grad, avg, value=-lr)."""
    square = square * alpha
    square = square + (1 - alpha) * g * g
    return p + -lr * g / (np.sqrt(square) + eps), square


def test_the_formula_of_torch() -> None:
    rule, rng, p = RMSprop(0.01), np.random.default_rng(3), {"w": np.ones(50)}
    state, expected, square = rule.init(p), p["w"].copy(), np.zeros(50)
    grads = rng.standard_normal((40, 50))
    for g in grads:
        rule.step(p, {"w": g}, state)
        expected, square = torch_rmsprop(expected, g, square, 0.01, 0.99, 1e-8)
    np.testing.assert_allclose(p["w"], expected, rtol=1e-13)


def test_torch_itself() -> None:
    torch = pytest.importorskip("torch")
    rule, p = RMSprop(0.01), {"w": np.ones(50)}
    state, theirs = rule.init(p), torch.ones(50, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.RMSprop([theirs], lr=0.01)
    for g in np.random.default_rng(3).standard_normal((40, 50)):
        rule.step(p, {"w": g}, state)
        theirs.grad = torch.tensor(g)
        optimizer.step()
    np.testing.assert_allclose(p["w"], theirs.detach().numpy(), rtol=1e-13)


@FLOATS
def test_plain_ops_have_the_bits_of_the_kernel(dtype: Any) -> None:
    ends = []
    for rule in (Plain(Cosine(0.1, steps=5)), SGD(Cosine(0.1, steps=5))):
        step = EagerStep(loss_fn, params(dtype), Recipe(rule))
        for batch in batches(dtype):
            step(batch)
        ends.append({name: array.tobytes() for name, array in step.params.items()})
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "rule",
    [
        Plain(0.1),
        RMSprop(Cosine(0.1, steps=5)),
        Waves(0.1),
        Waves(Cosine(0.1, steps=5), c5=0.25),
        Unit(0.1),
        Unit(Cosine(0.1, 5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.05, "clip_value": 0.04}, {"accumulate": 2}], ids=str)
@FLOATS
def test_every_mode_has_the_same_bits(rule: Rule, options: Any, dtype: Any) -> None:
    ends = set()
    for mode in ("eager", "capture", "replay"):
        trainer = Trainer(loss_fn, params(dtype), rule, mode=mode, **options)  # type: ignore[arg-type]
        ends.add(trainer.fit(batches(dtype), progress=False).state_digest)
    assert len(ends) == 1


def test_dtypes_may_be_mixed_and_passes_left_out() -> None:
    def mixed(p: Any, x: Any) -> Any:
        return ops.cast(ops.reduce_sum(p["a"] * x), np.float64) + ops.reduce_sum(ops.square(p["b"]))

    start = {"a": np.ones(3, np.float32), "b": np.arange(4.0)}
    for off in ((), ("chains", "in-place"), ("aliases", "common-subexpressions", "dead-code")):
        step = capture(mixed, start, RMSprop(Cosine(0.1, steps=9)), np.ones(3, "f"), without_passes=off)
        eager = EagerStep(mixed, start, step.recipe)
        for _ in range(4):
            assert step(np.ones(3, "f")) == eager(np.ones(3, "f"))
            assert step.digest() == eager.digest()


@pytest.mark.parametrize("rule", [RMSprop(Cosine(0.1, steps=5)), Waves(0.1), Unit(0.1)], ids=str)
def test_steps_are_verified(rule: Rule) -> None:
    step = capture(loss_fn, params(np.float32), rule, batches(np.float32)[0], clip_norm=0.1)
    report = step.verify(5)
    assert report.ok, str(report)


def test_an_update_of_ops_that_goes_wrong_is_found() -> None:
    step = capture(loss_fn, params(np.float32), RMSprop(0.1), batches(np.float32)[0])
    bound = step.record(batches(np.float32)[0]).step.bound
    hyper = next(v for v in step.plan.program.graph.values.values() if v.name == "hyper" and v.id in bound.memory)
    bound.memory[hyper.id].view(np.float64)[1] = 0.5
    assert {"bound table", "update rule", "determinism"} <= {check.name for check in step.verify(3).failures}


def test_buffers_may_change_places() -> None:
    """All results are taken before the first is overwritten."""

    @ops_rule("swap@1")
    def Swap(p: Any, g: Any, a: Any, b: Any, c: Any, *, lr: Any) -> Any:  # noqa: N802
        return ops.reshape(c, p.shape) + lr * g, b, p, ops.swapaxes(a, 0, 0)

    start = {"w": np.arange(6.0).reshape(2, 3)}
    step = capture(lambda p, x: ops.reduce_sum(ops.tanh(p["w"] * x)), start, Swap(1.0), np.ones((2, 3)))
    eager = EagerStep(step.loss_fn, start, step.recipe)
    for _ in range(4):
        step(np.ones((2, 3)))
        eager(np.ones((2, 3)))
        assert step.digest() == eager.digest()
    assert step.verify(3).ok


def test_a_step_of_ops_is_ops_and_reads_the_rate_from_memory() -> None:
    step = capture(loss_fn, params(np.float32), RMSprop(Cosine(0.1, steps=5)), batches(np.float32)[0])
    names = [node.op for node in step.graph.nodes]
    assert {"sqrt", "cosine_rate", "assign"} <= set(names)
    assert all(value.content != "0.1" for value in step.graph.with_role(Role.CONST))


def test_on_an_error_nothing_is_changed() -> None:
    rule, p = RMSprop(0.1), params(np.float64)
    state = rule.init(p)
    before = {name: array.tobytes() for name, array in {**p, **state}.items()}
    with pytest.raises(ShapeError, match="RMSprop.step: gradient of 'b'"):
        rule.step(p, {"w": np.ones((3, 2)), "b": np.ones(3)}, state)
    assert {name: array.tobytes() for name, array in {**p, **state}.items()} == before


# ------------------------------------------------------------------ classes


def test_the_class() -> None:
    assert issubclass(RMSprop, OpsRule)
    assert (RMSprop.__name__, RMSprop.__module__, RMSprop.rule) == (
        "RMSprop",
        __name__.replace("test_ops_rule", "user_rules"),
        "plain_rmsprop@1",
    )
    assert str(RMSprop.__doc__).startswith(
        "Source: torch.optim.RMSprop.\nShapes: parameters of any shape; gradients and"
    )
    assert RMSprop(1).hyperparameters() == {"lr": 1.0, "alpha": 0.99, "eps": 1e-8}
    assert (
        RMSprop(0.5, alpha=0.5) == RMSprop.from_hyperparameters({"lr": 0.5, "alpha": 0.5, "eps": 1e-8}) != RMSprop(0.5)
    )
    assert repr(RMSprop(0.5)) == "RMSprop(lr=0.5, alpha=0.99, eps=1e-08)"
    assert list(Waves(1.0).hyperparameters()) == ["lr", "c5", "c4", "c3", "c2", "c1"]
    assert list(Waves(1.0).init({"w": np.zeros(2, "f")})) == ["step", "a/w", "b/w"]
    with pytest.raises(TypeError):
        Plain()  # lr has no default
    with pytest.raises(TypeError):
        RMSprop(0.1, 0.9)  # type: ignore[call-arg]  # pyright: ignore


@pytest.mark.parametrize("name", ["adam@1", "adam@2", "sgd@9", "clip_value@1"])
def test_names_that_are_taken(name: str) -> None:
    with pytest.raises(DomainError, match=f"ops_rule: '{name}': expected a name that is not built in, got '{name}'"):
        ops_rule(name)


@pytest.mark.parametrize("name", ["rmsprop", "RMSprop@1", "rmsprop@0", "a" * 63 + "@1", 3])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(DomainError, match="expected a name and a version, such as 'mine@1', of at most 64 characters"):
        ops_rule(name)


FUNCTIONS: list[tuple[Callable[..., Any], str]] = [
    (lambda p, *, lr: p, "expected a parameter, its gradient and buffers by their places, and hyperparameters by name"),
    (lambda p, g, *buffers, lr: p, "got (p, g, *buffers, lr); write (p, g, BUFFERS…, *, lr, …)"),
    (lambda p, g, *, lr, **more: p, "got (p, g, *, lr, **more)"),
    (lambda p, g, lr: p, "expected 'lr' among the hyperparameters, which stand behind '*', got none"),
    (lambda p, g, *, rate: p, "got rate"),
    (lambda p, g, *, lr, law: p, "expected names of its own for hyperparameters, got 'law', which rules use"),
    (lambda p, g, step, *, lr: p, "expected 'step' behind '*' and without a default: it is the number of the update"),
    (lambda p, g, *, lr, step=1: p, "expected 'step' behind '*' and without a default"),
]


@pytest.mark.parametrize(("function", "text"), FUNCTIONS)
def test_functions_that_are_no_update(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        ops_rule("mine@1")(function)
    assert str(caught.value).startswith("ops_rule: 'mine@1': <lambda>: ")
    assert text in str(caught.value)


UPDATES: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (
        lambda p, g, b, *, lr: p - lr * g,
        DomainError,
        "expected the new value of the parameter, of buffer 'b', got 1 results",
    ),
    (lambda p, g, b, *, lr: (p, lr * b, b), DomainError, "got 3 results"),
    (lambda p, g, b, *, lr: (p, 0.0), DomainError, "expected a value computed by ops for buffer 'b', got float"),
    (lambda p, g, b, *, lr: (p, lr), ShapeError, "buffer 'b': expected the shape (2,) of the parameter, got ()"),
    (
        lambda p, g, b, *, lr: (ops.cast(p, np.float32), b),
        DTypeError,
        "the parameter: expected float64, got float32; use ops.cast",
    ),
    (lambda p, g, b, *, lr: (p if lr > 0 else g, b), TapeError, "Python cannot branch on them"),
]


@pytest.mark.parametrize(("update", "error", "text"), UPDATES)
@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_updates_are_refused_when_a_trainer_is_made(update: Any, error: Any, text: str, mode: Any) -> None:
    rule = ops_rule("mine@1")(update)(0.1)
    with pytest.raises(error) as caught:
        Trainer(loss_fn, {"w": np.zeros(2)}, rule, mode=mode)
    assert text in str(caught.value)
    with pytest.raises(error):
        capture(loss_fn, {"w": np.zeros(2)}, rule, np.zeros(2))


# ------------------------------------------------------------------ checkpoints


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    def trainer(rule: Rule) -> Trainer:
        return Trainer(loss_fn, params(np.float32), rule)

    rule = RMSprop(Cosine(0.1, steps=12))
    whole = trainer(rule).fit(batches(np.float32, 12), progress=False)
    first = trainer(rule)
    first.fit(batches(np.float32, 12)[:5], progress=False)
    first.save(tmp_path / "run.ckpt")
    second = trainer(rule)
    second.load(tmp_path / "run.ckpt")
    assert second.fit(batches(np.float32, 12)[5:], progress=False).state_digest == whole.state_digest
    with pytest.raises(ValueError, match=r"rule: it was saved with RMSprop\(.*this run has RMSprop\(lr=0.5"):
        trainer(RMSprop(0.5)).load(tmp_path / "run.ckpt")
