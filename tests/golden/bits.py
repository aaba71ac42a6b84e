"""Digests of every op, derivative, optimizer and draw, and of training runs: what the bit contract promises.

``python tests/golden/bits.py`` prints them as JSON, with the environment in which they were computed;
``--write`` puts them into ``bits.json``; ``--check`` only says whether that file is met; ``--parallel``
splits every kernel over all threads, however small its work; ``--share 0`` to ``--share 15`` compute parts that
need a sixteenth of the kernels of ops compiled.
"""

# numba's functions carry no types.
# mypy: disable-error-code="attr-defined,call-arg,type-var"
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false
import argparse
import ctypes
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from networks import NETWORKS, Network
from numba import njit

import dgrr.tape.nn  # noqa: F401  (its ops belong to the table)
from dgrr.runtime import CapturedStep, EagerStep, capture
from dgrr.runtime.data import digits
from dgrr.runtime.optim import (
    LAMB,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    Muon,
    NAdam,
    RAdam,
    RMSprop,
    Rule,
    clip_by_global_norm,
    clip_by_value,
)
from dgrr.runtime.step.state_digest import state_digest
from dgrr.tape import NUMERICS, AnyTensor, Tape, f32, ops
from dgrr.tape.numerics.engine import launch, threads
from dgrr.tape.numerics.engine.code_for import target
from dgrr.tape.numerics.engine.numba_compiler import compiling
from dgrr.tape.numerics.math.random import permutation, uniform
from dgrr.tape.numerics.simd.operations import fma
from dgrr.tape.ops import OPS
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Make, Sample

Array = npt.NDArray[Any]
Bits = Iterator[tuple[str, str]]

FILE = Path(__file__).with_name("bits.json")

DTYPES: tuple[np.dtype[Any], ...] = (np.dtype(np.float32), np.dtype(np.float64))

RULES: dict[str, Rule] = {
    "sgd": SGD(0.1),
    "sgd penalty": SGD(0.1, weight_decay=0.01),
    "sgd momentum": SGD(0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "sgd nesterov": SGD(0.1, momentum=0.9, nesterov=True),
    "adam": Adam(0.01),
    "adam penalty": Adam(0.01, betas=(0.4, 0.99), weight_decay=0.01),
    "adamw": AdamW(0.01),
}
"""The optimizers: every branch of every law that is a kernel."""

RULES_OF_OPS: dict[str, Rule] = {
    "sgd maximize": SGD(0.1, momentum=0.9, dampening=0.5, weight_decay=0.01, maximize=True),
    "adam amsgrad": Adam(0.01, amsgrad=True, weight_decay=0.01),
    "adamw amsgrad": AdamW(0.01, amsgrad=True, maximize=True),
    "rmsprop": RMSprop(),
    "rmsprop centered": RMSprop(momentum=0.9, centered=True, weight_decay=0.01, maximize=True),
    "adagrad": Adagrad(lr_decay=0.1, initial=0.5, weight_decay=0.01),
    "adadelta": Adadelta(weight_decay=0.01),
    "adamax": Adamax(weight_decay=0.01),
    "nadam": NAdam(weight_decay=0.01),
    "nadam decoupled": NAdam(weight_decay=0.01, decoupled=True),
    "radam": RAdam(betas=(0.9, 0.8), weight_decay=0.01),
    "lion": Lion(weight_decay=0.01),
    "lamb": LAMB(weight_decay=0.01),
    "adafactor": Adafactor(weight_decay=0.01),
    "muon": Muon(),
    "muon plain": Muon(nesterov=False, match_rms=True),
}
"""The optimizers that are made of ops, whose bits follow from theirs: they are computed where all is."""

OPTIMIZER_STEPS = 3
OPTIMIZED = {"bias": (37,), "weight": (3, 1500)}
"""The parameters that they train; the second has more elements than a block of a norm."""

WIDTHS = (64, 32, 10)
BATCH = 64
TRAINING_STEPS = 20
TRAINING_RATE = 0.01

SHARES = 16
"""In how many parts ops and functions can be computed, each by another environment."""

PATTERNS = 512
"""How many bit patterns, spread evenly over a float type, the elementary functions are digested on."""

ELEMENTARY = (
    "exp", "log", "tanh", "sigmoid", "sqrt", "log1p", "expm1", "erf", "softplus", "sin", "cos",
    "atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh",
)  # fmt: skip

EXTREMES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 5e-324, 1e-310, 3e38, 1e308)
"""Zeros, infinities, NaN, subnormals of both types, values near overflow."""


def digest(*arrays: Array) -> str:
    """16 hex digits of SHA-256 over dtypes, shapes and elements, NaN being one value."""
    return state_digest({}, {str(i): array for i, array in enumerate(arrays)})[:16]


def by_default_flags(make: Callable[..., Any]) -> Callable[..., Any]:
    """``make`` under IEEE-754's default flags, whatever its caller has: samples are not what digests are to test."""

    @wraps(make)
    def made(*args: Any, **named: Any) -> Any:
        libm = ctypes.CDLL("libm.so.6")
        caller = ctypes.create_string_buffer(64)
        libm.fegetenv(caller)
        libm.fesetenv(ctypes.c_void_p(-1))  # FE_DFL_ENV
        try:
            return make(*args, **named)
        finally:
            libm.fesetenv(caller)

    return made if sys.platform == "linux" else make


@by_default_flags
def samples_of(op: Op, dtype: np.dtype[Any]) -> list[Sample]:
    """The samples of an op."""
    return op.samples(Make(dtype))


@by_default_flags
def cotangent_of(y: AnyTensor) -> AnyTensor:
    """A cotangent of a result."""
    return AnyTensor(np.asarray(Make(y.dtype, seed=1)(*y.sizes)))


def op_bits(share: int | None = None) -> Bits:
    """Every op on each of its samples: the result, and the contribution to each input from a cotangent."""
    for number, op in enumerate(OPS.values()):
        for dtype in types_of(number, share):
            for key, sample in keyed(samples_of(op, dtype)):
                for what, array in results(op, sample).items():
                    yield f"op/{op.name}/{dtype}/{key}/{what}", digest(array)


def types_of(number: int, share: int | None) -> tuple[np.dtype[Any], ...]:
    """Both float types; in a share one of them for every eighth op, so that the shares together have all once."""
    kinds = enumerate(DTYPES, start=len(DTYPES) * number)
    return tuple([dtype for place, dtype in kinds if share is None or place % SHARES == share])


def keyed(samples: list[Sample]) -> Iterator[tuple[str, Sample]]:
    """Samples by their shapes and attributes, ``(5, 3) (3,) axis=-1``, numbered where these repeat."""
    seen = Counter[str]()
    for sample in samples:
        shapes = [str(None if a is None else np.shape(a)) for a in sample.arrays]
        key = " ".join([*shapes, *(f"{name}={value!r}" for name, value in sample.attrs.items())])
        seen[key] += 1
        yield f"{key} #{seen[key]}" if seen[key] > 1 else key, sample


def results(op: Op, sample: Sample) -> dict[str, Array]:
    """What one sample gives: the value under ``y``, then the contributions by the names of the inputs."""
    inputs, attrs = op.bind(sample.arrays, sample.attrs)
    values = [None if x is None else AnyTensor(np.asarray(x)) for x in inputs]
    y = op.compute(values, attrs)
    found = {"y": y.numpy()}
    if y.dtype in DTYPES:
        g = cotangent_of(y)
        needs = [x is not None and x.dtype in DTYPES for x in values]
        for position, contribution in op.pull(g, values, y, attrs, needs):
            found[op.signature.inputs[position]] = contribution.numpy()
    return found


def pattern_bits(share: int | None = None) -> Bits:
    """The elementary functions on floats of every sign and exponent, subnormals, infinities and NaN."""
    for number, name in enumerate(ELEMENTARY):
        for dtype in types_of(number, share):
            y = OPS[name].compute([AnyTensor(patterns(dtype))], {})
            yield f"patterns/{name}/{dtype}", digest(y.numpy())


@by_default_flags
def patterns(dtype: np.dtype[Any]) -> Array:
    """Extremes, floats at equal distances in the order of their bits, some in ±128 and some in [0, 2)."""
    bits, make = 8 * dtype.itemsize, Make(dtype)
    words = [i * (2**bits // PATTERNS) + i for i in range(PATTERNS)]
    spread = np.array(words, np.dtype(f"u{dtype.itemsize}")).view(dtype)
    with np.errstate(over="ignore"):
        extremes = np.array(EXTREMES).astype(dtype)
    return np.concatenate([extremes, spread, make(256) * dtype.type(64), make.unit(256) * dtype.type(2)])


@by_default_flags
def rows_of(dtype: np.dtype[Any]) -> list[Array]:
    """A value, four factors and a cotangent."""
    make = Make(dtype)
    return [make(50) for _ in range(6)]


def accumulation_bits() -> Bits:
    """The cotangent of a value with several children."""
    for dtype in DTYPES:
        tape = Tape()
        given, *factors, seed = rows_of(dtype)
        x = tape.leaf(given)
        products = [x * tape.const(factor) for factor in factors]
        total = (products[1] + products[0]) + (products[3] + products[2])
        grad = tape.backward_dense(total, seed=seed)[x]
        assert grad is not None
        yield f"accumulation/{dtype}", digest(grad.numpy())


def optimizer_bits() -> Bits:
    """Parameters and state after a few steps of each optimizer, and clipped gradients."""
    yield from rule_bits("optimizer", RULES)
    for dtype in DTYPES:
        clipped = clip_by_global_norm(drawn(dtype, seed=1), 10.0)
        measured = np.array([clipped.norm, clipped.scale])
        yield f"clip_by_global_norm/{dtype}", digest(*clipped.grads.values(), measured)
        yield f"clip_by_value/{dtype}", digest(*clip_by_value(drawn(dtype, seed=1), 0.7).values())


def rule_bits(kind: str, rules: dict[str, Rule]) -> Bits:
    """Parameters and state after a few steps of each rule; of Muon of the matrix alone."""
    for dtype, (name, rule) in product(DTYPES, rules.items()):
        every = [drawn(dtype, seed) for seed in range(1 + OPTIMIZER_STEPS)]
        params, *grads = [{"weight": a["weight"]} for a in every] if isinstance(rule, Muon) else every
        state = rule.init(params)
        for step, g in enumerate(grads, start=1):
            rule.step(params, g, state)
            yield f"{kind}/{name}/{dtype}/{step}", state_digest(params, state)[:16]


@by_default_flags
def drawn(dtype: np.dtype[Any], seed: int) -> dict[str, Array]:
    """Parameters, or gradients, for the optimizers."""
    make = Make(dtype, seed)
    return {name: make(*shape) for name, shape in OPTIMIZED.items()}


def random_bits() -> Bits:
    """Draws and shuffles."""
    for dtype in DTYPES:
        values: Array = uniform((1001,), dtype.type, seed=2**40 + 5, step=3, micro_batch=2, ordinal=7)
        yield f"random/uniform/{dtype}", digest(values)
    yield "random/permutation", digest(permutation(1001, seed=2**40 + 5, step=3))


def training_bits() -> Bits:
    """The loss, and parameters with optimizer state, after each step of training on the digits."""
    train, _ = digits()
    params, rule = initial(), Adam(TRAINING_RATE)
    state = rule.init(params)
    for step, (images, labels) in zip(range(TRAINING_STEPS), train.batches(BATCH, seed=0), strict=False):
        loss, grads = gradients(params, images, labels)
        rule.step(params, grads, state)
        yield f"training/{step + 1:02}/loss", digest(loss)
        yield f"training/{step + 1:02}/state", state_digest(params, state)[:16]


def captured_training_bits() -> Bits:
    """What `training_bits` gives, under the same names, from a captured step."""
    train, _ = digits()
    every = list(islice(train.batches(BATCH, seed=0), TRAINING_STEPS))
    captured = capture(loss_fn, initial(), Adam(TRAINING_RATE), every[0])
    for step, batch in enumerate(every):
        loss = captured(batch)
        yield f"training/{step + 1:02}/loss", digest(np.asarray(loss))
        yield f"training/{step + 1:02}/state", state_digest(captured.params, captured.state)[:16]


@by_default_flags
def initial() -> dict[str, Array]:
    """Weights in ±1/8 and biases of 0."""
    make, params = Make(np.float32), dict[str, Array]()
    for layer, (inputs, outputs) in enumerate(pairwise(WIDTHS), start=1):
        params[f"w{layer}"] = make(outputs, inputs) * np.float32(1 / 16)
        params[f"b{layer}"] = np.zeros(outputs, np.float32)
    return params


def gradients(params: dict[str, Array], images: Array, labels: Array) -> tuple[Array, dict[str, Array]]:
    """Loss and gradients of `loss_fn`."""
    tape = Tape(f32)
    p = tape.params(params)
    loss = loss_fn(p, (tape.const(images), tape.const(labels)))
    found = tape.backward_dense(loss)
    return loss.value.numpy(), {name: np.asarray(found[name]) for name in params}


def loss_fn(p: Any, batch: Any) -> Any:
    """``linear, tanh, linear, cross_entropy``."""
    images, labels = batch
    hidden = ops.tanh(ops.linear(images, p["w1"], p["b1"]))
    return ops.cross_entropy(ops.linear(hidden, p["w2"], p["b2"]), labels)


def network_bits(make: Callable[[Network], EagerStep | CapturedStep] = Network.eager) -> Bits:
    """The loss, and all that training changes, after each step of every network, eager or captured."""
    for name, network in NETWORKS.items():
        step = make(network)
        for number, batch in enumerate(network.batches(), start=1):
            loss = step(batch)
            yield f"networks/{name}/{number:02}/loss", digest(np.asarray(loss))
            yield f"networks/{name}/{number:02}/state", step.digest()[:16]


def all_bits(share: int | None = None) -> dict[str, str]:
    """Every digest by name; in a share a part of the ops and functions, and no network."""
    parts = [op_bits(share), pattern_bits(share), accumulation_bits(), optimizer_bits(), random_bits(), training_bits()]
    parts += [rule_bits("optimizer of ops", RULES_OF_OPS), network_bits()] if share is None else []
    return {"numerics": str(NUMERICS), **{name: value for part in parts for name, value in part}}


def captured_bits(share: int | None = None) -> dict[str, str]:
    """What captured steps give of all that, under the same names."""
    return dict(captured_training_bits()) | ({} if share is not None else dict(network_bits(Network.captured)))


def environment() -> dict[str, Any]:
    """What the digests must not depend on, as found, not as asked for."""
    fused = njit(lambda x: fma(x, x, x))
    with compiling():
        fused(1.0)
    numpy: Any = np.show_config(mode="dicts")
    return {
        "cpu": target()[1],
        "hardware fma": any("vfmadd" in text for text in fused.inspect_asm().values()),
        "numpy features": numpy["SIMD Extensions"].get("found", []),
        "threads": threads.THREADS.count,
        "worker threads": threads.THREADS._pool is not None,
    }


def main(arguments: list[str]) -> None:
    """Print the digests, write them, or compare them with the file."""
    parser = argparse.ArgumentParser(description="Digests of every op and of training runs, as JSON.")
    parser.add_argument("--write", action="store_true", help="write them to bits.json")
    parser.add_argument("--parallel", action="store_true", help="split every kernel over all threads")
    parser.add_argument("--check", action="store_true", help="compare them with bits.json instead of printing")
    parser.add_argument("--share", type=int, choices=range(SHARES), help="compute one of sixteen parts, see all_bits")
    options = parser.parse_args(arguments)
    if options.share is not None and options.write:
        parser.error("--share: the file is written as a whole")
    if options.parallel:
        launch.PARALLEL_WORK = 0
    bits = all_bits(options.share)
    if options.write:
        FILE.write_text(json.dumps(bits, indent=0, sort_keys=True) + "\n")
    if options.check:
        known = json.loads(FILE.read_text())
        names = bits.keys() if options.share is not None else known.keys() | bits.keys()
        other = sorted(name for name in names if known.get(name) != bits.get(name))
        sys.exit(f"bits.json is not met by {', '.join(other)}" if other else None)
    found = {"bits": bits, "captured": captured_bits(options.share), "environment": environment()}
    print(json.dumps(found, indent=0, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
