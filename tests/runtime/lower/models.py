"""Random models: a few ops over a pool of matrices, with shared values, and the eager step to compare with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from dgrr.runtime import SGD, Adam, AdamW, CapturedStep, EagerStep
from dgrr.runtime.optim import Cosine
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DgrrError, ops

Arrays = dict[str, npt.NDArray[Any]]
Pool = list[Any]
Move = Callable[[Any, Pool, int, int], Any]


def _element(p: Any, pool: Pool, i: int, j: int) -> Any:
    """One element of a value, repeated: its reader needs what lies far behind."""
    x = pool[i]
    return pool[j] * x[-1, j % x.shape[1]].broadcast_to(tuple(x.shape))


def _columns(joined: Any, first: int, like: Any) -> Any:
    """As many columns of a wider matrix as another has."""
    start = first % (joined.shape[1] - like.shape[1] + 1)
    return joined[:, start : start + like.shape[1]]


MOVES: dict[str, Move] = {
    "add": lambda p, pool, i, j: pool[i] + pool[j],
    "sub": lambda p, pool, i, j: pool[i] - pool[j],
    "mul": lambda p, pool, i, j: pool[i] * pool[j],
    "tanh": lambda p, pool, i, j: ops.tanh(pool[i]),
    "relu": lambda p, pool, i, j: ops.relu(pool[i]),
    "sigmoid": lambda p, pool, i, j: ops.sigmoid(pool[i]),
    "unit": lambda p, pool, i, j: pool[i] * 1.0,
    "scale": lambda p, pool, i, j: ops.scale(pool[i], 0.5 + j),
    "where": lambda p, pool, i, j: ops.where(pool[i] > pool[j], pool[i], pool[j] * 0.5),
    "constant": lambda p, pool, i, j: pool[i] + np.linspace(-1, 1, pool[i].shape[1], dtype=pool[i].dtype),
    "bias": lambda p, pool, i, j: pool[i] + p["b"],
    "matmul": lambda p, pool, i, j: pool[i] @ p["w"],
    "matmul transposed": lambda p, pool, i, j: pool[i] @ p["w"].T,
    "linear": lambda p, pool, i, j: ops.linear(pool[i], p["w"], p["b"]),
    "linear relu": lambda p, pool, i, j: ops.relu(pool[i] @ p["w"] + p["b"]),
    "gram": lambda p, pool, i, j: (pool[i] @ pool[j].T) @ pool[j],
    "row sums": lambda p, pool, i, j: pool[i] * pool[j].sum(1, keepdims=True),
    "column means": lambda p, pool, i, j: pool[i] + pool[j].mean(0),
    "element": _element,
    "row": lambda p, pool, i, j: pool[i] + pool[j][j % pool[j].shape[0]],
    "reversed": lambda p, pool, i, j: pool[i][::-1],
    "reversed columns": lambda p, pool, i, j: pool[i][:, ::-1],
    "halves": lambda p, pool, i, j: pool[i] + (pool[j][1:] * pool[j][:-1]).sum(0),
    "unit slice": lambda p, pool, i, j: pool[i] + (pool[j][1:] * 1.0)[:1],
    "reshaped": lambda p, pool, i, j: ops.tanh(pool[i].reshape(-1)).reshape(tuple(pool[i].shape)),
    "mixed up": lambda p, pool, i, j: pool[i].reshape(tuple(reversed(pool[i].shape))).T,
    "joined": lambda p, pool, i, j: _columns(ops.concat([pool[i], pool[j]], 1), j, pool[i]),
    "joined twice": lambda p, pool, i, j: _columns(
        ops.concat([ops.concat([pool[i], pool[j] + 1.0], 1), pool[i]], 1), i + j, pool[i]
    ),
    "softmax": lambda p, pool, i, j: pool[i].softmax(),
    "dot": lambda p, pool, i, j: pool[i] * (pool[i] * pool[j]).sum(),
}  # fmt: skip

LOSSES: dict[str, Callable[[Any, Any, Pool], Any]] = {
    "mean": lambda p, batch, pool: pool[-1].mean(),
    "all": lambda p, batch, pool: sum((x.mean() for x in pool[1:]), start=pool[0].mean()),
    "square": lambda p, batch, pool: ops.mse_loss(pool[-1], batch["t"]),
    "self": lambda p, batch, pool: ops.mse_loss(pool[-1], pool[0]),
    "cross-entropy": lambda p, batch, pool: ops.cross_entropy(pool[-1], batch["labels"]),
    "both": lambda p, batch, pool: ops.cross_entropy(pool[-1], batch["labels"]) + ops.mse_loss(pool[-1], batch["t"]),
    "weighted": lambda p, batch, pool: ops.cross_entropy(pool[-1], batch["labels"]) * p["s"],
}
RULES = [
    SGD(0.1),
    SGD(0.1, momentum=0.9, nesterov=True),
    Adam(0.05),
    AdamW(0.05, weight_decay=0.1),
    Adam(Cosine(0.1, steps=3)),
]
SHAPES = ((2, 3), (5, 4), (30, 68), (40, 64))
"""Two below the block of a chain, two about it: 2,040 and 2,560 elements."""


@dataclass(frozen=True)
class Model:
    """A loss by the moves that lead to it, the shape and dtype of its matrices, and the recipe."""

    shape: tuple[int, int]
    dtype: str
    moves: Sequence[tuple[str, int, int]]
    last: str
    recipe: Recipe

    def loss(self, p: Any, batch: Any) -> Any:
        """The loss: every move appends to a pool that begins with the input and a parameter."""
        pool = [batch["x"], p["a"]]
        for move, i, j in self.moves:
            pool.append(MOVES[move](p, pool, i % len(pool), j % len(pool)))
        return LOSSES[self.last](p, batch, pool) + p["s"] * 0.5

    @property
    def params(self) -> Arrays:
        """Parameters, among them one that no loss uses."""
        rows, n = self.shape
        shapes = {"a": (rows, n), "unused": (3,), "b": (n,), "w": (n, n), "s": (), "unused too": (2, 2)}
        return {name: self._normal(shape, k) for k, (name, shape) in enumerate(shapes.items())}

    def batch(self, number: int) -> Arrays:
        """A batch, with an input that no loss uses."""
        labels = np.random.default_rng(number).integers(0, self.shape[1], self.shape[0])
        x, t, unused = (self._normal(self.shape, 100 * number + k) for k in range(3))
        return {"x": x, "t": t, "labels": labels, "unused": unused}

    def _normal(self, shape: tuple[int, ...], seed: int) -> npt.NDArray[Any]:
        return np.asarray(np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(self.dtype)

    def eager(self) -> EagerStep:
        """The step that runs op by op."""
        return EagerStep(self.loss, self.params, self.recipe)

    def captured(self, off: Sequence[str] = ()) -> CapturedStep:
        """The compiled step without some passes."""
        return CapturedStep(self.loss, self.params, self.recipe, without_passes=off)


def history(step: CapturedStep | EagerStep, batches: Sequence[Any]) -> list[Any]:
    """All that can be seen of training on batches: losses, consumed gradients, states; or errors and their texts."""
    seen: list[Any] = []
    for batch in batches:
        try:
            seen.append((step(batch).tobytes(), {name: g.tobytes() for name, g in step.consumed.items()}))
        except DgrrError as error:
            seen.append((type(error), str(error)))
        seen.append(step.digest())
    return seen


MODELS = st.builds(
    Model,
    shape=st.sampled_from(SHAPES),
    dtype=st.sampled_from(["float32", "float64"]),
    moves=st.lists(
        st.tuples(st.sampled_from(list(MOVES)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7
    ),
    last=st.sampled_from(list(LOSSES)),
    recipe=st.builds(
        Recipe,
        st.sampled_from(RULES),
        st.just(1),
        clip_norm=st.none() | st.just(0.5),
        clip_value=st.none() | st.just(0.01),
    ),
)
