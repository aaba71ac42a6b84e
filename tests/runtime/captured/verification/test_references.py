"""Kernels that are one ULP off are named, wherever they stand in a step: forward, backward, model state, update.

A kernel is spoilt for all that call it: eager steps and captured ones agree, and only a reference can tell.
"""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, AdamW, CapturedStep, capture
from dgrr.runtime.captured.verification import REFERENCE_WORK
from dgrr.runtime.captured.verification.checks.references import check_references
from dgrr.runtime.captured.verification.report import CheckError
from dgrr.runtime.captured.verification.subject import Subject
from dgrr.runtime.optim import Cosine, OneCycle, RMSprop, StepDecay, WarmUp
from dgrr.runtime.optim.methods.adam import adam
from dgrr.runtime.optim.state_ops import STATE_OPS
from dgrr.tape import DomainError, nn, ops
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.threads import get_threads, set_threads
from dgrr.tape.record.op import OPS

CONV = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 4))
MIXED = nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 5))


def convolution(p: Any, batch: Any, ctx: Any) -> Any:
    return ops.cross_entropy(CONV(p, batch[0], ctx), batch[1]), ctx.state


def mixed(p: Any, batch: Any) -> Any:
    """The loss adds softmax to a number so large that its last bits are rounded away."""
    out = MIXED(p, batch[0])
    return ops.softmax(out).sum() * 1e-9 + 1000.0 + ops.cross_entropy(out, batch[1])


def convolutional_step(rule: Any = None, dtype: Any = np.float32, **options: Any) -> CapturedStep:
    rng = np.random.default_rng(0)
    batch = (rng.standard_normal((4, 1, 8, 8)).astype(dtype), rng.integers(0, 4, 4))
    params, state = CONV.init(seed=0, dtype=dtype), CONV.init_state(dtype=dtype)
    return capture(convolution, params, rule or SGD(0.1), batch, model_state=state, **options)


def mixed_step(rule: Any = None, dtype: Any = np.float32, **options: Any) -> CapturedStep:
    rng = np.random.default_rng(1)
    batch = (rng.standard_normal((4, 6)).astype(dtype), rng.integers(0, 5, 4))
    return capture(mixed, MIXED.init(seed=0, dtype=dtype), rule or Adam(0.1), batch, **options)


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], None]]:
    """Let a kernel give the first element of one of its outputs one ULP off, in float32, to all that call it."""
    kept, threads = list[Any](), get_threads()
    set_threads(1)
    form = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)

    def spoil(name: str, output: int = 0) -> None:
        right = form(KERNELS[name].address(np.dtype(np.float32)))

        def wrong(table: int, ints: int, part: int, parts: int) -> int:
            status = right(table, ints, part, parts)
            if part == 0:
                address = ctypes.c_int64.from_address(table + 8 * output).value
                ctypes.c_int32.from_address(address).value ^= 1
            return int(status)

        kept.append(form(wrong))
        address = ctypes.cast(kept[-1], ctypes.c_void_p).value
        monkeypatch.setitem(KERNELS[name]._addresses, np.dtype(np.float32), address)
        for record in OPS.values():
            monkeypatch.setattr(record, "prepared", {})

    yield spoil
    set_threads(threads)


def references(step: CapturedStep, reference_work: int = REFERENCE_WORK) -> str:
    """What the check says, or finds wrong."""
    subject = Subject(step, step.bound_plans(""), 1, reference_work)
    try:
        return f"held: {check_references(subject)}"
    except CheckError as error:
        return str(error)
    finally:
        subject.restore()


@pytest.mark.parametrize(
    ("kernel", "make", "expected"),
    [
        ("softmax", mixed_step, "(softmax): reference and kernel differ: element [0, 0]: expected "),
        ("gemm", mixed_step, "(linear): reference and kernel differ: element [0, 0]: expected "),
        ("where_positive", mixed_step, "(where_positive): reference and kernel differ: element [0, 0]: expected "),
        ("normalize_grad", mixed_step, "(normalize_grad): reference and kernel differ: element [0, 0]: expected "),
        ("cross_entropy_grad", mixed_step, "(cross_entropy_grad): reference and kernel differ: "),
        ("convolve", convolutional_step, "(conv): reference and kernel differ: element [0, 0, 0, 0]: expected "),
        ("give_to_largest", convolutional_step, "(max_pool_grad): reference and kernel differ: element [0, 0, 0, 0]"),
        ("scale", convolutional_step, "(scale): "),
        ("assign", convolutional_step, "(assign): '1.running_mean': reference and kernel differ: element [0]: "),
        ("adam_step", mixed_step, "(adam_step): '0.weight': reference and kernel differ: element [0, 0]: expected "),
        ("sgd_step", convolutional_step, "(sgd_step): '0.weight': reference and kernel differ: element [0, 0, 0, 0]"),
        ("sgd_momentum_step", partial(mixed_step, SGD(0.1, 0.9)), "(sgd_momentum_step): '0.weight': reference and "),
        ("scale_by", partial(mixed_step, clip_norm=0.1), "(scale_by): reference and kernel differ: element [0, 0]"),
        ("clamp_to", partial(mixed_step, clip_value=0.01), "(clamp_to): reference and kernel differ: element [0, 0]"),
    ],
)
def test_a_kernel_one_ulp_off(spoilt: Any, kernel: str, make: Callable[[], CapturedStep], expected: str) -> None:
    spoilt(kernel)
    found = references(make())
    assert found.startswith("step: node ")
    assert expected in found


def test_a_softmax_one_ulp_off_fails_a_verification(spoilt: Any) -> None:
    """The loss has the same bits with it, so all other checks hold."""
    right = mixed_step()
    spoilt("softmax")
    wrong = mixed_step()
    assert right.replay(1).tobytes() == wrong.replay(1).tobytes()
    failed = {check.name: check.detail for check in wrong.verify(2).failures}
    assert failed.keys() <= {"references", "allocation"}  # what spoils the kernel allocates
    assert "(softmax): reference and kernel differ: element [0, 0]: expected " in failed["references"]


@pytest.mark.parametrize(("output", "name"), [(1, "m/0.weight"), (2, "v/0.weight")])
def test_a_moment_one_ulp_off(spoilt: Any, output: int, name: str) -> None:
    spoilt("adam_step", output)
    assert f"(adam_step): '{name}': reference and kernel differ: " in references(mixed_step())


RULES = [
    SGD(WarmUp(StepDecay(0.1, every=2, factor=0.3), steps=3)),
    SGD(Cosine(0.1, steps=7), 0.9, 0.1, weight_decay=0.1),
    SGD(OneCycle(0.1, steps=9), 0.9, nesterov=True),
    Adam(0.01, weight_decay=0.1),
    Adam(WarmUp(Cosine(0.1, steps=9), steps=3), betas=(0.3, 0.9)),
    AdamW(0.01),
    RMSprop(0.01),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_right_kernels_are_held_at_every_count(rule: Any, dtype: Any) -> None:
    step = mixed_step(rule, dtype, clip_norm=0.5, clip_value=0.05)
    for _ in range(5):
        found = references(step)
        assert found.startswith("held: "), found
        assert "not held" not in found
        step.replay(2)


def test_every_primitive_of_optimizers_that_makes_something_has_a_reference() -> None:
    own = {name: op for name, op in STATE_OPS.items() if "dgrr" in op.kernel.body.__module__}
    assert [name for name, op in own.items() if op.reference is None] == ["finite"]


def test_what_would_take_too_long_is_said() -> None:
    """The cheapest nodes are held first, and those that are not are named."""
    found = references(mixed_step(), reference_work=2000)
    count, total = found.removeprefix("held: ").split(" nodes, ")[0].split(" of ")
    assert 0 < int(count) < int(total)
    assert "; not held to the reference (see verify(reference_work=…)): step: node 4 (softmax), step: node " in found
    report = mixed_step().verify(1, reference_work=0)
    assert report.ok
    named = ", ".join(
        f"step: node {i} ({op})" for i, op in enumerate(("linear", "layer_norm", "relu", "linear", "softmax"))
    )
    assert f"references: 0 of {total} nodes, loss " in str(report)
    assert f"; not held to the reference (see verify(reference_work=…)): {named}, {int(total) - 5} more" in str(report)
    assert "; 10 of 10 nodes by kernels" in str(report)


def test_a_kernel_without_a_reference_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    adam_step = adam.law.kernel
    record = STATE_OPS[adam_step.name]
    monkeypatch.setitem(STATE_OPS, adam_step.name, type(record)(adam_step, 3, sized=0, inputs=6, alike=4))
    assert "; not held to the reference (a kernel of yours): step: node " in references(mixed_step())


def test_work_that_is_no_number() -> None:
    with pytest.raises(DomainError, match=r"verify: reference_work: expected a whole number of at least 0, got -1"):
        mixed_step().verify(1, reference_work=-1)
