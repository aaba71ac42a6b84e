"""The tensors of a run as a recorder meets them: held against the schema, made canonical, digested."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array, Arrays
from ....base.completed_step import RuleGroup, of_group
from ..errors import NonFiniteError
from ..format.constants import TensorRole
from ..format.digest import NUMPY_DTYPES, Algorithm, TensorDigest, canonical_nan, dtype_name, surely_finite
from ..format.limits import Limits
from ..format.schema import CLIPPING, Group, Schema, TensorSpec

CORRECTIONS = "corrections"
"""The optimizer state that holds the bias corrections of a step."""

_LOSS_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tensors of a state in the order of the schema, and the digest of each."""

    arrays: list[Array]
    digests: list[bytes]

    def __add__(self, other: "Snapshot") -> "Snapshot":
        """These tensors, then those of another."""
        return Snapshot(self.arrays + other.arrays, self.digests + other.digests)


class RecordedTensor(NamedTuple):
    """One tensor of the schema, ready to be checked and digested."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    digest: TensorDigest

    def take(self, arrays: Arrays, what: str) -> Array:
        """The array of this tensor in C order; `what` names it in the error."""
        array = arrays[self.name]
        if array.dtype != self.dtype or array.shape != self.shape:
            raise ValueError(
                f"recorder: {what} '{self.name}': expected {self.dtype} {self.shape} as at the beginning "
                f"of the trace, got {array.dtype} {array.shape}; a change of dtype or shape needs a new trace"
            )
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)


class RecordedTensors:
    """All params, all optimizer state and all buffers, which hold the model's state."""

    def __init__(self, schema: Schema, algorithm: Algorithm) -> None:
        tensors = [
            RecordedTensor(t.name, NUMPY_DTYPES[t.dtype], t.shape, TensorDigest(algorithm, t.dtype, t.shape))
            for t in schema.tensors
        ]
        states = len(tensors) - schema.buffers
        self._params, self._state = tensors[: schema.params], tensors[schema.params : states]
        self._buffers = tensors[states:]
        self._every_param = tuple(range(schema.params))

    def state(self, params: Arrays, state: Arrays) -> Snapshot:
        """Every param and optimizer state, in canonical form.

        Raises:
            ValueError: an array has another dtype or shape than the schema says.
        """
        return _taken(self._params, params, "param") + _taken(self._state, state, "optimizer state")

    def buffers(self, model_state: Arrays) -> Snapshot:
        """Every array of the model's state, likewise."""
        return _taken(self._buffers, model_state, "model state")

    def gradients(self, step: int, grads: Arrays) -> tuple[tuple[int, ...], Snapshot, NonFiniteError | None]:
        """The positions of the params that have a gradient, the gradients, and the first element that is not finite.

        Raises:
            ValueError: a gradient of no param, or of another dtype or shape than its param.
        """
        present = self._every_param
        if len(grads) != len(present):
            unknown = grads.keys() - {tensor.name for tensor in self._params}
            if unknown:
                raise ValueError(f"recorder.step: gradients of unknown params: {', '.join(sorted(unknown))}")
            present = tuple(i for i in present if self._params[i].name in grads)
        arrays = [self._params[i].take(grads, "gradient of") for i in present]
        broken = self._nonfinite(step, present, arrays)
        if broken is not None:
            arrays = [canonical_nan(grad) for grad in arrays]
        digests = [self._params[i].digest.of_bytes(g.data) for i, g in zip(present, arrays, strict=True)]
        return present, Snapshot(arrays, digests), broken

    def _nonfinite(self, step: int, present: Sequence[int], arrays: Sequence[Array]) -> NonFiniteError | None:
        for i, grad in zip(present, arrays, strict=True):
            if not surely_finite(grad) and not np.isfinite(grad).all():
                element = int(np.argmin(np.isfinite(grad)))
                return NonFiniteError(step, self._params[i].name, element, float(grad.flat[element]))
        return None


def _taken(tensors: Sequence[RecordedTensor], arrays: Arrays, what: str) -> Snapshot:
    taken = [canonical_nan(tensor.take(arrays, what)) for tensor in tensors]
    return Snapshot(taken, [tensor.digest.of_bytes(a.data) for tensor, a in zip(tensors, taken, strict=True)])


def scalar_loss(step: int, loss: Array) -> tuple[Array, NonFiniteError | None]:
    """The loss as an array without axes, in canonical form, and whether it is not finite.

    Raises:
        ValueError: it is no float32 or float64 scalar.
    """
    loss = np.asarray(loss)
    if loss.shape != () or loss.dtype not in _LOSS_DTYPES:
        raise ValueError(f"recorder.step: loss: expected a float32 or float64 scalar, got {loss.dtype} {loss.shape}")
    return canonical_nan(loss), None if isfinite(loss) else NonFiniteError(step, "loss", None, float(loss))


def schema_of(
    params: Arrays,
    state: Arrays,
    model_state: Arrays,
    rule: str | Sequence[RuleGroup],
    hyperparameters: Sequence[str],
    clip_value: float | None,
) -> Schema:
    """The schema of a run with one rule for all params, or with groups of them; the model's state are its buffers.

    Raises:
        ValueError, TypeError: a name, dtype, shape or rule breaks a rule of the format.
    """
    specs = [TensorSpec(n, TensorRole.PARAM, dtype_name(a.dtype), a.shape) for n, a in params.items()]
    specs += [TensorSpec(n, TensorRole.STATE, dtype_name(a.dtype), a.shape) for n, a in state.items()]
    one = [RuleGroup(rule, tuple(hyperparameters), (*params, *state))] if isinstance(rule, str) else rule
    groups = _groups(one, [spec.name for spec in specs], state)
    buffers = [TensorSpec(n, TensorRole.BUFFER, dtype_name(a.dtype), a.shape) for n, a in model_state.items()]
    if clip_value is not None and not clip_value >= 0:
        raise ValueError(f"recorder: clip_value: expected a number of at least 0 or None, got {clip_value!r}")
    schema = Schema((*specs, *buffers), groups if clip_value is None else (CLIPPING, *groups))
    schema.check(Limits())
    return schema


def _groups(given: Sequence[RuleGroup], names: Sequence[str], state: Arrays) -> tuple[Group, ...]:
    position = {name: i for i, name in enumerate(names)}
    found = list[Group]()
    for number, group in enumerate(given):
        unknown = [name for name in group.tensors if name not in position]
        if unknown:
            raise ValueError(f"recorder: group {number}: expected names of params and state, got {unknown[0]!r}")
        corrections = of_group(CORRECTIONS, number)
        count = state[corrections].size if corrections in group.tensors and corrections in state else 0
        tensors = tuple(sorted(position[name] for name in group.tensors))
        found.append(Group(group.rule, tuple(group.hyperparameters), count, tensors))
    return tuple(found)
