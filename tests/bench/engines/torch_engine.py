"""PyTorch: eager or compiled by TorchInductor, with Adam as it comes or fused."""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from .models import LEARNING_RATE, Array, Batch, Model

COMPILED = {"compiled": "default", "autotuned": "max-autotune-no-cudagraphs"}


def network(params: list[tuple[Array, Array]]) -> nn.Sequential:
    """The model with given start values."""
    layers: list[nn.Module] = []
    for weight, bias in params:
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = torch.tensor(weight), torch.tensor(bias)
        layers += [nn.ReLU()] * bool(layers) + [linear]
    return nn.Sequential(*layers)


def make(
    model: Model, params: list[tuple[Array, Array]], threads: int, *, how: str, fused: bool
) -> Callable[[Batch], float]:
    """A training step that returns its loss; ``how``: "eager" or a key of `COMPILED`."""
    torch.set_num_threads(threads)
    net = network(params)
    loss_of = {"mse": nn.MSELoss, "cross entropy": nn.CrossEntropyLoss}[model.loss]()
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE, fused=fused)

    def forward(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return loss_of(net(inputs), targets)

    if how in COMPILED:
        forward = torch.compile(forward, mode=COMPILED[how], fullgraph=True, dynamic=False)

    def step(batch: Batch) -> float:
        inputs, targets = batch
        optimizer.zero_grad()
        loss = forward(torch.from_numpy(inputs), torch.from_numpy(targets))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


make_eager = partial(make, how="eager", fused=False)
make_fused = partial(make, how="eager", fused=True)
make_compiled = partial(make, how="compiled", fused=True)
make_autotuned = partial(make, how="autotuned", fused=True)
