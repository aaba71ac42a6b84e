"""Models that leave: what onnxruntime computes of an exported model is what the model computes, but for rounding."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.runtime.onnx import ExportError, export
from dgrr.tape import AnyTensor, DomainError, nn, ops
from dgrr.tape.record.op import OPS
from dgrr.tape.record.samples import Make

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

WITHOUT = {
    "bernoulli", "cholesky", "dropout", "floor_divide", "index_add", "integers", "max_pool_indices", "mse_grad",
    "normal", "permutation", "remainder", "scatter_add", "smooth_max_pool", "solve", "solve_triangular", "uniform",
}  # fmt: skip
"""Public ops that have no form in ONNX: losses that are for training, draws, and what the standard has not."""

ELSEWHERE = {
    "adaptive_avg_pool": "windows of several sizes are not known",
    "adaptive_max_pool": "windows of several sizes are not known",
    "interpolate": "to a size, without a filter, is what is known",
}
"""What the error says of uses of an op that have no form."""

SAMPLES = {
    "argmax": (9, 10, 14, 15),
    "argmin": (9, 10, 14, 15),
    "atan2": (4,),
    "cast": (6,),
    "conv_transpose": (2,),
    "layer_norm": (3,),
    "max_pool": (10,),
    "mse_loss": (4,),
    "one_hot": (2,),
    "reduce_mean": (8, 9),
}
"""Samples that onnxruntime refuses or computes otherwise: zeros of either sign in order, casts of what no whole number
is, means of nothing, paddings of more than a stride, quotients of infinities."""

ORDERED = {
    "argmax", "argmin", "argsort", "clamp", "cumargmax", "cumargmin", "max_pool", "maximum", "minimum", "reduce_max",
    "reduce_min",
}  # fmt: skip
"""Ops for which the standard leaves open what a NaN does."""


def samples(name: str) -> Iterator[Any]:
    for number, sample in enumerate(OPS[name].samples(Make(np.float32))):
        nan = any(a is not None and a.dtype.kind == "f" and np.isnan(a).any() for a in sample.arrays)
        if number not in SAMPLES.get(name, ()) and not (nan and name in ORDERED):
            yield number, [None if a is None else np.asarray(a, order="C") for a in sample.arrays], sample.attrs


def exported(function: Any, given: Any) -> tuple[Any, str]:
    """A model, or None and why there is none."""
    try:
        return export(function, {}, given), ""
    except ExportError as error:
        return None, str(error)


def computed(model: Any, *inputs: Any) -> Any:
    """What onnxruntime makes of inputs, in the order of the model's."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


@pytest.mark.parametrize("name", sorted(name for name, op in OPS.items() if not op.private and name not in WITHOUT))
def test_an_op_computes_there_what_it_computes_here(name: str) -> None:
    written = 0
    for number, arrays, attrs in samples(name):

        def function(p: Any, x: Any, arrays: Any = arrays, attrs: Any = attrs) -> Any:
            given = iter(x)
            return OPS[name](*[None if a is None else next(given) for a in arrays], **attrs)

        given = [a for a in arrays if a is not None]
        made, refused = exported(function, tuple(given))
        if made is None:
            assert ELSEWHERE[name] in refused
            continue
        written += 1
        (found,) = computed(made, *given)
        expected = OPS[name](*[None if a is None else AnyTensor(a) for a in arrays], **attrs).numpy()
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (name, number)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5, err_msg=f"{name}, sample {number}")
    assert written


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_an_op_without_a_form_is_refused_by_name(name: str) -> None:
    _, arrays, attrs = next(samples(name))
    with pytest.raises(ExportError, match=f"^onnx.export: op '{name}': expected an op that ONNX has, got node"):
        export(lambda p, x: OPS[name](*x, **attrs), {}, tuple(a for a in arrays if a is not None))


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        (lambda p, x: ops.sort(x, 1, descending=True), "x"),
        (lambda p, x: ops.topk(x, 2, 1), "x"),
        (lambda p, x: ops.topk(x, 3, -1, largest=False), "x"),
        (lambda p, x: ops.cummax(x, 1), "x"),
        (lambda p, x: ops.cummin(x, 0), "x"),
        (lambda p, x: ops.grid_sample(*x), "planes"),
        (lambda p, x: ops.grid_sample(*x, "bicubic", "reflection", True), "planes"),
        (lambda p, x: ops.grid_sample(*x, "nearest", "border"), "planes"),
    ],
)
def test_what_is_made_of_several_ops(model: Any, arguments: str) -> None:
    rng = np.random.default_rng(0)
    x: Any = rng.integers(0, 4, (3, 5, 4)).astype(np.float32)
    if arguments == "planes":
        x = rng.standard_normal((2, 3, 5, 4), np.float32), rng.uniform(-1.3, 1.3, (2, 3, 6, 2)).astype(np.float32)
    several = x if isinstance(x, tuple) else (x,)
    given = tuple(AnyTensor(a) for a in several)
    expected = model({}, given if isinstance(x, tuple) else given[0])
    for found, wanted in zip(
        computed(export(model, {}, x), *several), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_the_cross_entropy_of_infinite_logits() -> None:
    each = np.array([0.5, -1.0, np.inf, -np.inf], np.float32)
    logits, targets = (x.reshape(-1) for x in np.meshgrid(each, np.array([0.0, 0.25, 1.0], np.float32)))

    def terms(p: Any, x: Any) -> Any:
        return ops.binary_cross_entropy_with_logits(*x, reduction="none")

    (found,) = computed(export(terms, {}, (logits, targets)), logits, targets)
    np.testing.assert_allclose(found, terms({}, (AnyTensor(logits), AnyTensor(targets))).numpy(), rtol=2e-5)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "symmetric"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((1, 2, 5, 6), ((0, 0), (0, 0), (1, 2), (2, 1))),
        ((1, 3), ((1, 1), (2, 0))),
        ((2, 3), ((-1, 0), (4, 5))),
        ((4, 3), ((1, -2), (0, -1))),
    ],
)
def test_borders_of_small_axes_and_of_several_widths(mode: str, shape: Any, widths: Any) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (found,) = computed(export(lambda p, x: ops.pad(x, widths, mode=mode), {}, x), x)
    assert found.tolist() == ops.pad(AnyTensor(x), widths, mode=mode).numpy().tolist()  # type: ignore[arg-type]


def test_a_convolution_of_one_image_with_reflected_borders() -> None:
    layer: Any = nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")
    params, x = layer.init(0), np.random.default_rng(0).standard_normal((1, 2, 5, 6)).astype(np.float32)
    np.testing.assert_allclose(computed(export(layer, params, x), x)[0], layer(params, x), rtol=1e-5, atol=1e-6)
    made = export(layer, params, x, dynamic_batch=True)
    for size in (1, 3):
        x = np.random.default_rng(size).standard_normal((size, 2, 5, 6)).astype(np.float32)
        np.testing.assert_allclose(computed(made, x)[0], layer(params, x), rtol=1e-5, atol=1e-6)


def test_rotary_positions_for_every_batch() -> None:
    """Their tables are repeated for every sample."""
    layer: Any = nn.TransformerBlock(8, 2, 16, rotary=nn.Rotary())
    params = layer.init(0)
    made = export(layer, params, np.zeros((3, 5, 8), np.float32), dynamic_batch=True)
    for size in (1, 3, 7):
        x = np.random.default_rng(size).standard_normal((size, 5, 8)).astype(np.float32)
        np.testing.assert_allclose(computed(made, x)[0], layer(params, x), rtol=1e-5, atol=1e-5)


NETWORK = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 8),
    nn.Dropout(0.5), nn.Unflatten(1, (2, 4)), nn.TransformerBlock(4, 2, 8), nn.Flatten(), nn.Linear(8, 3),
    nn.LogSoftmax(),
)  # fmt: skip


def test_a_network_with_its_state_in_a_file(tmp_path: Path) -> None:
    params, state = NETWORK.init(0), {name: value + 0.5 for name, value in NETWORK.init_state().items()}
    x = np.random.default_rng(0).standard_normal((5, 1, 8, 8)).astype(np.float32)
    path = tmp_path / "a network.onnx"
    made = export(NETWORK, params, x, path, state=state)
    assert path.read_bytes() == made.SerializeToString(deterministic=True)
    assert {tensor.name for tensor in made.graph.initializer} >= {*params, *state}
    assert [given.name for given in made.graph.input] == ["x"]
    (found,) = computed(made, x)
    np.testing.assert_allclose(found, np.asarray(evaluated(params, state, x)), rtol=1e-5, atol=1e-5)


def evaluated(params: Any, state: Any, x: Any) -> Any:
    trainer = Trainer(
        lambda p, batch, ctx: (NETWORK(p, batch, ctx).sum(), ctx.state), params, SGD(0.1), model_state=state
    )
    return trainer.predict(x, model=NETWORK)


def test_nests_of_inputs_and_results_have_names() -> None:
    def model(p: Any, x: Any) -> Any:
        return {"sum": x[0] + x[1], "both": (x[0], x[1].relu())}

    a, b = np.ones((2, 3), np.float32), -np.ones((2, 3), np.float32)
    made = export(model, {}, (a, b))
    assert [given.name for given in made.graph.input] == ["x[0]", "x[1]"]
    assert [given.name for given in made.graph.output] == ["result['sum']", "result['both'][0]", "result['both'][1]"]
    assert [found.tolist() for found in computed(made, a, b)] == [(a + b).tolist(), a.tolist(), (0 * b).tolist()]


def test_what_the_result_does_not_need_is_left_out() -> None:
    made = export(lambda p, x: (ops.exp(x), x.relu())[1], {"unused": np.ones(3)}, np.ones(2, np.float32))
    assert [node.op_type for node in made.graph.node] == ["Relu", "Identity"]
    assert not made.graph.initializer


def test_a_network_for_every_batch() -> None:
    """One file, at the example's size and at others: reshapes, heads and an array of ones depend on it."""

    def model(p: Any, x: Any, ctx: Any) -> Any:
        logits = NETWORK(p, x, ctx)
        return {"logits": logits, "both": ops.append(logits, logits + np.ones(logits.shape, np.float32), axis=0)}

    params, state = NETWORK.init(0), {name: value + 0.5 for name, value in NETWORK.init_state().items()}
    rng = np.random.default_rng(0)
    made = export(model, params, np.zeros((4, 1, 8, 8), np.float32), state=state, dynamic_batch=True)
    shapes = [[dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
              for value in (*made.graph.input, *made.graph.output)]  # fmt: skip
    assert shapes == [["batch", 1, 8, 8], ["batch", 3], ["2*batch+0", 3]]
    for size in (1, 4, 7):
        x = rng.standard_normal((size, 1, 8, 8)).astype(np.float32)
        logits, both = computed(made, x)
        np.testing.assert_allclose(logits, np.asarray(evaluated(params, state, x)), rtol=1e-5, atol=1e-5)
        assert both.tobytes() == np.concatenate([logits, logits + 1]).tobytes()


SQUARE = np.ones((3, 3), np.float32)


@pytest.mark.parametrize(
    ("model", "x", "text"),
    [
        (lambda p, x: x[: x.shape[0] // 2 + 1], SQUARE, "dynamic_batch: input 2 of node 'slice_0': expected"),
        (lambda p, x: x * float(x.shape[0]), SQUARE, "got something else; export for each size"),
        (
            lambda p, x: x + np.arange(len(x) * 3.0, dtype="f").reshape(-1, 3),
            SQUARE,
            "dynamic_batch: input 1 of node",
        ),
        (lambda p, x: x if x.shape[0] < 7 else x + x, SQUARE, "dynamic_batch: the number of operators: expected what"),
        (lambda p, x: x.sum(0) if x.shape[0] < 7 else x.sum(1)[:3], SQUARE, "export for each size"),
        (lambda p, x: x[0], (SQUARE, SQUARE[:2]), "dynamic_batch: expected inputs of one batch, got sizes [2, 3]"),
        (lambda p, x: x, np.float32(1), "dynamic_batch: x: expected a batch first, got shape ()"),
    ],
)
def test_what_depends_on_the_batch_is_refused(model: Any, x: Any, text: str) -> None:
    with pytest.raises((ExportError, DomainError)) as error:
        export(model, {}, x, dynamic_batch=True)
    assert text in str(error.value)
