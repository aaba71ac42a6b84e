"""What is written down of a JAX program, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.trace import NonFiniteError, compare, open_trace, recompute, record_jax, replay
from dgrr.trace.frameworks.jax.devices import Devices
from dgrr.trace.v2.format.digest import Algorithm, InputDigest

jax: Any = pytest.importorskip("jax", reason="these tests need JAX: pip install -e '.[test,jax]'")
jnp = jax.numpy
tree = jax.tree


def start() -> Any:
    keys = jax.random.split(jax.random.key(0), 2)
    layers = [{"w": jax.random.normal(key, (4, 4)) / 2, "b": jnp.zeros(4)} for key in keys]
    return {"layers": layers, "out": jnp.ones(4)}


def loss_fn(params: Any, x: Any) -> Any:
    for layer in params["layers"]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x @ params["out"] - 1) ** 2)


@jax.jit
def adam(params: Any, m: Any, v: Any, count: Any, x: Any) -> Any:
    loss, grads = jax.value_and_grad(loss_fn)(params, x)
    m = tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    c1, c2 = 1 - 0.9**count, 1 - 0.999**count
    params = tree.map(lambda p, m, v: p - 0.01 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), params, m, v)
    return params, m, v, loss, grads


def batches(count: int) -> Any:
    return np.random.default_rng(1).standard_normal((count, 6, 4)).astype("f")


def train(path: Any, *, steps: int = 5, lr: float = 0.01, **options: Any) -> None:
    params = start()
    m = v = tree.map(jnp.zeros_like, params)
    begun = {"rule": "adam@1", "hyper": {"lr": lr}, "state": {"m": m, "v": v}}
    with record_jax(params, path, **begun, **options) as run:
        for i, x in enumerate(batches(steps)):
            params, m, v, loss, grads = adam(params, m, v, jnp.float32(i + 1), x)
            run.step(params, grads, loss, batch=x, state={"m": m, "v": v})


NAMES = ["layers.0.b", "layers.0.w", "layers.1.b", "layers.1.w", "out"]


def test_every_step_is_recorded_by_the_names_of_paths(path: Path) -> None:
    train(path)
    with open_trace(path) as trace:
        assert [t.name for t in trace.schema.tensors][:5] == NAMES
        assert trace.schema.groups[0].rule == "adam@1" and trace.header.numerics == 0 and trace.sealed
        assert trace[0].hyper == {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
        params, m, v = start(), *[tree.map(jnp.zeros_like, start())] * 2
        for i, x in enumerate(batches(5)):
            params, m, v, loss, grads = adam(params, m, v, jnp.float32(i + 1), x)
            view, after = trace[i], trace[i].after()
            assert view.loss == np.asarray(loss)
            np.testing.assert_array_equal(view.grad("layers.1.w"), grads["layers"][1]["w"])
            np.testing.assert_array_equal(after["out"], params["out"])
            np.testing.assert_array_equal(after["m/layers.0.b"], m["layers"][0]["b"])
            assert view.input_digest == InputDigest(Algorithm.XXH3_128)(x)
            assert int(after["step"]) == i + 1


def test_the_law_makes_what_jax_made(path: Path) -> None:
    train(path)
    report = recompute(path)
    assert report, str(report)
    assert report.checked == 5 and f"adam@1 of jax {jax.__version__}" in str(report)


def test_another_rate_than_the_one_told_is_found(path: Path) -> None:
    train(path, lr=0.0101)
    assert recompute(path).verdict.value == "update"


def test_two_runs_are_the_same(tmp_path: Path) -> None:
    for name in "ab":
        train(tmp_path / name)
    assert compare(tmp_path / "a", tmp_path / "b")


def test_sgd_and_a_schedule_and_params_that_are_not_updated(path: Path) -> None:
    params = {"w": jnp.ones(3), "frozen": jnp.ones(2)}
    momentum = tree.map(jnp.zeros_like, params)
    with record_jax(
        params, path, rule="sgd@1", hyper={"lr": 0.1, "momentum": 0.5}, state={"momentum": momentum}
    ) as run:
        for i in range(3):
            grads = {"w": jnp.full(3, float(i + 1)), "frozen": None}
            momentum = {**momentum, "w": 0.5 * momentum["w"] + grads["w"]}
            params = {**params, "w": params["w"] - 0.1 / (i + 1) * momentum["w"]}
            run.step(params, grads, 1.0, hyper={"lr": 0.1 / (i + 1)}, state={"momentum": momentum})
    with open_trace(path) as trace:
        assert [view.hyper["lr"] for view in trace] == [0.1, 0.05, 0.1 / 3]
        assert [set(view.grad_digests) for view in trace] == [{"w"}] * 3
    assert recompute(path), str(recompute(path))


def test_other_rules_are_unproven_and_their_state_may_be_any_pytree(path: Path) -> None:
    params, state = {"w": jnp.ones(3)}, ({"nu": jnp.zeros(3)}, jnp.int32(0))
    with record_jax(params, path, rule="tiger@1", hyper={"rate": 0.1}, state=state) as run:
        run.step(params, {"w": jnp.ones(3)}, jnp.float32(1), state=state)
    with open_trace(path) as trace:
        assert [t.name for t in trace.schema.tensors] == ["w", "state/0.nu", "state/1"]
    assert recompute(path).verdict.value == replay(path).verdict.value == "unproven"


def test_model_state_keys_short_floats_and_a_tree_that_is_an_array(path: Path) -> None:
    key, mean = jax.random.key(3), jnp.ones(2, jnp.bfloat16)
    with record_jax(jnp.ones(2), path, rule="sgd@1", hyper={"lr": 0.1}, model_state={"mean": mean}) as run:
        run.step(jnp.ones(2), jnp.zeros(2), jnp.float32(0), batch={"key": key, "n": 3}, model_state={"mean": mean})
    with open_trace(path) as trace:
        assert [t.name for t in trace.schema.tensors] == ["value", "step", "mean"]
        data = {"key": np.asarray(jax.random.key_data(key)), "n": np.asarray(3)}
        assert trace[0].input_digest == InputDigest(Algorithm.XXH3_128)(data)
        assert trace.buffers(0)["mean"].dtype == mean.dtype


def test_arrays_on_one_device_have_one_trace_of_a_rank(tmp_path: Path) -> None:
    params = {"w": np.ones(2, "f")}
    with record_jax(params, tmp_path / "runs" / "{rank}.dgrr", rule="sgd@1", hyper={"lr": 0.1}) as run:
        run.step(params, {"w": jnp.zeros(2)}, 0.5)
    with open_trace(tmp_path / "runs" / "0.dgrr") as trace:
        assert trace.keyframe(0)["w"].tolist() == [1, 1] and trace.sealed


def test_one_path_for_several_processes_is_refused() -> None:
    devices = Devices(jax, {})
    devices.all = [SimpleNamespace(process_index=0), SimpleNamespace(process_index=1)]
    text = r"'trace': expected a path with \{rank\} in it, .* on devices of 2 processes, .* got 'run.dgrr'"
    with pytest.raises(ValueError, match=text):
        next(devices.traces("run.dgrr"))


def test_a_run_may_go_on_from_a_count(path: Path) -> None:
    with record_jax({"w": jnp.ones(2)}, path, rule="sgd@1", hyper={"lr": 0.1}, count=7) as run:
        run.step({"w": jnp.ones(2)}, {"w": jnp.zeros(2)}, 0.5)
    with open_trace(path) as trace:
        assert int(trace.keyframe(0)["step"]) == 7 and int(trace[0].after()["step"]) == 8


def test_a_loss_that_is_not_finite_ends_a_sealed_trace(path: Path) -> None:
    with pytest.raises(NonFiniteError), record_jax({"w": jnp.ones(2)}, path, rule="sgd@1", hyper={"lr": 0.1}) as run:
        run.step({"w": jnp.ones(2)}, {"w": jnp.zeros(2)}, jnp.float32(np.nan))
    with open_trace(path) as trace:
        assert trace.sealed and not len(trace)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hyper": {}}, "argument 'hyper': expected lr, and of lr, beta1, .* got nothing"),
        ({"hyper": {"lr": 1, "b1": 0.9}}, "argument 'hyper': expected lr, and of .* got 'lr', 'b1'"),
        (
            {"state": None},
            "'state': expected a mapping with 'm', 'v', got nothing; the law adam@1 keeps these",
        ),
        ({"state": {"mu": 1}}, "expected a mapping with 'm', 'v', got 'mu'"),
        ({"state": 3}, "expected a mapping with 'm', 'v', got int"),
    ],
)
def test_what_is_not_of_the_law_is_refused(path: Path, options: dict[str, Any], text: str) -> None:
    params = {"w": jnp.ones(2)}
    given = {"rule": "adam@1", "hyper": {"lr": 0.1}, "state": {"m": params, "v": params}} | options
    with pytest.raises(ValueError, match=text):
        record_jax(params, path, **given)


def test_params_that_are_no_floats_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="parameter 'w': expected float32, float64, .*; got int32"):
        record_jax({"w": jnp.ones(2, "int32")}, path, rule="sgd@1", hyper={"lr": 0.1})


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "complex64"])
def test_params_are_recorded_as_the_bits_they_are(path: Path, dtype: str) -> None:
    params = {"w": jnp.array([1.5, -2, jnp.nan], dtype)}
    with record_jax(params, path, rule="sgd@1", hyper={"lr": 0.1}) as run:
        run.step(params, {"w": jnp.ones(3, dtype)}, jnp.bfloat16(0.5))
    with open_trace(path) as trace:
        kept = trace.keyframe(0)["w"]
        assert kept.dtype == params["w"].dtype and kept.tobytes() == np.asarray(params["w"]).tobytes()
        assert trace[0].loss == np.float32(0.5)
    assert recompute(path).verdict.value == replay(path).verdict.value == "unproven"


def test_hyperparameters_that_were_not_there_are_refused(path: Path) -> None:
    params = {"w": jnp.ones(2)}
    with record_jax(params, path, rule="lion@1", hyper={"lr": 0.1}) as run:
        with pytest.raises(ValueError, match="'hyper': expected lr as at the beginning, got beta too"):
            run.step(params, params, 1.0, hyper={"beta": 1})
        with pytest.raises(TypeError, match="argument 'batch': expected numbers .*; got object at 'name'"):
            run.step(params, params, 1.0, batch={"name": object()})
        with pytest.raises(TypeError, match="got a tracer; record steps outside of jax.jit"):
            jax.jit(lambda p: run.step(p, p, 1.0))(params)
