"""A step written out by hand, and graphs made at random."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from dgrr.runtime.ir import IRGraph, IRNode, Role, Value
from dgrr.tape.values.spec import Spec

STEP = """graph "step"
  %0: float32[5, 3] param "0.weight"
  %1: float32[5] param "0.bias"
  %2: float32[4, 3] input "batch[0]"
  %3: float32[4, 5] input "batch[1]"
  %4: float32[] const = 1.0
  %5: int64[1] state "step"
  %6: float64[2] state "corrections"
  %7: float32[5, 3] state "m/0.weight"
  %8: float32[5, 3] state "v/0.weight"
  %9: float64[5] const "hyper" = sha256:5f2c
  #0 %10: float32[4, 5] = linear(%2, %0, %1)
  #1 %11: float32[] "loss" = mse_loss(%10, %3)
  #2 %12: float32[4, 5] = sub(%10, %3)
  #3 %13: float32[4, 5] = broadcast_to(%4) {shape=(4, 5)}
  #4 %14: float32[4, 5] = mul(%13, %12)
  #5 %15: float32[5, 4] = transpose2d(%14)
  #6 %16: float32[5, 3] = matmul(%15, %2)
  #7 %17: float32[5] = reduce_sum(%14) {axis=0, keepdims=False}
  #8 () = finite(%11)
  #9 %18: int64[1] = step_inc(%5)
  #10 %19: float64[2] = bias_corr(%6, %18, %9)
  #11 (%20: float32[5, 3], %21: float32[5, 3], %22: float32[5, 3]) = \
adam_step(%0, %7, %8, %16, %19, %9) {attributes=(0,)}
  #12 %23: float32[5] = sgd_step(%1, %17, %9)
  output "loss" = %11
  output "grad %0" = %16
  output "grad %1" = %17
  update %0 <- %20
  update %1 <- %23
  update %5 <- %18
  update %6 <- %19
  update %7 <- %21
  update %8 <- %22"""


@pytest.fixture
def step_text() -> str:
    """The text of a step: a layer, its loss, its backward pass, Adam for the weight and SGD for the bias."""
    return STEP


@pytest.fixture
def step() -> IRGraph:
    """The same as a graph."""
    return IRGraph.parse(STEP)


DTYPES = [np.dtype(name) for name in ("float32", "float64", "int64", "bool", "int32", "uint64", ">f4")]
IDS = st.integers(0, 30)
SMALL = st.integers(-3, 3)

FLOATS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, -0.0, float("nan"), -float("inf")])
ATOMS = st.none() | st.booleans() | st.integers() | FLOATS | st.text() | st.just(...) | st.sampled_from(DTYPES)
SLICES = st.builds(slice, *[st.none() | SMALL] * 3)
ATTRIBUTES: st.SearchStrategy[Any] = st.recursive(
    ATOMS | SLICES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6
)

NODES = st.builds(
    IRNode,
    id=IDS,
    op=st.sampled_from(["add", "reduce_sum", "größe", "_2"]),
    inputs=st.lists(st.none() | IDS, max_size=3).map(tuple),
    outputs=st.lists(IDS, max_size=3).map(tuple),
    attrs=st.dictionaries(st.sampled_from(["axis", "keepdims", "c", "index"]), ATTRIBUTES, max_size=3),
)
VALUES = st.builds(
    Value,
    id=st.just(0),
    spec=st.builds(Spec, st.lists(st.integers(0, 9), max_size=3).map(tuple), st.sampled_from(DTYPES)),
    role=st.sampled_from(Role),
    name=st.text(max_size=8),
    content=st.sampled_from(["", "1.0", "-inf", "sha256:0af3"]) | st.text(max_size=8),
)
GRAPHS = st.builds(
    IRGraph,
    name=st.text(max_size=8),
    values=st.dictionaries(IDS, VALUES, max_size=6).map(lambda d: {id: replace(v, id=id) for id, v in d.items()}),
    nodes=st.lists(NODES, max_size=4).map(tuple),
    outputs=st.dictionaries(st.text(max_size=8), IDS, max_size=3),
    updates=st.dictionaries(IDS, IDS, max_size=3),
)


@pytest.fixture(scope="session")
def graphs() -> st.SearchStrategy[IRGraph]:
    """Graphs of all kinds, most of them wrong, with every kind of attribute, name and content."""
    return GRAPHS
