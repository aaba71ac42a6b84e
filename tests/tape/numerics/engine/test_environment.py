"""What surrounds a kernel cannot be seen in its bits: floating-point flags, NaN payloads, threads, forks."""

# numba's functions carry no types.
# mypy: disable-error-code="call-arg,call-overload,import-untyped,no-any-return,no-untyped-call,type-var"
# pyright: basic, reportCallIssue=false
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

import dgrr.tape.nn  # noqa: F401  (its ops belong to the table)
from dgrr.runtime.step.state_digest import state_digest
from dgrr.tape import AnyTensor, BoundsError, Tape, set_threads
from dgrr.tape.numerics.engine import intrinsics, launch, threads
from dgrr.tape.numerics.engine.intrinsics import TRIPLE
from dgrr.tape.ops import OPS
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Make, Sample

pytestmark = pytest.mark.long

Array = npt.NDArray[Any]

X86 = TRIPLE.startswith("x86_64")

DEFAULT = 0x1F80 if X86 else 0
"""The control word of x86 (MXCSR) or ARM (FPCR) for IEEE arithmetic."""

CONTROL = 0xFFC0 if X86 else 0xFFFFFFFF
"""Its bits that are no record of past operations."""

FLUSH = 0x8040 if X86 else 1 << 24
"""Subnormal operands and results count as zero."""

UPWARD = 0x4000 if X86 else 1 << 22
"""Results are rounded towards +inf."""

WORDS = {"flush": DEFAULT | FLUSH, "upward": DEFAULT | UPWARD, "both": DEFAULT | FLUSH | UPWARD}

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

I32, I64, POINTER = ir.IntType(32), ir.IntType(64), ir.PointerType()


def _call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    kind = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@intrinsic
def _set_control(context: Any, word: Any) -> Any:
    def x86(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        slot = builder.alloca(I32)
        builder.store(builder.trunc(arguments[0], I32), slot)
        _call(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), [slot])
        return context.get_dummy_value()

    def arm(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _call(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), [arguments[0]])
        return context.get_dummy_value()

    return types.none(types.int64), x86 if X86 else arm


@intrinsic
def _get_control(context: Any) -> Any:
    def x86(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        slot = builder.alloca(I32)
        _call(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), [slot])
        return builder.zext(builder.load(slot, typ=I32), I64)

    def arm(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, "llvm.aarch64.get.fpcr", I64, [])

    return types.int64(), x86 if X86 else arm


@njit
def set_control(word: int) -> None:
    """Put the calling thread under a control word."""
    _set_control(word)


@njit
def get_control() -> int:
    """The control word of the calling thread."""
    return _get_control()


def control() -> int:
    """The bits of the calling thread's control word that change results."""
    return int(get_control()) & CONTROL


@contextmanager
def under(word: int) -> Generator[None]:
    """The calling thread under a control word, which must still be there in the end."""
    set_control(word)
    try:
        yield
        assert control() == word
    finally:
        set_control(DEFAULT)


Job = Callable[[], dict[str, Array]]
Every = tuple[dict[str, Job], dict[str, str]]


def job(op: Op, sample: Sample, dtype: np.dtype[Any]) -> Job:
    """A function that computes the op on a sample, and the contributions to its inputs."""
    bound, attrs = op.bind(sample.arrays, sample.attrs)
    inputs = [None if x is None else AnyTensor(np.asarray(x)) for x in bound]
    needs = [x is not None and x.dtype in FLOATS for x in inputs]
    y = op.compute(inputs, attrs)
    g = AnyTensor(np.asarray(Make(dtype, seed=1)(*y.shape)).astype(y.dtype))

    def compute() -> dict[str, Array]:
        y = op.compute(inputs, attrs)
        pulled = op.pull(g, inputs, y, attrs, needs) if y.dtype in FLOATS else []
        return {"y": y.numpy(), **{op.signature.inputs[i]: part.numpy() for i, part in pulled}}

    return compute


def jobs(change: Callable[[Sample], Sample] = lambda sample: sample) -> dict[str, Job]:
    """Every op on every sample in both float types."""
    with np.errstate(all="ignore"):
        return {
            f"{op.name}/{dtype}/{i}": job(op, change(sample), dtype)
            for op in OPS.values()
            for dtype in FLOATS
            for i, sample in enumerate(op.samples(Make(dtype)))
        }


def run(work: dict[str, Job]) -> dict[str, str]:
    """The digest of each job."""
    return {name: state_digest({}, compute()) for name, compute in work.items()}


def differences(left: dict[str, str], right: dict[str, str]) -> list[str]:
    assert left.keys() == right.keys()
    return [name for name in left if left[name] != right[name]]


@pytest.fixture(scope="module")
def every() -> Every:
    """Every op on its samples, and the digests that it gives without workers, under the default flags."""
    work = jobs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "PARALLEL_WORK", 1 << 62)
        return work, run(work)


# ------------------------------------------------------------------ floating-point flags


def test_the_flags_of_these_tests_work() -> None:
    least, one = np.array([1e-40, 1e-40], np.float32), np.array([1.0, 1.0])
    with np.errstate(all="ignore"):
        with under(WORDS["flush"]):
            flushed = least + least
        with under(WORDS["upward"]):
            rounded = one + 1e-20
    assert flushed.tolist() == [0.0, 0.0]
    assert rounded.tolist() == [1 + 2**-52] * 2
    assert ((least + least) > 0).all()
    assert (one + 1e-20).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_flags_of_the_calling_thread_do_not_change_any_op(every: Every, word: int) -> None:
    (work, expected), found = every, {}
    for name, compute in work.items():
        with under(word):
            result = compute()
        found[name] = state_digest({}, result)
    assert differences(expected, found) == []


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_flags_of_worker_threads_do_not_change_any_op(every: Every, three_threads: None, word: int) -> None:
    work, expected = every
    set_threads(3)  # the next call starts threads anew, and a thread begins with the flags of its parent
    with under(word):
        OPS["neg"](AnyTensor(np.ones(1)))
    assert threads.THREADS._pool is not None
    assert differences(expected, run(work)) == []


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "scale", "where", "matmul", "reduce_sum", "exp", "sqrt"])
def test_subnormals_are_kept(name: str, dtype: np.dtype[Any]) -> None:
    tiny, f = np.finfo(dtype).smallest_normal, dtype.type
    small = AnyTensor(np.array([tiny / f(4), tiny / f(8), tiny / f(2)]))
    two, mask = AnyTensor(np.full(3, 2, dtype)), AnyTensor(np.ones(3, np.bool_))
    largest = AnyTensor(np.full(3, np.log(tiny) - f(1)))
    calls: dict[str, tuple[Callable[..., Any], Any]] = {
        "add": (lambda: OPS["add"](small, small), small.numpy() * f(2)),
        "mul": (lambda: OPS["mul"](small, two), small.numpy() * f(2)),
        "div": (lambda: OPS["div"](small, two), small.numpy() / f(2)),
        "scale": (lambda: OPS["scale"](small, 0.5), small.numpy() / f(2)),
        "where": (lambda: OPS["where"](mask, small, two), small.numpy()),
        "matmul": (lambda: OPS["matmul"](AnyTensor(small.numpy()[None]), AnyTensor(two.numpy()[:, None])), None),
        "reduce_sum": (lambda: OPS["reduce_sum"](small), np.sum(small.numpy())),
        "exp": (lambda: OPS["exp"](largest), None),
        "sqrt": (lambda: OPS["sqrt"](small), np.sqrt(small.numpy())),
    }
    compute, expected = calls[name]
    plain = compute().numpy()
    with under(WORDS["flush"]):
        result = compute()
    assert result.numpy().tobytes() == plain.tobytes()
    assert (result.numpy() > 0).all()
    if expected is not None:
        assert result.numpy().tobytes() == np.asarray(expected, dtype).tobytes()


def test_numbers_beside_tensors_are_converted_under_the_default_flags() -> None:
    x = AnyTensor(np.zeros(2, np.float32))
    with under(WORDS["flush"]):
        kept = OPS["add"](x, 1e-40)
    with under(WORDS["upward"]):
        rounded = OPS["add"](x, 0.1)
    assert kept.numpy().tolist() == [float(np.float32(1e-40))] * 2
    assert rounded.numpy().tolist() == [float(np.float32(0.1))] * 2


def test_a_number_as_seed_is_converted_under_the_default_flags() -> None:
    tape = Tape()
    x = tape.leaf(np.zeros((), np.float32))
    y = x + x
    with under(WORDS["flush"]):
        grad = tape.backward_dense(y, seed=1e-40)[x]
    assert grad is not None
    assert grad.item() == float(np.float32(1e-40)) * 2


def test_processors_of_unknown_flags_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intrinsics, "TRIPLE", "i686-pc-linux-gnu")
    refusal = "^dgrr: no way known to set the floating-point environment of i686-pc-linux-gnu$"
    with pytest.raises(ImportError, match=refusal):
        intrinsics._for_target(None, None)


# ------------------------------------------------------------------ NaN


def with_nan(bits32: int, bits64: int) -> Callable[[Sample], Sample]:
    """A change of samples: every third element of every float array becomes the NaN of these bits."""

    def change(sample: Sample) -> Sample:
        return Sample(tuple(map(spoilt, sample.arrays)), sample.attrs)

    def spoilt(array: Array | None) -> Array | None:
        if array is None or array.dtype not in FLOATS:
            return array
        words = np.array(array).view(np.uint32 if array.dtype == np.float32 else np.uint64)
        words.reshape(-1)[::3] = bits32 if array.dtype == np.float32 else bits64
        return words.view(array.dtype)

    return change


def test_no_payload_or_sign_of_a_nan_reaches_a_result(every: Every) -> None:
    with np.errstate(all="ignore"):
        plain = run(jobs(with_nan(0x7FC00000, 0x7FF8000000000000)))
        negative = run(jobs(with_nan(0xFFC00000, 0xFFF8000000000000)))
        other = run(jobs(with_nan(0xFFD5A5A5, 0x7FFA5A5A5A5A5A5A)))
    assert differences(plain, negative) == []
    assert differences(plain, other) == []
    assert len(differences(plain, every[1])) > len(plain) / 2


@pytest.mark.parametrize(("dtype", "word", "canonical"), [
    (np.float32, 0xFFC00001, 0x7FC00000), (np.float32, 0x7FA00000, 0x7FC00000),
    (np.float64, 0xFFF8000000000000, 0x7FF8000000000000), (np.float64, 0x7FF0000000000001, 0x7FF8000000000000),
])  # fmt: skip
def test_digests_know_one_nan_of_each_type(dtype: Any, word: int, canonical: int) -> None:
    unsigned = np.uint32 if dtype == np.float32 else np.uint64
    given, one = (np.array([w], unsigned).view(dtype) for w in (word, canonical))
    assert state_digest({"x": given}, {}) == state_digest({"x": one}, {})
    assert state_digest({"x": np.array([np.inf], dtype)}, {}) != state_digest({"x": one}, {})


# ------------------------------------------------------------------ threads and processes


def test_worker_threads_do_not_change_any_op(every: Every, three_threads: None) -> None:
    work, expected = every
    assert differences(expected, run(work)) == []
    assert threads.THREADS._pool is not None


@pytest.mark.parametrize("limit", [0, 1 << 20], ids=["with workers", "without workers"])
def test_python_threads_that_compute_at_once_keep_their_bits(
    every: Every, three_threads: None, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(launch, "PARALLEL_WORK", limit)
    work, expected = every
    with ThreadPoolExecutor(4) as callers:
        at_once = list(callers.map(run, [work] * 4))
    assert [differences(expected, found) for found in at_once] == [[]] * 4


def test_the_first_wrong_index_is_reported_whatever_the_threads(three_threads: None) -> None:
    indices = np.zeros(1000, np.int64)
    indices[[400, 401, 999]] = 7
    x = AnyTensor(np.zeros((3, 2), np.float32))
    with pytest.raises(BoundsError, match="expected -3 to 2, got 7 at position 400"):
        OPS["take"](x, AnyTensor(indices))
