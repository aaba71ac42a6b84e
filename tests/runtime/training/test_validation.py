"""Validation: when it comes, what it gives, that the training cannot tell, and that its trace has the figures."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Batches, Callback, Dataset, Trainer
from dgrr.tape import DomainError, nn, ops
from dgrr.trace import Verdict, open_trace, replay

MODEL = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 2))
RNG = np.random.default_rng(6)
DATA = Dataset(RNG.standard_normal((20, 3)).astype(np.float32), RNG.integers(0, 2, 20))
OTHER = Dataset(RNG.standard_normal((7, 3)).astype(np.float32), RNG.integers(0, 2, 7))


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    inputs, labels = batch
    logits = MODEL(p, inputs, ctx)
    right = ops.cast(ops.equal(ops.argmax(logits, -1), labels), "float32").mean()
    return ops.cross_entropy(logits, labels), ctx.state, {"acc": right}


def new_trainer(**options: Any) -> Trainer:
    return Trainer(loss_fn, MODEL.init(0), Adam(0.05), model_state=MODEL.init_state(), seed=4, **options)


def by_hand(trainer: Trainer) -> dict[str, float]:
    """The figures on `OTHER` as a whole, by numpy."""
    p, s = trainer.params, trainer.model_state
    x, labels = OTHER.arrays
    hidden = x @ p["0.weight"].T + p["0.bias"]
    hidden = (hidden - s["1.running_mean"]) / np.sqrt(s["1.running_var"] + 1e-5) * p["1.weight"] + p["1.bias"]
    logits = np.tanh(hidden) @ p["4.weight"].T + p["4.bias"]
    losses = np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(labels)), labels]
    return {"validation_loss": float(losses.mean()), "validation_acc": float((logits.argmax(-1) == labels).mean())}


class Noted(Callback):
    def __init__(self) -> None:
        self.calls, self.expected = list[Any](), list[dict[str, float]]()

    def on_validation(self, trainer: Trainer, step: int, figures: Any) -> None:
        self.calls.append((step, dict(figures)))
        self.expected.append(by_hand(trainer))


FORMS: dict[str, Any] = {
    "a data set": lambda: OTHER,
    "batches with a rest": lambda: OTHER.batches(3),
    "shuffled batches": lambda: OTHER.batches(4, seed=9),
    "a list": lambda: [OTHER[:2], OTHER[2:]],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_the_figures_weigh_every_sample_alike(form: str, mode: str) -> None:
    noted = Noted()
    result = new_trainer(mode=mode, callbacks=[noted]).fit(DATA.batches(6, seed=3), epochs=3, validation=FORMS[form]())
    assert [step for step, _ in noted.calls] == [3, 7, 11]
    for (_, figures), expected in zip(noted.calls, noted.expected, strict=True):
        assert figures == pytest.approx(expected, rel=1e-5)
    for name in ("validation_loss", "validation_acc"):
        assert result.history.epochs[name].tolist() == [figures[name] for _, figures in noted.calls]


def test_both_modes_validate_to_the_bit() -> None:
    histories = [
        new_trainer(mode=mode).fit(DATA.batches(6, seed=3), epochs=3, validation=OTHER.batches(3)).history
        for mode in ("eager", "replay")
    ]
    for name in ("loss", "acc", "validation_loss", "validation_acc"):
        one, other = (history.epochs[name].tobytes() for history in histories)
        assert one == other


@pytest.mark.parametrize(("every", "steps"), [(1, list(range(8))), (3, [2, 5]), (4, [3, 7]), (9, [])])
def test_every_so_many_steps(every: int, steps: list[int]) -> None:
    noted = Noted()
    result = new_trainer(callbacks=[noted]).fit(
        DATA.batches(6, seed=3), epochs=2, validation=OTHER, validate_every=every
    )
    assert [step for step, _ in noted.calls] == steps
    if steps:
        column = result.history["validation_loss"]
        assert np.flatnonzero(~np.isnan(column)).tolist() == steps
    else:
        assert "validation_loss" not in result.history.columns


def test_the_steps_are_counted_from_the_beginning_of_the_run() -> None:
    noted = Noted()
    trainer = new_trainer(callbacks=[noted])
    trainer.fit(DATA.batches(6), steps=2)
    trainer.fit(DATA.batches(6), steps=3, validation=OTHER, validate_every=2)
    assert [step for step, _ in noted.calls] == [3]


@pytest.mark.parametrize("mode", ["eager", "replay"])
@pytest.mark.parametrize("recipe", [{}, {"accumulate": 2, "clip_norm": 0.1}], ids=str)
def test_neither_training_nor_state_chain_can_tell(tmp_path: Path, mode: str, recipe: dict[str, Any]) -> None:
    batches = DATA.batches(5, seed=3)
    told: list[Any] = []
    for name, options in {"with": {"validation": OTHER.batches(3), "validate_every": 1}, "without": {}}.items():
        trainer = new_trainer(mode=mode, trace=tmp_path / name, **recipe)
        result = trainer.fit(DATA.batches(5, seed=3), epochs=3, **options)
        with open_trace(tmp_path / name) as trace:
            told.append(
                (result.losses.tobytes(), result.state_digest, [view.record for view in trace], trace.seal.link)
            )
    assert told[0] == told[1]
    assert replay(tmp_path / "with", loss_fn=loss_fn, batches=batches).verdict is Verdict.OK


def validations(path: Path) -> dict[int, dict[str, float]]:
    with open_trace(path) as trace:
        return trace.validations()


@pytest.mark.parametrize("mode", ["eager", "replay"])
@pytest.mark.parametrize("every", [None, 1, 3])
def test_the_trace_has_the_figures(tmp_path: Path, mode: Any, every: int | None) -> None:
    noted = Noted()
    trainer = new_trainer(mode=mode, trace=tmp_path / "t", callbacks=[noted])
    trainer.fit(DATA.batches(6, seed=3), epochs=2, validation=OTHER, validate_every=every)
    assert validations(tmp_path / "t") == dict(noted.calls)
    assert len(noted.calls) == {None: 2, 1: 8, 3: 2}[every]


def test_a_second_fit_and_one_from_a_checkpoint_go_on_in_the_trace(tmp_path: Path) -> None:
    noted = Noted()
    trainer = new_trainer(trace=tmp_path / "t", callbacks=[noted])
    trainer.fit(DATA.batches(6, seed=3), validation=OTHER)
    trainer.fit(DATA.batches(6, seed=3), validation=OTHER)
    trainer.save(tmp_path / "c")
    loaded = new_trainer(trace=tmp_path / "t", callbacks=[noted], checkpoint=tmp_path / "c")
    loaded.load(tmp_path / "c")
    loaded.fit(DATA.batches(6, seed=3), validation=OTHER)
    assert validations(tmp_path / "t") == dict(noted.calls)
    assert [step for step, _ in noted.calls] == [3, 7, 11]


def test_a_run_that_died_before_the_validation_of_an_epoch_has_it_once(tmp_path: Path) -> None:
    """The checkpoint of the epoch's last step is saved before the epoch is validated."""
    options: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 4}

    def dies(trainer: Trainer, step: int, figures: Any) -> None:
        if step == 7:
            raise KeyboardInterrupt

    class Dies(Callback):
        on_validation = staticmethod(dies)

    with pytest.raises(KeyboardInterrupt):
        new_trainer(trace=tmp_path / "t", callbacks=[Dies()], **options).fit(
            DATA.batches(6, seed=3), epochs=3, validation=OTHER
        )
    for _ in range(2):  # the second time it is finished, and stays as it is
        noted = Noted()
        trainer = new_trainer(trace=tmp_path / "t", callbacks=[noted], **options)
        trainer.load(tmp_path / "c")
        trainer.fit(DATA.batches(6, seed=3), epochs=3, validation=OTHER)
        data = (tmp_path / "t").read_bytes()
        assert sorted(validations(tmp_path / "t")) == [3, 7, 11]
    assert [step for step, _ in noted.calls] == [11]
    assert data == (tmp_path / "t").read_bytes()
    new_trainer(trace=tmp_path / "whole").fit(DATA.batches(6, seed=3), epochs=3, validation=OTHER)
    assert validations(tmp_path / "t") == validations(tmp_path / "whole")


def test_a_validation_with_which_a_run_goes_on_waits_for_the_trace(tmp_path: Path) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 4}

    class Dies(Callback):
        def on_step(self, trainer: Trainer, step: int, loss: float) -> None:
            if step == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        new_trainer(trace=tmp_path / "t", callbacks=[Dies()], **options).fit(
            DATA.batches(6, seed=3), epochs=2, validation=None
        )
    trainer = new_trainer(trace=tmp_path / "t", **options)
    trainer.load(tmp_path / "c")
    trainer.fit(DATA.batches(6, seed=3), epochs=2, validation=OTHER)
    assert sorted(validations(tmp_path / "t")) == [3, 7]


class Quiet:
    """A recorder that was written before validations were recorded."""

    def __init__(self) -> None:
        self.steps = 0

    def wants_tape(self, step: int) -> bool:
        return False

    def step(self, done: Any) -> None:
        self.steps += 1

    def commit(self) -> None: ...

    def seal(self) -> None: ...

    def close(self) -> None: ...


class Heard(Quiet):
    def __init__(self) -> None:
        super().__init__()
        self.figures = list[Any]()

    def validation(self, figures: Any) -> None:
        self.figures.append((self.steps - 1, dict(figures)))


def test_recorders_are_told_if_they_take_it() -> None:
    quiet, heard, noted = Quiet(), Heard(), Noted()
    new_trainer(trace=quiet).fit(DATA.batches(6, seed=3), epochs=2, validation=OTHER)
    new_trainer(trace=heard, callbacks=[noted]).fit(DATA.batches(6, seed=3), epochs=2, validation=OTHER)
    assert (quiet.steps, heard.figures) == (8, noted.calls)


def test_the_batches_that_are_trained_on_may_be_validated_on() -> None:
    batches = DATA.batches(6, seed=3)
    result = new_trainer().fit(batches, epochs=3, validation=batches)
    assert result.state_digest == new_trainer().fit(DATA.batches(6, seed=3), epochs=3).state_digest


def test_true_from_a_validation_ends_the_fit() -> None:
    class Enough(Callback):
        def on_validation(self, trainer: Trainer, step: int, figures: Any) -> bool:
            return step == 4

    trainer = new_trainer(callbacks=[Enough()])
    assert trainer.fit(DATA.batches(6), epochs=9, validation=OTHER, validate_every=1).steps == 5


class Shuffled:
    """Batches of one's own, in another order each time."""

    def __iter__(self) -> Any:
        return iter([DATA[:6]])


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"validation": (DATA.arrays[0], DATA.arrays[1])},
        "'validation': expected batches, got a tuple of arrays; pass Data",
    ),
    (
        {"validation": iter([DATA[:3]])},
        "'validation': expected batches that can be iterated again, got a list_iterator; pass a list of them",
    ),
    ({"validate_every": 2}, "'validate_every': expected validation=… beside it, got none"),
    ({"validation": OTHER, "validate_every": 0}, "'validate_every': expected a whole number of at least 1, got 0"),
    ({"validation": OTHER, "validate_every": 1.5}, "'validate_every': expected a whole number of at least 1, got 1.5"),
]


@pytest.mark.parametrize(("options", "text"), REFUSED)
def test_what_is_refused_before_the_first_step(options: dict[str, Any], text: str) -> None:
    trainer = new_trainer()
    with pytest.raises(DomainError) as caught:
        trainer.fit(DATA.batches(6), **options)
    assert str(caught.value).startswith(f"fit: argument {text}")
    assert trainer.steps == 0


def test_an_object_that_is_trained_on_and_shuffles_itself_is_refused() -> None:
    batches = Shuffled()
    with pytest.raises(DomainError) as caught:
        new_trainer().fit(batches, validation=batches)
    assert str(caught.value) == (
        "fit: argument 'validation': it is the object that is trained on, and iterating it may change what the "
        "training gets; pass another"
    )


def test_a_validation_without_batches_is_an_error() -> None:
    with pytest.raises(DomainError) as caught:
        new_trainer().fit(DATA.batches(6), validation=[])
    assert str(caught.value) == (
        "fit: argument 'validation': expected at least one batch, got none; an iterator is used up after one pass"
    )


def test_a_refused_fit_leaves_a_loaded_one_as_it_was(tmp_path: Path) -> None:
    whole = new_trainer().fit(DATA.batches(6, seed=3), epochs=2)
    first = new_trainer(checkpoint=tmp_path / "run.ckpt")
    first.fit(DATA.batches(6, seed=3), epochs=1)
    second = new_trainer(checkpoint=tmp_path / "run.ckpt")
    second.load(tmp_path / "run.ckpt")
    for wrong in ({"validate_every": 2}, {"steps": -1}):
        with pytest.raises(DomainError):
            second.fit(DATA.batches(6, seed=3), **wrong)
    assert second.fit(DATA.batches(6, seed=3), epochs=2).state_digest == whole.state_digest


def test_evaluating_batches_does_not_use_them_up() -> None:
    batches: Batches = DATA.batches(6, seed=3)
    trainer = new_trainer()
    assert trainer.evaluate(batches) == trainer.evaluate(batches)
    assert [part.tolist() for part in next(iter(batches))] == [
        part.tolist() for part in next(iter(DATA.batches(6, seed=3)))
    ]


def test_an_interrupt_takes_effect_between_its_batches(tmp_path: Path) -> None:
    taken = list[int]()

    class Interrupting:
        def __iter__(self) -> Any:
            for k in range(5):
                taken.append(k)
                if k == 1:
                    os.kill(os.getpid(), signal.SIGINT)
                yield OTHER[:3]

    trainer = new_trainer(trace=tmp_path / "run.dgrr")
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(DATA.batches(6), validation=Interrupting(), validate_every=2)
    assert taken == [0, 1]
    assert trainer.steps == 2
    with open_trace(tmp_path / "run.dgrr.partial", mode="tolerate_tail") as trace:
        assert len(trace) == 2
