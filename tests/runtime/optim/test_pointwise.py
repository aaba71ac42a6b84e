"""Rules that are formulas: the kernel, its reference, and the same update in ops, to the bit; one more rule."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Trainer, capture
from dgrr.runtime.optim import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Cosine, Lion, RAdam, RMSprop
from dgrr.runtime.optim.laws.ops_law import OpsLaw
from dgrr.runtime.optim.laws.pointwise import CONSTANTS
from dgrr.runtime.optim.state_ops import STATE_OPS
from dgrr.tape import Tape, ops
from dgrr.trace import replay

from .made_up import HeavySign
from .ops_texts import TEXTS

RULES = [
    Lion(), Lion(0.1, (0.3, 0.7), 0.1, maximize=True), Lion(Cosine(0.1, steps=9), weight_decay=1.0),
    RMSprop(), RMSprop(0.1, 0.7, weight_decay=0.1, momentum=0.9, maximize=True), RMSprop(centered=True),
    RMSprop(Cosine(0.1, steps=9), 0.8, momentum=0.5, centered=True, weight_decay=0.2),
    Adagrad(), Adagrad(initial=1.0), Adagrad(Cosine(0.1, steps=9), 0.1, 0.2, 0.3, 0.4, maximize=True),
    Adadelta(), Adadelta(0.3, 0.7, 1e-3, 0.1, maximize=True),
    Adamax(), Adamax(0.3, (0.0, 0.5), 1e-3, 0.1, maximize=True), Adamax(Cosine(0.1, steps=9), eps=0.0),
    RAdam(), RAdam(betas=(0.9, 0.8), weight_decay=0.1),
    RAdam(Cosine(0.1, steps=9), (0.5, 0.7), 1e-3, 0.1, decoupled=True, maximize=True),
    SGD(0.1), SGD(Cosine(0.1, steps=9), weight_decay=0.1), SGD(0.1, 0.9, 0.3, weight_decay=0.1),
    SGD(0.1, 0.9, nesterov=True), Adam(), Adam(Cosine(0.1, steps=9), (0.3, 0.8), 0.1, 0.1), AdamW(0.1, (0.0, 0.5)),
    SGD(0.1, maximize=True), SGD(Cosine(0.1, steps=9), weight_decay=0.1, maximize=True),
    SGD(0.1, 0.9, 0.3, weight_decay=0.1, maximize=True), SGD(0.1, 0.9, nesterov=True, maximize=True),
    Adam(0.1, (0.7, 0.8), maximize=True, weight_decay=0.1), Adam(Cosine(0.1, steps=9), amsgrad=True),
    AdamW(0.1, (0.7, 0.8), maximize=True), AdamW(0.1, (0.0, 0.5), 1e-3, 0.3, amsgrad=True, maximize=True),
]  # fmt: skip
every_rule = pytest.mark.parametrize("rule", RULES, ids=str)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
SPECIAL = (0.0, -0.0, 1e-42, np.inf, -np.inf, np.nan)
STEPS = 7
"""Enough for RAdam to divide."""


def drawn(rng: Any, dtype: Any) -> Any:
    """Numbers at the edges, which meet all others of them at a place, and numbers of all sizes."""
    values = rng.standard_normal(1000) * 10.0 ** rng.integers(-12, 12, 1000)
    values[:400] = rng.choice(SPECIAL, 400)
    return values.astype(dtype)


def bits_of(arrays: Any) -> list[bytes]:
    """Any NaN is one NaN: which of two operands' a sum has is the processor's affair."""
    return [np.where(np.isnan(array), np.nan, array).astype(array.dtype).tobytes() for array in arrays]


@every_dtype
@every_rule
def test_the_kernel_the_reference_and_the_update_in_ops_have_the_same_bits(rule: Any, dtype: Any) -> None:
    rng, own = np.random.default_rng(0), rule.law
    by_ops = OpsLaw("", partial(TEXTS[type(rule)], rule), own.buffers, ("lr",), counts=True, precise=True)
    read = OpsLaw("", rule.update, own.buffers, ("lr",), counts=True, precise=True)
    reference = STATE_OPS[own.kernel.name].reference
    assert reference is not None
    for t in range(1, STEPS + 1):
        p, g = drawn(rng, dtype), drawn(rng, dtype)
        kept = [abs(drawn(rng, dtype)) if name == "v" else drawn(rng, dtype) for name in own.buffers]
        step, rates = np.array(t), rule.hyper_at(t)
        texts = by_ops.computed(p, g, kept, rates, step)
        again = read.computed(p, g, kept, rates, step)
        state = {**begun(rule, t), **{f"{n}/w": a for n, a in zip(own.buffers, kept, strict=True)}}
        scalars = begun(rule, t)
        rule.step({}, {}, scalars)
        plain = reference(p, *kept, g, *[{**scalars, CONSTANTS: rule.hyper}[name] for name in own.scalars], rates)
        rule.step({"w": p}, {"w": g}, state)
        assert bits_of([p, *kept]) == bits_of(texts) == bits_of(plain) == bits_of(again)


def begun(rule: Any, t: int) -> dict[str, Any]:
    """The state of all parameters before a step."""
    return {**rule.init({}), "step": np.array(t - 1)}


def test_an_update_can_be_differentiated() -> None:
    """By the gradient, of a step of Adagrad: minus the rate times the slope of ``g / (sqrt(total + g²) + eps)``."""
    rule, tape = Adagrad(0.5, eps=0.0), Tape[Any]()
    p, g, total = tape.leaf([1.0]), tape.leaf([2.0]), tape.leaf([5.0])
    new, kept = rule.update(p, g, total, lr=0.5, step=1)
    found = tape.backward_dense(new.sum())[g]
    assert found is not None
    np.testing.assert_allclose(found.numpy(), [-0.5 * 5 / 9**1.5], rtol=1e-15)
    assert kept.numpy().tolist() == [9.0]


def loss_fn(p: Any, x: Any) -> Any:
    return ops.reduce_mean(ops.square(x @ p["w"] - 1.0))


@pytest.mark.parametrize("rate", [0.1, Cosine(0.1, steps=4)], ids=str)
def test_one_more_rule_is_captured_recorded_replayed_and_verified(tmp_path: Path, rate: Any) -> None:
    rng, rule = np.random.default_rng(1), HeavySign(rate, weight_decay=0.1)
    start = {"w": rng.standard_normal((3, 2)).astype(np.float32)}
    batches = [rng.standard_normal((5, 3)).astype(np.float32) for _ in range(4)]
    ends = set()
    for mode in ("eager", "capture", "replay"):
        trainer = Trainer(loss_fn, start, rule, mode=mode, trace=tmp_path / mode)  # type: ignore[arg-type]
        ends.add(trainer.fit(batches, progress=False).state_digest)
        assert replay(tmp_path / mode, rules=[HeavySign]).update == "proven"
    assert len(ends) == 1
    capture(loss_fn, start, rule, batches[0]).verify()
    w, m = start["w"], np.zeros((3, 2), np.float32)
    g = np.float32(0.5) + np.float32(0.1) * w
    one = {"w": w.copy()}
    HeavySign(0.1, weight_decay=0.1).step(one, {"w": np.full_like(w, 0.5)}, rule.init(one))
    m = np.float32(0.9) * m + np.float32(1 - 0.9) * g
    np.testing.assert_array_equal(one["w"], w - np.float32(0.1) * m)
