"""The outputs of layers and their gradients: what is noted of a step, and that a comparison names the first layer."""

import struct
import weakref
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from dgrr.base.runs.completed_step import DigestedTape
from dgrr.trace import Keep, OpDigests, compare, open_trace, record_torch
from dgrr.trace.frameworks.pytorch.layer_tape import LayerTape
from dgrr.trace.frameworks.pytorch.tensor_digests import TensorDigests
from dgrr.trace.frameworks.pytorch.torch_modules import TorchModules
from dgrr.trace.v2.format.digest import Algorithm, tensor_digest

from .pytorch_runs import batches, cross_entropy, network, sgd, torch, train

nn = torch.nn


def digest(array: Any) -> bytes:
    """That of a trace."""
    return tensor_digest(Algorithm.XXH3_128, np.ascontiguousarray(array))


def layers_of(model: Any) -> LayerTape:
    """Hooks on a model, which note."""
    tape = LayerTape(torch, TorchModules(model), TensorDigests(torch, Algorithm.XXH3_128))
    tape.start()
    return tape


def tape_of(model: Any, *inputs: Any, passes: int = 1, **named: Any) -> DigestedTape:
    """The tape of forward and backward passes."""
    tape = layers_of(model)
    for _ in range(passes):
        output = model(*inputs, **named)
        first = output[0] if isinstance(output, tuple) else output
        first.square().sum().backward()
    taken = tape.taken()
    tape.stop()
    return taken


def said(tape: DigestedTape) -> list[tuple[str, str, tuple[int, ...]]]:
    """Of every node its op, its layer or name, and its inputs."""
    return [(node.op, node.scope or node.name, node.parents) for node in tape.nodes]


@pytest.mark.parametrize("inplace", [False, True])
def test_every_layer_is_a_node_with_its_params_and_its_input(inplace: bool) -> None:
    model, x = network(inplace=inplace), next(batches(1))[0]
    tape = tape_of(model, x)
    assert said(tape) == [
        ("leaf", "0.weight", ()),
        ("leaf", "0.bias", ()),
        ("leaf", "2.weight", ()),
        ("leaf", "2.bias", ()),
        ("leaf", "input", ()),
        ("torch.Linear", "0", (0, 1, 4)),
        ("torch.ReLU", "1", (5,)),
        ("torch.Linear", "2", (2, 3, 6)),
    ]
    assert tape.nodes[5].attrs == "in_features=5, out_features=8, bias=True"
    assert (tape.nodes[5].dtype, tape.nodes[5].shape) == ("float32", (6, 8))


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
    expected = [*model[0].parameters(), *model[2].parameters(), x, hidden, active, output]
    for value, grad, tensor in zip(tape.values, tape.grads, expected, strict=True):
        assert value == digest(tensor.detach().numpy())
        assert grad == (None if tensor.grad is None else digest(tensor.grad.numpy()))


def test_gradients_of_several_passes_have_the_digest_of_their_digests() -> None:
    x = next(batches(1))[0]
    once, twice = tape_of(network(), x), tape_of(network(), x, passes=2)
    assert len(twice.nodes) == len(once.nodes) + 3  # the leaves are noted once
    assert once.grads[0] is not None
    assert twice.grads[0] == digest(np.frombuffer(2 * once.grads[0], np.uint8))
    assert twice.grads[5] == once.grads[5]


def test_a_gradient_is_what_arrived_whatever_becomes_of_it() -> None:
    """Clipping changes in place what autograd has handed over."""
    model, x = network(), next(batches(1))[0]
    tape = layers_of(model)
    model(x).square().sum().backward()
    arrived = model[0].weight.grad.clone()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    assert tape.taken().grads[0] == digest(arrived.numpy())


class Residual(nn.Module):
    """Computes between its layers, and calls one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.same = nn.Identity()

    def forward(self, x: Any, scale: Any) -> Any:
        hidden = self.linear(x)
        return self.same(self.linear(torch.tanh(hidden))) + scale * x


def test_what_is_computed_between_layers_is_code_with_its_origin_and_its_lines() -> None:
    torch.manual_seed(0)
    model = Residual()
    tape = tape_of(model, torch.ones(2, 5), scale=torch.tensor(2.0, requires_grad=True))
    assert said(tape) == [
        ("leaf", "linear.weight", ()),
        ("leaf", "linear.bias", ()),
        ("leaf", "input", ()),
        ("leaf", "input", ()),
        ("torch.Linear", "linear", (0, 1, 2)),
        ("code", "", (4,)),
        ("torch.Linear", "linear", (0, 1, 5)),
        ("code", "", (3, 6)),
    ]
    code = [node for node in tape.nodes if node.op == "code"]
    assert [node.attrs for node in code] == ["between linear and linear", "between linear and the end of the model"]
    hidden = Residual.forward.__code__.co_firstlineno + 1
    assert [node.place for node in code] == [
        f"tests/trace/frameworks/test_layers.py:{hidden}-{hidden + 1}: Residual.forward",
        f"tests/trace/frameworks/test_layers.py:{hidden + 1}: Residual.forward",
    ]
    values = [model.linear(torch.ones(2, 5)).tanh()]
    values.append(model.linear(values[0]) + 2)
    assert [tape.values[5], tape.values[7]] == [digest(value.detach().numpy()) for value in values]


class Looped(nn.Module):
    """Computes before its layers, and between two calls of one in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: Any) -> Any:
        x = x + 1
        for _ in range(2):
            x = x + self.shift
            x = self.linear(x)
        return x


def test_code_in_front_of_all_layers_and_code_in_a_loop() -> None:
    tape = tape_of(Looped(), torch.ones(2, 3))
    assert [node.name for node in tape.nodes if node.op == "leaf"] == ["linear.weight", "linear.bias", "shift", "input"]
    code = [node for node in tape.nodes if node.op == "code"]
    begin = Looped.forward.__code__.co_firstlineno
    file = "tests/trace/frameworks/test_layers.py"
    assert [(node.attrs, node.parents, node.place) for node in code] == [
        ("before linear", (2,), f"{file}:{begin}-{begin + 4}: Looped.forward"),
        ("between linear and linear", (2, 5), f"{file}:{begin}-{begin + 5}: Looped.forward"),
    ]


def test_the_line_is_that_of_the_user() -> None:
    tape = tape_of(Residual(), torch.ones(2, 5), scale=torch.tensor(2.0))
    places = [node.place for node in tape.nodes if node.op == "torch.Linear"]
    assert places[0].endswith(": hidden = self.linear(x)")
    assert places[1].endswith(": return self.same(self.linear(torch.tanh(hidden))) + scale * x")
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
    tape = layers_of(model)
    tape.stop()
    model(torch.ones(1, 5))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    tape.start()
    with torch.no_grad():
        model(torch.ones(1, 5))
    assert not tape.taken().nodes


def test_a_compiled_model_is_one_layer(tmp_path: Path) -> None:
    """Its code stays as it is: hooks inside would cut it into pieces."""
    compiled = torch.compile(network(), backend="eager", fullgraph=True)
    train(Keep(tmp_path / "run.dgrr", record="full", ops="first"), sgd, model=compiled, steps=2)
    ops = ops_of(tmp_path / "run.dgrr", 0)
    assert [node.op for node in ops.nodes if node.op != "leaf"] == ["torch.OptimizedModule", "code", "code"]
    assert [node.name for node in ops.nodes][:4] == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_complex_and_short_values_are_what_they_are() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fft.rfft(x)

    class Short(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.to(torch.bfloat16)

    def noted(module: Any) -> DigestedTape:
        tape = layers_of(module)
        module(torch.tensor([1.0, 2.0], requires_grad=True))
        return tape.taken()

    assert noted(Spectrum()).values[-1] == digest(np.array([3, -1], np.complex64))
    bits = struct.pack("<IIQHH", 13, 1, 2, 0x3F80, 0x4000)  # of 1 and 2, behind the preamble of a `bf16` of this shape
    assert noted(Short()).values[-1] == xxhash.xxh3_128_digest(bits)


def ops_of(path: Path, step: int) -> OpDigests:
    with open_trace(path) as trace:
        found = trace.ops(step)
    assert found is not None
    return found


def test_the_trace_holds_the_digests_at_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    train(Keep(tmp_path / "run.dgrr", record="full", ops=[1, 3]), sgd)
    ops = ops_of(tmp_path / "run.dgrr", 3)
    assert [node.scope or node.attrs for node in ops.nodes if node.op != "leaf"] == [
        *("0", "1", "2"),
        "between the model and the loss",
        "between the backward pass and the optimizer's step",
    ]
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


class Frozen(nn.Module):
    """Values that autograd does not keep, and others that it does; of each storage a weak reference."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8)).requires_grad_(False)
        self.head, self.kept = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)), list[weakref.ref[Any]]()
        for layer in (*self.trunk, *self.head):
            layer.register_forward_hook(
                lambda module, args, given: self.kept.append(weakref.ref(given.untyped_storage()))
            )

    def forward(self, x: Any) -> Any:
        hidden = self.trunk(x)
        in_trunk = self.alive
        given = self.head(hidden)
        del hidden
        self.after = in_trunk, self.alive
        return given

    @property
    def alive(self) -> int:
        """How many values are."""
        return sum(ref() is not None for ref in self.kept)


@pytest.mark.parametrize("level", ["layer", "op"])
def test_no_value_is_kept_longer_than_without_a_record(tmp_path: Path, level: Any) -> None:
    found = list[tuple[Any, ...]]()
    for recorded in (False, True):
        model, x = Frozen(), torch.ones(6, 5)
        optimizer = sgd(model.head.parameters())
        keep = Keep(tmp_path / "run.dgrr", ops="every")
        with record_torch(model, optimizer, keep, level=level) if recorded else nullcontext() as run:
            loss = model(x).square().sum()
            if run is not None:
                run.loss(loss)
            loss.backward()
            behind = model.alive
            del loss
            found.append((*model.after, behind, model.alive))
            optimizer.step()
    assert found == [found[0]] * 2 and found[0][-1] == 0


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
    assert noted == [0, 9, 0]
