"""Libraries beside the captured call and onnxruntime, on the same models: ``python tests/bench/library.py``.

For one image: microseconds of the fastest call of many, bytes of the file and with gzip, seconds of the export. It
needs gcc and node, and onnxruntime (``pip install '.[bench]'``) unless ``--without-onnx`` is given, on one thread.
"""

import argparse
import gzip
import json
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dgrr.runtime import Library, capture_function, export_library, onnx
from dgrr.trace.cli.demo import MODEL

HERE = Path(__file__).parent
TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64", "wasm32", "wasm32-relaxed")

C_PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA];
static float in[%d], out[10];
int main(void) {
    double best = 1e9;
    for (int i = 0; i < %d; i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (model_run(in, out, arena, sizeof arena)) return 1;
        clock_gettime(CLOCK_MONOTONIC, &b);
        double us = (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3;
        if (us < best) best = us;
    }
    printf("%%f\\n", best);
}
"""

NODE_PROGRAM = """
import { readFileSync } from "node:fs";
const { load } = await import("./model.mjs");
const model = await load(readFileSync(new URL("./model.wasm", import.meta.url)));
const in0 = new Float32Array(%d);
let best = 1e9;
for (let i = 0; i < %d; i++) {
  const began = performance.now();
  for (let k = 0; k < 10; k++) model.run({ in0 });
  best = Math.min(best, (performance.now() - began) * 100);
}
console.log(best);
"""


def models() -> dict[str, tuple[Any, dict[str, Any], dict[str, Any], Any]]:
    """Each with its parameters, its state, and an image."""
    cnn = runpy.run_path(str(HERE.parents[1] / "docs" / "examples" / "digits_cnn.py"))["MODEL"]
    flat, image = np.zeros((1, 64), np.float32), np.zeros((1, 1, 8, 8), np.float32)
    return {
        "64-128-128-10": (MODEL, MODEL.init(0), {}, flat),
        "cnn of the digits": (cnn, cnn.init(0), cnn.init_state(), image),
    }


def fastest(call: Callable[[], object], times: int) -> float:
    """Microseconds of the fastest call."""
    best = float("inf")
    for _ in range(times):
        began = perf_counter()
        call()
        best = min(best, perf_counter() - began)
    return best * 1e6


def of_library(library: Library, times: int) -> float:
    """The same of a library, in a program of C or in node."""
    folder, size = library.object.parent, library.facts["inputs"][0]["bytes"] // 4
    if library.module:
        (folder / "time.mjs").write_text(NODE_PROGRAM % (size, times // 10))
        flag = "--experimental-wasm-relaxed-simd"
        command = ["node", *([flag] if library.target.endswith("relaxed") else []), "time.mjs"]
    else:
        (folder / "time.c").write_text(C_PROGRAM % (size, times))
        subprocess.run(["gcc", "-O2", "time.c", "model.o", "-o", "time"], cwd=folder, check=True)
        command = ["./time"]
    return float(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)


def of_onnx(model: Any, params: Any, state: Any, x: Any, times: int) -> float:
    """The same of onnxruntime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = Path(mkdtemp()) / "model.onnx"
    onnx.export(model, params, x, path, state=state or None)
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return fastest(lambda: session.run(None, {name: x}), times)


def rows(args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each model and each way to run it."""
    found = list[dict[str, Any]]()
    for title, (model, params, state, x) in models().items():
        call = capture_function(lambda x, m=model, p=params | state: m(p, x), x)
        found.append({"model": title, "by": "captured call", "us": fastest(lambda c=call, x=x: c(x), args.times)})
        if not args.without_onnx:
            found.append({"model": title, "by": "onnxruntime", "us": of_onnx(model, params, state, x, args.times)})
        for target in args.targets:
            began = perf_counter()
            library = export_library(call, mkdtemp(), target=target, name="model")[target]
            seconds = perf_counter() - began
            data = (library.module or library.object).read_bytes()
            sizes = {"bytes": len(data), "gzip": len(gzip.compress(data)), "seconds": seconds}
            found.append({"model": title, "by": target, "us": of_library(library, args.times), **sizes})
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS)
    parser.add_argument("--times", type=int, default=2000, help="calls of each; default: %(default)s")
    parser.add_argument("--without-onnx", action="store_true")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    found = rows(args)
    if args.json:
        print(json.dumps(found, indent=1))
        return
    table = Table("model", "by", *("µs", "bytes", "gzip", "export s"))
    for row in found:
        numbers = [f"{row['us']:.1f}", *(f"{row[k]:,}" if k in row else "" for k in ("bytes", "gzip"))]
        table.add_row(row["model"], row["by"], *numbers, f"{row['seconds']:.1f}" if "seconds" in row else "")
    Console().print(table)


if __name__ == "__main__":
    main()
