"""Weights under PyTorch's names: round trips, and what does not fit. The values are held to PyTorch in tests/peers."""

import numpy as np
import pytest

from dgrr.tape import DomainError, nn

MODEL = nn.Sequential(
    nn.Linear(4, 8), nn.BatchNorm(8), nn.TransformerBlock(8, 2, 16), nn.LSTM(8, 3), nn.MultiHeadAttention(3, 1, kdim=3)
)


def test_there_and_back() -> None:
    params, state = MODEL.init(0), MODEL.init_state()
    there = nn.to_torch(MODEL, params, state)
    assert there["2.self_attn.in_proj_weight"].shape == (24, 8)
    assert there["2.self_attn.in_proj_weight"][8:16].T.tobytes() == params["2.attention.wk"].tobytes()
    assert there["1.num_batches_tracked"] == 0
    found = nn.load_torch(there, MODEL)
    assert list(found.params) == list(params)
    assert all(found.params[name].tobytes() == params[name].tobytes() for name in params)
    assert all(found.state[name].tobytes() == state[name].tobytes() for name in state)


def test_other_widths_of_keys_stand_alone() -> None:
    layer = nn.MultiHeadAttention(4, 2, kdim=3, vdim=5, bias=False)
    there = nn.to_torch(layer, layer.init(0))
    assert {name: a.shape for name, a in there.items()} == {
        "q_proj_weight": (4, 4), "k_proj_weight": (4, 3), "v_proj_weight": (4, 5), "out_proj.weight": (4, 4),
    }  # fmt: skip


def test_the_table_names_both() -> None:
    table = nn.load_torch({"a.weight": np.ones((1, 2)), "a.bias": np.zeros(1)}, nn.Linear(2, 1), {"a.": ""}).table
    assert [dict(row) for row in table] == [
        {"name": "weight", "PyTorch": "weight", "shape": (1, 2)},
        {"name": "bias", "PyTorch": "bias", "shape": (1,)},
    ]


def test_what_does_not_fit() -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(DomainError) as caught:
        nn.load_torch({"weights": np.ones((1, 2)), "bias": np.zeros(1), "num_batches_tracked": np.array(3)}, model)
    assert str(caught.value) == (
        "load_torch: argument 'source': expected the names of the model, got missing weight; unexpected weights"
    )
    with pytest.raises(DomainError, match=r"'weight' of shape \(2, 2\) instead of \(1, 2\)"):
        nn.load_torch({"weight": np.ones((2, 2)), "bias": np.zeros(1)}, model)
    with pytest.raises(DomainError, match="expected attention that PyTorch has, got num_kv_heads of its own"):
        nn.to_torch(nn.MultiHeadAttention(4, 2, num_kv_heads=1), {})
    with pytest.raises(DomainError, match="to_torch: argument 'params': expected 'bias', got weight"):
        nn.to_torch(model, {"weight": np.ones((1, 2))})


def test_names_that_become_one_are_refused() -> None:
    source = {"a.weight": np.ones((1, 2)), "b.weight": np.zeros((1, 2)), "bias": np.zeros(1)}
    with pytest.raises(DomainError) as caught:
        nn.load_torch(source, nn.Linear(2, 1), {"a.": "", "b.": ""})
    assert str(caught.value) == (
        "load_torch: argument 'rename': expected a name of its own for each, got 'weight' for "
        "'a.weight' and for 'b.weight'"
    )


TIED = nn.Sequential(nn.Tied(nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10)), {"1.weight": "0.weight"}))


def test_shared_parameters_stand_under_each_name_there() -> None:
    params = TIED.init(0)
    there = nn.to_torch(TIED, params)
    assert list(there) == ["0.0.weight", "0.1.weight", "0.1.bias"]
    assert there["0.1.weight"].tobytes() == there["0.0.weight"].tobytes() == params["0.0.weight"].tobytes()
    for left_out in (None, "0.0.weight", "0.1.weight"):
        found = nn.load_torch({name: a for name, a in there.items() if name != left_out}, TIED)
        assert {name: a.tobytes() for name, a in found.params.items()} == {n: a.tobytes() for n, a in params.items()}


def test_shared_parameters_that_differ_or_are_missing_are_refused() -> None:
    there = nn.to_torch(TIED, TIED.init(0))
    with pytest.raises(DomainError, match=r"expected '0\.0\.weight' and '0\.1\.weight' to be equal, which"):
        nn.load_torch(there | {"0.1.weight": there["0.1.weight"] + 1}, TIED)
    with pytest.raises(DomainError, match=r"got missing 0\.0\.weight, 0\.1\.weight$"):
        nn.load_torch({"0.1.bias": there["0.1.bias"]}, TIED)
