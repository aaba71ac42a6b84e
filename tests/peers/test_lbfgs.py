"""L-BFGS against that of PyTorch, in float64: the same path, iteration by iteration and evaluation by evaluation."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import gradients
from dgrr.runtime.optim import LBFGS

torch: Any = pytest.importorskip("torch")


def loss_of(p: Any, kind: str) -> Any:
    """A valley that winds, and a bowl of several scales."""
    a, b = p["a"], p["b"]
    if kind == "valley":
        head, tail = a[:-1], a[1:]
        return 100.0 * ((tail - head * head) * (tail - head * head)).sum() + ((1.0 - head) * (1.0 - head)).sum()
    return (a * a * a * a + a).sum() + ((b - 3.0) * (b - 3.0)).sum() * 10.0


FORMS: list[dict[str, Any]] = [
    {"lr": 1e-3, "max_iter": 7},
    {"lr": 0.5, "line_search": "strong_wolfe"},
    {"line_search": "strong_wolfe", "history_size": 2, "max_iter": 9, "max_eval": 13},
    {"lr": 1e-4, "history_size": 3, "tolerance_change": 1e-3},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("kind", ["valley", "bowl"])
def test_a_run_goes_the_way_of_pytorch(kind: str, form: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    ours = {"a": rng.standard_normal(5), "b": rng.standard_normal((2, 3))}
    theirs = {name: torch.tensor(array, requires_grad=True) for name, array in ours.items()}
    rule = LBFGS(**form)
    options = {key: value for key, value in form.items() if key != "line_search"}
    optimizer = torch.optim.LBFGS(theirs.values(), line_search_fn=form.get("line_search"), **options)
    state = rule.init(ours)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = loss_of(theirs, kind)
        loss.backward()
        return loss.detach()

    for _ in range(3):
        found = rule.step(ours, lambda p: gradients(lambda v, _: loss_of(v, kind), p, ()), state)
        expected = float(optimizer.step(closure))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        kept = next(iter(optimizer.state.values()))
        assert int(state["step"]) == kept["n_iter"]
        assert int(state["evaluations"]) == kept["func_evals"]
        for name, array in ours.items():
            np.testing.assert_allclose(array, theirs[name].detach().numpy(), rtol=1e-7, atol=1e-9)
