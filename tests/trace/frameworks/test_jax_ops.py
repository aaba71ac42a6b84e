"""The op level of JAX: every equation of a step's function, and the earliest that differs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.runs.called_op import CalledOp
from dgrr.trace import Keep, compare, open_trace, record_jax, validate
from dgrr.trace.comparing.calls.call_difference import CallChange, CallDifference
from dgrr.trace.comparing.calls.drift import is_drift
from dgrr.trace.v2.format.digest import Algorithm, tensor_digest

from . import jax_gpt
from .jax_gpt import jax, jnp, tree

RATE = {"rule": "sgd@1", "hyper": {"lr": 0.1}}


def kept(path: Path, ops: Any = "every") -> Keep:
    return Keep(path, record="bare", ops=ops)


def digest(array: Any) -> bytes:
    return tensor_digest(Algorithm.XXH3_128, np.asarray(array))


def calls_of(path: Path, step: int = 0) -> tuple[CalledOp, ...]:
    with open_trace(path) as trace:
        return trace.calls(step)


def called(path: Path, function: Callable[..., Any], *args: Any) -> tuple[CalledOp, ...]:
    """The calls of a function."""
    params = {"w": jnp.ones(2)}
    with record_jax(params, kept(path), **RATE, level="op") as run:
        given = run.call(function, *args)
        run.step(params, params, 0.0)
    assert tree.all(tree.map(lambda a, b: jnp.array_equal(a, b), given, function(*args)))
    assert validate(path).ok
    return calls_of(path)


def test_a_call_is_what_it_was_told_and_the_digests_of_what_went_in_and_out(tmp_path: Path) -> None:
    x, y = np.array([1, -2, 4], "f"), np.array([0.5, 2, 8], "f")

    def function(x: Any, y: Any, factor: float) -> Any:
        with jax.named_scope("outer"), jax.named_scope("inner"):
            return x * factor - y

    calls = called(tmp_path / "run.dgrr", function, x, y, 3.0)
    assert [(call.name, call.options, call.phase, call.scope) for call in calls] == [
        ("lax.mul", "y=3.0", "forward", "outer.inner"),
        ("lax.sub", "", "forward", "outer.inner"),
    ]
    assert (calls[0].inputs, calls[0].outputs) == ((digest(x),), (digest(3 * x),))
    assert (calls[1].inputs, calls[1].outputs) == ((digest(3 * x), digest(y)), (digest(3 * x - y),))
    file, _, text = calls[0].place.partition(": ")
    assert file.startswith("tests/trace/frameworks/test_jax_ops.py:") and text == "return x * factor - y"


def test_short_floats_and_keys_are_the_bytes_they_are(tmp_path: Path) -> None:
    x = jnp.array([1.5, -2.25], "bfloat16")
    (call,) = called(tmp_path / "short.dgrr", lambda x: x.astype("float8_e4m3fn"), x)
    assert (call.inputs, call.outputs) == ((digest(x),), (digest(np.asarray(x).astype("float8_e4m3fn")),))
    assert call.options == "new_dtype=float8_e4m3fn, weak_type=False"
    key = jax.random.key(3)
    bits = [c for c in called(tmp_path / "key.dgrr", jax.random.normal, key) if c.name == "lax.random_bits"]
    assert bits[0].inputs == (digest(jax.random.key_data(key)),)


def test_what_only_wraps_or_repeats_is_opened(tmp_path: Path) -> None:
    @jax.jit
    def function(x: Any) -> Any:
        x, rows = jax.lax.scan(lambda c, row: (c + row, c * 2.0), x[0], x)
        x = jax.lax.cond(x > 5, lambda x: x - 1.0, lambda x: x / 2.0, x)
        return jax.nn.relu(x), rows, jax.lax.fori_loop(0, 3, lambda i, x: x * 2.0, x)

    calls = called(tmp_path / "run.dgrr", function, np.array([1, 2, 4], "f"))
    names = [(call.name.removeprefix("lax."), call.options, call.scope) for call in calls]
    assert [each for each in names if each[0] in ("add", "mul", "sub", "div", "max")] == [
        *(each for i in range(3) for each in (("add", "", f"scan.{i}"), ("mul", "y=2.0", f"scan.{i}"))),
        ("sub", "y=1.0", ""),
        ("max", "y=0.0", ""),
        *(("add", "x=0, y=1", "scan.0"), ("mul", "y=2.0", "scan.0")),
        *(each for i in (1, 2) for each in (("add", "y=1", f"scan.{i}"), ("mul", "y=2.0", f"scan.{i}"))),
    ]
    assert not {name for name, _, _ in names} & {"jit", "scan", "cond", "custom_jvp_call"}


def test_a_loop_backwards_reads_and_stacks_as_jax_does(tmp_path: Path) -> None:
    x = np.array([1, 2, 4], "f")
    calls = called(
        tmp_path / "run.dgrr", lambda x: jax.lax.scan(lambda c, r: (c + r, c), x[0] * 0, x, reverse=True)[1] * 1.0, x
    )
    sums = [call for call in calls if call.name == "lax.add"]
    assert [call.scope for call in sums] == ["scan.2", "scan.1", "scan.0"]
    assert [call.outputs[0] for call in sums] == [digest(np.float32(n)) for n in (4, 6, 7)]
    assert calls[-1].inputs == (digest(np.array([6, 4, 0], "f")),)


def test_a_loop_of_unknown_length_is_one_call_that_tells_its_program(tmp_path: Path) -> None:
    def doubled(name: str, by: float) -> CalledOp:
        (call,) = called(
            tmp_path / name, lambda x: jax.lax.while_loop(lambda x: x < 100, lambda x: x * by, x), np.float32(1)
        )
        return call

    one, again, other = doubled("one", 2.0), doubled("again", 2.0), doubled("other", 3.0)
    assert one == again and one.name == "lax.while" and one.outputs == (digest(np.float32(128)),)
    assert one.options != other.options and "body_jaxpr=" in one.options


def test_what_is_added_to_what_in_a_loop_is_told(tmp_path: Path) -> None:
    """The same equations on other values are another program."""

    def summed(name: str, which: int) -> str:
        def loop(x: Any) -> Any:
            return jax.lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] + s[which], s[1]), (x, x))

        (call,) = called(tmp_path / name, loop, np.float32(1))
        return call.options

    assert summed("one", 0) != summed("other", 1)


def test_phases(tmp_path: Path) -> None:
    def step(w: Any, x: Any) -> Any:
        loss, grad = jax.value_and_grad(lambda w: jnp.sum(jax.checkpoint(lambda w: jnp.sin(w * x))(w)))(w)
        return w - 0.1 * grad, loss

    calls = called(tmp_path / "run.dgrr", step, np.ones(2, "f"), np.ones(2, "f"))
    phases = {phase: [c.name.removeprefix("lax.") for c in calls if c.phase == phase] for phase in _PHASES}
    assert phases["forward"][:2] == ["mul", "sin"] and "cos" in phases["recompute"]
    assert phases["backward"][-1] == "mul" and phases["optimizer"] == ["mul", "sub"]
    assert sum(map(len, phases.values())) == len(calls)


_PHASES = ("forward", "recompute", "backward", "optimizer")

RIGHT: dict[str, Any] = {
    "scale": 2.0,
    "eps": 1e-5,
    "act": jnp.tanh,
    "axis": -1,
    "drop": 0.5,
    "seed": 0,
    "shift": 0,
    "clip": 0.5,
    "momentum": 0.9,
    "rate": 0.1,
    "stop": False,
}


def train(path: Path, **mistakes: Any) -> None:
    """Two steps of a small network, each of whose parts may be mistaken."""
    how, rng = {**RIGHT, **mistakes}, np.random.default_rng(0)
    params = {name: jnp.asarray(rng.standard_normal((4, 4)).astype("f")) for name in ("up", "down")}
    momentum = tree.map(jnp.zeros_like, params)

    def loss_fn(params: Any, x: Any, label: Any, key: Any) -> Any:
        with jax.named_scope("norm"):
            x = x * jax.lax.rsqrt(jnp.mean(x * x, how["axis"], keepdims=True) + how["eps"])
        with jax.named_scope("up"):
            hidden = how["act"](x @ params["up"]) * how["scale"]
        hidden = jax.lax.stop_gradient(hidden) if how["stop"] else hidden
        hidden = jnp.where(jax.random.uniform(key, hidden.shape) > how["drop"], hidden, 0.0)
        scores = hidden @ params["down"]
        return jnp.mean((scores[how["shift"] :][:2] - label) ** 2)

    @jax.jit
    def step(params: Any, momentum: Any, x: Any, label: Any, key: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_fn)(params, x, label, key)
        grads = tree.map(lambda g: jnp.clip(g, -how["clip"], how["clip"]), grads)
        momentum = tree.map(lambda m, g: how["momentum"] * m + g, momentum, grads)
        return tree.map(lambda p, m: p - how["rate"] * m, params, momentum), momentum, loss, grads

    with record_jax(params, kept(path), rule="my_sgd@1", hyper={}, state=momentum, level="op") as run:
        for i in range(2):
            x, key = rng.standard_normal((4, 4)).astype("f"), jax.random.key(how["seed"] + i)
            params, momentum, loss, grads = run.call(step, params, momentum, x, x[:2] + 1, key)
            run.step(params, grads, loss, batch=x, state=momentum)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("right") / "right.dgrr"
    train(path)
    return path


PLANTED: dict[str, tuple[Any, str, str]] = {
    "scale": (2.1, "lax.mul called with 2.0 -> 2.1, up", "hidden = how"),
    "eps": (2e-5, "lax.add called with 1e-05 -> 2e-05, norm", "x = x * jax.lax.rsqrt("),
    "act": (jax.nn.relu, "lax.max instead of lax.tanh, up", "hidden = how"),
    "axis": (0, "lax.reduce_sum called with axes [1] -> [0], norm", "x = x * jax.lax.rsqrt("),
    "drop": (0.4, "lax.gt called with 0.5 -> 0.4", "hidden = jnp.where(jax.random"),
    "seed": (1, "lax.random_bits takes another input, which no op made", "hidden = jnp.where(jax.random"),
    "shift": (
        1,
        "lax.slice(start_indices=[1, 0], limit_indices=[4, 4]), which a does not call",
        "return jnp.mean((scores[how",
    ),
    "clip": (0.4, "lax.convert_element_type called with -0.5 -> -0.4, in optimizer", "grads = tree.map("),
    "momentum": (0.8, "lax.mul called with 0.9 -> 0.8, in optimizer", "momentum = tree.map("),
    "rate": (0.11, "lax.mul called with 0.1 -> 0.11, in optimizer", "return tree.map(lambda p, m: p - how"),
    "stop": (True, "lax.stop_gradient, which a does not call", "hidden = jax.lax.stop_gradient("),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_earliest_call_is_named(right: Path, tmp_path: Path, mistake: str) -> None:
    made, name, line = PLANTED[mistake]
    train(tmp_path / "wrong.dgrr", **{mistake: made})
    found = compare(right, tmp_path / "wrong.dgrr")
    assert found.call is not None
    said, _, where = found.call.short.rpartition("tests/trace/frameworks/test_jax_ops.py:")
    assert said.rstrip(", ") == name and where.isdigit()
    assert found.call.call.place.partition(": ")[2].startswith(line)
    assert found.step == (mistake == "momentum") and "which op" not in str(found)


def test_two_equal_runs_have_equal_calls(right: Path, tmp_path: Path) -> None:
    train(tmp_path / "again.dgrr")
    assert compare(right, tmp_path / "again.dgrr", proven=True)
    assert [calls_of(right, step) for step in (0, 1)] == [calls_of(tmp_path / "again.dgrr", step) for step in (0, 1)]


IN_GPT: dict[str, tuple[Any, str, str]] = {
    "base": (10001.0, "lax.pow called with 10000.0 -> 10001.0", "x = x + jnp.sin("),
    "drop": (0.2, "lax.lt called with 0.9 -> 0.8", "x = x * jax.random.bernoulli("),
    "masked": (1, "lax.add called with 0 -> 1, attention", "mask = jnp.tril("),
    "residual": (0.99, "lax.mul called with 1.0 -> 0.99, scan.0.attention", "x = x * how["),
    "scale": (0.36, "lax.mul called with 0.35 -> 0.36, scan.0.attention", "scores = (x @"),
    "gelu": (False, "lax.integer_pow(y=3), which b does not call, scan.0.mlp", "return x + jax.nn.gelu("),
    "shift": (
        0,
        "lax.slice called with start_indices [1] -> [0], limit_indices [7] -> [6]",
        "wanted = words[1:] if",
    ),
    "clip": (0.4, "lax.div called with 0.5 -> 0.4, in optimizer", "grads = tree.map("),
}


@pytest.mark.long
def test_mistakes_in_layers_that_are_scanned_and_checkpointed(tmp_path: Path) -> None:
    jax_gpt.train(kept(tmp_path / "right"))
    for mistake, (made, name, line) in IN_GPT.items():
        jax_gpt.train(kept(tmp_path / mistake), **{mistake: made})
        found = compare(tmp_path / "right", tmp_path / mistake)
        assert found.call is not None
        said, _, where = found.call.short.rpartition("tests/trace/frameworks/jax_gpt.py:")
        assert said.rstrip(", ") == name and where.isdigit()
        assert found.call.call.place.partition(": ")[2].startswith(line)


def test_a_kernel_of_jax_may_drift_and_one_of_the_users_is_code() -> None:
    for name, expected in (("lax.exp", True), ("my_kernel", False)):
        assert is_drift(CallDifference(CallChange.GIVES, 0, CalledOp(name), 1)) == expected


def test_a_primitive_of_the_users_has_its_bare_name(tmp_path: Path) -> None:
    doubled = jax.extend.core.Primitive("doubled")
    doubled.def_impl(lambda x: x * 2)
    doubled.def_abstract_eval(lambda x: x)
    params = {"w": jnp.ones(2)}
    with record_jax(params, kept(tmp_path / "run"), **RATE, level="op") as run:
        assert run.call(jnp.sum, params["w"]) == 2
        assert run.call(doubled.bind, params["w"]).tolist() == [2, 2]
        run.step(params, params, 0.0)
    assert [call.name for call in calls_of(tmp_path / "run")] == ["lax.reduce_sum", "doubled"]


def test_calls_are_written_at_the_steps_that_are_kept_and_where_they_are_asked_for(tmp_path: Path) -> None:
    for level in (None, "op"):
        params = {"w": jnp.ones(2)}
        with record_jax(params, kept(tmp_path / str(level), ops=[1]), **RATE, level=level) as run:
            for _ in range(3):
                assert run.call(jnp.multiply, params["w"], 3.0).tolist() == [3, 3]
                run.step(params, params, 0.0)
    assert [len(calls_of(tmp_path / "None", step)) for step in range(3)] == [0, 0, 0]
    assert [len(calls_of(tmp_path / "op", step)) for step in range(3)] == [0, 1, 0]


def test_another_level_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record_jax: argument 'level': expected 'op' or None, got 'layer'"):
        record_jax({"w": jnp.ones(2)}, tmp_path / "run", **RATE, level="layer")  # type: ignore[arg-type]
