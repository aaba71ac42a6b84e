"""Predictions of a model, and figures of a metric over batches of every form."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Dataset, Trainer
from dgrr.tape import DomainError, ShapeError, TapeError, nn, ops

MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 2))
RNG = np.random.default_rng(6)
X = RNG.standard_normal((11, 3)).astype(np.float32)
LABELS = RNG.integers(0, 2, 11)
DATA = Dataset(X, LABELS)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    logits = MODEL(p, batch[0], ctx)
    return ops.cross_entropy(logits, batch[1]), ctx.state, {"first": batch[0].mean()}


def new_trainer(mode: Any = "replay") -> Trainer:
    return Trainer(loss_fn, MODEL.init(0), SGD(0.1), model_state=MODEL.init_state(), mode=mode)


def by_hand(trainer: Trainer, x: Any) -> Any:
    p, s = trainer.params, trainer.model_state
    hidden = x @ p["0.weight"].T + p["0.bias"]
    hidden = (hidden - s["1.running_mean"]) / np.sqrt(s["1.running_var"] + 1e-5) * p["1.weight"] + p["1.bias"]
    return np.tanh(hidden) @ p["4.weight"].T + p["4.bias"]


# Predictions.


@pytest.mark.parametrize("mode", ["eager", "replay"])
@pytest.mark.parametrize("batch", [1, 3, 4, 10, 11, 12, 256])
def test_a_row_per_sample_in_batches_of_any_size(mode: Any, batch: int) -> None:
    trainer = new_trainer(mode)
    trainer.fit(DATA.batches(4), epochs=2)
    before = trainer.state["step"].copy(), {name: array.copy() for name, array in trainer.params.items()}
    made = trainer.predict(X, model=MODEL, batch=batch)
    assert (made.shape, made.dtype) == ((11, 2), np.float32)
    assert made == pytest.approx(by_hand(trainer, X), rel=1e-4, abs=1e-5)
    assert made.tobytes() == trainer.predict(X, model=MODEL).tobytes()
    assert trainer.state["step"] == before[0]
    assert all(np.array_equal(trainer.params[name], array) for name, array in before[1].items())


def test_both_modes_agree_to_the_bit() -> None:
    one, other = (new_trainer(mode).predict(X, model=MODEL, batch=4) for mode in ("eager", "replay"))
    assert one.tobytes() == other.tobytes()


def test_predictions_follow_the_training() -> None:
    trainer = new_trainer()
    first = trainer.predict(X, model=MODEL)
    trainer.fit(DATA.batches(4))
    second = trainer.predict(X, model=MODEL)
    assert not np.array_equal(first, second)
    first[:] = 0  # of the caller's own
    assert np.array_equal(trainer.predict(X, model=MODEL), second)


@pytest.mark.parametrize("mode", ["eager", "replay"])
@pytest.mark.parametrize("batch", [2, 256])
def test_inputs_and_outputs_may_be_nested(mode: Any, batch: int) -> None:
    def model(p: Any, x: Any) -> Any:
        a, b = x["a"], x["b"][0]
        return {"sum": a + b, "parts": (a * 2.0, [b])}

    inputs = {"a": np.arange(5.0), "b": (np.arange(5.0)[::-1],)}
    made = new_trainer(mode).predict(inputs, model=model, batch=batch)
    assert made["sum"].tolist() == [4.0] * 5
    assert [part.tolist() for part in (made["parts"][0], made["parts"][1][0])] == [[0, 2, 4, 6, 8], [4, 3, 2, 1, 0]]


def test_no_samples() -> None:
    assert new_trainer().predict(X[:0], model=MODEL).shape == (0, 2)


def test_models_by_themselves() -> None:
    trainer = new_trainer()
    doubled = [trainer.predict(X, model=lambda p, x, k=k: x * float(k)) for k in range(12)]
    assert all(np.array_equal(doubled[k], X * np.float32(k)) for k in range(12))


def test_a_model_is_captured_once() -> None:
    calls = list[int]()

    class Own:
        def double(self, p: Any, x: Any) -> Any:
            calls.append(len(x))
            return x * 2.0

    own, trainer = Own(), new_trainer()
    trainer.predict(X, model=own.double, batch=4)
    assert [calls.count(4), calls.count(3)] == [3, 2]  # each recorded twice, to compare; and a look before the second 4
    calls.clear()
    for _ in range(3):
        trainer.predict(X, model=own.double, batch=4)
    assert len(calls) <= 5  # looks alone
    calls.clear()
    trainer.predict(X, model=Own().double, batch=4)
    assert [calls.count(4), calls.count(3)] == [3, 2]


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_what_predict_refuses(mode: Any) -> None:
    trainer = new_trainer(mode)
    with pytest.raises(DomainError) as caught:
        trainer.predict(X, model=MODEL, batch=0)
    assert str(caught.value) == "predict: argument 'batch': expected a whole number of at least 1, got 0"
    with pytest.raises(DomainError) as caught:
        trainer.predict((X, X[:3]), model=lambda p, x: x[0])
    assert str(caught.value) == (
        "predict: argument 'inputs': expected arrays of as many samples, got shapes [(11, 3), (3, 3)]"
    )
    with pytest.raises(ShapeError) as caught:
        trainer.predict(X, model=lambda p, x: {"mean": x.mean()})
    assert str(caught.value) == (
        "predict: output['mean']: expected 11 samples along the first axis, got shape (); use evaluate for figures of "
        "a whole batch"
    )


def test_a_model_that_reads_values_needs_an_eager_trainer() -> None:
    def model(p: Any, x: Any) -> Any:
        return x * 2.0 if x[0, 0].item() > 0 else x

    assert new_trainer("eager").predict(np.ones((2, 1)), model=model).tolist() == [[2.0], [2.0]]
    with pytest.raises(TapeError, match="or run the step eagerly"):
        new_trainer().predict(np.ones((2, 1)), model=model)


# Figures.

FORMS: dict[str, Any] = {
    "a data set": DATA,
    "batches": DATA.batches(4),
    "shuffled batches": DATA.batches(3, seed=1),
    "a list": [DATA[:8], DATA[8:]],
    "an iterator": iter([DATA[:10], DATA[10:]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_figures_weigh_every_sample_alike(form: str) -> None:
    trainer, data = new_trainer(), FORMS[form]
    data = list(data) if form == "an iterator" else data
    logits = by_hand(trainer, X)
    losses = np.log(np.exp(logits).sum(-1)) - logits[np.arange(11), LABELS]
    right = float((logits.argmax(-1) == LABELS).mean())
    assert trainer.evaluate(data) == pytest.approx(float(losses.mean()), rel=1e-5)
    assert trainer.evaluate(data, "first") == pytest.approx(float(X.mean()), rel=1e-5)
    assert trainer.evaluate(data, "accuracy", MODEL) == pytest.approx(right, rel=1e-12)

    def share(outputs: Any, batch: Any) -> Any:
        assert outputs.shape == (len(batch[1]), 2)
        return (outputs.argmax(-1) == batch[1]).mean()

    assert trainer.evaluate(data, share, MODEL) == pytest.approx(right, rel=1e-12)


def test_batches_in_a_dict_are_the_models_input() -> None:
    trainer = new_trainer()
    batches = [{"x": X[:4], "y": LABELS[:4]}, {"x": X[4:], "y": LABELS[4:]}]
    found = trainer.evaluate(batches, lambda out, b: out.sum() / len(b["x"]), lambda p, b: b["x"] * 2.0)
    assert found == pytest.approx(2 * float(X.sum()) / 11, rel=1e-5)


def test_accuracy_may_be_a_metric_of_the_loss_function() -> None:
    trainer = Trainer(lambda p, x: ((p["w"] * x).sum(), {"accuracy": x[0]}), {"w": np.ones(1)}, SGD(0.1))
    assert trainer.evaluate([np.array([0.25])], "accuracy") == 0.25


REFUSED: list[tuple[tuple[Any, ...], str]] = [
    ((DATA, "f1"), "'metric': expected one of 'loss', 'accuracy', 'first', or a function, got 'f1'"),
    ((DATA, lambda out, b: 0.0), "'model': expected model(p, x) for a metric that is a function, got None"),
    (
        ((X, LABELS),),
        "'data': expected batches, got a tuple of arrays; pass Dataset(X, Y).batches(64, seed=0)",
    ),
    (([],), "'data': expected at least one batch, got none; an iterator is used up after one pass"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_evaluate_refuses(arguments: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        new_trainer().evaluate(*arguments)
    assert str(caught.value).startswith(f"evaluate: argument {text}")
