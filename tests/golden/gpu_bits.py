"""Kernels as GPUs run them, on a CPU: the digests of ``bits.json`` from one part for every element, in random order.

``python tests/golden/gpu_bits.py [--share 0..47]``. The code is that which is translated, compiled for the machine at
hand; of products it is the kernel that stands in where no tile is written. Convolutions run in tiles alone, and are
left out.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Sequence
from typing import Any

os.environ["DGRR_CODE_FOR"] = "gpu"  # before anything of dgrr is imported
os.environ["NUMBA_OPT"] = "1"  # it is compiling that takes the time

import numpy as np
from bits import DTYPES, FILE, digest, keyed, results, samples_of

from dgrr.tape.numerics.engine import launch
from dgrr.tape.numerics.engine.kernel import KERNELS, call
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops import OPS

SHARES = 48


def every_part(address: int, ints: Words, arrays: Sequence[np.ndarray[Any, Any]], parts: int) -> int:
    """A call as a GPU makes it: as many parts as the output has elements, each on its own, in any order."""
    a = arrays[0]
    if address in {kernel.address(a.dtype) for kernel in KERNELS.values() if kernel.cleared and a.dtype.kind == "f"}:
        arrays[0][...] = 0
    units, table = max(1, arrays[0].size), tuple(map(id, arrays))
    statuses = [call(address, ints.address, part, units, table) for part in random.sample(range(units), units)]
    return min((status for status in statuses if status), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, choices=range(SHARES), help="every forty-eighth op")
    share = parser.parse_args().share
    random.seed(share)
    launch.PARALLEL_WORK, launch.run, launch.parts_for = 0, every_part, lambda work: 2
    gemm = KERNELS["gemm"]
    gemm.address = gemm.variants["reference"].address  # type: ignore[method-assign]
    known, met, missed = json.loads(FILE.read_text()), 0, list[str]()
    for number, op in enumerate(op for name, op in OPS.items() if "conv" not in name):
        if share is not None and number % SHARES != share:
            continue
        for dtype in DTYPES if share is None else DTYPES[:1]:
            for key, sample in keyed(samples_of(op, dtype)):
                for what, array in results(op, sample).items():
                    name = f"op/{op.name}/{dtype}/{key}/{what}"
                    met += known[name] == digest(array)
                    missed += [name] if known[name] != digest(array) else []
    sys.exit(f"bits.json is not met by {', '.join(missed)}" if missed or not met else None)


if __name__ == "__main__":
    main()
