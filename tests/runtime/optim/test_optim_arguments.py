"""Optimizers: what a step touches, the state, hyperparameters, and every error."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime.optim import SGD, Adam, AdamW, Rule, make_rule
from dgrr.runtime.optim.arrays import contiguous
from dgrr.tape.errors import DomainError, DTypeError, ShapeError

Array = npt.NDArray[Any]
Params = dict[str, Array]

FEW_RULES: list[Rule] = [SGD(0.1), SGD(0.1, 0.9, weight_decay=0.1), Adam(), AdamW()]


def random_params(seed: int) -> Params:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape) for name, shape in (("w", (4, 3)), ("b", (5,)))}


def copied(arrays: Params) -> Params:
    return {name: array.copy() for name, array in arrays.items()}


# What is touched and what is not.


@pytest.mark.parametrize("rule", FEW_RULES, ids=str)
def test_a_parameter_without_gradient_is_left_alone(rule: Rule) -> None:
    params = random_params(0)
    state = rule.init(params)
    rule.step(params, random_params(1), state)
    before, state_before = copied(params), copied(state)
    rule.step(params, {"b": random_params(2)["b"]}, state)
    changed = {key for key in state if not np.array_equal(state[key], state_before[key])}
    assert {name for name in params if not np.array_equal(params[name], before[name])} == {"b"}
    assert changed == {"step", *(key for key in state if key.endswith("/b") or key == "corrections")}
    assert int(state["step"]) == 2


def test_the_first_step_does_not_read_the_momentum_buffer() -> None:
    params, rule = {"w": np.zeros(3)}, SGD(1.0, momentum=0.9, dampening=0.5)
    state = rule.init(params)
    state["momentum/w"][:] = np.nan
    rule.step(params, {"w": np.ones(3)}, state)
    assert params["w"].tolist() == [-1, -1, -1]
    assert state["momentum/w"].tolist() == [1, 1, 1]


def test_a_zero_weight_decay_does_not_read_the_parameter() -> None:
    for rule in (SGD(0.1, 0.9), Adam()):
        params = {"w": np.array([np.inf])}
        state = rule.init(params)
        rule.step(params, {"w": np.array([1.0])}, state)
        assert all(np.isfinite(array).all() for array in state.values())


@pytest.mark.parametrize("rule", FEW_RULES, ids=str)
def test_gradients_of_any_layout_give_the_same_bits(rule: Rule) -> None:
    grad = np.random.default_rng(0).standard_normal((6, 5))
    unaligned = np.frombuffer(b"x" + grad.tobytes(), np.uint8)[1:].view(np.float64).reshape(6, 5)
    frozen = grad.copy()
    frozen.flags.writeable = False
    layouts = [
        grad,
        np.asfortranarray(grad),
        np.repeat(grad, 2, 1)[:, ::2],
        grad[::-1].copy()[::-1],
        unaligned,
        frozen,
    ]
    results: list[Params] = []
    for layout in layouts:
        assert np.array_equal(layout, grad)
        params = {"w": np.ones((6, 5))}
        state = rule.init(params)
        rule.step(params, {"w": layout}, state)
        assert contiguous(layout).flags.aligned
        results.append({**params, **state})
    for result in results[1:]:
        assert all(np.array_equal(array, results[0][key]) for key, array in result.items())


def test_float32_and_float64_parameters_in_one_model() -> None:
    rule = Adam(0.5)
    params: Params = {"a": np.ones(3, np.float32), "b": np.ones(3)}
    state = rule.init(params)
    rule.step(params, {"a": np.ones(3, np.float32), "b": np.ones(3)}, state)
    assert params["a"].dtype == state["m/a"].dtype == np.float32
    assert params["b"].dtype == state["m/b"].dtype == np.float64
    assert state["m/b"][0] == pytest.approx(0.1)


# State, names, hyperparameters.


@pytest.mark.parametrize(
    ("rule", "keys"),
    [
        (SGD(0.1), ["step"]),
        (SGD(0.1, 0.9), ["step", "momentum/b", "momentum/a"]),
        (Adam(), ["step", "corrections", "m/b", "m/a", "v/b", "v/a"]),
        (AdamW(), ["step", "corrections", "m/b", "m/a", "v/b", "v/a"]),
    ],
)
def test_init(rule: Rule, keys: list[str]) -> None:
    params: Params = {"b": np.ones((2, 3), np.float32), "a": np.ones((), np.float64)}
    state = rule.init(params)
    assert list(state) == keys
    assert state["step"].dtype == np.int64
    assert state["step"].shape == ()
    for key in keys:
        assert not state[key].any()
        if "/" in key:
            param = params[key[-1]]
            assert (state[key].dtype, state[key].shape) == (param.dtype, param.shape)
            assert not np.shares_memory(state[key], param)
    if "corrections" in keys:
        assert state["corrections"].dtype == np.float64
        assert state["corrections"].shape == (2,)


@pytest.mark.parametrize("rule", [*FEW_RULES, SGD(0.2, 0.5, nesterov=True)], ids=str)
def test_make_rule_gives_an_equal_rule(rule: Rule) -> None:
    hyper = rule.hyperparameters()
    assert all(type(value) is float for value in hyper.values())
    assert make_rule(rule.rule, hyper) == rule
    assert list(hyper) == list(rule.names)
    assert rule.hyper.tolist() == list(hyper.values())


def test_rule_names_and_hyperparameters() -> None:
    assert [SGD.rule, Adam.rule, AdamW.rule] == ["sgd@1", "adam@1", "adamw@1"]
    assert Adam(1e-3) == Adam() == Adam(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    assert AdamW().weight_decay == 1e-2
    assert AdamW(weight_decay=0.0) != Adam()
    assert SGD(1, nesterov=True, momentum=0.5).hyperparameters() == {
        "lr": 1.0,
        "momentum": 0.5,
        "dampening": 0.0,
        "nesterov": 1.0,
        "weight_decay": 0.0,
    }
    assert list(AdamW().hyperparameters()) == ["lr", "beta1", "beta2", "eps", "weight_decay"]


def test_rules_are_frozen() -> None:
    rule = Adam()
    with pytest.raises(FrozenInstanceError):
        rule.lr = 2.0  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="read-only"):
        rule.hyper[0] = 2.0


# Errors.


BAD_HYPERPARAMETERS: list[tuple[Any, dict[str, Any], str]] = [
    (
        make_rule,
        {"name": "sgd@1", "hyper": {"lr": 1.0}},
        "make_rule: sgd@1: expected lr, momentum, dampening, nesterov, weight_decay, got lr",
    ),
    (
        make_rule,
        {"name": "adam@1", "hyper": {}},
        "make_rule: adam@1: expected lr, beta1, beta2, eps, weight_decay, got nothing",
    ),
]


@pytest.mark.parametrize(("make", "arguments", "text"), BAD_HYPERPARAMETERS)
def test_bad_hyperparameters(make: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make(**arguments)
    assert str(caught.value) == text


def test_unknown_rule() -> None:
    with pytest.raises(KeyError) as caught:
        make_rule("adam@9", {})
    text = str(caught.value.args[0])
    assert text == (
        "make_rule: expected one of adadelta@1, adafactor@1, adagrad@1, adam@1, adam@2, adamax@1, adamw@1, adamw@2, "
        "lamb@1, lion@1, muon@1, nadam@1, radam@1, rmsprop@1, sgd@1, sgd@2, got 'adam@9'"
    )


def frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


FLOATS32 = np.zeros(3, np.float32)
IN_PLACE = "expected a C-contiguous, writeable array, as it is updated in place, got"
BAD_STEPS: list[tuple[str, Any, type[Exception], str]] = [
    ("params", [0.0], DTypeError, "expected a numpy array of float32 or float64, got list; use np.asarray"),
    ("params", np.zeros(3, np.int64), DTypeError, "expected float32 or float64, got int64; use astype"),
    ("params", np.zeros(3, ">f4"), DTypeError, "expected float32 or float64, got >f4; use astype"),
    ("params", frozen(np.zeros(3)), DomainError, f"{IN_PLACE} a read-only one; pass array.copy()"),
    ("params", np.zeros(6)[::2], DomainError, f"{IN_PLACE} a strided or unaligned one; pass array.copy()"),
    ("grads", np.zeros(4), ShapeError, "expected shape (3,), got (4,)"),
    ("grads", FLOATS32, DTypeError, "expected float64, got float32; use astype"),
    ("grads", 1.0, DTypeError, "expected a numpy array of float64, got float; use np.asarray"),
    (
        "grads",
        np.float64(1),
        DTypeError,
        "expected a numpy array of float64, got a numpy scalar of float64; use np.asarray",
    ),
    ("m/b", np.zeros((3, 1)), ShapeError, "expected shape (3,), got (3, 1)"),
    ("v/b", FLOATS32, DTypeError, "expected float64, got float32; use astype"),
    ("v/b", np.zeros(6)[::2], DomainError, f"{IN_PLACE} a strided or unaligned one; pass array.copy()"),
    ("v/b", None, DTypeError, "expected a numpy array of float64, got NoneType; use np.asarray"),
    ("step", np.zeros((), np.int32), DTypeError, "expected int64, got int32; use astype"),
    ("corrections", np.zeros(1), ShapeError, "expected shape (2,), got (1,)"),
]


@pytest.mark.parametrize(("place", "array", "error", "text"), BAD_STEPS)
def test_bad_arrays_change_nothing(place: str, array: Any, error: type[Exception], text: str) -> None:
    rule, params = Adam(), {"a": np.ones(2), "b": np.ones(3)}
    grads, state = copied(params), rule.init(params)
    what = {"params": "parameter 'b'", "grads": "gradient of 'b'"}.get(place, f"state {place!r}")
    target, key = {"params": (params, "b"), "grads": (grads, "b")}.get(place, (state, place))
    target[key] = array
    others = [a for arrays in (params, grads, state) for a in arrays.values() if a is not array]
    before = [a.copy() for a in others]
    with pytest.raises(error) as caught:
        rule.step(params, grads, state)
    assert str(caught.value) == f"Adam.step: {what}: {text}"
    assert all(np.array_equal(now, then) for now, then in zip(others, before, strict=True))


@pytest.mark.parametrize("key", ["step", "corrections", "m/a", "v/a"])
def test_missing_state_changes_nothing(key: str) -> None:
    rule, params = AdamW(), {"a": np.ones(2)}
    state = rule.init(params)
    del state[key]
    with pytest.raises(DomainError) as caught:
        rule.step(params, copied(params), state)
    assert str(caught.value) == f"AdamW.step: state: expected {key!r}, which is missing; use init(params)"
    assert params["a"].tolist() == [1, 1]
    assert not any(array.any() for array in state.values())


def test_gradient_of_an_unknown_parameter() -> None:
    rule = SGD(1.0)
    with pytest.raises(DomainError) as caught:
        rule.step({"a": np.ones(2)}, {"b": np.ones(2)}, rule.init({}))
    assert str(caught.value) == "SGD.step: grads: expected the names of parameters ('a'), got 'b'"
    with pytest.raises(DomainError) as caught:
        rule.step({}, {"b": np.ones(2)}, rule.init({}))
    assert str(caught.value).endswith("expected the names of parameters (none: there are no parameters), got 'b'")


def test_init_of_a_parameter_that_is_no_float_array() -> None:
    with pytest.raises(TypeError) as caught:
        Adam().init({"a": np.ones(2, np.int64)})
    assert str(caught.value) == "Adam.init: parameter 'a': expected float32 or float64, got int64; use astype"
