"""What a training step did and computed: what a trainer tells a recorder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from ..arrays import Array, Arrays

Order: TypeAlias = Literal["chain", "tree"]
"""How what micro-batches give is added: one after the other, or level by level in pairs."""

FROZEN = "frozen@1"
"""The rule of params that have no gradient and are never updated; their group has no state and comes last."""

VALIDATION = "validation_"
"""Begins the names of what is measured on other data than the steps are trained on, such as ``validation_loss``."""

CODE = "code"
"""The op of a value that no layer made: ``attrs`` say between which layers the code lies, ``place`` where."""

CONSUMED = "optimizer.step"
"""The name of the code between the backward pass and the optimizer, which its node makes of every gradient."""

LOSS_SCALE = "loss_scale"
"""The metric that says by what a gradient scaler has multiplied the loss."""

COMPILED = "torch.OptimizedModule"
"""The op of a model of PyTorch's that is compiled, whose layers cannot be seen."""

EMA = "ema@1"
"""The rule of running averages of params; their group has state alone, and stands behind those of the params."""


def of_group(name: str, number: int) -> str:
    """What is called ``name`` in a group of params of this number: a hyperparameter, or state of no single param.

    >>> of_group("lr", 0), of_group("lr", 1)
    ('lr', 'lr#1')
    """
    return f"{name}#{number}" if number else name


@dataclass(frozen=True, slots=True)
class TapeNode:
    """One value on the tape of a step, and what made it.

    Args:
        op: name of the op; "leaf" for what no op made.
        dtype: numpy's name of the dtype.
        shape: its sizes.
        parents: positions of its inputs in the list of nodes; all of them stand before it.
        attrs: the op's attributes as text, such as ``axis=0, keepdims=False``.
        name: of a parameter, or what the user called the node; else empty.
        scope: path of the layer that made it, such as ``blocks.0.attention``; else empty.
        place: the user's line, such as ``train.py:12: loss = model(p, x)``; else empty.
    """

    op: str
    dtype: str
    shape: tuple[int, ...]
    parents: tuple[int, ...] = ()
    attrs: str = ""
    name: str = ""
    scope: str = ""
    place: str = ""


@dataclass(slots=True, eq=False)
class StepTape:
    """Every value that a step computed up to its loss, and its gradient where one arrived.

    In the order of execution, micro-batch after micro-batch; a leaf stands before the first op that takes it, and
    leaves that no op takes are left out.
    """

    nodes: tuple[TapeNode, ...]
    values: Sequence[Array]
    grads: Sequence[Array | None]


@dataclass(slots=True, eq=False)
class DigestedTape:
    """The tape of a step whose values are not kept: of each the digest that its recorder made of it."""

    nodes: tuple[TapeNode, ...]
    values: Sequence[bytes]
    grads: Sequence[bytes | None]

    @property
    def is_compiled(self) -> bool:
        """Whether the layers of a model of PyTorch's could not be seen."""
        return is_compiled(self.nodes)


def is_compiled(nodes: Sequence[TapeNode]) -> bool:
    """Whether the layers of a step cannot be seen: the model was compiled, as a wrapper or in its place."""
    return not nodes or any(node.op == COMPILED for node in nodes)


@dataclass(slots=True, kw_only=True, eq=False)
class CompletedStep:
    """One training step, after its update.

    Args:
        step: 0, 1, 2, …
        loss: scalar, float32 or float64.
        hyper: the hyperparameters this step used, by name; those of further groups of params as `of_group` calls them.
        grads: gradients as the optimizer consumed them, the mean over the micro-batches; a param that is absent was
            not updated.
        params: every param after the update.
        state: every optimizer state tensor after the update.
        model_state: what the model keeps besides its params, after the step, under the names of the beginning.
        batch: the arrays the loss was computed from: a mapping, a sequence or one array.
        clip: (threshold, scale) if the gradients were clipped by norm.
        micro_batches: how many micro-batches the gradients were accumulated over.
        order: how their gradients were added: one after the other, or in pairs, level by level.
        metrics: metrics that the loss function returned, by name: the means over the micro-batches.
        tape: every value of the step and its gradient, where the recorder wants them.
    """

    step: int
    loss: Array
    hyper: Mapping[str, float]
    grads: Arrays
    params: Arrays
    state: Arrays
    model_state: Arrays = field(default_factory=dict[str, Array])
    batch: Any
    clip: tuple[float, float] | None = None
    micro_batches: int = 1
    order: Order = "chain"
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    tape: StepTape | DigestedTape | None = None


class StepNumbers(NamedTuple):
    """Where each of several steps leaves single numbers, as arrays of float64 without axes."""

    scale: Array | None
    """Of clipping by norm; None where that is not done."""
    metrics: Mapping[str, Array]
    """The means over the micro-batches, by name; a NaN in its canonical form."""
