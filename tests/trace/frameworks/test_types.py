"""Floats of 16 and 8 bits and complex numbers are recorded as the bits they are."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from dgrr.trace import Keep, compare, open_trace, recompute, record_torch, validate

from ..v2.format.minimal import Minimal
from .pytorch_runs import batches, cross_entropy, network, sgd, torch, train

CODES = {"float16": 12, "bfloat16": 13, "float8_e4m3fn": 14, "float8_e5m2": 15, "float8_e4m3fnuz": 16}
CODES |= {"float8_e5m2fnuz": 17, "complex64": 18, "complex128": 19, "float8_e8m0fnu": 20}
"""Those of docs/trace_format.md."""


class Holder(torch.nn.Module):
    """A layer with a buffer of any type."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 1)
        self.register_buffer("held", held)

    def forward(self, x: Any) -> Any:
        """What the layer gives."""
        return self.inner(x)


def bytes_of(tensor: Any) -> bytes:
    """The memory of a tensor, by PyTorch alone."""
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())


def digest(word: str, tensor: Any) -> bytes:
    """That of a tensor, as the page of the format says it."""
    shape = tuple(tensor.shape)
    head = struct.pack(f"<II{len(shape)}Q", CODES[word], len(shape), *shape)
    return xxhash.xxh3_128_digest(head + bytes_of(tensor))


@pytest.mark.parametrize("word", CODES)
def test_a_tensor_of_each_type_is_its_bytes(tmp_path: Path, word: str) -> None:
    held = torch.tensor([[1.5, -0.0, 2.0**-7]]).to(getattr(torch, word)).t()  # in another order than C
    model = Holder(held)
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, tmp_path / "run.dgrr") as run:
        run.loss(model(torch.ones(2)).sum(), batch=(held, "a text")).backward()
        optimizer.step()
    assert validate(tmp_path / "run.dgrr")
    assert Minimal((tmp_path / "run.dgrr").read_bytes()).keyframes[0]["held"] == bytes_of(held)
    with open_trace(tmp_path / "run.dgrr") as trace:
        assert trace.header.reader == (3 if CODES[word] < 20 else 5)
        kept = trace.buffers(0)["held"]
        assert (kept.dtype.name, kept.shape, kept.tobytes()) == (word, (3, 1), bytes_of(held))
        assert trace[0].buffer_digests["held"] == digest(word, held)


def test_every_nan_is_one_and_the_same(tmp_path: Path) -> None:
    """The bits are those of the page; a run is stopped by none in a buffer."""
    words = {
        "float16": "007e",
        "bfloat16": "c07f",
        "float8_e4m3fn": "7f",
        "float8_e5m2": "7e",
        "float8_e8m0fnu": "ff",
        "complex64": "0000c07f" * 2,
    }
    for word, canonical in words.items():
        size = 8 if word == "complex64" else torch.empty(0, dtype=getattr(torch, word)).element_size()
        held = torch.full((size,), 255, dtype=torch.uint8).view(getattr(torch, word))
        model = Holder(held)
        optimizer = sgd(model.parameters())
        with record_torch(model, optimizer, tmp_path / word) as run:
            run.loss(model(torch.ones(2)).sum()).backward()
            optimizer.step()
        with open_trace(tmp_path / word) as trace:
            assert trace.buffers(0)["held"].tobytes().hex() == canonical


@pytest.mark.parametrize("word", ["bfloat16", "float16"])
def test_a_model_of_short_floats_is_recorded_compared_and_named(tmp_path: Path, word: str) -> None:
    dtype = getattr(torch, word)
    for name, more in (("a", 0.0), ("b", 2.0**-9)):
        model = network(dtype)
        with torch.no_grad():
            model[2].bias[1] += more
        train(Keep(tmp_path / name, record="full", ops="every"), sgd, steps=2, dtype=dtype, model=model)
    with open_trace(tmp_path / "a") as trace:
        assert {spec.dtype for spec in trace.schema.tensors} == {"bf16" if word == "bfloat16" else "f16", "i64"}
        assert trace.schema.groups[0].rule == "torch_sgd@1"
        ops = trace.ops(0)
        assert ops is not None and {node.dtype for node in ops.nodes} >= {word}
    assert compare(tmp_path / "a", tmp_path / "a", proven=True)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.cause is not None and found.cause.value == "start"
    assert (found.tensors[0].name, found.tensors[0].differing) == ("2.bias", 1)
    assert " ULP" in str(found)
    assert compare(tmp_path / "a", tmp_path / "b", policy="rtol=1,atol=1")
    assert recompute(tmp_path / "a").verdict.value == "unproven"


def test_what_is_computed_under_autocast_has_its_type(tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, Keep(tmp_path / "run", ops="every")) as run:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = run.loss(cross_entropy(model, next(batches(1))))
        loss.backward()
        optimizer.step()
    with open_trace(tmp_path / "run") as trace:
        assert trace.header.reader == 5
        ops = trace.ops(0)
        assert ops is not None
        assert {(n.op, n.dtype) for n in ops.nodes if n.op == "torch.Linear"} == {("torch.Linear", "bfloat16")}
        assert {spec.dtype for spec in trace.schema.tensors} == {"f32", "i64"}


def test_complex_numbers_differ_by_their_parts(tmp_path: Path) -> None:
    for name, imaginary in (("a", 1.0), ("b", 2.0)):
        model = torch.nn.Linear(2, 1, bias=False, dtype=torch.complex64)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[1, 1j * imaginary]]))
        optimizer = sgd(model.parameters())
        with record_torch(model, optimizer, tmp_path / name) as run:
            run.loss(model(torch.ones(2, dtype=torch.complex64)).abs().sum()).backward()
            optimizer.step()
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.tensors[0].differing == 1 and found.tensors[0].worst[0].index == (0, 1, 1)
    assert (float(found.tensors[0].worst[0].a), float(found.tensors[0].worst[0].b)) == (1.0, 2.0)


def test_master_weights_have_the_names_of_the_params(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1, dtype=torch.bfloat16)
    masters = {name: param.detach().float().requires_grad_() for name, param in model.named_parameters()}
    optimizer = torch.optim.AdamW(masters.values(), lr=2.0**-5)
    with record_torch(model, optimizer, tmp_path / "run", master_weights=masters) as run:
        for _ in range(3):
            run.loss(model(torch.ones(2, dtype=torch.bfloat16)).sum()).backward()
            for name, param in model.named_parameters():
                masters[name].grad, param.grad = param.grad.float(), None
            optimizer.step()
            with torch.no_grad():
                for name, param in model.named_parameters():
                    param.copy_(masters[name])
            optimizer.zero_grad()
    with open_trace(tmp_path / "run") as trace:
        kinds = {spec.name: (spec.role.name, spec.dtype) for spec in trace.schema.tensors}
        assert kinds["weight"] == ("PARAM", "f32") and kinds["weight.rounded"] == ("BUFFER", "bf16")
        assert trace[2].after()["weight"].tobytes() == bytes_of(masters["weight"])
    assert recompute(tmp_path / "run"), str(recompute(tmp_path / "run"))
    with pytest.raises(ValueError, match="'master_weights': expected names of the model's params, .*; got 'w'"):
        record_torch(model, optimizer, tmp_path / "other", master_weights={"w": torch.ones(1)})


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_a_type_without_a_code_is_refused(tmp_path: Path) -> None:
    model = Holder(torch.zeros(2, dtype=torch.complex32))
    with pytest.raises(TypeError, match=r"record_torch: expected tensors of float32, .*; got complex32"):
        record_torch(model, sgd(model.parameters()), tmp_path / "run.dgrr")


def test_a_run_of_float32_alone_is_for_every_reader(tmp_path: Path) -> None:
    train(tmp_path / "run.dgrr", sgd, steps=1)
    with open_trace(tmp_path / "run.dgrr") as trace:
        assert trace.header.reader == 2
        assert np.dtype(np.float32) in {array.dtype for array in trace.keyframe(0).values()}


def test_powers_of_two_differ_by_their_exponents_and_older_readers_refuse_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, scales in (("a", [1.0, 0.5]), ("b", [1.0, 4.0])):
        model = Holder(torch.tensor(scales).to(torch.float8_e8m0fnu))
        optimizer = sgd(model.parameters())
        with record_torch(model, optimizer, tmp_path / name) as run:
            torch.nn.init.ones_(model.inner.weight)
            run.loss(model(torch.ones(2)).sum()).backward()
            optimizer.step()
    differing = [tensor for tensor in compare(tmp_path / "a", tmp_path / "b").tensors if tensor.name == "held"]
    assert [(tensor.differing, tensor.worst[0].ulp) for tensor in differing] == [(1, 3)]
    monkeypatch.setattr("dgrr.trace.v2.format.header.READER", 4)
    assert "unsupported: it needs a reader of version 5" in str(validate(tmp_path / "a"))
