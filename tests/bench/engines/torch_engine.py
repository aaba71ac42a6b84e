"""PyTorch: eager or compiled by TorchInductor, with Adam as it comes or fused, with channels first or last."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.fx import symbolic_trace

from .models import LEARNING_RATE, Array, Batch, Model, Params
from .torch_models import loss_of

LossOf = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
COMPILED = {"compiled": "default", "autotuned": "max-autotune-no-cudagraphs"}


class Step:
    """A forward pass and its backward pass.

    ``how`` is "eager" or a key of `COMPILED`; with ``channels_last`` images and the weights of convolutions lie in
    memory so.
    """

    def __init__(
        self, model: Model, params: Params, threads: int, how: str = "eager", channels_last: bool = False
    ) -> None:
        torch.set_num_threads(threads)
        self._layout = torch.channels_last if channels_last else torch.contiguous_format
        self.params = {name: self._tensor(array).requires_grad_() for name, array in params.items()}
        self.loss_of: LossOf = partial(loss_of(model), self.params)
        if how in COMPILED:
            self.loss_of = torch.compile(self.loss_of, mode=COMPILED[how], fullgraph=True, dynamic=False)

    def _tensor(self, array: Array) -> torch.Tensor:
        tensor = torch.from_numpy(array)
        return tensor.contiguous(memory_format=self._layout) if tensor.ndim == 4 else tensor

    def __call__(self, batch: Batch) -> torch.Tensor:
        """The loss; the gradients are added to those that the parameters have."""
        loss = self.loss_of(*map(self._tensor, batch))
        loss.backward()
        return loss


def make(
    model: Model, params: Params, threads: int, *, how: str = "eager", fused: bool = True, channels_last: bool = False
) -> Callable[[Batch], float]:
    """A training step that returns its loss."""
    step = Step(model, params, threads, how, channels_last)
    optimizer = torch.optim.Adam(step.params.values(), lr=LEARNING_RATE, fused=fused)

    def train(batch: Batch) -> float:
        optimizer.zero_grad()
        loss = step(batch)
        optimizer.step()
        return loss.item()

    return train


make_eager = partial(make, fused=False)
make_fused = make
make_compiled = partial(make, how="compiled")
make_autotuned = partial(make, how="autotuned")
make_channels_last = partial(make, channels_last=True)
make_compiled_channels_last = partial(make, how="compiled", channels_last=True)


def make_leaves(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """The gradients of the parameters alone, without an update. No loss is read."""
    return _gradients(Step(model, params, threads))


def make_retained(model: Model, params: Params, threads: int) -> Callable[[Batch], float]:
    """The gradients of every intermediate value too: each is told ``retain_grad()``, and held until the next step."""
    step = Step(model, params, threads)
    step.loss_of = _retaining(step.loss_of)
    return _gradients(step)


def _gradients(step: Step) -> Callable[[Batch], float]:
    def run(batch: Batch) -> float:
        for parameter in step.params.values():
            parameter.grad = None
        step(batch)
        return 0.0

    return run


def _retaining(loss_of: LossOf) -> LossOf:
    """The same function as straight code that keeps every value it computes on the way."""
    traced = symbolic_trace(lambda inputs, targets: loss_of(inputs, targets))
    kept: list[torch.Tensor] = []

    def keep(value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.requires_grad:
            value.retain_grad()
            kept.append(value)

    for node in [n for n in traced.graph.nodes if n.op in ("call_function", "call_method")]:
        with traced.graph.inserting_after(node):
            traced.graph.call_function(keep, (node,))
    traced.recompile()

    def loss_of_kept(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        kept.clear()
        loss: torch.Tensor = traced.forward(inputs, targets)
        return loss

    return loss_of_kept
