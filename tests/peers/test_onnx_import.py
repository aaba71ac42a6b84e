"""Models that arrive: the standard's own node tests, a model that left from here, and one that is trained further."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Trainer
from dgrr.runtime.onnx import ImportedModelError, export, load
from dgrr.runtime.onnx.load.operator import IMPORTERS
from dgrr.tape import Tape, nn, ops
from dgrr.trace import replay

onnx = pytest.importorskip("onnx")

HELD = (np.float32, np.float64, np.int64, np.bool_)
"""Element types that dgrr holds."""

PASSED = {"inputs": 856, "initialisers": 1100, "constants": 1104}
"""How many of the standard's node tests give the standard's result; the others use what is refused by name."""


def node_tests() -> Any:
    from onnx.backend.test.loader import load_model_tests

    return load_model_tests(kind="node")


def given_as(way: str, graph: Any, inputs: Any) -> list[Any]:
    """The inputs that the model keeps: the first, or all; the others become initialisers or nodes of their own."""
    kept: list[Any] = []
    for place, (name, value) in enumerate(zip([each.name for each in graph.input], inputs, strict=True)):
        tensor = onnx.numpy_helper.from_array(np.asarray(value), name)
        if not place or way == "inputs":
            kept.append(value)
        elif way == "initialisers":
            graph.initializer.append(tensor)
        else:
            graph.node.insert(0, onnx.helper.make_node("Constant", [], [name], value=tensor))
            graph.input.remove(next(each for each in graph.input if each.name == name))
    return kept


def outcome(way: str, case: Any, inputs: Any, expected: Any) -> str:
    """How one node test ends: ``right``, ``wrong``, or why it was not tried. All errors but the import's are faults."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    if not {node.op_type for node in model.graph.node} <= IMPORTERS.keys() | {"Constant"}:
        return "another operator"
    if not all(isinstance(a, np.ndarray | np.generic) for a in [*inputs, *expected]):
        return "another type"
    given = given_as(way, model.graph, inputs)
    if any(value.dtype not in HELD for value in given):
        return "another type"
    try:
        imported, params, state = load(model.SerializeToString())
        tape = Tape()
        known = {**tape.params(params), **{name: tape.const(a) for name, a in state.items()}}
        made = imported(known, tuple(tape.const(a) for a in given))
    except ImportedModelError as error:
        return "refused" if str(error).startswith("onnx.load: node '") else "refused without its name"
    results = [y.numpy() for y in (made if isinstance(made, tuple) else (made,))]
    close = [
        np.allclose(y, e, rtol=case.rtol, atol=1e-5, equal_nan=True) for y, e in zip(results, expected, strict=False)
    ]
    return "right" if all(close) and [y.shape for y in results] == [np.shape(e) for e in expected] else "wrong"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", PASSED)
def test_the_nodes_of_the_standard(way: str) -> None:
    ends = {case.name: outcome(way, case, *case.data_sets[0]) for case in node_tests()}
    assert [name for name, end in ends.items() if end in ("wrong", "refused without its name")] == []
    counted = Counter(ends.values())
    assert counted["right"] >= PASSED[way], counted


def test_every_importer_meets_nodes_of_the_standard() -> None:
    met = {node.op_type for case in node_tests() for node in case.model.graph.node}
    assert sorted(IMPORTERS.keys() - met) == []


MODEL = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 8),
    nn.Unflatten(1, (2, 4)), nn.TransformerBlock(4, 2, 8), nn.Flatten(), nn.Linear(8, 3),
)  # fmt: skip


def exported() -> Any:
    x = np.random.default_rng(0).standard_normal((6, 1, 8, 8)).astype(np.float32)
    params, state = MODEL.init(0), {name: value + 0.5 for name, value in MODEL.init_state().items()}
    return params, state, x, export(MODEL, params, x, state=state)


def test_what_left_comes_back(tmp_path: Path) -> None:
    params, state, x, made = exported()
    path = tmp_path / "a model.onnx"
    path.write_bytes(made.SerializeToString())
    model, again, counted = load(path)
    assert all(again[name].tobytes() == params[name].tobytes() for name in params)
    expected = MODEL({**params, **state}, x)
    np.testing.assert_allclose(model({**again, **counted}, x), expected, rtol=1e-5, atol=1e-6)


def test_an_imported_model_is_trained_recorded_and_proven(tmp_path: Path) -> None:
    _, _, x, made = exported()
    model, params, _ = load(made.SerializeToString())
    batch = x, np.arange(6) % 3

    def loss_fn(p: Any, batch: Any) -> Any:
        return ops.cross_entropy(model(p, batch[0]), batch[1])

    trainer = Trainer(loss_fn, params, Adam(0.01), trace=tmp_path / "run.dgrr", record="digest")
    losses = trainer.fit([batch] * 5, steps=5).losses
    assert losses[-1] < losses[0]
    assert replay(tmp_path / "run.dgrr", loss_fn=loss_fn, batches=[batch] * 5).ok


def graph(*nodes: Any, inputs: int = 1) -> bytes:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    given = [helper.make_tensor_value_info(f"x{i}", kind, [2, 3]) for i in range(inputs)]
    out = [helper.make_tensor_value_info("y", kind, ["rows", "columns"])]
    made = helper.make_graph(list(nodes), "g", given, out)
    written: bytes = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()
    return written


def test_what_is_refused(tmp_path: Path) -> None:
    node = onnx.helper.make_node
    with pytest.raises(ImportedModelError, match="argument 'source': expected an ONNX model, got"):
        load(b"no model at all")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.onnx")
    with pytest.raises(
        ImportedModelError, match=r"^onnx\.load: expected operators that dgrr has ops for, got Det, NonZero$"
    ):
        load(graph(node("NonZero", ["x0"], ["a"]), node("Det", ["x0"], ["y"])))
    x = np.ones((2, 3), np.float32)
    model, params, _ = load(graph(node("MatMul", ["x0", "x0"], ["y"], name="product")))
    with pytest.raises(
        ImportedModelError, match=r"^onnx\.load: node 'product' \(MatMul\): matmul: argument 'b': expected"
    ):
        model(params, x)
    two, params, _ = load(graph(node("Add", ["x0", "x1"], ["y"]), inputs=2))
    with pytest.raises(ImportedModelError, match="argument 'x': expected 2 inputs, x0, x1, got 1$"):
        two(params, x)
    reshape, params, _ = load(graph(node("Reshape", ["x0", "x1"], ["y"], name="r"), inputs=2))
    with pytest.raises(
        ImportedModelError,
        match=r"^onnx\.load: node 'r' \(Reshape\): expected input 1 to be constant, got one that depends on the input "
        r"of the model or on its parameters; compute it from constants and shapes only$",
    ):
        reshape(params, (x, x))
    filled, params, _ = load(graph(node("ConstantOfShape", ["x0"], ["y"], name="c")))
    with pytest.raises(ImportedModelError, match=r"node 'c' \(ConstantOfShape\): expected input 0 to be constant, got"):
        filled(params, x)
    counted, params, _ = load(graph(node("Range", ["x0", "x1", "x2"], ["y"], name="r"), inputs=3))
    with pytest.raises(ImportedModelError, match=r"node 'r' \(Range\): expected input 0 to be constant, got one"):
        counted(params, (x, x, x))
    sums, params, _ = load(graph(node("Add", ["x0", "x1"], ["y"], name="sum"), inputs=2))
    with pytest.raises(ImportedModelError, match=r"^onnx\.load: node 'sum' \(Add\): shape mismatch: objects cannot be"):
        sums(params, (x, np.ones((2, 4), np.float32)))


@pytest.mark.parametrize(
    ("kind", "indices", "twice"),
    [
        ("ScatterElements", [[0, 1, 0]], None),
        ("ScatterElements", [[0, 1, 0], [1, 1, 1]], 1),
        ("ScatterElements", [[1, 1, 1], [-1, 0, 0]], 1),
        ("ScatterND", [[0, 1], [1, 1]], None),
        ("ScatterND", [[0, 2], [1, 1], [-2, -1]], 2),
        ("ScatterND", [[1], [1]], 1),
    ],
)
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_an_element_that_is_set_twice(kind: str, indices: Any, twice: int | None, reduction: str) -> None:
    """The standard does not say what it becomes; what is added twice is."""
    places, x = np.array(indices), np.arange(6, dtype=np.float32).reshape(2, 3)
    shape = places.shape if kind == "ScatterElements" else (*places.shape[:-1], *x.shape[places.shape[-1] :])
    updates = np.full(shape, 10, np.float32)
    tensors = [
        onnx.numpy_helper.from_array(places, "indices"),
        onnx.numpy_helper.from_array(updates, "updates"),
    ]
    nodes = [onnx.helper.make_node("Constant", [], [each.name], value=each) for each in tensors]
    scatter = onnx.helper.make_node(kind, ["x0", "indices", "updates"], ["y"], name="s", reduction=reduction)
    model, params, _ = load(graph(*nodes, scatter))
    if reduction == "none" and twice is not None:
        expected = f"expected each element to be set once, got index {twice} twice, which the standard leaves undefined"
        with pytest.raises(ImportedModelError, match=rf"^onnx\.load: node 's' \({kind}\): {expected}$"):
            model(params, x)
        return
    found = model(params, x)
    one = np.zeros_like(x)
    if kind == "ScatterND":
        np.add.at(one, tuple(places.T), 1)
    else:
        np.add.at(one, (places, np.broadcast_to(np.arange(3), places.shape)), 1)
    assert np.array_equal(found, x + 10 * one if reduction == "add" else np.where(one > 0, 10, x))


def test_numbers_of_a_node_are_no_parameters() -> None:
    """Scales, bounds and values, which exporters write as initialisers: PyTorch's writes the scales of Resize so."""
    node = onnx.helper.make_node
    resize = {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}
    nodes = [
        node("Clip", ["x0", "low", "high"], ["a"]),
        node("Reshape", ["a", "shape"], ["b"]),
        node("Resize", ["b", "", "scales"], ["c"], **resize),
        node("Mul", ["c", "weight"], ["y"]),
    ]
    model = onnx.load_from_string(graph(*nodes))
    floats = {"low": [-1], "high": [0.5], "scales": [1, 1, 2, 2], "weight": [3, 4, 5, 6, 7, 8]}
    given = {name: np.array(values, np.float32) for name, values in floats.items()} | {"shape": np.array([1, 1, 2, 3])}
    model.graph.initializer.extend([onnx.numpy_helper.from_array(value, name) for name, value in given.items()])
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension()] * 4)
    imported, params, _ = load(model.SerializeToString())
    assert list(params) == ["weight"]
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    session = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    np.testing.assert_allclose(imported(params, x), session.run(None, {"x0": x})[0], rtol=1e-6)


def test_the_page_lists_every_operator() -> None:
    page = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text()
    missing = [kind for kind in IMPORTERS if f" {kind}" not in page.split("| kind | operators |")[1]]
    assert missing == []
