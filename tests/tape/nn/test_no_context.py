"""What stands in the place of a context and is none: refused by every layer, with what the layer takes by name."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import Context, DTypeError, Tape, nn

TAPE: Any = Tape()
X = TAPE.const(np.ones((5, 1, 4), np.float32))


class Own(nn.Layer):
    """A layer of a user, which applies another."""

    def children(self) -> Any:
        return {"inner": nn.Linear(4, 4)}

    def __call__(self, p: Any, x: Any, ctx: Any = None, *, memory: Any = None) -> Any:
        return self.part("inner", p, x, memory)

    def __repr__(self) -> str:
        return "Own()"


GIVEN: list[tuple[Any, Any, str]] = [
    (nn.LSTM(4, 4), (X, X), "got tuple; what else it takes is given by name: state=, mask=, return_state="),
    (nn.GRUCell(4, 4), X, "got Var; what else it takes is given by name: state="),
    (nn.MultiHeadAttention(4, 2), X,
     "got Var; what else it takes is given by name: mask=, context=, value=, key_mask="),
    (nn.Bilinear(4, 4, 2), X, "got Var; what else it takes is given by name: other="),
    (nn.Linear(4, 2), "abc", "got str; it takes no other input"),
    (nn.Sequential(nn.Linear(4, 2)), np.ones(3), "got ndarray; it takes no other input"),
    (nn.Tied(nn.LSTM(4, 4), {}), (X, X), "got tuple; what else it takes is given by name: **more"),
    (nn.ReLU(), True, "got bool; it takes no other input"),
    (Own(), (X, X), "got tuple; what else it takes is given by name: memory="),
]  # fmt: skip


@pytest.mark.parametrize("on_tape", [True, False])
@pytest.mark.parametrize(("layer", "given", "text"), GIVEN, ids=lambda value: type(value).__name__)
def test_it_is_refused(layer: Any, given: Any, text: str, on_tape: bool) -> None:
    p = layer.init(0)
    with pytest.raises(DTypeError) as caught:
        layer(TAPE.params(p), X, given) if on_tape else layer(p, X.numpy(), given)
    assert str(caught.value) == f"{layer!r}: argument 'ctx': expected a Context or None, {text}"


def test_by_name_too_and_by_a_part() -> None:
    layer: Any = Own()
    p = TAPE.params(layer.init(0))
    with pytest.raises(DTypeError, match=r"argument 'ctx': expected a Context or None, got Var; .* memory="):
        layer(p, X, ctx=X)
    with pytest.raises(DTypeError, match=r"^inner: Linear\(.*\): argument 'ctx': expected a Context or None, got Var"):
        layer(p, X, memory=X)


def test_none_and_a_context_are_taken() -> None:
    linear: Any = nn.Linear(4, 2)
    p = TAPE.params(linear.init(0))
    assert linear(p, X, None).shape == linear(p, X, Context()).shape == (5, 1, 2)
    dropout: Any = nn.Dropout(0.5)
    assert dropout({}, X.numpy(), None).tobytes() == X.numpy().tobytes()


def test_a_second_input_by_another_name_is_the_layers_own() -> None:
    class Sum(nn.Layer):
        def __call__(self, p: Any, x: Any, y: Any) -> Any:
            return x + y

    added: Any = Sum()
    assert added({}, X, X).numpy().tobytes() == (2 * X.numpy()).tobytes()
