"""Two runs whose batches hold the same numbers in another dtype, of which a trace keeps digests only."""

from pathlib import Path
from typing import Any

import numpy as np

from dgrr.runtime import SGD, Trainer
from dgrr.tape import ops
from dgrr.trace import Cause, compare

NOTE = (
    "all that the step computes is the same: the batch has the same numbers in another dtype, as labels of int32 "
    "and of int64, or differs in what nothing depends on; replay with the batches says which dtype was recorded"
)


def classify(p: Any, batch: Any) -> Any:
    return ops.cross_entropy(ops.linear(batch[0], p["w"]), batch[1])


def run(path: Path, labels: Any) -> Path:
    x, params = np.arange(12, dtype=np.float32).reshape(4, 3), {"w": np.ones((2, 3), np.float32)}
    Trainer(classify, params, SGD(0.1), trace=path).fit([(x, labels)] * 2, progress=False)
    return path


def test_labels_of_another_dtype_are_told_from_other_labels(tmp_path: Path) -> None:
    labels = np.array([0, 1, 1, 1])
    a = run(tmp_path / "a.dgrr", labels)
    for name, given, notes in (("b", labels.astype(np.int32), [NOTE]), ("c", 1 - labels, [])):
        found = compare(a, run(tmp_path / f"{name}.dgrr", given))
        assert (found.cause, found.notes) == (Cause.DATA, notes)
