"""The header ``plan.h`` of a judge: the tensors of a run, and how each of its compiled steps is called."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...base.runs.completed_step import of_group
from ...runtime.library.export import Library
from ..v2.format.constants import DTYPE_CODES, StepFlag, TensorRole
from ..v2.format.digest import NUMPY_DTYPES, Algorithm, dtype_name
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.write.tensors import CORRECTIONS

NOWHERE = -1

HASHES = {Algorithm.XXH3_128: ("xxh3.h", "xxh3_128"), Algorithm.SHA256: ("sha256.h", "sha256")}
"""The file and the function in C of each digest."""


@dataclass(frozen=True)
class PlannedStep:
    """A compiled step. ``names`` are its inputs as a trace digests them; ``order`` are their places in a call."""

    library: Library
    names: Sequence[str]
    order: Sequence[int]
    grads: Mapping[str, int]
    """Which output is the gradient of a param."""
    clip: int
    """Which output holds norm and scale of clipping; -1: none."""


def plan_text(trace: TraceReader, steps: Sequence[PlannedStep], rates: Sequence[int], numerics: int) -> str:
    """The header. ``rates`` are the places of the hyperparameters that a step is told."""
    first, tensors, algorithm = trace[0], trace.schema.tensors, trace.header.algorithm
    roles = [tensor.role for tensor in tensors]
    groups = [of_group(CORRECTIONS, i) for i, group in enumerate(trace.schema.rules) if group.corrections]
    names = [tensor.name for tensor in tensors]
    outputs = max(len(step.grads) + 2 for step in steps)
    numbers: dict[str, int | str] = {
        "NUMERICS": numerics,
        "DIGEST": HASHES[algorithm][1],
        "DIGEST_CODE": algorithm.value,
        "D": algorithm.size,
        "SEED": f"UINT64_C({trace.header.seed})",
        "TENSORS": len(tensors),
        "PARAMS": roles.count(TensorRole.PARAM),
        "BUFFERS": roles.count(TensorRole.BUFFER),
        "HYPERPARAMETERS": len(trace.hyperparameters),
        "CORRECTIONS": len(first.record.corrections),
        "CORRECTION_TENSORS": len(groups),
        "LOSS_DTYPE": DTYPE_CODES[dtype_name(np.dtype(steps[0].library.facts["outputs"][0]["dtype"]))],
        "MICRO_BATCHES": first.micro_batches,
        "TREE": int(first.record.flags & StepFlag.TREE),
        "CLIPPED": int(first.clip is not None),
        "CLIP_NORM": _bits(0.0 if first.clip is None else first.clip[0]),
        "STEPS": len(steps),
        "MOST_INPUTS": max(len(step.names) for step in steps),
        "MOST_INPUT": max(_bytes(step, "inputs") for step in steps),
        "MOST_OUTPUTS": outputs,
        "MOST_OUTPUT": max(_bytes(step, "outputs") for step in steps),
        "MOST_STATE": max(step.library.facts["state"] for step in steps),
        "MOST_ARENA": max(step.library.facts["arena"] for step in steps),
        "MAX_NAME": max(len(name.encode()) for step in steps for name in step.names),
    }
    arrays = [_array(t.name, t.dtype, t.shape) for t in tensors]
    digest = algorithm.hash(trace.schema.encode())
    parts = [
        "/* What judge.c must know of one run. Written by `dgrr export --judge`. */",
        f'#include "{HASHES[algorithm][0]}"',
        *[f'#include "{step.library.facts["name"]}.h"' for step in steps],
        "",
        *[f"#define {name} {value}" for name, value in numbers.items()],
        "",
        _table("const uint8_t", "plan_schema", [f"{byte}" for byte in digest]),
        _table("const struct array", "plan_tensors", arrays),
        _table("const struct hyperparameter", "plan_hyper", _hyper(first, rates)),
        _table("const size_t", "plan_corrections", [str(names.index(name)) for name in groups]),
        *[_step(step, names, numbers["PARAMS"], len(rates)) for step in steps],
        _table("const struct step", "plan_steps", [_row(step) for step in steps]),
    ]
    return "\n".join(parts) + "\n"


def _bytes(step: PlannedStep, kind: str) -> int:
    return max(int(array["bytes"]) for array in step.library.facts[kind])


def _bits(value: float) -> str:
    return f"UINT64_C({int(np.float64(value).view(np.uint64))})"


def _hyper(first: StepView, rates: Sequence[int]) -> list[str]:
    return [
        f"{{{_bits(value)}, {rates.index(i) + 1 if i in rates else 0}}}" for i, value in enumerate(first.record.hyper)
    ]


def _array(name: str, dtype: str, shape: Sequence[int]) -> str:
    sizes = ", ".join(map(str, shape)) or "0"
    nbytes = prod(shape) * NUMPY_DTYPES[dtype].itemsize
    return f"{{{_text(name)}, {DTYPE_CODES[dtype]}, {len(shape)}, {{{sizes}}}, {nbytes}}}"


def _text(name: str) -> str:
    """A string of C; bytes beyond ASCII, and what C reads otherwise, as octal numbers."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in name.encode()) + '"'


def _table(kind: str, name: str, rows: Iterable[str]) -> str:
    """An array of C, which may not be empty: then it holds a zero that nobody reads."""
    found = list(rows) or ["0" if "struct" not in kind else "{0}"]
    return f"static {kind} {name}[] = {{\n" + "".join(f"    {row},\n" for row in found) + "};"


def _step(step: PlannedStep, tensors: Sequence[str], params: Any, rates: int) -> str:
    """The tables of a step, and the function that calls it."""
    facts = step.library.facts
    name, held = facts["name"], {array["name"]: array["at"] for array in facts["held"]}
    taken = [facts["inputs"][step.order.index(i)] for i in range(len(step.names))]
    inputs = [
        _array(called, dtype_name(np.dtype(a["dtype"])), a["shape"])
        for called, a in zip(step.names, taken, strict=True)
    ]
    given = [f"in[{i}]" for i in step.order] + [f"out[{i}]" for i in range(len(facts["outputs"]))]
    return "\n".join(
        [
            "",
            _table("const int64_t", f"{name}_tensors", [str(held.get(tensor, NOWHERE)) for tensor in tensors]),
            _table("const int64_t", f"{name}_rates", [str(held.get(rate_name(i), NOWHERE)) for i in range(rates)]),
            _table("const struct array", f"{name}_inputs", inputs),
            _table("const int", f"{name}_gradients", [str(step.grads.get(p, NOWHERE)) for p in tensors[:params]]),
            f"static int {name}_call(void *state, void *const *in, void *const *out, void *arena) {{",
            f"    return {name}_run(state, {', '.join(given)}, arena, {name.upper()}_ARENA);",
            "}",
        ]
    )


def rate_name(number: int) -> str:
    """What the state of a step calls a rate that it is told."""
    return f"rate told {number}"


def _row(step: PlannedStep) -> str:
    name = step.library.facts["name"]
    big, n = name.upper(), len(step.names)
    tables = f"{name}_tensors, {name}_rates, {name}_inputs, {n}, {name}_gradients, {step.clip}"
    return f"{{{name}_start, {name}_call, {name}_messages, {big}_STATE, {big}_ARENA, {tables}}}"
