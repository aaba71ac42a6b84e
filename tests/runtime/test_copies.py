"""`copy` and `pickle`: what comes out has the same bits, or an error says what to do instead."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, Dataset, Trainer, capture
from dgrr.runtime.optim import Cosine, OneCycle, WarmUp
from dgrr.tape import AnyTensor, Shape, Tape, TapeError, Tensor, nn, ops
from dgrr.tape.ops import OPS
from dgrr.tape.record.composed import COMPOSED

Copy = Callable[[Any], Any]

COPIES: dict[str, Copy] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {p}": lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)},
}

MODEL = nn.Sequential(
    nn.Linear(3, 4), nn.LayerNorm(4), nn.LeakyReLU(0.25), nn.Residual(nn.Linear(4, 4)), nn.Dropout(0.5), nn.Linear(4, 2)
)
X, LABELS = np.arange(24, dtype=np.float32).reshape(8, 3) / 7, np.arange(8) % 2
DATA = Dataset(X, LABELS)


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    return ops.cross_entropy(MODEL(p, batch[0], ctx), batch[1])


@pytest.fixture(params=list(COPIES))
def copied(request: pytest.FixtureRequest) -> Copy:
    return COPIES[request.param]


def trained(params: Any, rule: Any, data: Any) -> tuple[str, bytes]:
    result = Trainer(loss_fn, params, rule, seed=3).fit(data, epochs=2)
    return result.state_digest, result.losses.tobytes()


@pytest.mark.parametrize("rule", [SGD(0.1, momentum=0.9), Adam(0.01), AdamW(WarmUp(Cosine(0.05, steps=4), steps=2))])
def test_a_run_of_copies_is_the_run(copied: Copy, rule: Any) -> None:
    params, batches = MODEL.init(0), DATA.batches(4, seed=1)
    assert copied(MODEL) == MODEL
    assert copied(MODEL).init(0).keys() == params.keys()
    assert trained(copied(params), copied(rule), copied(batches)) == trained(params, rule, batches)


def test_data_sets_and_results(copied: Copy) -> None:
    one, other = list(DATA.batches(3, seed=5)), list(copied(DATA).batches(3, seed=5))
    assert [[a.tobytes() for a in batch] for batch in one] == [[a.tobytes() for a in batch] for batch in other]
    result = Trainer(loss_fn, MODEL.init(0), Adam(0.1)).fit(DATA.batches(4), epochs=1)
    again = copied(result)
    assert again.losses.tobytes() == result.losses.tobytes()
    assert (again.steps, again.state_digest) == (result.steps, result.state_digest)
    schedule = OneCycle(0.1, steps=10)
    assert copied(schedule) == schedule


VALUES = [
    np.array([0.0, -0.0, np.nan, np.inf, 1e-45], np.float32), np.arange(6.0).reshape(2, 3).T, np.array(True),
    np.broadcast_to(np.float64(0.1), (2, 3)), np.zeros((0, 3)), np.arange(3),
]  # fmt: skip


@pytest.mark.parametrize("kind", [AnyTensor, Tensor])
@pytest.mark.parametrize("array", VALUES, ids=lambda a: f"{a.dtype}{a.shape}")
def test_a_tensor_keeps_its_bits_and_stays_read_only(copied: Copy, kind: Any, array: Any) -> None:
    first = kind(array)
    again = copied(first)
    assert type(again) is kind
    assert again.spec is first.spec
    assert again.numpy().tobytes() == array.tobytes()
    assert not again.numpy().flags.writeable


def test_shapes_and_records_of_ops(copied: Copy) -> None:
    assert copied(Shape((2, 3))) == Shape((2, 3))
    assert type(copied(Shape((2, 3)))) is Shape
    assert all(copied(record) is record for record in (*OPS.values(), *COMPOSED.values()))
    assert copied(ops.scale) is ops.scale


def refused() -> dict[str, tuple[Any, str]]:
    """What cannot be copied, and what its error says to do."""
    tape: Tape[Any] = Tape()
    x = tape.leaf([1.0, 2.0])
    y = (x * x).sum()
    trainer = Trainer(loss_fn, MODEL.init(0), Adam(0.1))
    trainer.fit(DATA.batches(4), epochs=1)
    step = capture(loss_fn, MODEL.init(0), Adam(0.1), (X, LABELS))
    return {
        "Tape": (tape, "run the ops on another tape, or take values: x.numpy()"),
        "Var": (x, "take its value: x.numpy()"),
        "Node": (tape.node(y), "take its value: node.value"),
        "DenseGrads": (tape.backward_dense(y), "take the tensors: grads.reached()"),
        "HookHandle": (tape.hook(x, lambda g: g), "tape.hook(x, function)"),
        "Trainer": (trainer, "trainer.save(path), Trainer(...).load(path)"),
        "CapturedStep": (step, "other.load_state_dict(step.state_dict())"),
    }


@pytest.mark.parametrize("name", ["Tape", "Var", "Node", "DenseGrads", "HookHandle", "Trainer", "CapturedStep"])
def test_what_is_unique_says_what_to_do_instead(copied: Copy, name: str) -> None:
    """A shallow copy of a trainer would train the arrays of the first, a deep one would point into them."""
    given, instead = refused()[name]
    for thing in (given, [given], {"x": given}):
        if thing is not given and copied is copy.copy:
            continue  # a list of the same
        with pytest.raises(TapeError) as caught:
            copied(thing)
        text = str(caught.value)
        assert text.startswith(f"{name}: expected not to be copied or pickled; ")
        assert text.endswith(instead)


def test_what_the_errors_say_works(tmp_path: Any) -> None:
    first = capture(loss_fn, MODEL.init(0), Adam(0.1), (X, LABELS))
    first((X, LABELS))
    other = capture(loss_fn, MODEL.init(1), Adam(0.1), (X, LABELS))
    other.load_state_dict(first.state_dict())
    assert other((X, LABELS)) == first((X, LABELS))
    assert other.digest() == first.digest()
    assert copy.deepcopy(first.state_dict())["params"].keys() == MODEL.init(0).keys()
