"""Weights under PyTorch's names: round trips, and what does not fit. The values are held to PyTorch in tests/peers."""

import numpy as np
import pytest

from dgrr.tape import DomainError, DTypeError, nn

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


def test_two_names_are_not_made_one() -> None:
    source = {"a.weight": np.ones((1, 2)), "b.weight": np.zeros((1, 2)), "b.bias": np.zeros(1)}
    with pytest.raises(DomainError) as caught:
        nn.load_torch(source, nn.Linear(2, 1), rename={"a.": "", "b.": ""})
    assert str(caught.value) == (
        "load_torch: argument 'rename': expected names of their own, got 'weight' for 'a.weight' and 'b.weight'"
    )


def test_a_name_of_params_and_of_state() -> None:
    params = nn.Linear(2, 1).init(0)
    with pytest.raises(DomainError) as caught:
        nn.to_torch(nn.Linear(2, 1), params, {"bias": np.ones(1)})
    assert str(caught.value) == (
        "to_torch: arguments 'params' and 'state': expected names of their own, got 'bias' in both"
    )


def test_a_module_is_not_its_state_dict() -> None:
    with pytest.raises(DTypeError) as caught:
        nn.load_torch(nn.Linear(2, 1), nn.Linear(2, 1))  # type: ignore[arg-type]
    assert str(caught.value) == (
        "load_torch: argument 'source': expected a state_dict or the path of one, got Linear; give module.state_dict()"
    )


# Tied parameters: PyTorch's ``state_dict`` has them under all of their names.

TIED = nn.Sequential(nn.Tied(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5)), {"1.weight": "0.weight"}), nn.ReLU())
TABLE, BIAS = np.arange(20.0).reshape(5, 4), np.zeros(5)


@pytest.mark.parametrize("names", [["0.0.weight", "0.1.weight"], ["0.0.weight"], ["0.1.weight"]])
def test_a_tied_parameter_is_read_from_any_of_its_names(names: list[str]) -> None:
    found = nn.load_torch({**dict.fromkeys(names, TABLE), "0.1.bias": BIAS}, TIED)
    assert list(found.params) == ["0.0.weight", "0.1.bias"]
    assert found.params["0.0.weight"].tobytes() == TABLE.tobytes()
    assert [row["PyTorch"] for row in found.table] == [names[0], "0.1.bias"]


def test_a_tied_parameter_is_written_under_all_of_its_names() -> None:
    there = nn.to_torch(TIED, {"0.0.weight": TABLE, "0.1.bias": BIAS})
    assert list(there) == ["0.0.weight", "0.1.weight", "0.1.bias"]
    assert there["0.1.weight"].tobytes() == there["0.0.weight"].tobytes() == TABLE.tobytes()


def test_a_tied_parameter_has_one_value() -> None:
    with pytest.raises(DomainError) as caught:
        nn.load_torch({"0.0.weight": TABLE, "0.1.weight": -TABLE, "0.1.bias": BIAS}, TIED)
    assert str(caught.value) == (
        "load_torch: argument 'source': expected one array for '0.0.weight', which the model ties, "
        "got two that differ, '0.0.weight' and '0.1.weight'"
    )
    with pytest.raises(DomainError, match=r"got missing 0\.0\.weight, 0\.1\.weight$"):
        nn.load_torch({"0.1.bias": BIAS}, TIED)


def test_tied_attention_stands_in_joined_projections() -> None:
    twice = nn.Sequential(nn.MultiHeadAttention(4, 2), nn.MultiHeadAttention(4, 2))
    model = nn.Tied(nn.Tied(twice, {"1.wk": "0.wk"}), {"1.bo": "0.bo"})
    params = model.init(0)
    there = nn.to_torch(model, params)
    assert there["1.in_proj_weight"][4:8].T.tobytes() == params["0.wk"].tobytes()
    found = nn.load_torch(there, model)
    assert list(found.params) == list(params)
    assert all(found.params[name].tobytes() == params[name].tobytes() for name in params)
