"""Weights that come from PyTorch compute there and here the same, and go back as they came."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, nn

torch = pytest.importorskip("torch")

T = torch.nn


def tokens(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 7, shape)


def normal(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


class Joined(T.Module):  # type: ignore[name-defined,misc]
    """A module whose result is the first of several."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.inner = module

    def forward(self, x: Any) -> Any:
        found = self.inner(x, x, x) if isinstance(self.inner, T.MultiheadAttention) else self.inner(x)
        return found[0]


CASES: dict[str, tuple[Any, nn.Layer, Any, dict[str, str]]] = {
    "image": (
        T.Sequential(T.Conv2d(1, 4, 3), T.BatchNorm2d(4), T.ReLU(), T.Flatten(), T.Linear(64, 3)),
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)),
        normal(2, 1, 6, 6), {},
    ),
    "transposed": (
        T.Sequential(T.ConvTranspose2d(2, 4, 3, groups=2), T.GroupNorm(2, 4)),
        nn.Sequential(nn.ConvTranspose2d(2, 4, 3, groups=2), nn.GroupNorm(2, 4)), normal(2, 2, 5, 5), {},
    ),
    "transformer": (
        T.Sequential(
            T.Embedding(7, 8),
            T.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True, activation="gelu"),
            T.LayerNorm(8),
        ),
        nn.Sequential(nn.Embedding(7, 8), nn.TransformerBlock(8, 2, 16), nn.LayerNorm(8)), tokens(3, 5), {},
    ),
    "attention": (Joined(T.MultiheadAttention(8, 2, batch_first=True)), nn.MultiHeadAttention(8, 2), normal(3, 5, 8),
                  {"inner.": ""}),
    "lstm": (Joined(T.LSTM(4, 6, 2, bidirectional=True)), nn.LSTM(4, 6, 2, bidirectional=True), normal(5, 3, 4),
             {"inner.": ""}),
    "gru": (Joined(T.GRU(4, 6, bias=False)), nn.GRU(4, 6, bias=False), normal(5, 3, 4), {"inner.": ""}),
}  # fmt: skip


def prepared(module: Any) -> Any:
    """Every array of a module with numbers of its own."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator) * 0.5 + (0.2 if "var" in name else 0.0))
    return module.eval()


@pytest.mark.parametrize("case", CASES)
def test_the_same_weights_give_the_same_values(case: str) -> None:
    module, model, x, rename = CASES[case]
    prepared(module)
    found = nn.load_torch(module.state_dict(), model, rename)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(model({**found.params, **found.state}, x), expected, rtol=1e-5, atol=1e-5)
    assert {row["name"] for row in found.table} == {*found.params, *found.state}


@pytest.mark.parametrize("case", CASES)
def test_weights_go_back_as_they_came(case: str) -> None:
    module, model, _, rename = CASES[case]
    prepared(module)
    given = module.state_dict()
    found = nn.load_torch(given, model, rename)
    back = nn.to_torch(model, found.params, found.state)
    prefix = next(iter(rename), "")
    module.load_state_dict({prefix + name: torch.from_numpy(a) for name, a in back.items()})
    assert all(np.array_equal(back[name.removeprefix(prefix)], a) for name, a in given.items() if "tracked" not in name)


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_files(tmp_path: Path, ending: str) -> None:
    module, model, _, _ = CASES["image"]
    prepared(module)
    path = tmp_path / f"a model.{ending}"
    if ending == "pt":
        torch.save(module.state_dict(), path)
    else:
        nn.save(path, {name: tensor.numpy() for name, tensor in module.state_dict().items()})
    assert nn.load_torch(path, model).params["0.weight"].tolist() == module[0].weight.tolist()


def test_half_floats_are_read_exactly() -> None:
    weight = torch.tensor([[0.1, 3.0]], dtype=torch.bfloat16)
    found = nn.load_torch({"weight": weight, "bias": torch.zeros(1)}, nn.Linear(2, 1))
    assert found.params["weight"].dtype == np.float32
    assert found.params["weight"].tolist() == weight.float().tolist()


def test_tied_weights_go_there_and_back() -> None:
    module = T.Sequential(T.Embedding(5, 4), T.Linear(4, 5))
    module[1].weight = module[0].weight
    model = nn.Tied(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5)), {"1.weight": "0.weight"})
    found = nn.load_torch(module.state_dict(), model)
    there = nn.to_torch(model, {name: -a for name, a in found.params.items()})
    assert list(there) == list(module.state_dict())
    module.load_state_dict({name: torch.from_numpy(a) for name, a in there.items()})
    assert module[1].weight.tolist() == (-found.params["0.weight"]).tolist()


@pytest.mark.parametrize(
    ("held", "given"),
    [
        (T.Linear(2, 1), "a whole module or a damaged file (UnpicklingError)"),
        (torch.zeros(3), "Tensor"),
        (b"", "a whole module or a damaged file (EOFError)"),
    ],
)
def test_files_of_no_state_dict(tmp_path: Path, held: Any, given: str) -> None:
    path = tmp_path / "model.pt"
    if isinstance(held, bytes):
        path.write_bytes(held)
    else:
        torch.save(held, path)
    with pytest.raises(DomainError) as caught:
        nn.load_torch(path, nn.Linear(2, 1))
    assert str(caught.value) == (
        f"load_torch: {str(path)!r}: expected a state_dict, got {given}; "
        "write it with torch.save(model.state_dict(), path)"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        nn.load_torch(tmp_path / "model.pt", nn.Linear(2, 1))
