"""What the tests of layers share."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.tape import Context, Random, Tape, nn

Array = npt.NDArray[Any]
Run = Callable[..., Array]
RunWith = Callable[..., tuple[Array, dict[str, Array]]]


@pytest.fixture
def run() -> Run:
    """The value of a layer's output on a fresh tape, without a context."""

    def run(layer: nn.Layer, params: Mapping[str, Array], x: Array, **more: Any) -> Array:
        tape: Tape[Any] = Tape()
        placed = {name: tape.const(value) for name, value in more.items()}
        return layer(tape.params(params), tape.const(x), **placed).numpy()

    return run


@pytest.fixture
def run_with() -> RunWith:
    """The value of a layer's output in a context, and the state after it."""

    def run_with(
        layer: nn.Layer,
        params: Mapping[str, Array],
        x: Array,
        *,
        training: bool = True,
        seed: int = 0,
        step: int = 0,
        state: Mapping[str, Array] | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        tape: Tape[Any] = Tape()
        kept = {name: tape.const(value) for name, value in (state or {}).items()}
        ctx = Context(training, Random(tape.const(np.array(step)), seed=seed), kept)
        y = layer(tape.params(params), tape.const(x), ctx)
        return y.numpy(), {name: var.numpy() for name, var in ctx.state.items()}

    return run_with
