"""Several steps of a fit in one launch: to the bit, and in its order, the run of single steps."""

import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Callback, CaptureError, Dataset, NonFiniteError, Trainer
from dgrr.runtime.data import Epochs, Stream
from dgrr.runtime.optim import Cosine
from dgrr.runtime.training.fitting import pace
from dgrr.tape import BoundsError

from .launched import DATA, LABELS, MODEL, NAMED, PAIRS, STATE, X, metrics, named, of_context, one_array, plain

pytestmark = pytest.mark.usefixtures("launches")


class Told(Callback):
    """What a callback is told, and what the run is then, its checkpoint and its history too."""

    def __init__(self, path: Path | None = None) -> None:
        self.calls, self.path = list[Any](), path

    def note(self, trainer: Trainer, *call: Any) -> None:
        saved = self.path.read_bytes() if self.path is not None and self.path.exists() else b""
        state = {**trainer.params, **trainer.state, **trainer.model_state}
        bits = sha256(b"".join(array.tobytes() for array in state.values())).hexdigest()
        self.calls.append((*call, trainer.steps, len(trainer.history), bits, sha256(saved).hexdigest()))

    def on_begin(self, trainer: Trainer, steps: int) -> None:
        self.note(trainer, "begin", steps)

    def on_validation(self, trainer: Trainer, step: int, figures: Any) -> bool | None:
        self.note(trainer, "validation", step, dict(figures))
        return None

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool | None:
        self.note(trainer, "epoch", epoch, loss.hex())
        return None

    def on_end(self, trainer: Trainer, result: Any) -> None:
        self.note(trainer, "end", result.losses.tobytes(), result.losses.dtype, result.state_digest, result.findings)


class EveryStep(Told):
    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        self.note(trainer, "step", step, loss.hex())
        return step == 40


def tables(trainer: Trainer) -> Any:
    """The history without its times."""
    history = trainer.history
    return [
        (name, figures[name].tobytes())
        for figures in (history.steps, history.epochs)
        for name in figures.columns
        if name != "seconds"
    ], history.nonfinite


class Ran(NamedTuple):
    """All that can be seen of a run."""

    error: Any
    calls: list[Any]
    steps: int
    tables: Any
    state: dict[str, bytes]
    checkpoint: bytes
    saved: bytes


def ran(
    folder: Path,
    batches: Callable[[], Any],
    told: type[Told] = Told,
    loss: Any = plain,
    fit: dict[str, Any] | None = None,
    before: Callable[[Trainer], Any] = lambda trainer: None,
    **options: Any,
) -> Ran:
    """A run with every moment noted."""
    folder.mkdir()
    options = {"checkpoint": folder / "run.ckpt", "checkpoint_every": 7, **options}
    noted, error = told(options["checkpoint"]), None
    trainer = Trainer(loss, MODEL.init(0), options.pop("rule", Adam(0.05)), callbacks=[noted], **options)
    before(trainer)
    try:
        trainer.fit(batches(), progress=False, **(fit or {"epochs": 3}))
    except (Exception, KeyboardInterrupt) as caught:
        error = type(caught), str(caught)
    trainer.save(folder / "saved.ckpt")
    state = {name: array.tobytes() for part in (trainer.params, trainer.state) for name, array in part.items()}
    files = (options["checkpoint"].read_bytes(), (folder / "saved.ckpt").read_bytes())
    return Ran(error, noted.calls, trainer.steps, tables(trainer), state, *files)


def both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, batches: Callable[[], Any], *, again: Any = None, **options: Any
) -> Ran:
    """The run in launches, which is the run of single steps; ``again`` makes what a run may have changed."""
    fresh = again or dict
    together = ran(folder / "together", batches, **options, **fresh())
    with monkeypatch.context() as alone:
        alone.setattr(pace, "MOST", 1)
        singly = ran(folder / "singly", batches, **options, **fresh())
    for name, one, other in zip(Ran._fields, together, singly, strict=True):
        assert one == other, name
    return together


class Own(Epochs[Any]):
    """Epochs that anybody may write."""

    def epoch(self, k: int) -> Iterator[Any]:
        return (PAIRS[(k + i) % 26] for i in range(20))


RUNS: dict[str, tuple[Callable[[], Any], dict[str, Any], int]] = {
    "data": (lambda: DATA.batches(4, seed=3), {}, 2),
    "data in order": (lambda: DATA.batches(4), {}, 2),
    "data without the rest": (lambda: DATA.batches(4, seed=3, drop_last=True), {}, 2),
    "named": (lambda: NAMED.batches(4, seed=3), {"loss": named}, 2),
    "part": (lambda: DATA.shuffle(1).split(0.8, seed=2)[0].batches(4, seed=3), {}, 2),
    "one array": (lambda: Dataset(X).batches(4, seed=1), {"loss": lambda p, b: one_array(p, b[0])}, 2),
    "accumulated": (lambda: DATA.batches(2, seed=3), {"accumulate": 3}, 2),
    "accumulated, with a rest": (lambda: DATA.batches(4, seed=3), {"accumulate": 5}, 2),
    "accumulated, the last of less": (lambda: DATA.batches(4, seed=3), {"accumulate": 3}, 2),
    "a tree": (lambda: DATA.batches(2, seed=3), {"accumulate": 4, "order": "tree", "loss": metrics}, 2),
    "list": (lambda: PAIRS, {}, 2),
    "tuple of dicts": (lambda: tuple({"x": x, "y": y} for x, y in PAIRS), {"loss": named}, 2),
    "list of arrays": (lambda: [x for x, _ in PAIRS], {"loss": one_array}, 2),
    "shapes that change": (lambda: [PAIRS[0]] * 9 + [(x[:3], y[:3]) for x, y in PAIRS[:9]] + PAIRS[:5], {}, 2),
    "many shapes": (lambda: [(x[: k % 4 + 1], y[: k % 4 + 1]) for k, (x, y) in enumerate(PAIRS * 4)], {}, 0),
    "a batch between that is converted": (lambda: [*PAIRS[:9], (X[:5], LABELS[:5].astype(np.int32)), *PAIRS], {}, 2),
    "strided": (lambda: [(x[:, ::-1], y) for x, y in PAIRS], {}, 0),
    "mapped": (lambda: DATA.map(lambda x, y: (x * 2, y)).batches(4, seed=3), {}, 0),
    "integers of another width": (lambda: Dataset(X, LABELS.astype(np.int32)).batches(4, seed=3), {}, 0),
    "columns of a table": (lambda: Dataset(np.asfortranarray(X), LABELS).batches(4, seed=3), {}, 0),
    "own epochs": (Own, {}, 0),
    "stream": (lambda: Stream(lambda: zip(X, LABELS, strict=True)).batches(4, seed=1, buffer=9), {}, 0),
    "ahead": (lambda: DATA.batches(4, seed=3).prefetch(2), {}, 0),
    "metrics": (lambda: DATA.batches(4, seed=3), {"loss": metrics}, 2),
    "context": (lambda: DATA.batches(4, seed=3), {"loss": of_context, **STATE}, 2),
    "clipped": (lambda: DATA.batches(4, seed=3), {"clip_norm": 0.2, "clip_value": 0.1, "loss": metrics}, 2),
    "norm": (lambda: DATA.batches(4, seed=3), {"fit": {"epochs": 2, "gradient_norm": True}}, 0),
    "groups": (
        lambda: DATA.batches(4, seed=3),
        {"rule": {"*.bias": SGD(Cosine(0.1, steps=90)), "*": Adam(0.01)}, "frozen": ["0.*"], "ema": 0.9},
        2,
    ),
    "validated": (lambda: DATA.batches(4, seed=3), {"fit": {"epochs": 2, "validation": DATA.take(20)}}, 2),
    "validated often": (
        lambda: DATA.batches(4, seed=3),
        {"fit": {"steps": 70, "validation": DATA.take(20), "validate_every": 5.0}, "loss": metrics},
        2,
    ),
    "so many steps": (lambda: DATA.batches(4, seed=3), {"fit": {"steps": 50}}, 2),
    "told of every step": (lambda: DATA.batches(4, seed=3), {"told": EveryStep}, 0),
    "warmup": (lambda: DATA.batches(4, seed=3), {"warmup": 20}, 2),
    "eager": (lambda: DATA.batches(4, seed=3), {"mode": "eager"}, 0),
    "capture": (lambda: DATA.batches(8, seed=3), {"mode": "capture", "fit": {"epochs": 1}}, 0),
    "non-finite values": (
        lambda: [*PAIRS[:12], (X[:5] * np.float32(np.nan), LABELS[:5]), *PAIRS],
        {"on_nonfinite": "record", "checkpoint_every": None},
        0,
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_in_launches_is_the_run_of_single_steps(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[int]
) -> None:
    batches, options, least = RUNS[run]
    found = both(tmp_path, monkeypatch, batches, **options)
    assert found.error is None
    assert (max(launches, default=0) >= 2) == (least >= 2)


def test_how_long_launches_are(tmp_path: Path, launches: list[int]) -> None:
    """Steps 0 to 7, 15, 31, 63 are looked at alone, as are runs that are powers of two; the time doubles them."""
    Trainer(plain, MODEL.init(0), Adam(0.05)).fit([PAIRS[0]] * 300)
    assert launches == [7, 15, 31, 63, 64, 63, 44]


# ------------------------------------------------------------------ what ends a run


def bad(k: int, what: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    """Batches of which one is spoilt."""
    return lambda: [what(*pair) if i == k else pair for i, pair in enumerate(PAIRS)]


def spoilt(x: Any, labels: Any) -> Any:
    x = x.copy()
    x[2, 1] = np.inf
    return x, labels


def out_of_range(x: Any, labels: Any) -> Any:
    return x, labels + 5


@pytest.mark.parametrize("k", [8, 10, 11, 14, 16, 17, 25])
@pytest.mark.parametrize(("what", "kind"), [(spoilt, NonFiniteError), (out_of_range, BoundsError)])
def test_an_error_ends_the_run_at_its_step(
    what: Any, kind: type[Exception], k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both(tmp_path, monkeypatch, bad(k, what), loss=metrics)
    assert found.error[0] is kind
    assert found.steps == k
    assert (f"fit: step {k}: " in found.error[1]) == (kind is NonFiniteError)


def test_an_error_within_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[int]) -> None:
    x = X.copy()
    x[77] = np.nan
    found = both(tmp_path, monkeypatch, lambda: Dataset(x, LABELS).batches(4), clip_norm=1.0)
    assert (found.error[0], found.steps) == (NonFiniteError, 19)
    assert max(launches) > 1


def test_a_run_goes_on_behind_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both(tmp_path, monkeypatch, bad(19, spoilt))
    (tmp_path / "on").mkdir()

    def load(trainer: Trainer) -> None:
        trainer.load(tmp_path / "together" / "saved.ckpt")

    found = both(tmp_path / "on", monkeypatch, lambda: PAIRS, before=load)
    whole = ran(tmp_path / "whole", lambda: PAIRS)
    assert (found.state, found.steps) == (whole.state, whole.steps)


class Holder:
    value = 1.0


@pytest.mark.parametrize("hidden", [False, True])
def test_a_change_of_what_the_function_reads(hidden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Holder()

    def seen(p: Any, batch: Any) -> Any:
        return plain(p, batch) * holder.value

    def unseen(p: Any, batch: Any) -> Any:
        return plain(p, batch) * getattr(holder, "val" + "ue")

    class Changing(Told):
        def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool | None:
            super().on_epoch(trainer, epoch, loss)
            holder.value = 2.0 if trainer.steps > 20 else 1.0
            return None

    def again() -> dict[str, Any]:
        holder.value = 1.0
        return {}

    def first(trainer: Trainer) -> None:
        """So that looks at the loss function and at gradients are due at different steps."""
        trainer.fit(PAIRS[:3])

    loss = unseen if hidden else seen
    found = both(tmp_path, monkeypatch, lambda: PAIRS, loss=loss, told=Changing, again=again, before=first)
    assert found.error[0] is CaptureError
    assert found.steps == (31 if hidden else 29)


def ending(act: Callable[[], bool | None]) -> type[Told]:
    class Ending(Told):
        def on_validation(self, trainer: Trainer, step: int, figures: Any) -> bool | None:
            super().on_validation(trainer, step, figures)
            return act() if step == 19 else None

    return Ending


def failing() -> None:
    raise ZeroDivisionError("mine")


def interrupting() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("act", "error"), [(lambda: True, None), (failing, ZeroDivisionError), (interrupting, KeyboardInterrupt)]
)
def test_a_callback_ends_the_run(
    act: Any, error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[int]
) -> None:
    fit = {"epochs": 3, "validation": DATA.take(8), "validate_every": 10}
    found = both(tmp_path, monkeypatch, lambda: DATA.batches(4, seed=3), told=ending(act), fit=fit)
    assert (found.error and found.error[0], found.steps) == (error, 20)
    assert max(launches) > 1


def test_an_interrupt_comes_between_launches(tmp_path: Path, launches: list[int]) -> None:
    trainer = Trainer(plain, MODEL.init(0), Adam(0.05))
    timer = Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit([PAIRS[0]] * 10**6)
    timer.join()
    assert max(launches) > 1
    assert 0 < trainer.steps == len(trainer.history) < 10**6
    beside = Trainer(plain, MODEL.init(0), Adam(0.05), mode="eager")
    if trainer.steps < 2000:
        assert beside.fit([PAIRS[0]] * trainer.steps).state_digest == trainer._step.digest()
    assert int(trainer.state["step"]) == trainer.steps


# ------------------------------------------------------------------ what is taken of the batches


@pytest.mark.parametrize("ends", ["steps", "error", "interrupt"])
def test_a_generator_is_not_advanced_beyond_the_steps(ends: str) -> None:
    given = list[int]()

    def batches() -> Iterator[Any]:
        for k in range(60):
            given.append(k)
            if ends == "interrupt" and k == 40:
                signal.raise_signal(signal.SIGINT)
            yield spoilt(*PAIRS[0]) if ends == "error" and k == 40 else PAIRS[k % 26]

    trainer = Trainer(plain, MODEL.init(0), Adam(0.05))
    kind = {"error": NonFiniteError, "interrupt": KeyboardInterrupt}.get(ends)
    with nullcontext() if kind is None else pytest.raises(kind):
        trainer.fit(batches(), steps=41)
    assert (len(given), trainer.steps) == (41, 40 if ends == "error" else 41)


def test_a_list_that_grows_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = list[Any]()

    class Growing(Told):
        def on_validation(self, trainer: Trainer, step: int, figures: Any) -> bool | None:
            super().on_validation(trainer, step, figures)
            batches.extend(PAIRS[5:10] if len(batches) < 40 else [])
            return None

    def again() -> dict[str, Any]:
        batches[:] = PAIRS
        return {}

    fit = {"epochs": 2, "validation": DATA.take(8), "validate_every": 9}
    assert both(tmp_path, monkeypatch, lambda: batches, told=Growing, fit=fit, again=again).steps == 41 * 2


def test_samples_in_a_file_are_read_where_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[int]
) -> None:
    np.save(tmp_path / "x.npy", X)
    data = Dataset(np.load(tmp_path / "x.npy", mmap_mode="r"), LABELS)
    found = both(tmp_path, monkeypatch, lambda: data.batches(4, seed=3))
    assert max(launches) > 1
    assert found.state == ran(tmp_path / "beside", lambda: DATA.batches(4, seed=3)).state
    assert found.state == ran(tmp_path / "eager", lambda: DATA.batches(4, seed=3), mode="eager").state


def test_a_second_fit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = DATA.batches(4, seed=3)

    def first(trainer: Trainer) -> None:
        trainer.fit(batches, steps=17)

    both(tmp_path, monkeypatch, lambda: batches, before=first, checkpoint_every=None)
