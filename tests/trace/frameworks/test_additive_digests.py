"""Digests that are made where a tensor lies: by the page, in one copy a step, and as good as others in a comparison."""

import ctypes
import importlib
import struct
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import xxhash

from dgrr.base.arrays import Array
from dgrr.runtime.cuda import additive
from dgrr.runtime.cuda.additive import NanForm, blocks_of
from dgrr.tape.numerics.cuda import nvrtc
from dgrr.trace import Keep, compare, open_trace, record_torch, validate
from dgrr.trace.frameworks.pytorch import additive_digests
from dgrr.trace.frameworks.pytorch.additive_digests import AdditiveDigests, are_wanted
from dgrr.trace.frameworks.pytorch.arrays import array
from dgrr.trace.v2.format import header
from dgrr.trace.v2.format.constants import DTYPE_CODES
from dgrr.trace.v2.format.digest import Algorithm, canonical, dtype_name

from ..v2.format.test_additive import bits, by_the_page
from ..v2.write.test_packed_calls import surgery
from .pytorch_runs import batches, cross_entropy, network, sgd, torch, train


def expected(values: Array) -> bytes:
    """The page's digest of a value on the way."""
    elements = list(enumerate(bits(canonical(values))))
    head = struct.pack(f"<II{values.ndim}Q", DTYPE_CODES[dtype_name(values.dtype)], values.ndim, *values.shape)
    return xxhash.xxh3_128_digest(head + by_the_page(elements))


def tensors() -> list[Any]:
    drawn = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 6, 5)) * 100)
    odd = drawn.float()
    odd[0, 0, :3] = torch.tensor([float("nan"), -float("nan"), -0.0])
    small = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz]
    small += [torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
    whole = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
    turned = [drawn.mT, odd[:, ::2], odd[..., 1].T, drawn[:1].expand(3, 6, 5)]
    pairs = torch.complex(odd, odd.flip(0))
    return [
        *(drawn, odd, *turned, pairs, pairs.conj(), odd.to_sparse()),
        *(odd.to(dtype) for dtype in small),
        *(drawn.to(dtype) for dtype in whole),
        *(torch.tensor(2.5), torch.empty(3, 0), torch.full((3,), -1)),
    ]


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all tensors lay on a GPU, whose sums are made here of what lies at the addresses."""

    def sums(gpu: Any, stream: int, to: int, at: int, count: int, itemsize: int, nan: NanForm) -> None:
        elements = np.frombuffer(ctypes.string_at(at, count * itemsize), f"u{itemsize}")
        counted = np.where((elements & nan.mask) > nan.limit, nan.bits, elements).astype(elements.dtype)
        total = by_the_page(list(enumerate(bits(counted))))
        words = np.zeros((blocks_of(count), 2), np.uint64)
        words[0] = np.frombuffer(total, np.uint64)
        ctypes.memmove(to, words.ctypes.data, words.nbytes)

    monkeypatch.setattr(additive_digests, "is_on_gpu", lambda tensor: not tensor.is_meta)
    monkeypatch.setattr(additive_digests, "gpu", lambda number: None)
    monkeypatch.setattr(additive_digests, "start_sums", sums)
    monkeypatch.setattr(additive_digests, "require_sums", lambda number: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))


def found() -> Any:
    pytest.importorskip("ml_dtypes")
    digest, every = AdditiveDigests(torch, Algorithm.XXH3_128), tensors()
    assert digest.settled([*map(digest, every), None]) == (*(expected(array(each)) for each in every), None)
    assert digest.of_array(np.arange(5)) == expected(np.arange(5))
    return digest


def test_they_are_what_the_page_says() -> None:
    found()


@pytest.mark.usefixtures("on_a_gpu")
def test_so_are_those_of_a_gpu() -> None:
    digest = found()
    assert digest(torch.zeros(3)) != digest(torch.zeros(3))  # they stand for digests


def test_another_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="record_torch: expected tensors of float32"):
        AdditiveDigests(torch, Algorithm.XXH3_128)(torch.empty(3, dtype=torch.uint64).view(torch.bits8))


@pytest.mark.usefixtures("on_a_gpu")
@pytest.mark.parametrize("level", ["layer", "op"])
def test_sums_are_brought_once_a_step_and_nobody_waits_before(
    level: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought, waited = Counter[str](), Counter[str]()
    bring = additive_digests.brought

    def counted(tensor: Any) -> Array:
        brought["copies"] += 1
        return bring(tensor)

    class Waits(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            waited[str(func)] += "_local_scalar" in str(func) or "nonzero" in str(func)
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(additive_digests, "brought", counted)
    monkeypatch.setattr("dgrr.trace.frameworks.pytorch.calls.op_calls._SECONDS", 60.0)
    with Waits():
        train(Keep(tmp_path / "t", record="digest", ops="every"), sgd, steps=3, additive=True, level=level)
    assert brought["copies"] == 3 * (1 + (level == "op"))
    assert sum(waited.values()) == 1  # when it begins: whether subnormal numbers are flushed


@pytest.mark.parametrize("level", ["layer", "op"])
def test_what_is_recorded_is_compared_as_ever(level: Any, tmp_path: Path) -> None:
    def recorded(name: str, *, additive: bool, scale: float = 1.0) -> Path:
        model = network()
        with torch.no_grad():
            model[2].register_forward_hook(lambda module, given, made: made * scale)
        keep = Keep(tmp_path / name, record="digest", ops="every", salt=bytes(16), created_at=0)
        train(keep, sgd, steps=2, model=model, additive=additive, level=level)
        return tmp_path / name

    a, b, other = (recorded(name, additive=True, scale=scale) for name, scale in (("a", 1.0), ("b", 1.0), ("o", 1.5)))
    assert compare(a, b).same
    plain = [recorded("p", additive=False), recorded("q", additive=False, scale=1.5)]
    assert compare(a, other).sentence == compare(*plain).sentence
    mixed = compare(a, plain[0])
    assert mixed.same
    assert "not compared: what layers and ops computed, of which one has additive digests" in str(mixed)
    parted = str(compare(a, plain[1]))
    assert "step 0 is the first that differs" in parted and "not compared: what layers and ops computed" in parted
    assert "every op agrees" not in parted and "reads" not in parted
    digests = [trace.ops(0).values for trace in (open_trace(a), open_trace(plain[0]))]  # type: ignore[union-attr]
    assert len(digests[0]) == len(digests[1]) and not {*digests[0]} & {*digests[1]}


def test_gradients_that_arrive_at_one_value_are_told_together(tmp_path: Path) -> None:
    model, (x, labels) = network(), next(batches(1))
    halves = list(zip(x.chunk(2), labels.chunk(2), strict=True))
    weight, optimizer = model[0].weight, sgd(model.parameters())
    arrived = [expected(array(torch.autograd.grad(cross_entropy(model, half), weight)[0])) for half in halves]
    keep = Keep(tmp_path / "t", record="digest", ops="every")
    with record_torch(model, optimizer, keep, additive=True) as run:
        for half in halves:
            run.loss(cross_entropy(model, half), half).backward()
        optimizer.step()
    ops = cast(Any, open_trace(tmp_path / "t").ops(0))
    told = next(grad for node, grad in zip(ops.nodes, ops.grads, strict=True) if node.name == "0.weight")
    assert told == expected(np.frombuffer(b"".join(arrived), np.uint8))


def test_an_older_reader_refuses_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path / "t", sgd, steps=1, additive=True)
    assert open_trace(tmp_path / "t").header.additive
    monkeypatch.setattr(header, "READER", 5)
    assert "it needs a reader of version 6 with digest 1" in str(validate(tmp_path / "t"))


@pytest.mark.parametrize(("reader", "kind"), [(6, 2), (5, 1)])
def test_a_header_that_no_writer_writes_is_corrupt(reader: int, kind: int, tmp_path: Path) -> None:
    train(tmp_path / "t", sgd, steps=1, additive=True)
    surgery(surgery(tmp_path / "t", 12, bytes([reader, 0])), 51, bytes([kind]))
    assert f"corrupt: digests of kind {kind} on the way, for a reader of version {reader}" in str(
        validate(tmp_path / "t")
    )


class Modern:
    arch, function = "sm_90", None


NEAR, FAR = torch.empty(2), SimpleNamespace(device=SimpleNamespace(type="cuda", index=1))


def test_they_are_made_where_a_param_lies_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    monkeypatch.setattr(additive_digests, "require_sums", asked.append)
    assert (
        are_wanted({"a": NEAR, "b": FAR}, additive=None)
        and are_wanted({"b": FAR}, additive=True)
        and are_wanted({"a": NEAR}, additive=True)
    )
    assert not (are_wanted({"a": NEAR}, additive=None) or are_wanted({"b": FAR}, additive=False))
    assert asked == [1, 1]


def test_nothing_fails_where_they_cannot_be_made_unless_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_nvrtc", lambda: importlib.import_module("no_nvrtc"))
    monkeypatch.setattr(additive, "gpu", lambda number: Modern())
    nvrtc.version.cache_clear()
    assert not are_wanted({"b": FAR}, additive=None)
    with pytest.raises(ImportError):
        are_wanted({"b": FAR}, additive=True)
