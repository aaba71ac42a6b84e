"""Small training loops of PyTorch to record."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dgrr.trace import record_torch

torch: Any = pytest.importorskip("torch", reason="these tests need PyTorch: pip install -e '.[test,torch]'")
torch.set_num_threads(1)  # several wait for each other over tensors of a few numbers

Made = Callable[[Any], Any]
"""Makes an optimizer of params."""


def network(dtype: Any = None, *, inplace: bool = False) -> Any:
    """The same two layers each time."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(5, 8), torch.nn.ReLU(inplace=inplace), torch.nn.Linear(8, 3)
    return torch.nn.Sequential(*layers).to(dtype or torch.float32)


def batches(count: int, dtype: Any = None) -> Iterator[tuple[Any, Any]]:
    """The same inputs and labels each time."""
    draw = torch.Generator().manual_seed(1)
    for _ in range(count):
        x = torch.randn(6, 5, generator=draw).to(dtype or torch.float32)
        yield x, torch.randint(0, 3, (6,), generator=draw)


def cross_entropy(model: Any, batch: tuple[Any, Any]) -> Any:
    """The loss of a batch."""
    return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])


def train(trace: Any, make: Made, *, steps: int = 5, dtype: Any = None, model: Any = None, **options: Any) -> Any:
    """Record a run, and give the model."""
    model = network(dtype) if model is None else model
    optimizer = make(model.parameters())
    with record_torch(model, optimizer, trace, **options) as run:
        for batch in batches(steps, dtype):
            optimizer.zero_grad()
            run.loss(cross_entropy(model, batch), batch).backward()
            optimizer.step()
    return model


def sgd(params: Any) -> Any:
    """The plainest optimizer."""
    return torch.optim.SGD(params, lr=0.1)
