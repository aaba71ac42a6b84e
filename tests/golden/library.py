"""Libraries for other machines meet `bits.json`: run natively, under emulation or in an engine.

``python tests/golden/library.py TARGET…`` trains both networks and the perceptron of the digits by libraries, step by
step; ``--ops PLACE…`` computes the samples of every sixty-fourth op from there, with their derivatives, and ``--ops
$(seq 0 63)`` those of all. It needs gcc; for other machines their cross compilers and qemu-user (Debian:
``gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu gcc-arm-linux-gnueabihf qemu-user``), for WebAssembly node.
"""

# pyright: basic
import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from bits import (
    BATCH,
    DTYPES,
    FILE,
    TRAINING_RATE,
    TRAINING_STEPS,
    cotangent_of,
    digest,
    initial,
    keyed,
    loss_fn,
    samples_of,
)
from networks import NETWORKS

from dgrr.runtime import Adam, capture, export_library
from dgrr.runtime.data import digits
from dgrr.runtime.ir.forward import forward_graph, record_forward
from dgrr.runtime.library.entry import entry_text
from dgrr.runtime.library.export import WORKER
from dgrr.runtime.library.header import facts_of
from dgrr.runtime.library.image import image_of
from dgrr.runtime.library.source import LibrarySource
from dgrr.runtime.lower.compile import compile_alone
from dgrr.runtime.step.state_digest import state_digest
from dgrr.tape import AnyTensor
from dgrr.tape.numerics.library.targets import TARGETS
from dgrr.tape.numerics.library.wasm import module_of
from dgrr.tape.numerics.llvm.worker import answers
from dgrr.tape.ops import OPS
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Sample
from dgrr.tape.values.spec import Spec

Array = npt.NDArray[Any]

HERE = Path(__file__).parent

SHARES = 64

COMPILERS: dict[str, tuple[str, list[str]]] = {
    **dict.fromkeys(("x86-64-v4", "x86-64-v3", "x86-64"), ("gcc", list[str]())),
    "aarch64": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
    "riscv64": ("riscv64-linux-gnu-gcc", ["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"]),
    "armv7": ("arm-linux-gnueabihf-gcc", ["qemu-arm", "-cpu", "cortex-a15", "-L", "/usr/arm-linux-gnueabihf"]),
}
"""The compiler of each target, and what runs its programs here."""


def ran(target: str, path: Path, every: Sequence[dict[str, Any]], inputs: bytes, calls: int) -> bytes:
    """What the functions of an object file leave: each is called so often, and its outputs and its state follow."""
    if target.startswith("wasm"):
        command = _for_engine(target, path, every)
    else:
        compiler, emulator = COMPILERS[target]
        program = path.with_suffix(".program")
        source = path.with_suffix(".c")
        source.write_text(c_program(every))
        subprocess.run([compiler, "-O1", str(source), str(path), "-o", str(program)], check=True)
        command = [*emulator, str(program)]
    done = subprocess.run([*command, str(calls)], input=inputs, capture_output=True, check=False)
    assert done.returncode == 0, f"{target}: {done.returncode}: {done.stderr.decode()[-500:]}"
    return done.stdout


def _for_engine(target: str, path: Path, every: Sequence[dict[str, Any]]) -> list[str]:
    """The command that runs a library in node."""
    wasm, facts = path.with_suffix(".wasm"), path.with_suffix(".facts")
    facts.write_text(json.dumps(every))
    wasm.write_bytes(module_of(path.read_bytes(), [f"{f['name']}_{part}" for f in every for part in ("run", "start")]))
    flags = ["--experimental-wasm-relaxed-simd"] if target.endswith("relaxed") else []
    return ["node", *flags, str(HERE / "library.mjs"), str(wasm), str(facts)]


def c_program(every: Sequence[dict[str, Any]]) -> str:
    """Reads the inputs of each call from the standard input, and writes what it leaves."""
    lines = ["#include <stdint.h>", "#include <stddef.h>", "#include <stdio.h>", "#include <stdlib.h>"]
    body = list[str]()
    for f in every:
        name, sizes = f["name"], [a["bytes"] for a in (*f["inputs"], *f["outputs"])]
        places = [sum(-(-n // 64) * 64 for n in sizes[:i]) for i in range(len(sizes) + 1)]
        arrays = [f"{name}_data + {at}" for at in places[:-1]]
        state = [f"{name}_state"] if f["state"] else []
        lines += [f"static _Alignas(64) unsigned char {name}_data[{max(1, places[-1])}], {name}_arena[{f['arena']}];"]
        kinds = ["void *"] * (len(state) + len(arrays) + 1)
        lines.append(f"int {name}_run({', '.join([*kinds, 'size_t'])});")
        if state:
            lines += [
                f"static _Alignas(64) unsigned char {name}_state[{f['state']}];",
                f"int {name}_start(void *, size_t);",
            ]
            body.append(f"  if ({name}_start({name}_state, sizeof {name}_state)) return 99;")
        body += ["  for (int i = 0; i < atoi(arguments[1]); i++) {", "    int code;"]
        count = len(f["inputs"])
        body += [
            f"    if (fread({a}, 1, {n}, stdin) != {n}) return 98;" for a, n in zip(arrays[:count], sizes, strict=False)
        ]
        given = ", ".join([*state, *arrays, f"{name}_arena", f"sizeof {name}_arena"])
        body.append(f"    if ((code = {name}_run({given}))) return code;")
        body += [f"    fwrite({a}, 1, {n}, stdout);" for a, n in zip(arrays[count:], sizes[count:], strict=True)]
        body += [f"    fwrite({s}, 1, sizeof {s}, stdout);" for s in state]
        body.append("  }")
    return "\n".join([*lines, "int main(int count, char **arguments) {", *body, "  return 0;", "}", ""])


def array_at(data: bytes, at: int, array: dict[str, Any]) -> Array:
    """An array of bytes, as its facts say."""
    return np.frombuffer(data[at : at + array["bytes"]], array["dtype"]).reshape(array["shape"])


def taken(data: bytes, every: Sequence[dict[str, Any]], calls: int) -> Iterator[tuple[list[Array], bytes]]:
    """The outputs and the state behind each call."""
    at = 0
    for f in every:
        for _ in range(calls):
            outs = list[Array]()
            for o in f["outputs"]:
                outs.append(
                    np.frombuffer(data, o["dtype"], o["bytes"] // np.dtype(o["dtype"]).itemsize, at).reshape(o["shape"])
                )
                at += o["bytes"]
            yield outs, data[at : at + f["state"]]
            at += f["state"]
    assert at == len(data)


# ------------------------------------------------------------------ training


class Training(NamedTuple):
    """Steps whose losses and states stand in the file under a name."""

    name: str
    step: Any
    batches: list[Any]
    key: str


def trainings() -> Iterator[Training]:
    """The perceptron and both networks."""
    every = list(islice(digits()[0].batches(BATCH, seed=0), TRAINING_STEPS))
    yield Training("perceptron", capture(loss_fn, initial(), Adam(TRAINING_RATE), every[0]), every, "training")
    for name, network in NETWORKS.items():
        yield Training(name, network.captured(), network.batches(), f"networks/{name}")


def trained(training: Training, target: str, folder: Path) -> dict[str, str]:
    """The digests that a library leaves."""
    library = export_library(training.step, folder, target=target, name=training.name)[target]
    inputs = b"".join(np.ascontiguousarray(a, i["dtype"]).tobytes() for batch in training.batches
                      for a, i in zip(batch, library.facts["inputs"], strict=True))  # fmt: skip
    found = dict[str, str]()
    steps = len(training.batches)
    data = ran(target, library.object, [library.facts], inputs, steps)
    for n, ((loss,), state) in enumerate(taken(data, [library.facts], steps), 1):
        found[f"{training.key}/{n:02}/loss"] = digest(loss)
        found[f"{training.key}/{n:02}/state"] = _state(training.step, library.facts, state)
    return found


def _state(step: Any, facts: dict[str, Any], state: bytes) -> str:
    held = {h["name"]: array_at(state, h["at"], h) for h in facts["held"]}
    parts = [{name: held[name] for name in part} for part in (step.params, step.state, step.model_state)]
    return state_digest(*parts)[:16]


# ------------------------------------------------------------------ ops


def source_of(op: Op, sample: Sample) -> tuple[LibrarySource, list[Array]]:
    """An op on a sample, with its derivatives, as a graph, and what it is given."""
    inputs, attrs = op.bind(sample.arrays, sample.attrs)
    arrays = [None if x is None else np.asarray(x) for x in inputs]
    given = [a for a in arrays if a is not None]
    y = op.infer_spec([None if a is None else Spec(a.shape, a.dtype) for a in arrays], attrs)
    smooth = y.dtype in DTYPES
    needs = [a is not None and a.dtype in DTYPES for a in arrays]
    if smooth:
        given.append(cotangent_of(AnyTensor(np.zeros(y.shape, y.dtype))).numpy())

    def function(p: Any, batch: Any, context: Any) -> dict[str, Any]:
        left = iter(batch)
        values = [None if a is None else next(left) for a in arrays]
        made = batch[0].tape.apply(op, values, attrs)
        pulled = op.pull(batch[-1], values, made, attrs, needs) if smooth else ()
        return {"y": made, **{op.signature.inputs[k]: var for k, var in pulled}}

    recording = record_forward(function, {}, tuple(given), {}, 0)
    graph, constants = forward_graph(recording)
    names = {f"in{i}": id for i, id in enumerate(recording.inputs)}
    outputs = {where.split("'")[1]: where for where in graph.outputs}
    return LibrarySource(op.name, graph, constants, names, outputs, {}, compile_alone), given


class OpLibrary(NamedTuple):
    """All samples of an op in one object file: what makes it, and for each its name, its facts and what it is given."""

    task: dict[str, Any]
    names: list[str]
    facts: list[dict[str, Any]]
    inputs: list[bytes]


def op_library(target: str, op: Op, dtype: np.dtype[Any], folder: Path) -> OpLibrary:
    """The library of an op."""
    to, names, entries, every, public = TARGETS[target], list[str](), list[str](), list[Any](), list[str]()
    inputs, versions = list[bytes](), dict[Any, None]()
    for n, (key, sample) in enumerate(keyed(samples_of(op, dtype))):
        source, given = source_of(op, sample)
        image = image_of(source.lower(source.graph, source.constants), source)
        text, messages = entry_text(f"sample{n}", image, to, key)
        entries.append(text)
        public += [f"sample{n}_{part}" for part in ("run", "messages", "about")]
        every.append(facts_of(f"sample{n}", image, messages, {}))
        versions |= dict.fromkeys(image.versions)
        inputs += [np.ascontiguousarray(a).tobytes() for a in given]
        names.append(f"op/{op.name}/{dtype}/{key}")
    path = folder / f"{op.name}-{dtype}-{target}.o"
    task = {"target": target, "name": op.name, "entries": entries, "public": public, "versions": list(versions),
            "path": str(path)}  # fmt: skip
    return OpLibrary(task, names, every, inputs)


def op_bits(library: OpLibrary, error: str | None) -> dict[str, str]:
    """The digests of all samples of an op."""
    task, every, found = library.task, library.facts, dict[str, str]()
    assert error is None, f"{task['name']}: {error}"
    data = ran(task["target"], Path(task["path"]), every, b"".join(library.inputs), 1)
    for name, facts, (outs, _) in zip(library.names, every, taken(data, every, 1), strict=True):
        found |= {f"{name}/{o['name']}": digest(out) for o, out in zip(facts["outputs"], outs, strict=True)}
    return found


def ops_at(place: int, target: str, folder: Path) -> Iterator[Callable[[], dict[str, str]]]:
    """What gives the digests of each op of a share, in both types. One process makes their libraries."""
    ops = list(OPS.values())[place::SHARES]
    every = [op_library(target, op, dtype, folder) for op in ops for dtype in DTYPES]
    made = answers(WORKER, TARGETS[target].code_for, [library.task for library in every])
    ended = repeat((None, "the process that makes it ended"))
    for library, (_, error) in zip(every, chain(made, ended), strict=False):
        yield partial(op_bits, library, error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", choices=TARGETS)
    shares = "instead of training every sixty-fourth op from each of these places: 0 to 63 are all"
    parser.add_argument("--ops", type=int, nargs="+", choices=range(SHARES), metavar="PLACE", help=shares)
    parser.add_argument("--only", help="of the trainings, one")
    args = parser.parse_args()
    known, folder, missed = json.loads(FILE.read_text()), Path(mkdtemp()), list[str]()
    for target in args.targets:
        parts: Iterable[Callable[[], dict[str, str]]]
        if args.ops is None:
            parts = [partial(trained, t, target, folder) for t in trainings() if args.only in (None, t.name)]
        else:
            parts = chain.from_iterable(ops_at(place, target, folder) for place in args.ops)
        count = 0
        for part in parts:
            try:
                found = part()
            except AssertionError as problem:  # one op that cannot be exported hides no other
                missed.append(f"{target}: {problem}")
                print(missed[-1], flush=True)
                continue
            wrong = [name for name, value in found.items() if known[name] != value]
            print(f"{target}: {next(iter(found), '')}: {len(found)} digests, {len(wrong)} others", flush=True)
            missed += [f"{target}: {name}" for name in wrong]
            count += len(found)
        print(f"{target}: {count} digests in all")
    sys.exit(f"bits.json is not met by {', '.join(missed)}" if missed else None)


if __name__ == "__main__":
    main()
