"""Sequences continued token by token: one captured function, whose arrays keep what came before."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.arrays import Array, Arrays
from ..tape import AnyVar, Context, DomainError, ShapeError, nn, ops
from ..tape.nn.context import PlaceInSequence, Random
from ..tape.numerics.sizes import Sizes
from ..tape.record.kinds.values import NOT_NEGATIVE
from .captured.captured_function import capture_function


class Generator:
    """Continues sequences of tokens by a causal model, one token after the other.

    Attention caches the keys and values of earlier tokens, in arrays of ``length`` positions, so a token costs one
    position of the model, not all. Its logits have the bits of computing the whole sequence at once. There is one
    captured function for each batch size, whatever the lengths. Each call reads the current parameters.

    The model takes tokens (batch, n) and gives logits (batch, n, classes), built from layers that treat each position
    alike, learned, sinusoidal or rotary positions, and causal self-attention.

    Args:
        model: the layers.
        params: its parameters, such as ``trainer.params``.
        length: maximum number of tokens in a sequence, including its beginning.
        temperature: 0 takes the likeliest token, the first of equal ones; otherwise tokens are drawn from
            ``softmax(logits / temperature)``.
        seed: of the draws, which have the same bits on every machine.

    Raises:
        DomainError: a length or a temperature out of range; an unsuitable model; when called, a count of tokens beyond
            ``length``.
        ShapeError: when called, a beginning that is no matrix of at least one token each.

    >>> import numpy as np
    >>> from dgrr.runtime import Generator
    >>> from dgrr.tape import nn
    >>> model = nn.Sequential(nn.Embedding(5, 8), nn.TransformerBlock(8, 2, 16, causal=True), nn.Linear(8, 5))
    >>> generate = Generator(model, model.init(seed=0), length=16)
    >>> generate([[1, 2], [3, 4]], 3).shape
    (2, 5)
    """

    def __init__(
        self, model: nn.Layer, params: Arrays, length: int, *, temperature: float = 0.0, seed: int = 0
    ) -> None:
        if length < 1:
            raise DomainError(f"Generator: argument 'length': expected at least 1, got {length!r}")
        if not NOT_NEGATIVE.fits(temperature):
            expected = f"expected {NOT_NEGATIVE.expected}"
            raise DomainError(f"Generator: argument 'temperature': {expected}, got {temperature!r}")
        self._model, self._params, self._length = model, params, int(length)
        self._temperature, self._seed = float(temperature), seed
        self._next = capture_function(self._step)

    def __call__(self, start: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
        """The tokens of ``start``, (batch, n), and ``count`` more of each: (batch, n + count)."""
        given = np.asarray(start)
        if given.ndim != 2 or not given.shape[1] or given.dtype.kind not in "iu":
            raise ShapeError(
                f"Generator: argument 'start': expected whole numbers of shape (batch, n) with n of at least 1, got "
                f"{given.dtype} of shape {given.shape}"
            )
        batch, n = given.shape
        if not 0 <= count <= self._length - n:
            raise DomainError(
                f"Generator: argument 'count': expected 0 to {self._length - n}, as the length is {self._length}, got "
                f"{count!r}"
            )
        tokens = np.concatenate([given, np.zeros((batch, count))], axis=1).astype(np.int64)
        cache = self._empty(batch)
        for place in range(n + count - 1 if count else 0):
            following, cache = self._next(tokens[:, place : place + 1], np.array(place), cache)
            if place + 1 >= n:
                tokens[:, place + 1] = following
        return tokens

    def _empty(self, batch: int) -> dict[str, Array]:
        dtype = next((np.asarray(a).dtype for a in self._params.values()), np.dtype(np.float32))
        return {name: np.zeros(shape, dtype) for name, shape in _caches(self._model, "", (batch,), self._length)}

    def _step(self, token: AnyVar, position: AnyVar, cache: Mapping[str, AnyVar]) -> tuple[AnyVar, dict[str, AnyVar]]:
        """The token behind one, and what is kept then."""
        tape, random = token.tape, Random(position, self._seed)
        params = {name: tape.const(a) for name, a in self._params.items()}
        ctx = Context(random=random, state=cache, place=PlaceInSequence(position, self._length))
        logits: Any = self._model(params, token, ctx)[:, 0]
        if self._temperature:
            drawn = random.uniform(tuple(logits.shape), logits.dtype)
            logits = logits * (1 / self._temperature) - ops.log(-ops.log(drawn))
        return ops.argmax(logits, -1), {name: ctx.state[name] for name in cache}


def _caches(layer: nn.Layer, prefix: str, batch: Sizes, length: int) -> Iterator[tuple[str, Sizes]]:
    """The names and shapes of what a model keeps."""
    own: Any = getattr(layer, "own_cache", None)
    if own is not None:
        yield from ((prefix + name, shape) for name, shape in own(batch, length).items())
    for name, part in layer.children().items():
        yield from _caches(part, f"{prefix}{name}.", batch, length)
