"""Gates, slopes, products of two inputs: against what they are made of; peers have the values."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, ShapeError, Tape, gradcheck, nn, ops

rng = np.random.default_rng(0)
PAIRS = nn.Bilinear(2, 3, 4)


def test_swiglu_is_its_three_layers_to_the_bit() -> None:
    layer, tape, x = nn.SwiGLU(4, 6, bias=True), Tape[Any](), rng.standard_normal((2, 5, 4))
    p = tape.params(layer.init(0, np.float64))
    gate, up = (ops.linear(tape.const(x), p[f"{n}.weight"], p[f"{n}.bias"]) for n in ("gate", "up"))
    expected = ops.linear(ops.silu(gate) * up, p["down.weight"], p["down.bias"])
    assert layer(p, tape.const(x)).numpy().tobytes() == expected.numpy().tobytes()


def test_a_slope_for_each_channel(run: Any) -> None:
    x = np.array([[[-1.0, 1.0], [-1.0, 2.0]]])
    y = run(nn.PReLU(2), {"weight": np.array([0.5, 2.0])}, x)
    assert y.tolist() == [[[-0.5, 1.0], [-2.0, 2.0]]]
    assert nn.PReLU(2, 0.5).init(0)["weight"].tolist() == [0.5, 0.5]


def test_prelu_has_a_gradient_by_its_slope() -> None:
    report = gradcheck(lambda x, w: nn.PReLU()({"weight": w}, x), np.array([1.0, -2.0]), np.array([0.3]))
    assert report.ok, str(report)


def test_glu_along_any_axis(run: Any) -> None:
    x = rng.standard_normal((2, 6, 3))
    y = run(nn.GLU(1), {}, x)
    assert y.tobytes() == run(nn.GLU(), {}, x.swapaxes(1, 2)).swapaxes(1, 2).tobytes()
    assert y == pytest.approx(x[:, :3] / (1 + np.exp(-x[:, 3:])))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda run: run(nn.GLU(), {}, np.ones((2, 3))),
         r"^GLU: argument 'x': expected an even size on axis 1, got shape \(2, 3\)$"),
        (lambda run: run(nn.PReLU(3), {"weight": np.ones(3)}, np.ones((3, 2))),
         r"^PReLU\(num_parameters=3, start=0.25\): argument 'x': expected shape \(N, 3, \*S\), got \(3, 2\); "
         r"add a batch axis to one sample with x\[None\]$"),
        (lambda run: run(PAIRS, PAIRS.init(0, np.float64), np.ones((5, 2)), other=np.ones((4, 3))),
         r"^Bilinear\(.*\): argument 'other': expected shape \(5, 3\), got \(4, 3\)$"),
        (lambda run: run(PAIRS, PAIRS.init(0, np.float64), np.ones((5, 3)), other=np.ones((5, 3))),
         r"^Bilinear\(.*\): argument 'x': expected shape \(5, 2\), got \(5, 3\)$"),
    ],
)  # fmt: skip
def test_what_does_not_fit(run: Any, call: Any, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        call(run)


@pytest.mark.parametrize("make", [lambda: nn.PReLU(0), lambda: nn.SwiGLU(4, 0), lambda: nn.Bilinear(2, 0, 4)])
def test_sizes(make: Any) -> None:
    with pytest.raises(DomainError, match=r"^\w+: argument '\w+': expected an int of at least 1, got 0$"):
        make()


def test_identity_is_the_very_var() -> None:
    x = Tape[Any]().leaf([1.0])
    assert nn.Identity()({}, x) is x
