"""What a recorder of PyTorch refuses: steps without a loss, what is no model, loss or batch, other parameters."""

from pathlib import Path

import pytest

from dgrr.trace import record_torch

from .pytorch_runs import batches, cross_entropy, network, sgd, torch


def test_a_step_without_a_loss_is_refused_before_the_update(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    before = model[0].weight.detach().clone()
    cross_entropy(model, next(batches(1))).backward()
    refused = pytest.raises(ValueError, match=r"step 0: expected its loss, got none; call run.loss\(loss\)")
    with record_torch(model, optimizer, path), refused:
        optimizer.step()
    assert torch.equal(model[0].weight, before)


def test_a_closure_without_a_loss_is_refused(path: Path) -> None:
    optimizer = sgd((model := network()).parameters())
    with (
        pytest.raises(ValueError, match="hand the step a closure, or let the model give its loss"),
        record_torch(model, optimizer, path),
    ):
        optimizer.step(lambda: None)


def test_what_is_no_model_or_optimizer_is_refused(path: Path) -> None:
    model = network()
    with pytest.raises(TypeError, match="argument 'model': expected a torch.nn.Module, got dict"):
        record_torch({}, sgd(model.parameters()), path)
    with pytest.raises(TypeError, match="argument 'optimizer': expected a torch.optim.Optimizer, got float"):
        record_torch(model, 0.1, path)
    with pytest.raises(
        TypeError, match=r"argument 'trace': expected a path, a Keep, or an object that .*golden_trace\(\); got 3"
    ):
        record_torch(model, sgd(model.parameters()), 3)  # type: ignore[arg-type]


def test_a_tensor_that_is_no_parameter_of_the_model_is_refused(path: Path) -> None:
    model = network()
    with pytest.raises(ValueError, match=r"it updates a tensor of shape \(2,\) that is no parameter of the model"):
        record_torch(model, sgd([*model.parameters(), torch.nn.Parameter(torch.zeros(2))]), path)


def test_parameters_of_other_dtypes_or_without_shapes_are_refused(path: Path) -> None:
    class Counted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = torch.nn.Parameter(torch.zeros(1, dtype=torch.int32), requires_grad=False)

    with pytest.raises(ValueError, match=r"'count': expected float32, float64, float16, bfloat16, .*; got int32"):
        record_torch(counted := Counted(), sgd(counted.parameters()), path)
    lazy = torch.nn.LazyLinear(3)
    with pytest.raises(ValueError, match="'weight' has no shape yet; call the model once before"):
        record_torch(lazy, sgd(lazy.parameters()), path)


def test_other_groups_than_at_the_beginning_are_refused(path: Path) -> None:
    model = network()
    optimizer = sgd(model[2].parameters())
    with record_torch(model, optimizer, path) as run:
        optimizer.add_param_group({"params": list(model[0].parameters())})
        run.loss(cross_entropy(model, next(batches(1)))).backward()
        with pytest.raises(ValueError, match="other parameter groups than before; begin a new trace"):
            optimizer.step()


def test_what_is_no_loss_or_batch_is_refused(path: Path) -> None:
    model = network()
    with record_torch(model, sgd(model.parameters()), path) as run:
        with pytest.raises(ValueError, match=r"argument 'loss': expected one number, got shapes \[\(2,\)\]"):
            run.loss(torch.zeros(2))
        with pytest.raises(TypeError, match=r"argument 'batch': expected numbers .*; got object at 'name'"):
            run.loss(torch.zeros(()), {"x": torch.zeros(2), "name": object()})
        with pytest.raises(TypeError, match="argument 'loss': expected numbers .*; got str"):
            run.loss("0.5")
