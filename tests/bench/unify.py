"""What the check of shapes and element types costs an op: ``python tests/bench/unify.py``.

The first call with given shapes, element types and attributes unifies them with the op's annotations; what follows
from them is kept, and later calls look it up. The table shows both, in microseconds, as minima of many rounds:
``first`` is the unification alone, ``seen`` the look-up in its place.
"""

import timeit
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dgrr.tape import AnyTensor
from dgrr.tape.values.spec import Spec
from dgrr.tape.var.op_table import OPS

ROUNDS, CALLS = 40, 1000
CASES: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "add": ([(8, 8), (8, 8)], {}),
    "matmul": ([(2, 3, 8, 8), (2, 3, 8, 8)], {}),
    "linear": ([(64, 8), (8, 8), (8,)], {}),
    "softmax": ([(64, 8)], {"axis": -1}),
    "reduce_sum": ([(8, 8)], {"axis": (0, 1), "keepdims": True}),
    "reshape": ([(8, 8)], {"shape": (4, 2, 8)}),
}


def microseconds(call: Callable[[], Any]) -> float:
    """The least of many rounds, per call."""
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def measure(name: str, shapes: list[tuple[int, ...]], attrs: Mapping[str, Any]) -> tuple[float, float]:
    """The unification of an op's first call, and a whole later one."""
    op, values = OPS[name], [AnyTensor(np.ones(shape, np.float32)) for shape in shapes]
    specs = [Spec(v.sizes, v.dtype) for v in values]
    return microseconds(lambda: op.infer_spec(specs, attrs)), microseconds(lambda: op.compute(values, attrs))


def main() -> None:
    table = Table("op", "first [us]", "a later call [us]")
    for name, (shapes, attrs) in CASES.items():
        table.add_row(name, *(f"{t:.2f}" for t in measure(name, shapes, attrs)))
    Console().print(table)


if __name__ == "__main__":
    main()
