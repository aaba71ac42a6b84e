"""Kernels of rows in CUDA C++ against the CPU's, bit for bit, on the host."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.arrays import Array
from dgrr.runtime.optim import kernels as optimizers
from dgrr.tape.numerics.cuda.rows import ROW_BLOCK
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.launch import Words, launch
from dgrr.tape.ops import cuda_forms
from dgrr.tape.ops.norm import cuda as cuda_norms
from dgrr.tape.ops.reduce import cuda as cuda_rows

from .host import KINDS, NO_FAULT, OP, PACKAGE, Host, enumerators, needs_cuda, output, values, wrong
from .mutation import is_found, mutated

pytestmark = needs_cuda
FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))
SIZES = ((1, 1), (3, 10), (9, 33), (3, 300), (2, ROW_BLOCK + 900))
"""Rows and their lengths: less than the lanes, not a whole number of them, more rows than a block of threads has, rows
that have a block of threads each, and rows of more than one block of terms."""


def wrong_bits(
    host: Host, name: str, words: Sequence[float], shapes: Sequence[tuple[int, ...]], inputs: Sequence[Array]
) -> int:
    """How many elements of a form's outputs differ from the CPU's."""
    dtype, numbers = inputs[0].dtype, Words(*words)
    want, got = [np.empty(shape, dtype) for shape in shapes], [output(shape, dtype) for shape in shapes]
    assert launch(KERNELS[name], dtype, numbers, [*want, *inputs], 0) == 0
    given = tuple(numbers.values.tolist())
    assert host.run(name, [*(own for own, _ in got), *inputs], given, dtype) == NO_FAULT
    assert all(untouched() for _, untouched in got), "a kernel writes outside of its output"
    return sum(wrong(own, right) for (own, _), right in zip(got, want, strict=True))


def softmaxes(host: Host, dtype: Any, size: tuple[int, int], kind: str) -> Iterator[tuple[str, int]]:
    (rows, n), rng = size, np.random.default_rng(0)
    x, g = values(rng, size, kind, dtype), values(rng, (1,), kind, dtype)
    labels = rng.integers(0, n, rows)
    for name in ("sum_rows", "mean_rows", "softmax", "log_softmax", "logsumexp"):
        yield name, wrong_bits(host, name, size, [size if "softmax" in name else (rows,)], [x])
    yield "losses", wrong_bits(host, "cross_entropy_rows", size, [(rows,)], [x, labels])
    yield "grad", wrong_bits(host, "cross_entropy_grad", size, [size], [x, labels, g])
    yield "both", wrong_bits(host, "cross_entropy_rows_with_grad", size, [(rows,), size], [x, labels, g])


def attention(host: Host, dtype: Any, size: tuple[int, int], kind: str) -> Iterator[tuple[str, int]]:
    (rows, n), rng = size, np.random.default_rng(0)
    x, g = values(rng, size, kind, dtype), values(rng, size, kind, dtype)
    yield "grad", wrong_bits(host, "scaled_softmax_grad", (*size, 0.3), [size], [g, x])
    for mask_rows, causal, scale in ((0, 0, 0.3), (0, 1, -0.7), (rows, 0, -0.7), (rows, 1, 0.3), (1, 1, 0.3)):
        mask = [(rng.random((mask_rows, n)) < 0.5).astype(np.uint8)] if mask_rows else []
        words = (*size, scale, min(rows, 4), causal, mask_rows)
        yield f"mask {mask_rows} {causal}", wrong_bits(host, "masked_softmax", words, [size], [x, *mask])


def layouts(rows: int, n: int) -> dict[str, tuple[int, ...]]:
    """Rows as `SHAPE` of the CPU's kernels says: of a layer, of groups, of channels over a batch."""
    return {
        "a layer": (rows, n, n, 1, 1, 0, 1, n),
        "runs": (rows, n, 1, n, n, 1, 1, rows),
        "over a batch": (n, 1, rows, 1, n, 1, 0, n),
    }


def norms(host: Host, dtype: Any, size: tuple[int, int], kind: str) -> Iterator[tuple[str, int]]:
    (rows, n), rng = size, np.random.default_rng(0)
    x, dy, *parameters = (values(rng, s, kind, dtype) for s in (size, size, (rows + n,), (rows + n,)))
    for name, layout in layouts(rows, n).items():
        for centred, weight, bias in ((0, 0, 0), (1, 2, 3), (1, 0, 2), (0, 2, 0)):
            own = [*parameters[: (weight > 0) + (bias > 0)]]
            given = values(rng, (2, layout[0]), kind, dtype)
            for before in ([], [given]):
                w, b = (p and p + len(before) for p in (weight, bias))
                words = (*layout, w, centred, 1e-5, 2 * len(before), b)
                yield f"{name} {words}", wrong_bits(host, "normalize", words, [size], [x, *before, *own])
                if not bias:
                    words = (*layout, w and w + 1, centred, 1e-5, 3 * len(before))
                    inputs = [dy, x, *before, *own]
                    yield f"{name} grad {words}", wrong_bits(host, "normalize_grad", words, [size], inputs)
        words = (*layout, 0, 1, 1e-5, 0)
        yield f"{name} statistics", wrong_bits(host, "row_statistics", words, [(2, layout[0])], [x])
        for before in ([], [given]):
            words = (*layout, 0, 1, 1e-5, 3 * len(before))
            yield f"{name} weights", wrong_bits(host, "normalize_weight_grad", words, [layout[:1]], [dy, x, *before])


def columns(host: Host, dtype: Any, size: tuple[int, int], kind: str) -> Iterator[tuple[str, int]]:
    """``size`` turned, so that what is a long row elsewhere is a long column here."""
    (columns, rows), rng = size, np.random.default_rng(0)
    shape = (rows, columns)
    x, dy = values(rng, (2, *shape), kind, dtype), values(rng, shape, kind, dtype)
    mean, inv, weight = (values(rng, (columns,), kind, dtype) for _ in range(3))
    for name in ("sum_columns", "mean_columns"):
        yield name, wrong_bits(host, name, (2, *shape), [(2, columns)], [x])
    yield "deviations", wrong_bits(host, "inverse_deviations", (*shape, 1e-5), [(columns,)], [x[0], mean])
    given = values(rng, (2, rows), kind, dtype)
    yield "weights", wrong_bits(host, "column_weight_grad", shape, [(columns,)], [dy, x[0], given])
    yield "slopes", wrong_bits(host, "column_slopes", (*shape, 0), [shape], [dy, x[0], mean, inv])
    yield "weighted", wrong_bits(host, "column_slopes", (*shape, 5), [shape], [dy, x[0], mean, inv, weight])


@pytest.mark.parametrize("family", [softmaxes, attention, norms, columns])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_kernel_has_the_bits_of_the_cpu(host: Host, dtype: Any, family: Any) -> None:
    for i, size in enumerate(SIZES):
        for kind in (KINDS[i % len(KINDS)], "special") if size[1] < ROW_BLOCK else ("wide",):
            found = dict(family(host, dtype, size, kind))
            assert not any(found.values()), (size, kind, found)


def test_rows_of_several_rounds(host: Host) -> None:
    x = values(np.random.default_rng(0), (1, 33 * ROW_BLOCK + 5), "wide", FLOATS[0])
    assert not wrong_bits(host, "softmax", x.shape, [x.shape], [x])
    assert not wrong_bits(host, "sum_rows", x.shape, [(1,)], [x])


def test_many_rows_of_more_than_a_block(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_rows, "PROCESSORS", 2)
    x = values(np.random.default_rng(0), (3, ROW_BLOCK + 5), "wide", FLOATS[0])
    assert len(cuda_forms.FORMS["mean_rows"].launches(FLOATS[0], x.shape)) == 1
    assert not wrong_bits(host, "mean_rows", x.shape, [(3,)], [x])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_long_rows_are_normalised_by_their_blocks_or_alone(
    host: Host, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, size, form = np.random.default_rng(0), (2, 3 * ROW_BLOCK + 5), cuda_forms.FORMS["normalize_grad"]
    (x, dy), weight = values(rng, (2, *size), "wide", dtype), values(rng, size[1:], "wide", dtype)
    words = (*layouts(*size)["a layer"], 3, 1, 1e-5, 0)
    for processors, cluster, launches in ((2, 8, 1), (2, 3, 4), (0, 8, 1)):
        monkeypatch.setattr(cuda_norms, "PROCESSORS", processors)
        monkeypatch.setattr(cuda_norms, "CLUSTER", cluster)
        assert len(form.launches(np.dtype(dtype), tuple(Words(*words).values.tolist()))) == launches
        assert not wrong_bits(host, "normalize_grad", words, [size], [dy, x, weight])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [0, 1, 77, ROW_BLOCK, 3 * ROW_BLOCK + 1])
def test_sums_of_whole_arrays(host: Host, dtype: Any, n: int) -> None:
    a, b = values(np.random.default_rng(0), (2, n), "wide", dtype)
    assert not wrong_bits(host, "mean_squared_difference", (n,), [(1,)], [a, b])
    norm, right = np.zeros(1), np.zeros(1)
    launch(optimizers.tensor_norm, dtype, Words(n), [right, a], 0)
    assert host.run("tensor_norm", [norm, a], (n,), dtype) == NO_FAULT
    assert norm[0] == right[0] or np.isnan(right[0])


@pytest.mark.parametrize("name", ["cross_entropy_rows", "cross_entropy_grad", "cross_entropy_rows_with_grad"])
def test_the_first_label_out_of_range_is_told(host: Host, name: str) -> None:
    x, labels = np.ones((20, 5), np.float32), np.arange(20) % 5
    labels[[7, 13]] = 5, -1
    outputs = [np.empty(x.shape[:1], np.float32), np.empty_like(x)]
    outputs = outputs if "with" in name else outputs[:1] if "rows" in name else outputs[1:]
    word = host.run(name, [*outputs, x, labels, np.ones(1, np.float32)], (20, 5), FLOATS[0])
    assert word == OP << 40 | 8
    assert launch(KERNELS[name], FLOATS[0], Words(20, 5), [*outputs, x, labels, np.ones(1, np.float32)], 0) == 8


def test_no_rows_are_no_launch() -> None:
    assert cuda_forms.FORMS["softmax"].launches(FLOATS[0], (0, 5)) == ()
    assert cuda_forms.FORMS["normalize"].launches(FLOATS[0], (3, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0)) == ()


def test_the_words_have_the_positions_of_the_cpu() -> None:
    from dgrr.tape.ops.attention import kernels as attention_words
    from dgrr.tape.ops.norm.kernels import shape as norm_words

    for source, words in (("attention/attention.cu", attention_words), ("norm/norms.cu", norm_words)):
        for name, i in enumerators(PACKAGE / "tape/ops" / source, "ROWS").items():
            assert getattr(words, name) == i, name


# ------------------------------------------------------------------ mutants

MUTANTS = {
    "lanes in another order": ("rows.cuh", "h = LANES / 2; h; h /= 2) mine", "h = 1; h < LANES; h *= 2) mine"),
    "eight lanes": ("rows.cuh", "LANES = 16", "LANES = 8"),
    "blocks of 8192": ("rows.cuh", "ROW_BLOCK = 4096", "ROW_BLOCK = 8192"),
    "one barrier less": ("rows.cuh", "= found; });\n      __syncthreads();", "= found; });"),
    "no barrier behind the sums": ("rows.cuh", "(stop - start));\n      __syncthreads();", "(stop - start));"),
    "blocks from the right": ("rows.cuh", "total = add(total, sums[g]);", "total = add(total, sums[GROUPS - 1 - g]);"),
    "blocks of rows from below": (
        "columns.cuh",
        "total = add(total, parts[b * all]);\n  finish",
        "total = add(total, parts[(blocks - 1 - b) * all]);\n  finish",
    ),
    "columns in blocks of 512": ("columns.cuh", "CHAIN = 256", "CHAIN = 512"),
    "no barrier before the chain": ("columns.cuh", "= term(r);\n    __syncthreads();", "= term(r);"),
    "blocks of a normalised row from the right": (
        "norms.cu",
        "total = add(total, parts[b]);",
        "total = add(total, parts[blocks - 1 - b]);",
    ),
    "another block of a normalised row": (
        "norms.cu",
        "long long start = block * ROW_BLOCK;\n    const",
        "long long start = (blocks - 1 - block) * ROW_BLOCK;\n    const",
    ),
    "no waiting for the cluster": ("norms.cu", "    cluster_barrier();\n  }", "  }"),
    "sums of h in the place of those of h x'": ("norms.cu", "blockIdx.z == 0", "blockIdx.z != 0"),
    "another tree in exp": ("elementary.cuh", "float v19 = add(v18, v15);", "float v19 = add(v17, add(v6, v15));"),
}  # fmt: skip


def some_rows(host: Host) -> int:
    """Wrong elements of a softmax, of one block and of more."""
    rng, found = np.random.default_rng(0), 0
    for size in (*SIZES[2:4], (8, ROW_BLOCK + 900)):
        found += wrong_bits(host, "softmax", size, [size], [values(rng, size, "normal", FLOATS[0])])
    return found


def some_columns(host: Host) -> int:
    """Wrong elements of a sum down columns, of one block and of more."""
    rng, found = np.random.default_rng(0), 0
    for columns, rows in SIZES[2:]:
        x = values(rng, (rows, columns), "normal", FLOATS[0])
        found += wrong_bits(host, "sum_columns", (1, rows, columns), [(columns,)], [x])
    return found


def some_norms(host: Host) -> int:
    """Wrong elements of rows of several blocks that are normalised."""
    size = (2, 3 * ROW_BLOCK + 5)
    x, dy = values(np.random.default_rng(0), (2, *size), "wide", FLOATS[0])
    words, found = (*layouts(*size)["a layer"], 0, 1, 1e-5, 0, 0), 0
    for cluster in (1, cuda_norms.CLUSTER):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cuda_norms, "CLUSTER", cluster)
            found += wrong_bits(host, "normalize", words, [size], [x])
            found += wrong_bits(host, "normalize_weight_grad", words[:-1], [size[:1]], [dy, x])
    return found


SEARCHES = {"columns.cuh": some_columns, "norms.cu": some_norms}
"""What finds the mutants of a file, if not `some_rows`."""


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.long
def test_a_wrong_row_is_found(mutant: str, tmp_path: Path, programs: Path) -> None:
    file, *change = MUTANTS[mutant]
    assert is_found(SEARCHES.get(file, some_rows), mutated(tmp_path, programs, file, *change))


@pytest.mark.parametrize("some", [some_rows, some_columns, some_norms])
def test_without_a_mutant_nothing_is_found(host: Host, some: Callable[[Host], int]) -> None:
    assert some(host) == 0
