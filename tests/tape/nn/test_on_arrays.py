"""Models called on plain arrays: what a tape would give, without one."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import capture_function
from dgrr.tape import Context, DomainError, DTypeError, Tape, nn

MODEL: Any = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2))
PARAMS, STATE = MODEL.init(seed=0), MODEL.init_state()
X = np.arange(15, dtype=np.float32).reshape(5, 3)


def by_hand() -> Any:
    """The evaluation on a tape."""
    tape: Any = Tape()
    state = {name: tape.const(value) for name, value in STATE.items()}
    return MODEL(tape.params(PARAMS), tape.const(X), Context(training=False, state=state)).numpy()


def test_it_has_the_bits_of_an_evaluation_on_a_tape() -> None:
    y = MODEL(PARAMS | STATE, X)
    assert type(y) is np.ndarray
    assert y.tobytes() == by_hand().tobytes()


def test_strides_and_a_batch_of_none() -> None:
    assert MODEL(PARAMS | STATE, np.asfortranarray(X)).tobytes() == by_hand().tobytes()
    assert MODEL(PARAMS | STATE, X[:0]).shape == (0, 2)


def test_it_is_the_captured_function() -> None:
    predict = capture_function(lambda x: MODEL(PARAMS | STATE, x), X)
    assert predict(X).tobytes() == by_hand().tobytes()


def test_integers_and_several_parts() -> None:
    embedding: Any = nn.Embedding(5, 3)
    p = embedding.init(seed=0)
    np.testing.assert_array_equal(embedding(p, np.array([4, 1])), p["weight"][[4, 1]])


def test_a_layer_of_ones_own() -> None:
    class Twice(nn.Layer):
        def children(self) -> Any:
            return {"inner": nn.Linear(3, 3)}

        def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
            assert not ctx.training
            y = self.part("inner", p, x, ctx)
            return y, self.part("inner", p, y, ctx)

    layer = Twice()
    p = layer.init(seed=0)
    once, twice = layer(p, X)
    inner: Any = nn.Linear(3, 3)
    assert twice.tobytes() == inner({n.removeprefix("inner."): a for n, a in p.items()}, once).tobytes()


def test_an_array_beside_vars_is_a_constant_of_theirs() -> None:
    tape: Any = Tape()
    layer: Any = nn.Linear(3, 2)
    p = tape.params(layer.init(seed=0))
    y = layer(p, X)
    assert tape.backward_dense(y.sum())["weight"] is not None


def test_a_var_beside_arrays_is_evaluated_on_its_tape() -> None:
    tape: Any = Tape()
    y = MODEL(PARAMS | STATE, tape.const(X))
    assert y.tape is tape
    assert y.numpy().tobytes() == by_hand().tobytes()


def test_a_model_without_parameters() -> None:
    dropout: Any = nn.Dropout(0.5)
    assert dropout({}, X).tobytes() == X.tobytes()
    with pytest.raises(DomainError, match="argument 'ctx': expected a Context, got None"):
        dropout({}, Tape().const(X))


def test_a_context_of_ones_own_is_kept() -> None:
    dropout: Any = nn.Dropout(0.5)
    with pytest.raises(DomainError, match="Context: argument 'random': expected a Random to draw from, got None"):
        dropout({}, X, Context(training=True))


def test_errors_say_where() -> None:
    with pytest.raises(DTypeError, match=r"^0: linear: argument 'x': expected float32, got float64"):
        MODEL(PARAMS | STATE, X.astype(np.float64))
    with pytest.raises(DomainError, match=r"expected a parameter '0\.bias', got none"):
        MODEL({}, X)
    with pytest.raises(DomainError, match=r"1: .*expected an entry '1\.running_mean'"):
        MODEL(PARAMS, X)
