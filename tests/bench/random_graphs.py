"""Random training steps, captured and verified: ``python tests/bench/random_graphs.py [--graphs N] [--first SEED]``.

Each graph is three to twelve calls drawn from the op records, on parameters, batches, constants and results before.
Its captured step must give the bits of the eager step, and `verify` must find nothing wrong with it. What is found
is printed with the seed that makes the graph again; exit code 1 if there was anything.
"""

import argparse
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep
from dgrr.runtime.optim import Cosine, Rule, ops_rule
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import AnyTensor, AnyVar, DgrrError, ops
from dgrr.tape.record.composed import COMPOSED
from dgrr.tape.record.op import OPS
from dgrr.tape.record.samples import Make, Sample

Array = npt.NDArray[Any]
Fault = Callable[["Graph"], Iterator[str]]

SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (4,), (2, 3), (3, 4), (4, 3), (1, 3), (2, 3, 4), (0, 3))


@ops_rule("heavy_ball@1")
def HeavyBall(p: Any, g: Any, velocity: Any, *, lr: Any, momentum: Any = 0.5) -> Any:  # noqa: N802
    """A rule of ops."""
    velocity = momentum * velocity + g
    return p - lr * velocity, velocity


RULES: tuple[Rule, ...] = (SGD(2.0**-7), SGD(2.0**-7, momentum=0.5), Adam(1e-2), HeavyBall(Cosine(2.0**-7, steps=9)))
DTYPES = (np.float32, np.float64)
LARGEST, MOST_ELEMENTS, TRIES = 1e3, 4096, 12
REPLAYS = 3

PUBLIC = tuple(name for name, op in OPS.items() if not op.private or name in COMPOSED)
"""Every op that users call, also as the plain form of a function."""

CHEAP = "add mul relu where matmul reduce_sum reduce_mean reshape permute swapaxes broadcast_to append narrow pad"


class Choice(NamedTuple):
    """What graphs are drawn from."""

    ops: tuple[str, ...]
    ends: tuple[str, ...]
    """The reductions of which a loss is the sum."""
    rules: tuple[Rule, ...]
    clip_norms: tuple[float | None, ...]


ALL = Choice(PUBLIC, ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"), RULES, (None, None, 1.0))
FEW_KERNELS = Choice(tuple(CHEAP.split()), ("reduce_sum", "reduce_mean"), (RULES[0], RULES[-1]), (None,))
"""Ops of every kind, and rules, whose kernels compile in seconds."""


@dataclass(frozen=True)
class Call:
    """An op on values by their places: parameters, batch, constants, then results."""

    op: str
    inputs: tuple[int | None, ...]
    attrs: dict[str, Any]

    def __call__(self, values: Sequence[Any]) -> Any:
        return OPS[self.op](*[None if i is None else values[i] for i in self.inputs], **self.attrs)


@dataclass
class Graph:
    """A loss function of named parameters and a batch, with the values to begin with."""

    dtype: npt.DTypeLike
    rule: Rule = RULES[0]
    clip_norm: float | None = None
    accumulate: int = 1
    given: list[tuple[str, Array]] = field(default_factory=list[tuple[str, Array]])
    """What is no result: its kind - param, batch or const - and its array."""
    calls: list[Call] = field(default_factory=list[Call])
    ends: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """The reductions whose sum is the loss."""

    def arrays(self, kind: str) -> dict[str, Array]:
        """The arrays of one kind by name."""
        return {f"{kind}{i}": array for i, (k, array) in enumerate(self.given) if k == kind}

    @property
    def batch(self) -> Any:
        """The batch of a step: as many micro-batches as it accumulates. Nested, it is fed without code of its own."""
        one = {"all": self.arrays("batch")}
        return one if self.accumulate == 1 else (one,) * self.accumulate

    def loss(self, p: Any, batch: Any) -> AnyVar:
        """The calls in order, and the sum of what they end in."""
        held = {"param": p, "batch": batch["all"], "const": self.arrays("const")}
        values: list[Any] = [held[kind][f"{kind}{i}"] for i, (kind, _) in enumerate(self.given)]
        for call in self.calls:
            values.append(call(values))
        total: Any = None
        for name, i in self.ends:
            term = ops.cast(OPS[name](values[i]), self.dtype)
            total = term if total is None else total + term
        return total  # type: ignore[no-any-return]

    def __str__(self) -> str:
        lines = [f"%{i}: {kind} {array.dtype}{list(array.shape)}" for i, (kind, array) in enumerate(self.given)]
        lines += [f"%{len(self.given) + i}: {c.op}{c.inputs} {c.attrs}" for i, c in enumerate(self.calls)]
        return "\n".join([*lines, f"loss: {self.ends}", f"{self.rule}, {self.clip_norm=}, {self.accumulate=}"])


class Maker:
    """Draws a graph; everything follows from the seed."""

    def __init__(self, seed: int, size: int, dtype: npt.DTypeLike, choice: Choice) -> None:
        self.rng, self.choice, self.size = np.random.default_rng(seed), choice, size
        self.make = Make(dtype, seed=int(self.rng.integers(1 << 31)))
        self.graph = Graph(dtype)

    def draw(self) -> Graph:
        """The whole graph."""
        graph, rng = self.graph, self.rng
        graph.rule, graph.clip_norm = self.one(self.choice.rules), self.one(self.choice.clip_norms)
        graph.accumulate = self.one((1, 1, 1, 2))
        for kind in ("param",) * int(rng.integers(1, 4)) + ("batch",) * int(rng.integers(1, 3)) + ("const",):
            graph.given.append((kind, self.make(*self.one(SHAPES))))
        drafts = [self._sampled() for _ in range(self.size)]  # what samples bring stands before every result
        values = [AnyTensor(array) for _, array in graph.given]
        for name, sample, own in drafts:
            call, result = self._call(name, sample, own, values)
            graph.calls.append(call)
            values.append(result)
        graph.ends = self._ends(values)
        return graph

    def one(self, choices: Sequence[Any]) -> Any:
        """One of several."""
        return choices[int(self.rng.integers(len(choices)))]

    def _sampled(self) -> tuple[str, Sample, tuple[int | None, ...]]:
        """An op, one of its samples that computes something usable, and the places of that sample's arrays."""
        while True:
            name = self.one(self.choice.ops)
            sample = self.one(OPS[name].samples(self.make))
            arrays = [None if a is None else np.asarray(a) for a in sample.arrays]
            try:
                result = OPS[name](*[None if a is None else AnyTensor(a) for a in arrays], **sample.attrs)
            except DgrrError:
                continue
            if usable(result.array) and all(a is None or usable(a) for a in arrays):
                return name, sample, tuple([None if a is None else self._given(a) for a in arrays])

    def _given(self, array: Array) -> int:
        kinds = ("param", "param", "batch", "const") if array.dtype.kind == "f" else ("batch",)
        self.graph.given.append((self.one(kinds), array))
        return len(self.graph.given) - 1

    def _call(
        self, name: str, sample: Sample, own: tuple[int | None, ...], values: Sequence[AnyTensor]
    ) -> tuple[Call, AnyTensor]:
        """The op on values that are there, as far as they fit; else on the arrays of its sample."""
        for _ in range(TRIES):
            inputs = tuple([None if i is None else self._other(i, values) for i in own])
            call = Call(name, inputs, dict(sample.attrs))
            try:
                result = call(values)
            except (DgrrError, TypeError):
                continue
            if usable(result.array):
                return call, result
        call = Call(name, own, dict(sample.attrs))
        return call, call(values)

    def _other(self, i: int, values: Sequence[AnyTensor]) -> int:
        """A value of the same element type, rather a late one, of the same shape if there is one."""
        dtype = values[i].array.dtype
        like = [k for k, v in enumerate(values) if v.array.dtype == dtype and (dtype.kind == "f" or counts(v.array))]
        same = [k for k in like if values[k].array.shape == values[i].array.shape]
        places = self.one((like, same, like[-3:], same[-3:]))
        return int(self.one(places or [i]))

    def _ends(self, values: Sequence[AnyTensor]) -> list[tuple[str, int]]:
        read = {i for call in self.graph.calls for i in call.inputs}
        results = range(len(self.graph.given), len(values))
        floats = [i for i in results if values[i].array.dtype.kind == "f" and values[i].array.size]
        ends = [i for i in floats if i not in read]
        if ends and self.rng.random() < 0.3:
            ends = ends[-1:]  # the others are dead code
        params = [i for i, (kind, a) in enumerate(self.graph.given) if kind == "param" and a.dtype.kind == "f"]
        if not ends or self.rng.random() < 0.3:
            ends.append(self.one(params))
        return [(self._reduction(values[i].array), i) for i in ends]

    def _reduction(self, array: Array) -> str:
        return str(self.one(self.choice.ends if array.size else ("reduce_sum",)))


def counts(array: Array) -> bool:
    """Whether integers may stand for another op's counts and indices."""
    return not bool((array < 0).any())


def usable(array: Array) -> bool:
    """Whether an array is small, and its elements are finite and not large."""
    return array.size <= MOST_ELEMENTS and bool((np.abs(array.astype(np.float64)) <= LARGEST).all())


def random_graph(seed: int, size: int, dtype: npt.DTypeLike, choice: Choice = ALL) -> Graph:
    """The graph of a seed with ``size`` calls."""
    with np.errstate(all="ignore"):
        return Maker(seed, size, dtype, choice).draw()


def numbered(seed: int, choice: Choice = ALL) -> Graph:
    """The graph that this program draws for a number."""
    size = int(np.random.default_rng((1, seed)).integers(3, 13))
    return random_graph(seed, size, DTYPES[seed % 2], choice)


# ------------------------------------------------------------------ what must hold


def faults(graph: Graph, without_passes: Collection[str] = ()) -> list[str]:
    """What is wrong with the captured step of a graph: nothing, if all is well."""
    recipe = Recipe(graph.rule, graph.accumulate, graph.clip_norm)
    eager = EagerStep(graph.loss, graph.arrays("param"), recipe)
    step = CapturedStep(graph.loss, graph.arrays("param"), recipe, without_passes=without_passes)
    for k in range(REPLAYS):
        expected, got = outcome(eager, graph.batch), outcome(step, graph.batch)
        if got != expected:
            return [f"step {k}: expected {expected}, got {got}"]
        if step.digest() != eager.digest():
            return [f"step {k}: another state"]
        if isinstance(got[0], str):
            return []  # both refuse, with the same words
    report = step.verify(REPLAYS)
    ended = any("already leaves the finite numbers" in check.detail for check in report.failures)
    return [] if ended else list(map(str, report.failures))


def outcome(step: Any, batch: Any) -> tuple[str | bytes, str]:
    """The bits of the loss and its type, or the error and its words, without the numbers that nodes have."""
    try:
        loss = step(batch)
        return loss.tobytes(), str(loss.dtype)
    except DgrrError as error:
        return type(error).__name__, re.sub(r"node \d+", "node", str(error))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--few-kernels", action="store_true", help="only ops whose kernels compile in seconds")
    args = parser.parse_args()
    wrong = 0
    for seed in range(args.first, args.first + args.graphs):
        graph = numbered(seed, FEW_KERNELS if args.few_kernels else ALL)
        found = faults(graph)
        if found:
            wrong += 1
            print(f"--- seed {seed}\n{graph}\n", *found, sep="\n", flush=True)
    print(f"{args.graphs} graphs from seed {args.first}: {wrong} with faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
