"""What is one launch on a GPU and several calls on a CPU: products with addends, wide chains, what is read in place."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep, capture
from dgrr.tape import nn

pytestmark = [pytest.mark.usefixtures("host_gpu"), pytest.mark.xdist_group("cuda")]

LSTM, HEAD = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)
PLACES = 4
RNG = np.random.default_rng(0)


def trained_alike(loss_fn: Any, params: Any, batch: Any) -> CapturedStep:
    """The step on a GPU, whose bits are those of the CPU's."""
    cpu, gpu = (capture(loss_fn, params, SGD(0.1), batch, device=d) for d in ("cpu", "cuda"))
    for _ in range(2):
        assert cpu(batch) == gpu(batch)
    assert cpu.digest() == gpu.digest()
    return gpu


def kernels(step: CapturedStep) -> Counter[str]:
    return Counter(op.kernel.name for op in step.lowered.ops)


@pytest.mark.long
def test_a_place_of_a_sequence_takes_two_launches_forward_and_four_back() -> None:
    params = {f"{of}.{name}": a for of, m in (("lstm", LSTM), ("head", HEAD)) for name, a in m.init(seed=0).items()}

    def loss_fn(p: Any, x: Any) -> Any:
        lstm, head = ({n.removeprefix(of): v for n, v in p.items() if n.startswith(of)} for of in ("lstm.", "head."))
        return (HEAD(head, LSTM(lstm, x)[:, -1]) ** 2).sum()

    gpu = trained_alike(loss_fn, params, RNG.standard_normal((2, PLACES, 3)).astype(np.float32))
    found = kernels(gpu)
    assert found["chain"] <= 2 * PLACES + 1 and found["add"] == found["append"] == 0
    assert found["gemm"] <= 3 * PLACES + 5 and found["sum_columns"] <= PLACES + 2 and found["copy"] <= 1
    assert next(check for check in gpu.verify(1).checks if check.name == "executed trace").held
