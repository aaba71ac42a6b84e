"""Digests of tensors where they lie, and those that are made once as long as a tensor stays the same."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import Keep, record_torch
from dgrr.trace.frameworks.pytorch import tensor_digests
from dgrr.trace.frameworks.pytorch.arrays import PlainArrays
from dgrr.trace.frameworks.pytorch.tensor_digests import KnownDigests, TensorDigests
from dgrr.trace.v2.format.digest import Algorithm, tensor_digest

from .pytorch_runs import torch

nn = torch.nn
LONG = 4096


def long(seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=LONG).astype(np.float32)).clone()


def turned() -> list[Any]:
    x = long().reshape(4, 16, 64)
    views = [x.transpose(0, 2), x.permute(1, 2, 0), x[:, ::3], x[..., 1], x[:1].expand(3, 16, 64), x[:, :, 5:]]
    return [x, *views, x.double().mT, x.half().mT, (x > 0).mT, x.int().mT, x.to(torch.int64)[::2].mT]


@pytest.mark.parametrize("algorithm", [*Algorithm])
def test_any_order_in_memory_has_the_digest_of_its_array(algorithm: Algorithm) -> None:
    digests = TensorDigests(torch, algorithm)
    for tensor in turned():
        array = tensor.numpy()
        assert digests(tensor) == digests(tensor) == tensor_digest(algorithm, np.ascontiguousarray(array))


def test_a_long_one_in_another_order_is_copied_a_part_at_a_time() -> None:
    digests, x = TensorDigests(torch, Algorithm.XXH3_128), torch.arange(1 << 19, dtype=torch.float32)
    square = x[: 700 * 700].view(700, 700)
    views = [square.T, x.view(1, 2, -1, 8).transpose(1, 2), x.view(2, -1)[:, 5:], x.view(4, -1)[:, ::2].double().T]
    for tensor in views:
        array = np.ascontiguousarray(tensor.numpy())
        assert digests(tensor) == digests(tensor) == tensor_digest(Algorithm.XXH3_128, array)
    assert len(digests._room.first(1 << 30)) <= 1 << 20 < square.nbytes
    square[699, 3] = -float("nan")
    assert digests(square.T) == tensor_digest(Algorithm.XXH3_128, np.ascontiguousarray(square.T.numpy()))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("nan")])
def test_an_infinity_stays_and_a_nan_has_one_form(value: float) -> None:
    digests = TensorDigests(torch, Algorithm.XXH3_128)
    for tensor in (long(), long().reshape(64, 64).T):
        tensor[7] = value
        array = np.ascontiguousarray(tensor.numpy())
        assert digests(tensor) == tensor_digest(Algorithm.XXH3_128, array)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Which tensors are read."""
    read, of = list[Any](), TensorDigests.of

    def counted(self: TensorDigests, tensor: Any, kind: Any) -> bytes:
        read.append(tensor)
        return of(self, tensor, kind)

    monkeypatch.setattr(TensorDigests, "of", counted)
    return read


def known() -> KnownDigests:
    return KnownDigests(TensorDigests(torch, Algorithm.XXH3_128))


def test_a_tensor_is_read_once(made: list[Any]) -> None:
    digest, x = known(), long()
    assert digest(x) == digest(x.detach()) == digest(x.view(LONG)) and len(made) == 1
    assert digest(x.view(64, 64)) != digest(x) and len(made) == 2
    x.add_(1)
    assert digest(x) == TensorDigests(torch, Algorithm.XXH3_128)(x)
    digest.clear()
    made.clear()
    digest(x)
    assert len(made) == 1


def by_pointer(x: Any) -> None:
    ctypes.memset(x.data_ptr(), 1, x.nbytes)


def by_numpy(x: Any) -> None:
    x.numpy()[5] = 3


CHANGES: dict[str, Callable[[Any], Any]] = {
    "in place": lambda x: x.add_(1),
    "through a view": lambda x: x[5:6].fill_(3),
    "through numpy": by_numpy,
    "by a pointer": by_pointer,
    "another memory": lambda x: x.set_(long(1)),
    "other data": lambda x: setattr(x, "data", long(1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_no_op_tells_of_is_seen(change: str) -> None:
    digest, x = known(), long()
    before = digest(x)
    CHANGES[change](x)
    assert digest(x) == TensorDigests(torch, Algorithm.XXH3_128)(x) != before


def test_what_is_forgotten_or_not_trusted_is_read_anew(made: list[Any]) -> None:
    digest, x, late = known(), long(), long(1)
    digest.distrust(late)
    before = digest(x)
    x.data[5] = 3  # of which the version of x tells nothing, and no byte that is looked at
    digest.forget(x.data)
    assert digest(x) != before
    made.clear()
    assert digest(late) == digest(late) and len(made) == 2
    with torch.inference_mode():
        without_version = long(2)
    assert digest(without_version) == digest(without_version) and len(made) == 4


def test_memory_that_is_freed_and_given_out_again_is_another() -> None:
    digest, fresh = known(), TensorDigests(torch, Algorithm.XXH3_128)
    for seed in range(20):
        x = long(seed)
        assert digest(x) == fresh(x)
        del x
    x = long()
    before = digest(x)
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(4 * LONG)
    x.copy_(long(3))
    assert digest(x) == fresh(x) != before


def test_what_is_known_of_a_storage_is_forgotten_with_it() -> None:
    digest, kept = known(), [long(seed) for seed in range(3)]
    before = [digest(x) for x in kept]
    for seed in range(200):
        digest(long(seed))
    assert len(digest._memories) == len(kept)
    assert [digest(x) for x in kept] == before


HELD: dict[str, Callable[[Any], Any]] = {
    "in place": lambda x: x.data.add_(1),
    "other data": lambda x: setattr(x, "data", torch.ones(4, 4)),
    "another order": lambda x: setattr(x, "data", x.data.T),
    "another shape": lambda x: setattr(x, "data", x.data.view(2, 8)),
    "another dtype": lambda x: setattr(x, "data", x.data.view(torch.int32)),
}


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("change", HELD)
def test_an_array_that_is_held_shows_its_tensor(change: str, copy: bool) -> None:
    arrays, x = PlainArrays(torch), nn.Parameter(torch.arange(16.0).view(4, 4), requires_grad=False)
    first = arrays.held("x", x, copy=copy)
    assert (arrays.held("x", x, copy=copy) is first) != copy
    HELD[change](x)
    again = arrays.held("x", x, copy=copy)
    np.testing.assert_array_equal(again, x.detach().numpy(), strict=True)
    other = nn.Parameter(torch.zeros(3))
    np.testing.assert_array_equal(arrays.held("x", other, copy=copy), np.zeros(3, np.float32), strict=True)


def test_an_array_of_a_conjugate_or_negative_is_no_memory_of_it() -> None:
    arrays, x = PlainArrays(torch), torch.tensor([1 + 2j, 3 - 1j])
    for each in (x.conj(), x.conj().imag):
        np.testing.assert_array_equal(arrays.held("x", each, copy=False), each.resolve_neg().resolve_conj().numpy())
        np.testing.assert_array_equal(arrays(each, copy=False), each.resolve_neg().resolve_conj().numpy())


class Wicked(nn.Module):
    """Changes what it has made in all the ways that PyTorch has."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(long().reshape(64, 64))
        self.norm = nn.BatchNorm1d(2048)

    def forward(self, x: Any) -> Any:
        hidden = self.w * 2.0
        same, out = hidden.t(), torch.empty(64, 64)
        torch.mul(x, 3.0, out=out)
        with torch.no_grad():
            same.data[3, 4] = 7.0
            torch._foreach_add_([out, x], 1.0)
            out.numpy()[1] = 5.0
            self.w.data.mul_(0.5)
        part = (hidden + out).chunk(2)
        part[0].data.zero_()
        many = torch.cat([self.w.reshape(2, 2048)] * 2)
        self.norm(many), self.norm(many)
        torch.native_batch_norm(many, None, None, self.norm.running_mean, self.norm.running_var, True, 0.5, 1e-5)
        return self.norm.running_mean.sum() + self.norm.running_var.sum() + (part[0] + part[1] * same[:32]).sum()


@pytest.mark.parametrize("sampled", [True, False])
def test_every_digest_of_a_recorded_step_is_what_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampled: bool
) -> None:
    """Also where no byte is looked at: what ops write to is known."""
    if not sampled:
        monkeypatch.setattr(tensor_digests._Memory, "sample", lambda self: b"")
    seen, call = list[bool](), KnownDigests.__call__
    fresh = TensorDigests(torch, Algorithm.XXH3_128)

    def checked(self: KnownDigests, tensor: Any) -> bytes:
        digest = call(self, tensor)
        seen.append(digest == fresh(tensor))
        return digest

    monkeypatch.setattr(KnownDigests, "__call__", checked)
    model, x = Wicked(), long(1).reshape(64, 64)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    with record_torch(model, optimizer, Keep(tmp_path / "run.dgrr", ops="every"), level="op") as run:
        for _ in range(2):
            optimizer.zero_grad()
            run.loss(model(x), batch=x).backward()
            optimizer.step()
    assert len(seen) > 100 and all(seen)
