"""Optimizers: bits against scalar references, values against the formulas of the PyTorch documentation."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime.optim import SGD, Adam, AdamW, Rule, make_rule
from dgrr.tape.numerics.engine import threads as engine_threads

from .by_hand import binary_power

Array = npt.NDArray[Any]
Params = dict[str, Array]

DTYPES: list[np.dtype[Any]] = [np.dtype(np.float32), np.dtype(np.float64)]

SGDS = [
    SGD(0.1, momentum, dampening, nesterov=nesterov, weight_decay=decay)
    for momentum, dampening, nesterov, decay in itertools.product((0.0, 0.9), (0.0, 0.3), (False, True), (0.0, 0.1))
    if not nesterov or (momentum and not dampening)
]
ADAMS: list[Adam] = [
    kind(0.01, betas, eps, decay)
    for kind in (Adam, AdamW)
    for betas in ((0.9, 0.999), (0.5, 0.0), (0.55, 0.9), (0.3, 0.9))
    for eps in (1e-8, 0.1)
    for decay in (0.0, 0.1)
]
RULES: list[Rule] = [*SGDS, *ADAMS]

every_rule = pytest.mark.parametrize("rule", RULES, ids=str)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


# References: one scalar at a time, every operation rounded to the dtype.


def scalar_adam(rule: Adam, t: int, p: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
    real = cast(Callable[[object], Any], p.dtype.type)
    beta1, beta2 = rule.betas
    correction1, correction2 = 1.0 - binary_power(beta1, t), 1.0 - binary_power(beta2, t)
    if rule.weight_decay != 0 and not isinstance(rule, AdamW):
        g = g + real(rule.weight_decay) * p
    near = 1.0 - beta1 < 0.5
    m = m + real(1.0 - beta1) * (g - m) if near else g - real(beta1) * (g - m)
    v = real(beta2) * v + (real(1.0 - beta2) * g) * g
    if isinstance(rule, AdamW):
        p = real(1.0 - rule.lr * rule.weight_decay) * p
    denominator = np.sqrt(v) / real(np.sqrt(np.float64(correction2))) + real(rule.eps)
    return p - real(rule.lr / correction1) * m / denominator, m, v


def scalar_sgd(rule: SGD, t: int, p: Any, b: Any, g: Any) -> tuple[Any, Any]:
    real = cast(Callable[[object], Any], p.dtype.type)
    if rule.weight_decay != 0:
        g = g + real(rule.weight_decay) * p
    if rule.momentum != 0:
        b = g if t == 1 else real(rule.momentum) * b + real(1.0 - rule.dampening) * g
        g = g + real(rule.momentum) * b if rule.nesterov else b
    return p - real(rule.lr) * g, b


def reference_step(rule: Rule, params: Params, grads: Params, state: Params) -> None:
    """`Rule.step` element by element."""
    state["step"] += 1
    t = int(state["step"])
    if isinstance(rule, Adam):
        state["corrections"][:] = [1.0 - binary_power(beta, t) for beta in rule.betas]
    for name in grads:
        for i in np.ndindex(params[name].shape):
            p, g = params[name][i], grads[name][i]
            if isinstance(rule, Adam):
                m, v = state[f"m/{name}"], state[f"v/{name}"]
                params[name][i], m[i], v[i] = scalar_adam(rule, t, p, m[i], v[i], g)
            elif isinstance(rule, SGD):
                b = state.get(f"momentum/{name}", params[name])
                new, buffer = scalar_sgd(rule, t, p, b[i], g)
                b[i] = buffer
                params[name][i] = new


# References: the algorithm boxes of the PyTorch documentation, in float64.


def documented_sgd(rule: SGD) -> Callable[[Array, Array], Array]:
    b: list[Array] = []

    def step(p: Array, g: Array) -> Array:
        g = g + rule.weight_decay * p
        if rule.momentum:
            b[:] = [rule.momentum * b[0] + (1 - rule.dampening) * g if b else g]
            g = g + rule.momentum * b[0] if rule.nesterov else b[0]
        return p - rule.lr * g

    return step


def documented_adam(rule: Adam) -> Callable[[Array, Array], Array]:
    (beta1, beta2), t = rule.betas, itertools.count(1)
    m: Array = np.zeros(())
    v: Array = np.zeros(())

    def step(p: Array, g: Array) -> Array:
        nonlocal m, v
        k = next(t)
        if isinstance(rule, AdamW):
            p = p - rule.lr * rule.weight_decay * p
        else:
            g = g + rule.weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        unbiased: tuple[Array, Array] = (m / (1.0 - beta1**k), v / (1.0 - beta2**k))
        return np.asarray(p - rule.lr * unbiased[0] / (np.sqrt(unbiased[1]) + rule.eps))

    return step


# Inputs.

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-40, -1e-45, 1e-310, 3e38, -3e38, np.inf, -np.inf, np.nan]


def random_arrays(seed: int, dtype: np.dtype[Any]) -> Params:
    rng = np.random.default_rng(seed)
    shapes = {"w": (7, 19), "bias": (1,), "scalar": (), "empty": (0, 3), "long": (1037,)}
    return {name: np.asarray(rng.standard_normal(shape), dtype) for name, shape in shapes.items()}


def special_arrays(seed: int, dtype: np.dtype[Any]) -> Params:
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL, dtype)
    rng = np.random.default_rng(seed)
    return {"w": rng.choice(values, 300), "b": rng.choice(values, 5)}


def copied(arrays: Params) -> Params:
    return {name: array.copy() for name, array in arrays.items()}


def assert_same_bits(given: Params, expected: Params) -> None:
    assert list(given) == list(expected)
    for name, array in given.items():
        assert array.dtype == expected[name].dtype
        unsigned = f"u{array.itemsize}"
        nan = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
        assert np.array_equal(nan, np.isnan(expected[name])), name
        assert np.array_equal(array[~nan].view(unsigned), expected[name][~nan].view(unsigned)), name


# Bits.


@every_dtype
@every_rule
@pytest.mark.parametrize("arrays", [random_arrays, special_arrays])
def test_bits_of_the_scalar_reference(
    rule: Rule, dtype: np.dtype[Any], arrays: Callable[[int, np.dtype[Any]], Params]
) -> None:
    params = arrays(0, dtype)
    state = rule.init(params)
    expected, expected_state = copied(params), copied(state)
    for k in range(1, 4):
        grads = arrays(k, dtype)
        rule.step(params, grads, state)
        with np.errstate(all="ignore"):
            reference_step(rule, expected, grads, expected_state)
        assert_same_bits(params, expected)
        assert_same_bits(state, expected_state)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("step", [0, 1, 2, 6, 999, 123456, 2**31 + 5])
def test_bias_corrections(beta: float, step: int) -> None:
    rule, params = Adam(betas=(beta, 0.99)), {"w": np.zeros(1)}
    state = rule.init(params)
    state["step"][...] = step
    rule.step(params, {}, state)
    assert int(state["step"]) == step + 1
    assert state["corrections"].tolist() == [1.0 - binary_power(b, step + 1) for b in (beta, 0.99)]
    assert state["corrections"] == pytest.approx([1 - beta ** (step + 1), 1 - 0.99 ** (step + 1)], rel=1e-13)


@pytest.mark.parametrize("rule", [SGD(0.1), SGD(0.1, 0.9), Adam(), AdamW()], ids=str)
@every_dtype
def test_bits_do_not_depend_on_threads(rule: Rule, dtype: np.dtype[Any], split_everything: None) -> None:
    results: list[Params] = []
    for threads in (1, 2, 7):
        engine_threads.set_threads(threads)
        params = random_arrays(0, dtype)
        state = rule.init(params)
        for k in range(3):
            rule.step(params, random_arrays(k + 1, dtype), state)
        results.append({**params, **state})
    for result in results[1:]:
        assert_same_bits(result, results[0])


def test_large_parameters_are_shared_by_threads() -> None:
    threads = engine_threads.get_threads()
    params = {"w": np.linspace(-1, 1, 600_001)}
    grads, expected = {"w": np.cos(params["w"])}, copied(params)
    rule = AdamW()
    try:
        engine_threads.set_threads(1)
        rule.step(expected, grads, rule.init(expected))
        engine_threads.set_threads(3)
        rule.step(params, grads, rule.init(params))
    finally:
        engine_threads.set_threads(threads)
    assert_same_bits(params, expected)
    assert np.all(params["w"] != np.linspace(-1, 1, 600_001))


@every_rule
def test_a_copied_state_continues_with_the_same_bits(rule: Rule) -> None:
    params = random_arrays(0, DTYPES[0])
    state = rule.init(params)
    for k in range(2):
        rule.step(params, random_arrays(k + 1, DTYPES[0]), state)
    resumed, resumed_state = copied(params), copied(state)
    for k in range(2, 5):
        rule.step(params, random_arrays(k + 1, DTYPES[0]), state)
    for k in range(2, 5):
        make_rule(rule.rule, rule.hyperparameters()).step(resumed, random_arrays(k + 1, DTYPES[0]), resumed_state)
    assert_same_bits({**params, **state}, {**resumed, **resumed_state})


# Values.


@every_rule
def test_documented_formulas(rule: Rule) -> None:
    documented = documented_adam(rule) if isinstance(rule, Adam) else documented_sgd(rule)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    expected = rng.standard_normal(40)
    params = {"w": expected.copy()}
    state = rule.init(params)
    for _ in range(25):
        grad = rng.standard_normal(40)
        expected = documented(expected, grad)
        rule.step(params, {"w": grad}, state)
        np.testing.assert_allclose(params["w"], expected, rtol=1e-12, atol=1e-12)


def test_the_first_step_of_adam_has_the_size_of_lr() -> None:
    params = {"w": np.array([1.0, 1.0, 1.0])}
    rule = Adam(0.25, eps=0.0)
    rule.step(params, {"w": np.array([1e-3, -7.0, 1e5])}, rule.init(params))
    assert params["w"] == pytest.approx([0.75, 1.25, 0.75])


def test_the_learning_rate_may_change_from_step_to_step() -> None:
    params, rule = {"w": np.array([1.0])}, SGD(0.5, momentum=0.5)
    state = rule.init(params)
    rule.step(params, {"w": np.array([1.0])}, state)
    replace(rule, lr=0.25).step(params, {"w": np.array([1.0])}, state)
    assert params["w"].tolist() == [1.0 - 0.5 - 0.25 * 1.5]
