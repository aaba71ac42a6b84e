"""The outputs of layers and their gradients: what is noted of a step, and that a comparison names the first layer."""

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.completed_step import StepTape
from dgrr.trace import Keep, OpDigests, compare, open_trace, record_torch
from dgrr.trace.frameworks.pytorch_layers import LayerTape

from .pytorch_runs import batches, cross_entropy, network, sgd, torch, train

nn = torch.nn


def tape_of(model: Any, *inputs: Any, passes: int = 1, **named: Any) -> StepTape:
    """The tape of forward and backward passes."""
    tape = LayerTape(torch, model, dict(model.named_parameters()))
    tape.noting = True
    for _ in range(passes):
        output = model(*inputs, **named)
        first = output[0] if isinstance(output, tuple) else output
        first.square().sum().backward()
    taken = tape.taken()
    tape.close()
    return taken


def said(tape: StepTape) -> list[tuple[str, str, tuple[int, ...]]]:
    """Of every node its op, its layer or name, and its inputs."""
    return [(node.op, node.scope or node.name, node.parents) for node in tape.nodes]


@pytest.mark.parametrize("inplace", [False, True])
def test_every_layer_is_a_node_with_its_params_and_its_input(inplace: bool) -> None:
    model, x = network(inplace=inplace), next(batches(1))[0]
    tape = tape_of(model, x)
    assert said(tape) == [
        ("leaf", "0.weight", ()),
        ("leaf", "0.bias", ()),
        ("leaf", "input", ()),
        ("torch.Linear", "0", (0, 1, 2)),
        ("torch.ReLU", "1", (3,)),
        ("leaf", "2.weight", ()),
        ("leaf", "2.bias", ()),
        ("torch.Linear", "2", (4, 5, 6)),
    ]
    assert tape.nodes[3].attrs == "in_features=5, out_features=8, bias=True"
    assert (tape.nodes[3].dtype, tape.nodes[3].shape) == ("float32", (6, 8))


@pytest.mark.parametrize("inplace", [False, True])
def test_values_and_gradients_are_those_of_autograd(inplace: bool) -> None:
    """A value that a layer changes in place is noted as it was before, and so is its gradient."""
    x = next(batches(1))[0]
    tape = tape_of(network(inplace=inplace), x)
    model = network()
    hidden = model[0](x)
    active = torch.relu(hidden)
    output = model[2](active)
    for value in (hidden, active, output):
        value.retain_grad()
    output.square().sum().backward()
    expected = [model[0].weight, model[0].bias, x, hidden, active, model[2].weight, model[2].bias, output]
    for value, grad, tensor in zip(tape.values, tape.grads, expected, strict=True):
        np.testing.assert_array_equal(value, tensor.detach().numpy())
        assert (grad is None) == (tensor.grad is None)
        if grad is not None:
            np.testing.assert_array_equal(grad, tensor.grad.numpy())


def test_gradients_of_several_passes_are_added() -> None:
    x = next(batches(1))[0]
    once, twice = tape_of(network(), x), tape_of(network(), x, passes=2)
    assert len(twice.nodes) == len(once.nodes) + 3  # the leaves are noted once
    np.testing.assert_array_equal(twice.grads[0], 2 * once.grads[0])
    np.testing.assert_array_equal(twice.grads[3], once.grads[3])


class Residual(nn.Module):
    """Computes between its layers, and calls one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.same = nn.Identity()

    def forward(self, x: Any, scale: Any) -> Any:
        hidden = self.linear(x)
        return self.same(self.linear(torch.tanh(hidden))) + scale * x


def test_what_is_computed_between_layers_comes_from_the_layer_before() -> None:
    torch.manual_seed(0)
    tape = tape_of(Residual(), torch.ones(2, 5), scale=torch.tensor(2.0))
    assert said(tape) == [
        ("leaf", "linear.weight", ()),
        ("leaf", "linear.bias", ()),
        ("leaf", "input", ()),
        ("torch.Linear", "linear", (0, 1, 2)),
        ("torch.Linear", "linear", (0, 1, 3)),
        ("leaf", "input", ()),
        ("torch.Residual", "", (2, 5)),
    ]


def test_the_line_is_that_of_the_user() -> None:
    tape = tape_of(Residual(), torch.ones(2, 5), scale=torch.tensor(2.0))
    places = [node.place for node in tape.nodes if node.op != "leaf"]
    assert places[0].endswith(": hidden = self.linear(x)")
    assert places[1].endswith(": return self.same(self.linear(torch.tanh(hidden))) + scale * x")
    assert places[2].endswith(": output = model(*inputs, **named)")
    assert places[0].startswith("tests/trace/frameworks/test_layers.py:") or Path(places[0].split(":")[0]).is_absolute()


def test_layers_with_several_outputs_and_parts_that_are_not_called() -> None:
    torch.manual_seed(0)
    lstm = tape_of(nn.LSTM(3, 2), torch.ones(4, 1, 3))
    assert [node.attrs for node in lstm.nodes if node.op == "torch.LSTM"] == [
        "3, 2, output=0",
        "3, 2, output=1.0",
        "3, 2, output=1.1",
    ]
    x = torch.ones(4, 1, 6)
    attention = tape_of(nn.MultiheadAttention(6, 2), x, x, x)
    names = [node.name for node in attention.nodes if node.op == "leaf"]
    assert {"in_proj_weight", "out_proj.weight"} < set(names)


def test_nothing_is_noted_of_a_validation_or_where_it_is_not_wanted() -> None:
    model = network()
    tape = LayerTape(torch, model, {})
    model(torch.ones(1, 5))
    tape.noting = True
    with torch.no_grad():
        model(torch.ones(1, 5))
    assert not tape.taken().nodes


def test_a_compiled_model_is_one_layer(tmp_path: Path) -> None:
    """Its code stays as it is: hooks inside would cut it into pieces."""
    compiled = torch.compile(network(), backend="eager", fullgraph=True)
    train(Keep(tmp_path / "run.dgrr", record="full", ops="first"), sgd, model=compiled, steps=2)
    ops = ops_of(tmp_path / "run.dgrr", 0)
    assert [node.op for node in ops.nodes if node.op != "leaf"] == ["torch.OptimizedModule"]
    assert len([node for node in ops.nodes if node.name.startswith("_orig_mod.")]) == 4


def test_complex_and_short_values_are_kept_in_float32() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fft.rfft(x)

    class Short(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.to(torch.bfloat16)

    def noted(module: Any) -> StepTape:
        tape = LayerTape(torch, module, {})
        tape.noting = True
        module(torch.tensor([1.0, 2.0], requires_grad=True))
        return tape.taken()

    assert noted(Spectrum()).values[-1].tolist() == [[3.0, 0.0], [-1.0, 0.0]]
    assert noted(Short()).values[-1].dtype == np.float32


def ops_of(path: Path, step: int) -> OpDigests:
    with open_trace(path) as trace:
        found = trace.ops(step)
    assert found is not None
    return found


def test_the_trace_holds_the_digests_at_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    train(Keep(tmp_path / "run.dgrr", record="full", ops=[1, 3]), sgd)
    ops = ops_of(tmp_path / "run.dgrr", 3)
    assert [node.scope for node in ops.nodes if node.op != "leaf"] == ["0", "1", "2"]
    assert all(ops.grads[i] is not None for i, node in enumerate(ops.nodes) if node.scope)
    with open_trace(tmp_path / "run.dgrr") as trace:
        assert [trace.ops(step) is not None for step in range(5)] == [False, True, False, True, False]


class FaultyRelu(torch.autograd.Function):
    """ReLU whose greatest element, or the gradient there, is an ULP off."""

    @staticmethod
    def forward(ctx: Any, x: Any, what: str) -> Any:
        y = torch.relu(x)
        ctx.save_for_backward(y)
        ctx.what = what
        if what == "value":
            y.view(-1)[y.argmax()] *= 1 + 2**-23
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (y,) = ctx.saved_tensors
        x_grad = grad * (y > 0)
        if ctx.what == "grad":
            x_grad.view(-1)[y.argmax()] *= 1 + 2**-23
        return x_grad, None


class OneUlp(nn.Module):
    """ReLU that is wrong at one call."""

    def __init__(self, call: int, what: str) -> None:
        super().__init__()
        self.call, self.what, self.calls = call, what, count()

    def forward(self, x: Any) -> Any:
        return FaultyRelu.apply(x, self.what if next(self.calls) == self.call else "")


def with_relu(call: int, what: str) -> Any:
    model = network()
    model[1] = OneUlp(call, what)
    return model


@pytest.mark.parametrize("what", ["value", "grad"])
def test_a_comparison_names_the_first_layer_that_differs(tmp_path: Path, what: str) -> None:
    paths = tmp_path / "a.dgrr", tmp_path / "b.dgrr"
    for path, call in zip(paths, (-1, 2), strict=True):
        train(Keep(path, record="full", ops="every"), sgd, model=with_relu(call, what))
    found = compare(*paths)
    assert found.step == 2 and found.op is not None
    assert (found.op.what, found.op.node.op, found.op.node.scope) == (what, "torch.OneUlp", "1")
    assert found.op.inputs_agree
    assert found.op.node.place.endswith(": return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])")


def test_another_layer_is_another_model(tmp_path: Path) -> None:
    paths = tmp_path / "a.dgrr", tmp_path / "b.dgrr"
    for path, p in zip(paths, (0.0, 0.5), strict=True):
        model = network()
        model[1] = nn.Sequential(nn.ReLU(), nn.Dropout(p))
        train(Keep(path, record="full", ops="first"), sgd, model=model)
    found = compare(*paths)
    assert found.cause is not None and found.cause.value == "model"
    assert found.op is not None and (found.op.node.scope, found.op.node.attrs) == ("1.1", "p=0.5, inplace=False")


def test_runs_of_one_seed_are_the_same_and_those_of_two_are_not(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(Keep(tmp_path / f"{name}.dgrr", record="full", ops="every"), sgd)
    assert compare(tmp_path / "a.dgrr", tmp_path / "b.dgrr")
    model = network()
    with torch.no_grad():
        model[0].bias[0] += 1
    train(tmp_path / "c.dgrr", sgd, model=model)
    found = compare(tmp_path / "a.dgrr", tmp_path / "c.dgrr", policy="rtol=1e-4,atol=1e-6")
    assert found.cause is not None and found.cause.value == "start"


def test_another_version_of_pytorch_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path / "a.dgrr", sgd)
    monkeypatch.setattr(torch, "__version__", "9.9")
    train(tmp_path / "b.dgrr", lambda p: torch.optim.SGD(p, lr=0.2))
    found = compare(tmp_path / "a.dgrr", tmp_path / "b.dgrr")
    assert found.environment["torch"][1] == "9.9"
    assert found.cause is not None and found.cause.value == "rule"


def test_only_the_steps_that_are_wanted_are_noted(tmp_path: Path) -> None:
    """What the layers keep is let go with the step."""
    model = network()
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, Keep(tmp_path / "run.dgrr", ops=[1])) as run:
        noted = []
        for batch in batches(3):
            optimizer.zero_grad()
            run.loss(cross_entropy(model, batch)).backward()
            noted.append(len(run._layers._nodes))
            optimizer.step()
    assert noted == [0, 8, 0]
