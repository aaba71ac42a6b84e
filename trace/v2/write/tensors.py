"""The tensors of a run as a recorder gets them: checked against the schema, made canonical, digested."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array, Arrays, real_parts
from ....base.errors import DomainError
from ....base.runs.completed_step import CompletedStep, of_group
from ....base.runs.run import Run
from ..errors import NonFiniteStepError
from ..format.constants import TensorRole
from ..format.digest import Algorithm, TensorDigest, canonical, dtype_name, numpy_dtype, raw, surely_finite
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


class RecordedTensor(NamedTuple):
    """One tensor of the schema, ready to be checked and digested; `what` it is, for errors."""

    what: str
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    digest: TensorDigest

    def fits(self, array: Array) -> bool:
        """Whether an array has the dtype and shape that the trace began with."""
        return array.dtype == self.dtype and array.shape == self.shape

    def taken(self, array: Array) -> Array:
        """The array in C order and canonical form. Raises DomainError for another dtype or shape."""
        if not self.fits(array):
            raise DomainError(
                f"recorder: {self.what} '{self.name}': expected {self.dtype} {self.shape} as at the beginning "
                f"of the trace, got {array.dtype} {array.shape}; a change of dtype or shape needs a new trace"
            )
        return canonical(array)


class RecordedTensors:
    """All params, all optimizer state and all buffers, which hold the model's state."""

    def __init__(self, schema: Schema, algorithm: Algorithm) -> None:
        def all_of(role: TensorRole, what: str) -> tuple[RecordedTensor, ...]:
            return tuple(
                RecordedTensor(what, t.name, numpy_dtype(t.dtype), t.shape, TensorDigest(algorithm, t.dtype, t.shape))
                for t in schema.tensors
                if t.role is role
            )

        self._grads = all_of(TensorRole.PARAM, "gradient of")
        self._params = all_of(TensorRole.PARAM, "param")
        self._state = all_of(TensorRole.STATE, "optimizer state")
        self._buffers = all_of(TensorRole.BUFFER, "model state")
        parts = (self._buffers, self._params, self._state)
        self.names: list[list[str]] = [[tensor.name for tensor in part] for part in parts]
        """Those of buffers, params and state."""
        self.is_plain = schema.is_plain
        self._present: dict[tuple[str, ...], tuple[int, ...]] = {}

    def state_kinds(self, names: Collection[str]) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
        """Dtype and shape of the optimizer state of these names."""
        return [(tensor.dtype, tensor.shape) for tensor in self._state if tensor.name in names]

    def present(self, grads: Collection[str]) -> tuple[int, ...]:
        """The positions of the params that have a gradient. Raises DomainError for a gradient of no param."""
        names = tuple(grads)
        if names not in self._present:
            params = self.names[1]
            unknown = set(grads) - set(params)
            if unknown:
                raise DomainError(f"recorder.step: gradients of unknown params: {', '.join(sorted(unknown))}")
            self._present[names] = tuple(i for i, name in enumerate(params) if name in grads)
        return self._present[names]

    def in_front(self, present: Sequence[int], *, due: bool) -> list[RecordedTensor]:
        """What the front of a STEP has digests of, in its order: gradients, buffers, and params and state if due."""
        return [*[self._grads[i] for i in present], *self._buffers, *(self._params + self._state if due else ())]

    def arrays(self, done: CompletedStep, present: Sequence[int], *, due: bool) -> list[Array]:
        """The arrays of `in_front` after a step, as they are."""
        buffers, params, state = self.names
        grads = params if len(present) == len(params) else map(params.__getitem__, present)
        found = [*map(done.grads.__getitem__, grads), *map(done.model_state.__getitem__, buffers)]
        if due:
            found += map(done.params.__getitem__, params)
            found += map(done.state.__getitem__, state)
        return found

    def whole(self, params: Arrays, state: Arrays, model_state: Arrays) -> Snapshot:
        """Every param, optimizer state and buffer, in canonical form.

        Raises:
            DomainError: an array has another dtype or shape than the schema says.
        """
        given = ((self._params, params), (self._state, state), (self._buffers, model_state))
        pairs = [(tensor, tensor.taken(arrays[tensor.name])) for tensors, arrays in given for tensor in tensors]
        return Snapshot([array for _, array in pairs], [tensor.digest.of_bytes(raw(array)) for tensor, array in pairs])

    def nonfinite(self, step: int, present: Sequence[int], grads: Sequence[Array]) -> NonFiniteStepError | None:
        """The first element of a gradient that is not finite."""
        for i, grad in zip(present, map(real_parts, grads), strict=False):
            if not surely_finite(grad) and not np.isfinite(grad).all():
                element = int(np.argmin(np.isfinite(grad)))
                return NonFiniteStepError(step, self._params[i].name, element, float(grad.flat[element]))
        return None


def is_loss(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether a loss may be such an array."""
    return shape == () and dtype in _LOSS_DTYPES


def scalar_loss(step: int, loss: Array) -> tuple[Array, NonFiniteStepError | None]:
    """The loss as an array without axes, in canonical form, and whether it is not finite.

    Raises:
        DomainError: it is no float32 or float64 scalar.
    """
    loss = np.asarray(loss)
    if not is_loss(loss.dtype, loss.shape):
        raise DomainError(f"recorder.step: loss: expected a float32 or float64 scalar, got {loss.dtype} {loss.shape}")
    if isfinite(loss):
        return loss, None
    return canonical(loss), NonFiniteStepError(step, "loss", None, float(loss))


def schema_of(run: Run) -> Schema:
    """The schema of a run; the model's state are its buffers.

    Raises:
        DomainError, DTypeError: a name, dtype, shape or rule breaks a rule of the format.
    """
    parts = ((TensorRole.PARAM, run.params), (TensorRole.STATE, run.state), (TensorRole.BUFFER, run.model_state))
    specs = [TensorSpec(n, role, dtype_name(a.dtype), a.shape) for role, arrays in parts for n, a in arrays.items()]
    groups = _groups(run)
    schema = Schema(tuple(specs), groups if run.clip_value is None else (CLIPPING, *groups))
    schema.check(Limits())
    return schema


def _groups(run: Run) -> tuple[Group, ...]:
    position = {name: i for i, name in enumerate((*run.params, *run.state))}
    found = list[Group]()
    for number, group in enumerate(run.rules):
        own = tuple(position) if group.tensors is None else group.tensors
        unknown = [name for name in own if name not in position]
        if unknown:
            raise DomainError(f"recorder: group {number}: expected names of params and state, got {unknown[0]!r}")
        corrections = of_group(CORRECTIONS, number)
        count = run.state[corrections].size if corrections in own and corrections in run.state else 0
        tensors = tuple(sorted(position[name] for name in own))
        found.append(Group(group.rule, tuple(group.hyperparameters), count, tensors))
    return tuple(found)
