"""Values of a step's tape that are views of its parameters are those before the update, as op by op."""

from pathlib import Path
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Keep, Trainer, capture
from dgrr.tape import ops
from dgrr.trace import open_trace

X = np.arange(12.0).reshape(4, 3)
PARAMS = {"scale": np.ones(3), "w": np.ones((2, 3)), "deep": np.ones((2, 3))}


def loss_fn(p: Any, x: Any) -> Any:
    """By views of all kinds: repeated, transposed, reshaped, of a part."""
    first = ops.exp(x * p["scale"] * 0.1).sum() + (x @ p["w"].T).sum()
    return first + (ops.reshape(p["deep"], (6,)) * 2.0).sum() + (p["deep"][1] * 3.0).sum()


def test_they_stay_when_the_step_has_run() -> None:
    step = capture(loss_fn, PARAMS, Adam(0.1), X)
    tape = step.tape(X)
    before = [np.array(value) for value in tape.values]
    step(X)
    assert [value.tobytes() for value in tape.values] == [value.tobytes() for value in before]
    assert {"broadcast_to", "transpose2d", "reshape", "getitem"} <= {node.op for node in tape.nodes}


def test_recorded_digests_are_those_of_a_run_op_by_op(tmp_path: Path) -> None:
    found = list[Any]()
    for mode in ("replay", "eager"):
        trace = Keep(tmp_path / mode, ops="every")
        Trainer(loss_fn, PARAMS, Adam(0.1), mode=mode, trace=trace).fit([X] * 3, progress=False)  # type: ignore[arg-type]
        with open_trace(tmp_path / mode) as recorded:
            found.append([(view.ops().nodes, view.ops().values, view.ops().grads) for view in recorded])  # type: ignore[union-attr]
    assert found[0] == found[1]
