"""Where `bits.json` comes from: each digest is recomputed here without a kernel, from slow definitions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime.data import digits
from dgrr.runtime.optim import SGD, Adam, AdamW, Rule
from dgrr.runtime.step.evaluate import evaluate
from dgrr.runtime.step.loss_call import RunPoint
from dgrr.runtime.step.state_digest import state_digest
from dgrr.tape import AnyTensor
from dgrr.tape.numerics.math.reference import functions as reference, sums as reference_sums
from dgrr.tape.record.op import Op

pytestmark = pytest.mark.long

Array = npt.NDArray[Any]
State = dict[str, Array]


BY_REFERENCES = 3
"""Steps of the networks that are computed by references, which take a while."""


@pytest.fixture(scope="module")
def golden(bits: ModuleType) -> dict[str, str]:
    recorded: dict[str, str] = json.loads(bits.FILE.read_text())
    return recorded


def expect(found: dict[str, str], golden: Mapping[str, str], *prefixes: str) -> None:
    """The digests found are all those of the file under the prefixes."""
    recorded = {name: value for name, value in golden.items() if name.startswith(prefixes)}
    assert sorted(found) == sorted(recorded)
    assert [name for name in found if found[name] != recorded[name]] == []


def slow(self: Op, values: Sequence[AnyTensor | None], attrs: Mapping[str, Any]) -> AnyTensor:
    """`Op.compute` by the op's reference."""
    with np.errstate(all="ignore"):
        y = self.reference(*[None if v is None else v.array for v in values], **attrs)
    return AnyTensor(np.array(y, order="C"))


@pytest.mark.parametrize("part", ["op", "pattern", "accumulation"])
def test_ops_and_their_derivatives_by_references(
    bits: ModuleType, golden: dict[str, str], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(Op, "compute", slow)
    prefix = {"op": "op/", "pattern": "patterns/", "accumulation": "accumulation/"}[part]
    expect(dict(getattr(bits, f"{part}_bits")()), golden, prefix)


def test_training_by_hand(bits: ModuleType, numpy_training: ModuleType, golden: dict[str, str]) -> None:
    batches = islice(digits()[0].batches(bits.BATCH, seed=0), bits.TRAINING_STEPS)
    found: dict[str, str] = {}
    run = numpy_training.train(bits.initial(), batches, bits.TRAINING_RATE)
    for step, (loss, params, state) in enumerate(run, start=1):
        found[f"training/{step:02}/loss"] = bits.digest(loss)
        found[f"training/{step:02}/state"] = state_digest(params, state)[:16]
    expect(found, golden, "training/")


@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_networks_by_references(
    bits: ModuleType, numpy_training: ModuleType, golden: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Op, "compute", slow)
    network = bits.NETWORKS[name]
    moments = [RunPoint(seed=network.seed, model_state=network.model_state)]

    def gradients(params: State, *batch: Array) -> tuple[Array, State]:
        made = evaluate(network.loss_fn, params, batch, moments[-1])
        moments.append(replace(moments[-1], step=len(moments), model_state=made.model_state))
        return made.loss, {parameter: made.grads[parameter] for parameter in params}

    found: dict[str, str] = {}
    run = numpy_training.train(dict(network.params), network.batches()[:BY_REFERENCES], network.rate, gradients)
    for step, (loss, params, state) in enumerate(run, start=1):
        found[f"networks/{name}/{step:02}/loss"] = bits.digest(loss)
        found[f"networks/{name}/{step:02}/state"] = state_digest(params, state, moments[-1].model_state)[:16]
    expect(found, golden, *(f"networks/{name}/{step:02}/" for step in range(1, BY_REFERENCES + 1)))


def test_the_fma_of_the_training_by_hand_rounds_once(numpy_training: ModuleType) -> None:
    generator = np.random.default_rng(0)
    a, b, c = floats = np.ldexp(generator.random((3, 3000)), generator.integers(-40, 40, (3, 3000))).astype(np.float32)
    c[::2] = -(a * b)[::2]  # these sums cancel but for the rounding of the product
    fused = numpy_training.fma(a, b, c)
    assert np.mean(fused != a * b + c) > 0.4
    exact = np.array([reference.fma(*three) for three in floats.T])
    np.testing.assert_array_equal(fused, exact)


def stepped(rule: Any, p: Array, g: Array, buffers: State, t: int, power: Any) -> Array:
    """The parameter after a step, by the formulas of the optimizers' docstrings; the buffers in place."""
    f, decoupled = p.dtype.type, isinstance(rule, AdamW)
    if rule.weight_decay and not decoupled:
        g = g + f(rule.weight_decay) * p
    if isinstance(rule, Adam):
        m, v, (c1, c2) = buffers["m"], buffers["v"], (1 - power(beta, t) for beta in rule.betas)
        near = 1 - rule.beta1 < 0.5
        m[...] = m + f(1 - rule.beta1) * (g - m) if near else g - f(rule.beta1) * (g - m)
        v[...] = f(rule.beta2) * v + (f(1 - rule.beta2) * g) * g
        kept = f(1 - rule.lr * rule.weight_decay) if decoupled else f(1)
        return np.asarray(kept * p - (f(rule.lr / c1) * m) / (np.sqrt(v) / f(np.sqrt(c2)) + f(rule.eps)))
    assert isinstance(rule, SGD)
    if rule.momentum:
        b = buffers["momentum"]
        b[...] = g if t == 1 else f(rule.momentum) * b + f(1 - rule.dampening) * g
        g = g + f(rule.momentum) * b if rule.nesterov else b
    return np.asarray(p - f(rule.lr) * g)


def optimized(bits: ModuleType, rule: Rule, dtype: Any, power: Any) -> Iterator[tuple[State, State]]:
    """Parameters and state after each step."""
    params, kinds = bits.drawn(dtype, seed=0), rule.law.buffers
    buffers = {name: {kind: np.zeros_like(p) for kind in kinds} for name, p in params.items()}
    for t in range(1, bits.OPTIMIZER_STEPS + 1):
        grads = bits.drawn(dtype, seed=t)
        params = {n: stepped(rule, p, grads[n], buffers[n], t, power) for n, p in params.items()}
        state = {"step": np.array(t)}
        if isinstance(rule, Adam):
            state["corrections"] = np.array([1 - power(beta, t) for beta in rule.betas])
        yield params, state | {f"{kind}/{name}": buffers[name][kind] for kind in kinds for name in params}


def test_optimizers_by_formulas(bits: ModuleType, numpy_training: ModuleType, golden: dict[str, str]) -> None:
    found = {
        f"optimizer/{name}/{dtype}/{t}": state_digest(*after)[:16]
        for name, rule in bits.RULES.items()
        for dtype in bits.DTYPES
        for t, after in enumerate(optimized(bits, rule, dtype, numpy_training.power), start=1)
    }
    expect(found, golden, "optimizer/")


def test_optimizers_of_ops_by_references(
    bits: ModuleType, golden: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Op, "compute", slow)
    expect(dict(bits.rule_bits("optimizer of ops", bits.RULES_OF_OPS)), golden, "optimizer of ops/")


def test_clipping_by_formulas(bits: ModuleType, golden: dict[str, str]) -> None:
    found: dict[str, str] = {}
    for dtype in bits.DTYPES:
        grads, f = bits.drawn(dtype, seed=1), dtype.type
        norms = np.array([np.sqrt(reference_sums.row_sum(g * g)) for g in grads.values()], np.float64)
        norm = np.sqrt(reference_sums.row_sum(norms * norms))
        scale = min(10.0 / (norm + 1e-6), 1.0)
        clipped = [f(scale) * g for g in grads.values()]
        found[f"clip_by_global_norm/{dtype}"] = bits.digest(*clipped, np.array([norm, scale]))
        held = [np.clip(g, f(-0.7), f(0.7)) for g in grads.values()]
        found[f"clip_by_value/{dtype}"] = bits.digest(*held)
    expect(found, golden, "clip_by_")


def philox_block(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Four words of Philox 4x32-10, in Python's integers."""
    x, k, mask = list(counter), list(key), 2**32 - 1
    for _ in range(10):
        one, two = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [two >> 32 ^ x[1] ^ k[0], two & mask, one >> 32 ^ x[3] ^ k[1], one & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return x


def test_draws_by_integers(bits: ModuleType, golden: dict[str, str]) -> None:
    key, n = (5, 2**8), 1001

    def words(micro_batch: int, ordinal: int) -> list[int]:
        return [w for b in range(n // 2 + 1) for w in philox_block((b, ordinal, micro_batch, 3), key)]

    drawn, shuffle = words(2, 7), words(2**32 - 1, 0)
    pairs = [(drawn[2 * i] + (drawn[2 * i + 1] << 32)) >> 11 for i in range(n)]
    keys = [shuffle[2 * i] + (shuffle[2 * i + 1] << 32) for i in range(n)]
    found = {
        "random/uniform/float32": bits.digest(np.array([(w >> 8) * 2.0**-24 for w in drawn[:n]], np.float32)),
        "random/uniform/float64": bits.digest(np.array([w * 2.0**-53 for w in pairs])),
        "random/permutation": bits.digest(np.array(sorted(range(n), key=keys.__getitem__))),
    }
    expect(found, golden, "random/")


def test_every_digest_has_a_source(golden: dict[str, str]) -> None:
    optimizers = ("optimizer/", "optimizer of ops/", "clip_by_")
    sources = ("op/", "patterns/", "accumulation/", "training/", "networks/", *optimizers, "random/")
    assert [name for name in golden if not name.startswith(sources)] == ["numerics"]
