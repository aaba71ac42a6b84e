"""Parameters that two places share: one name, one array, one gradient."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Trainer
from dgrr.tape import DomainError, Tape, nn, ops
from dgrr.trace import open_trace

INNER = nn.Sequential(nn.Embedding(7, 4), nn.ReLU(), nn.Linear(4, 7))
MODEL = nn.Tied(INNER, {"2.weight": "0.weight"})
X, LABELS = np.array([[1, 2], [3, 3]]), np.array([0, 1, 2, 6])


def loss_fn(p: Any, batch: Any) -> Any:
    return ops.cross_entropy(ops.reshape(MODEL(p, batch[0]), (-1, 7)), batch[1])


def test_it_is_the_model_with_one_array_in_two_places() -> None:
    p = MODEL.init(0)
    assert list(p) == ["0.weight", "2.bias"]
    tape = Tape[Any]()
    both = tape.params({**p, "2.weight": p["0.weight"]})
    assert MODEL(p, X).tobytes() == INNER(both, tape.const(X)).numpy().tobytes()


def test_the_gradient_is_the_sum_over_the_places() -> None:
    p, tape = MODEL.init(0, np.float64), Tape[Any]()
    one = tape.params(p)
    grads = tape.backward_scalar(loss_fn(one, (tape.const(X), tape.const(LABELS))))
    two = tape.params({**p, "2.weight": p["0.weight"]})
    loss = ops.cross_entropy(ops.reshape(INNER(two, tape.const(X)), (-1, 7)), LABELS)
    apart = tape.backward_scalar(loss)
    total = np.asarray(apart[two["0.weight"]]) + np.asarray(apart[two["2.weight"]])
    assert np.asarray(grads[one["0.weight"]]) == pytest.approx(total, abs=1e-15)


def test_a_shared_parameter_stands_once_in_traces_and_files(tmp_path: Path) -> None:
    trainers = [Trainer(loss_fn, MODEL.init(0), Adam(0.1), mode=m, trace=tmp_path / m) for m in ("eager", "replay")]
    for trainer in trainers:
        trainer.fit([(X, LABELS)], epochs=3)
    assert trainers[0].params["0.weight"].tobytes() == trainers[1].params["0.weight"].tobytes()
    with open_trace(tmp_path / "replay") as trace:
        assert [spec.name for spec in trace.schema.tensors][:2] == ["0.weight", "2.bias"]
        assert trace.schema.params == 2
    nn.save(tmp_path / "model", trainers[0].params)
    params, _ = nn.load_state_dict(MODEL, nn.load(tmp_path / "model"))
    assert list(params) == ["0.weight", "2.bias"]


def test_a_tied_model_is_a_part_like_any_other() -> None:
    class Twice(nn.Layer):
        def children(self) -> Any:
            return {"inner": MODEL}

        def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
            return self.part("inner", p, x, ctx)

    p = Twice().init(0)
    assert list(p) == ["inner.0.weight", "inner.2.bias"]
    plain = {name.removeprefix("inner."): a for name, a in p.items()}
    assert Twice()(p, X).tobytes() == MODEL(plain, X).tobytes()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ({"3.weight": "0.weight"}, "expected parameters among '0.weight', '2.weight', '2.bias', got '3.weight'"),
        ({"2.weight": "0.wait"}, "expected parameters among '0.weight', '2.weight', '2.bias', got '0.wait'"),
        ({"2.bias": "0.weight"}, "expected parameters of one shape, got '2.bias' (7,) and '0.weight' (7, 4)"),
        ({"2.weight": "2.weight"}, "expected a parameter that is kept, got '2.weight'"),
    ],
)
def test_names_that_do_not_fit(names: dict[str, str], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        nn.Tied(INNER, names)
    assert str(caught.value) == f"Tied: argument 'names': {text}"


def test_a_missing_parameter_is_named_as_it_is_kept() -> None:
    with pytest.raises(DomainError, match="'0.weight'"):
        MODEL({"2.bias": np.zeros(7, np.float32)}, X)


def test_a_tied_model_can_be_tied_again() -> None:
    three = nn.Sequential(*(nn.Linear(3, 3) for _ in range(3)))
    model = nn.Tied(nn.Tied(three, {"1.weight": "0.weight"}), {"2.bias": "0.bias"})
    assert list(model.init(0)) == ["0.weight", "0.bias", "1.bias", "2.weight"]
