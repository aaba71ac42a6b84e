"""What parameters are to their layers, and predicates by it."""

import pickle
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, nn
from dgrr.tape.nn.parameters import ROLES

MODEL: Any = nn.Sequential(
    nn.Embedding(5, 4), nn.LearnedPositions(3, 4), nn.TransformerBlock(4, 2, 8), nn.LSTM(4, 4), nn.LSTMCell(4, 4),
    nn.Conv1d(1, 1, 1), nn.ConvTranspose1d(1, 1, 1), nn.BatchNorm(1), nn.RMSNorm(1), nn.PReLU(),
    nn.SwiGLU(4, 2, bias=True), nn.Bilinear(2, 2, 2), nn.MultiHeadAttention(4, 2),
)  # fmt: skip


def test_a_bias_is_what_is_called_one_and_a_norm_what_a_norm_has() -> None:
    """Told from the names that PyTorch gives them, and not from the layers' own words."""
    for name, role in MODEL.roles().items():
        layer, _, own = name.rpartition(".")
        if "norm" in layer or layer in ("7", "8"):
            expected = "norm"
        elif own.startswith("bias") or own in ("bq", "bk", "bv", "bo"):
            expected = "bias"
        else:
            expected = {"0": "embedding", "1": "embedding", "9": "slope"}.get(layer, "weight")
        assert role == expected, name
    assert set(MODEL.roles().values()) == set(ROLES)


def test_bias_and_norm_are_all_that_has_one_axis_but_slopes() -> None:
    chosen = MODEL.having("bias", "norm", "slope")
    assert all(chosen(name, value) == (value.ndim < 2) for name, value in MODEL.init(0).items())


def test_a_shared_parameter_has_the_role_of_its_name() -> None:
    model = nn.Tied(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5)), {"1.weight": "0.weight"})
    assert model.roles() == {"0.weight": "embedding", "1.bias": "bias"}


def test_a_role_of_ones_own_and_other_starts_keep_it() -> None:
    class Scaled(nn.Layer):
        def own_parameters(self) -> Any:
            return {"scale": nn.Parameter((2,), nn.init.ones(), role="scale"), "w": nn.Parameter((2,), nn.init.ones())}

        def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
            return x * p["scale"]

    assert Scaled().roles() == {"scale": "scale", "w": "weight"}
    assert Scaled().having("scale")("scale")


def test_the_predicate_says_what_it_is_and_can_be_pickled() -> None:
    chosen = MODEL.having("bias", "norm")
    assert chosen.__name__ == "having('bias', 'norm')"
    assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_what_it_refuses() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(DomainError) as caught:
        layer.having("bais")
    assert str(caught.value) == (
        "Linear: having: expected roles among 'weight', 'bias', 'norm', 'embedding', 'slope', got 'bais'"
    )
    with pytest.raises(DomainError, match="got none"):
        layer.having()
    with pytest.raises(DomainError) as caught:
        layer.having("bias")("model.bias", np.ones(2))
    assert str(caught.value) == (
        "having('bias'): expected a parameter of the model ('weight', 'bias'), got 'model.bias'"
    )
