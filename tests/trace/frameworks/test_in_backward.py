"""Gradients that are used in the backward pass of PyTorch: optimizers that step there are recorded, hooks refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dgrr.base.runs.called_op import CalledOp
from dgrr.tape import DomainError, DTypeError
from dgrr.trace import Keep, NonFiniteError, compare, open_trace, recompute, record_torch

from .pytorch_runs import batches, cross_entropy, network, sgd, torch, train


def freeing(param: Any) -> None:
    """Updates a param and frees its gradient as soon as that is there."""
    with torch.no_grad():
        param.sub_(param.grad, alpha=0.1)
    param.grad = None


@pytest.mark.parametrize("level", ["layer", "op"])
@pytest.mark.parametrize("is_late", [False, True])
def test_gradients_that_are_freed_in_the_backward_pass_are_refused(tmp_path: Path, level: Any, is_late: bool) -> None:
    """Their updates would be in the params, and no gradient in the trace; hooks may come behind the recorder's."""
    model = network()
    optimizer = sgd(model.parameters())
    if not is_late:
        model[0].weight.register_post_accumulate_grad_hook(freeing)
    with record_torch(model, optimizer, tmp_path / "run", level=level) as run:
        if is_late:
            model[0].weight.register_post_accumulate_grad_hook(freeing)
        loss = run.loss(cross_entropy(model, next(batches(1))))
        with pytest.raises(DomainError, match="freed the gradient of '0.weight' in the backward pass. Where each "):
            loss.backward()
    cross_entropy(model, next(batches(1))).backward()  # the recorder's hooks are gone with it


def test_an_optimizer_that_steps_in_the_backward_pass_is_refused(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd([model[0].weight])
    model[0].weight.register_post_accumulate_grad_hook(lambda param: optimizer.step())
    with record_torch(model, optimizer, tmp_path / "run") as run:
        loss = run.loss(cross_entropy(model, next(batches(1))))
        with pytest.raises(DomainError, match=r"stay until optimizer.step\(\) after backward\(\); it is called in the"):
            loss.backward()


def in_backward(model: Any, make: Any) -> list[Any]:
    """An optimizer for each param, which steps as soon as the gradient is there and overwrites it."""
    optimizers = {param: make([param]) for param in model.parameters()}

    def step(param: Any) -> None:
        optimizers[param].step()
        optimizers[param].zero_grad(set_to_none=False)

    for param in model.parameters():
        param.register_post_accumulate_grad_hook(step)
    return list(optimizers.values())


def momentum(params: Any) -> Any:
    """A law with a buffer."""
    return torch.optim.SGD(params, lr=0.1, momentum=0.9)


def recorded(keep: Keep, model: Any, optimizer: Any, count: int, *, early: bool, **options: Any) -> None:
    """A run of so many steps; where they are not made in the backward pass, they are made behind it."""
    with record_torch(model, optimizer, keep, **options) as run:
        for batch in batches(count):
            run.loss(cross_entropy(model, batch), batch).backward()
            if not early:
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)


@pytest.mark.parametrize("make", [momentum, torch.optim.AdamW, torch.optim.RMSprop])
def test_optimizers_in_the_backward_pass_record_what_one_behind_it_does(tmp_path: Path, make: Any) -> None:
    """To the bit what one optimizer with a group for each param does: gradients, params, state and layers."""
    for early in (True, False):
        model = network()
        groups = [{"params": [param]} for param in model.parameters()]
        optimizer = in_backward(model, make) if early else make(groups)
        recorded(Keep(tmp_path / f"{early}", record="full", ops="every"), model, optimizer, 3, early=early)
    assert compare(tmp_path / "False", tmp_path / "True", proven=True).same
    with open_trace(tmp_path / "True") as trace:
        assert len(trace) == 3 and trace[2].grad_digests.keys() == dict(network().named_parameters()).keys()
    proven = recompute(tmp_path / "True")
    assert proven.checked == (0 if make is torch.optim.RMSprop else 3), "its updates follow a law"
    assert bool(proven) is (make is not torch.optim.RMSprop)


def test_the_ops_of_optimizers_in_the_backward_pass_are_those_of_one_behind_it(tmp_path: Path) -> None:
    """Of each step that is wanted, from its first op to its last, and of no other; gradients are zeroed elsewhere."""
    calls = dict[bool, list[list[CalledOp]]]()
    for early in (True, False):
        model, keep = network(), Keep(tmp_path / f"{early}", ops=[1, 2, 4])
        optimizer = in_backward(model, torch.optim.Adam) if early else torch.optim.Adam(model.parameters())
        recorded(keep, model, optimizer, 5, early=early, level="op")
        with open_trace(keep.path) as trace:
            steps = [trace.calls(step) for step in range(5)]
        calls[early] = [[replace(c, place="") for c in step if c.name != "aten.zero_.default"] for step in steps]
    for step, (one, other) in enumerate(zip(calls[True], calls[False], strict=True)):
        assert sorted(map(repr, one)) == sorted(map(repr, other))
        phases = [call.phase for call in one]
        assert set(phases) == ({"forward", "backward", "optimizer"} if step in (1, 2, 4) else set())
        assert not one or "backward" in phases[phases.index("optimizer") :]


def test_a_gradient_that_is_not_finite_ends_the_backward_pass(tmp_path: Path) -> None:
    model = network()
    optimizers, loss = in_backward(model, sgd), model(torch.ones(2, 5)).sum() * float("inf")
    with record_torch(model, optimizers, tmp_path / "run") as run:
        run.loss(torch.tensor(1.0))
        with pytest.raises(
            NonFiniteError, match="finite gradients, got -?inf in '.*' at flat element . of step 0; nothin"
        ):
            loss.backward()
    assert len(open_trace(tmp_path / "run")) == 0


def test_lists_of_optimizers_that_do_something_else_are_refused(tmp_path: Path) -> None:
    model = network()
    sgds = [sgd([param]) for param in model.parameters()]
    with pytest.raises(
        DomainError, match="'optimizer': expected one optimizer, or a list of optimizers of one class; got"
    ):
        record_torch(model, [], tmp_path / "run")
    with pytest.raises(DomainError, match="optimizers of one class; got SGD and Adam$"):
        record_torch(model, [*sgds[1:], torch.optim.Adam([model[0].weight])], tmp_path / "run")
    with pytest.raises(DTypeError, match="argument 'optimizer': expected a torch.optim.Optimizer, got int"):
        record_torch(model, [1], tmp_path / "run")
    with record_torch(model, sgds, tmp_path / "behind") as run:
        run.loss(cross_entropy(model, next(batches(1)))).backward()
        with pytest.raises(
            DomainError, match="expected optimizers that step in the backward pass, .* use one optimizer$"
        ):
            sgds[0].step()
    model[0].bias.register_post_accumulate_grad_hook(lambda param: [sgds[1].step(), sgds[1].step()])
    with record_torch(model, sgds, tmp_path / "twice") as run:
        loss = run.loss(cross_entropy(model, next(batches(1))))
        with pytest.raises(
            DomainError, match="expected one step of each param in a backward pass, got a second one of"
        ):
            loss.backward()


def test_a_hook_that_only_looks_at_gradients_is_none_of_these(tmp_path: Path) -> None:
    norms = list[Any]()
    model = network()
    for param in model.parameters():
        param.register_post_accumulate_grad_hook(lambda param: norms.append(param.grad.norm()))
    train(tmp_path / "looked", sgd, steps=2, model=model)
    train(tmp_path / "plain", sgd, steps=2)
    assert len(norms) == 8 and compare(tmp_path / "looked", tmp_path / "plain").same
