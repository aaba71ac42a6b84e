"""The optimizers against those of PyTorch, in float64: as many steps on the same gradients, every option of each."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW
from dgrr.runtime.optim import LAMB, Adadelta, Adafactor, Adagrad, Adamax, Lion, Muon, NAdam, RAdam, RMSprop, Rule

torch: Any = pytest.importorskip("torch")

Make = Callable[[Any], Any]

MATCHED: list[tuple[Rule, Make]] = [
    (SGD(0.1, maximize=True), lambda p: torch.optim.SGD(p, 0.1, maximize=True)),
    (SGD(0.1, 0.9, 0.1, weight_decay=0.1, maximize=True),
     lambda p: torch.optim.SGD(p, 0.1, 0.9, 0.1, weight_decay=0.1, maximize=True)),
    (SGD(0.1, 0.9, nesterov=True, maximize=True),
     lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True, maximize=True)),
    (Adam(0.01, amsgrad=True), lambda p: torch.optim.Adam(p, 0.01, amsgrad=True)),
    (Adam(0.01, (0.8, 0.95), weight_decay=0.1, maximize=True),
     lambda p: torch.optim.Adam(p, 0.01, (0.8, 0.95), weight_decay=0.1, maximize=True)),
    (AdamW(0.01, (0.8, 0.7), amsgrad=True, maximize=True),
     lambda p: torch.optim.AdamW(p, 0.01, (0.8, 0.7), amsgrad=True, maximize=True)),
    (RMSprop(), lambda p: torch.optim.RMSprop(p)),
    (RMSprop(0.1, 0.9, 1e-3, 0.1, 0.5, centered=True, maximize=True),
     lambda p: torch.optim.RMSprop(p, 0.1, 0.9, 1e-3, 0.1, 0.5, centered=True, maximize=True)),
    (Adagrad(), lambda p: torch.optim.Adagrad(p)),
    (Adagrad(0.1, 0.1, 0.1, 0.5, 1e-3, maximize=True),
     lambda p: torch.optim.Adagrad(p, 0.1, 0.1, 0.1, 0.5, 1e-3, maximize=True)),
    (Adadelta(), lambda p: torch.optim.Adadelta(p)),
    (Adadelta(0.5, 0.8, 1e-3, 0.1, maximize=True),
     lambda p: torch.optim.Adadelta(p, 0.5, 0.8, 1e-3, 0.1, maximize=True)),
    (Adamax(), lambda p: torch.optim.Adamax(p)),
    (Adamax(0.1, (0.8, 0.9), 1e-3, 0.1, maximize=True),
     lambda p: torch.optim.Adamax(p, 0.1, (0.8, 0.9), 1e-3, 0.1, maximize=True)),
    (NAdam(), lambda p: torch.optim.NAdam(p)),
    (NAdam(0.1, (0.8, 0.9), 1e-3, 0.1, 0.1, maximize=True),
     lambda p: torch.optim.NAdam(p, 0.1, (0.8, 0.9), 1e-3, 0.1, 0.1, maximize=True)),
    (NAdam(0.1, weight_decay=0.1, decoupled=True),
     lambda p: torch.optim.NAdam(p, 0.1, weight_decay=0.1, decoupled_weight_decay=True)),
    (RAdam(), lambda p: torch.optim.RAdam(p)),
    (RAdam(0.1, (0.8, 0.9), 1e-3, 0.1, maximize=True),
     lambda p: torch.optim.RAdam(p, 0.1, (0.8, 0.9), 1e-3, 0.1, maximize=True)),
    (RAdam(0.1, weight_decay=0.1, decoupled=True),
     lambda p: torch.optim.RAdam(p, 0.1, weight_decay=0.1, decoupled_weight_decay=True)),
    (Adafactor(eps1=2.0**-52), lambda p: torch.optim.Adafactor(p)),
    (Adafactor(0.9, -0.5, 1e-2, 0.1, 1.2, 0.1, maximize=True),
     lambda p: torch.optim.Adafactor(p, 0.9, -0.5, (1e-2, 0.1), 1.2, 0.1, maximize=True)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    """PyTorch keeps the product of NAdam's momenta in its default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


SHAPES = ((4, 3), (3, 5), (5,), ())
STEPS = 12


def arrays(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape)) for shape in SHAPES]


@pytest.mark.parametrize(("rule", "make"), MATCHED, ids=[str(rule) for rule, _ in MATCHED])
def test_steps_are_those_of_pytorch(rule: Rule, make: Make) -> None:
    ours = {str(i): array for i, array in enumerate(arrays(0))}
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays(0)]
    state, optimizer = rule.init(ours), make(theirs)
    for step in range(1, 1 + STEPS):
        rule.step(ours, {str(i): g for i, g in enumerate(arrays(step))}, state)
        for tensor, gradient in zip(theirs, arrays(step), strict=True):
            tensor.grad = torch.tensor(gradient)
        optimizer.step()
    for array, tensor in zip(ours.values(), theirs, strict=True):
        np.testing.assert_allclose(array, tensor.detach().numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("shape", "options"), [((4, 3), {}), ((3, 5), {"match_rms": True}), ((4, 4), {"nesterov": False})]
)
def test_muon_is_that_of_pytorch_but_for_its_bfloat16(shape: Any, options: dict[str, Any]) -> None:
    """PyTorch iterates in bfloat16, whose numbers have eight bits."""
    rng = np.random.default_rng(1)
    start, gradients = rng.standard_normal(shape), rng.standard_normal((3, *shape))
    ours, theirs = {"w": start.copy()}, torch.tensor(start, requires_grad=True)
    rule = Muon(0.1, **options)
    named = {"nesterov": rule.nesterov, "adjust_lr_fn": "match_rms_adamw" if rule.match_rms else "original"}
    state, optimizer = rule.init(ours), torch.optim.Muon([theirs], 0.1, **named)
    for g in gradients:
        rule.step(ours, {"w": g}, state)
        theirs.grad = torch.tensor(g)
        optimizer.step()
    np.testing.assert_allclose(ours["w"], theirs.detach().numpy(), atol=0.02)


def test_lion_and_lamb_are_their_papers_formulas() -> None:
    """PyTorch has neither; in numpy, as algorithm 2 of each paper."""
    rng = np.random.default_rng(2)
    p, q = rng.standard_normal((2, 3, 4))
    ours = {"p": p.copy(), "q": q.copy()}
    lion, lamb = Lion(0.1, weight_decay=0.1), LAMB(0.1, weight_decay=0.1)
    states = lion.init({"p": p}), lamb.init({"q": q})
    a, m, v = np.zeros((3, 3, 4))
    for t in range(1, 8):
        g = rng.standard_normal((3, 4))
        lion.step({"p": ours["p"]}, {"p": g}, states[0])
        lamb.step({"q": ours["q"]}, {"q": g}, states[1])
        p = p - 0.1 * (np.sign(0.9 * a + 0.1 * g) + 0.1 * p)
        a = 0.99 * a + 0.01 * g
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        r = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.1 * q
        q = q - 0.1 * np.linalg.norm(q) / np.linalg.norm(r) * r
    np.testing.assert_allclose(ours["p"], p, rtol=1e-12)
    np.testing.assert_allclose(ours["q"], q, rtol=1e-11)
